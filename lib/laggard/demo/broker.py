"""A real Kafka cluster of one or more nodes on this machine, as a context manager.

with Broker(nodes=3) as broker:
    KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
"""

import base64
import functools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Collection
from pathlib import Path
from types import TracebackType

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from laggard.demo.node import HOST, TOOL_JVM, Node, default_properties, free_ports
from laggard.errors import TEMPORARY, LaggardError
from laggard.ivy import find_java
from laggard.jars import broker_jars

FORMAT_LIMIT_SECONDS = 180
# one node takes 2 to 3 s; the rest is for three of them on two busy cores
START_LIMIT_SECONDS = 180
ROUND_TRIP_LIMIT_MS = 5000
RETRY_SECONDS = 0.1
REPORTED_LOG_LINES = 15
PORT_TAKEN = "Address already in use"


class Broker:
    """A Kafka cluster that lives as long as its `with` block, however it or this process ends.

    Without `work_dir` its files are in a temporary folder, removed at the end; a given folder is
    kept and can be used again. `properties` are Kafka's own names, set on all nodes over the
    defaults. `listeners` are more ones of a single node, as Kafka writes them: NAME://host:port.
    """

    def __init__(
        self,
        work_dir: Path | None = None,
        nodes: int = 1,
        properties: dict[str, str] | None = None,
        listeners: Collection[str] = (),
    ) -> None:
        self.node_count = nodes
        self.properties = properties or {}
        self.listeners = listeners
        self._kept_dir = work_dir.absolute() if work_dir else None
        self._temporary_dir: Path | None = None
        self._nodes: dict[int, Node] = {}

    def __enter__(self) -> "Broker":  # noqa: PYI034 - typing has no Self before Python 3.11
        if self._kept_dir is None:
            self._temporary_dir = Path(tempfile.mkdtemp(prefix="laggard-kafka-"))
        try:
            try:
                self._start_on_new_ports()
            except LaggardError as error:
                if PORT_TAKEN not in error.cause:
                    raise
                self._end_nodes(signal.SIGKILL)
                # another process was quicker; twice in a row would be another fault
                self._start_on_new_ports()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def work_dir(self) -> Path:
        """The folder with one sub-folder per node: server.properties, broker.log, data."""
        folder = self._kept_dir or self._temporary_dir
        if folder is None:
            raise LaggardError("the broker was not started", fix="with Broker() as broker: ...")
        return folder

    @property
    def bootstrap_servers(self) -> str:
        """Addresses of all nodes, also of stopped ones."""
        return ",".join(node.address for node in self._nodes.values())

    @property
    def pids(self) -> dict[int, int]:
        """Process number of each running node, by node id (from 1 on)."""
        pids: dict[int, int] = {}
        for node in self._nodes.values():
            if node.process and node.is_running:
                pids[node.id] = node.process.pid
        return pids

    @property
    def java_class_path(self) -> str:
        """The broker jars, for one's own java command."""
        return os.pathsep.join(map(str, broker_jars()))

    def start(self, node: int) -> None:
        """Start a stopped node on its old port and wait until it answers."""
        self._launch([self._nodes[node]])

    def stop(self, node: int | None = None, sig: signal.Signals = signal.SIGTERM) -> None:
        """End one node or all of them; one that outlasts SIGTERM by 10 s is killed."""
        self._end_nodes(sig, None if node is None else [node])

    def run_tool(self, main_class: str, *args: str, timeout: float = 180) -> str:
        """Run a Kafka command line tool and return its standard output.

        `args` name the broker as the tool expects.
        """
        command = [self._java[0], *TOOL_JVM, *self._java[1:], main_class, *args]
        name = main_class.rpartition(".")[2]
        try:
            answer = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            what = f"{name} did not end within {timeout} s"
            raise LaggardError(what, cause=" ".join(args), exit_code=TEMPORARY) from error
        if answer.returncode != 0:
            cause = f"exit code {answer.returncode}: {_log_tail(answer.stdout + answer.stderr)}"
            raise LaggardError(f"{name} {' '.join(args)} failed", cause=cause)
        return answer.stdout

    @functools.cached_property
    def _java(self) -> tuple[str, ...]:
        return (find_java(), "-cp", self.java_class_path)

    def _start_on_new_ports(self) -> None:
        ports = free_ports(2 * self.node_count)
        self._nodes = {
            number: Node(number, self.work_dir / f"node-{number}", ports.pop(), ports.pop())
            for number in range(1, self.node_count + 1)
        }
        for node in self._nodes.values():
            settings = default_properties(node, list(self._nodes.values())) | self.properties
            node.write_settings(
                settings | {"listeners": ",".join([settings["listeners"], *self.listeners])}
            )
        self._format()
        self._launch(self._nodes.values())

    def _launch(self, nodes: Collection[Node]) -> None:
        for node in nodes:
            node.start(self._java, remove_if_orphaned=self._temporary_dir)
        _await_ready(nodes)

    def _format(self) -> None:
        """Give each new node an empty storage folder; all at once, as each costs a Java start."""
        cluster_id = self._cluster_id()
        formats = []
        for node in self._nodes.values():
            if not (node.folder / "data" / "meta.properties").exists():
                tool = [
                    "kafka.tools.StorageTool",
                    "format",
                    f"--cluster-id={cluster_id}",
                    f"--config={node.settings}",
                ]
                command = [self._java[0], *TOOL_JVM, *self._java[1:], *tool]
                formats.append(
                    subprocess.Popen(
                        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                    )
                )
        try:
            for process in formats:
                output, _ = process.communicate(timeout=FORMAT_LIMIT_SECONDS)
                if process.returncode != 0:
                    what, fix = (
                        "Kafka refused its settings",
                        f"cat {self.work_dir}/node-1/server.properties",
                    )
                    raise LaggardError(what, cause=_log_tail(output), fix=fix)
        finally:
            for process in formats:
                process.kill()
                process.wait()

    def _cluster_id(self) -> str:
        file = self.work_dir / "cluster.id"
        if not file.exists():
            self.work_dir.mkdir(parents=True, exist_ok=True)
            file.write_text(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))
        return file.read_text()

    def _end_nodes(self, sig: signal.Signals, numbers: Collection[int] | None = None) -> None:
        nodes = [self._nodes[number] for number in (self._nodes if numbers is None else numbers)]
        for node in nodes:
            node.send(sig)
        for node in nodes:
            node.await_end()

    def _close(self) -> None:
        # files that go away need no orderly shutdown, and the last node of a cluster would not
        # manage one: it waits for a quorum that has ended
        self._end_nodes(signal.SIGKILL if self._temporary_dir else signal.SIGTERM)
        if self._temporary_dir:
            shutil.rmtree(self._temporary_dir, ignore_errors=True)
            self._temporary_dir = None


