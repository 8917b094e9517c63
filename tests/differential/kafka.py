"""Kafka's own record classes, asked through a small Java program."""

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laggard.demo.node import TOOL_JVM
from laggard.ivy import find_java
from laggard.jars import broker_jars

PROGRAM = Path(__file__).with_name("Oracle.java")
END_LIMIT_SECONDS = 10


class NoCompilerError(Exception):
    """This java can run classes and not source files."""


class Kafka:
    """A running program; one thread asks at a time."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self._process = process
        self._said = said

    def ask(self, lines: Sequence[str]) -> list[dict[str, Any]]:
        """One answer per line, in the same order."""
        asker = threading.Thread(
            target=self._write, args=("".join(f"{line}\n" for line in lines).encode(),)
        )
        asker.start()  # beside the reading: a pipe holds less than a batch
        answers = [json.loads(self._read()) for _ in lines]
        asker.join()
        return answers

    def _write(self, lines: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(lines)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the reader tells what the program said at its end

    def _read(self) -> str:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return line.decode()
        self._process.wait(END_LIMIT_SECONDS)
        said = self._said.read_text(encoding="utf-8", errors="replace")
        if "jdk.compiler" in said:
            raise NoCompilerError(said.strip())
        raise RuntimeError(f"java ended with code {self._process.returncode}: {said[-2000:]}")


@contextmanager
def running_kafka() -> Iterator[Kafka]:
    """The program, compiled by java as it starts (1.5 s)."""
    class_path = ":".join(str(path) for path in broker_jars())
    command = [find_java(), *TOOL_JVM, "-Xmx256m", "-cp", class_path, str(PROGRAM)]
    with tempfile.NamedTemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        try:
            yield Kafka(process, Path(said.name))
        finally:
            process.kill()  # it keeps nothing
            process.communicate(timeout=END_LIMIT_SECONDS)
