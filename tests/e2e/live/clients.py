"""Kafka's own clients and tools in one Java program, driven line by line."""

import json
import select
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from laggard.demo.broker import Broker
from laggard.demo.node import TOOL_JVM
from laggard.ivy import find_java

PROGRAM = Path(__file__).with_name("Members.java")
ANSWER_LIMIT, END_LIMIT = 300, 60


class Clients:
    """The running program; one thread asks at a time."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path, servers: str) -> None:
        self._process = process
        self._said = said
        self._servers = servers

    def ask(self, *words: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words).encode() + b"\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_LIMIT)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            pytest.fail(f"no answer to {' '.join(words)}: {self.said()}", pytrace=False)
        return json.loads(line)

    def tool(self, name: str, *arguments: str) -> str:
        """What one of Kafka's command line tools prints."""
        return str(self.ask("tool", name, "--bootstrap-server", self._servers, *arguments))

    def said(self) -> str:
        return self._said.read_text(errors="replace")[-4000:]


@contextmanager
def running_clients(broker: Broker) -> Iterator[Clients]:
    """The program, compiled by java as it starts; it ends with its standard input, whatever ends
    us.
    """
    command = [find_java(), *TOOL_JVM, "-Xmx512m", "-cp", broker.java_class_path, str(PROGRAM)]
    with tempfile.NamedTemporaryFile() as said:
        process = subprocess.Popen(
            [*command, broker.bootstrap_servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
        )
        try:
            yield Clients(process, Path(said.name), broker.bootstrap_servers)
        finally:
            process.kill()  # its groups end with the broker
            process.communicate(timeout=END_LIMIT)