def _await_ready(nodes: Collection[Node]) -> None:
    """Wait until each node answers and sees all of them registered under a known controller."""
    deadline = time.monotonic() + START_LIMIT_SECONDS
    for node in nodes:
        while not _is_ready(node, {other.id for other in nodes}):
            for other in nodes:  # any of them: one that ended keeps the others waiting for a quorum
                if not other.is_running:
                    raise _start_failure(other, "ended while starting")
            if time.monotonic() > deadline:
                raise _start_failure(node, f"was not ready after {START_LIMIT_SECONDS} s")
            time.sleep(RETRY_SECONDS)


def _is_ready(node: Node, expected_ids: set[int]) -> bool:
    try:
        # a client that cannot connect warns on the console, so ask for the port first
        socket.create_connection((HOST, node.port), timeout=ROUND_TRIP_LIMIT_MS / 1000).close()
        # connecting is a metadata round trip with this very node, which it answers once it is
        # registered
        client = KafkaAdminClient(
            bootstrap_servers=node.address,
            bootstrap_timeout_ms=ROUND_TRIP_LIMIT_MS,
            request_timeout_ms=ROUND_TRIP_LIMIT_MS,
        )
    except (OSError, KafkaError):
        return False
    try:
        cluster = client.describe_cluster()
    except KafkaError:
        return False
    finally:
        client.close()
    live = [broker for broker in cluster["brokers"] if not broker.get("is_fenced", False)]
    usable = {broker["broker_id"] for broker in live}
    return cluster["controller_id"] >= 0 and expected_ids <= usable


def _start_failure(node: Node, event: str) -> LaggardError:
    return LaggardError(
        f"Kafka node {node.id} {event}", cause=_log_tail(node.printed()), fix=f"cat {node.settings}"
    )


def _log_tail(text: str) -> str:
    """Return the last lines of a log that matter: no Java stack traces, no lists of settings."""
    lines = [
        line.rstrip()
        for line in text.splitlines()
        if line.strip() and not line.startswith(("\t", "    at "))
    ]
    errors = [
        line for line in lines if " ERROR " in line or " FATAL " in line or "Exception" in line
    ]
    return "\n  ".join((errors or lines)[-REPORTED_LOG_LINES:])
