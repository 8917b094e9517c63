"""One Kafka process: its folder, its ports and its settings.

It never outlives the process that started it.
"""

import random
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from laggard.demo.guard import await_end, start_guarded

HOST = "127.0.0.1"
STOP_LIMIT_SECONDS = 10
# formatting: 1.5 s without, 0.9 s with
TOOL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
BROKER_JVM = ("-Xmx512m", *TOOL_JVM)
# Lower than where Linux takes the ports of outgoing connections (from 32768 on). From there, a
# client that reconnects to a stopped broker can be given that very port, connect to itself, and
# keep the broker from starting.
PORTS = range(15000, 32000)

LOG_SETTINGS = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c{1})%n
"""


@dataclass
class Node:
    """A member of the demo cluster, a broker and a controller in one process."""

    id: int
    folder: Path
    port: int
    controller_port: int
    process: subprocess.Popen[bytes] | None = None
    log_start: int = 0

    @property
    def address(self) -> str:
        """Address for clients."""
        return f"{HOST}:{self.port}"

    @property
    def settings(self) -> Path:
        """Its server.properties."""
        return self.folder / "server.properties"

    @property
    def log(self) -> Path:
        """All that it printed since it was first started."""
        return self.folder / "broker.log"

    def printed(self) -> str:
        """Return its output since its last start."""
        return self.log.read_bytes()[self.log_start :].decode(errors="replace")

    @property
    def is_running(self) -> bool:
        """True if its process lives."""
        return self.process is not None and self.process.poll() is None

    def write_settings(self, properties: Mapping[str, str]) -> None:
        """Write what Kafka reads at start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        (self.folder / "log4j2.properties").write_text(LOG_SETTINGS)

    def start(self, java: Sequence[str], *, remove_if_orphaned: Path | None) -> None:
        """Start the process.

        If its owner dies unexpectedly, the process is killed and the given folder removed.
        """
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        command = [java[0], *BROKER_JVM, logging, *java[1:], "kafka.Kafka", str(self.settings)]
        with self.log.open("ab") as output:
            self.log_start = output.tell()
            self.process = start_guarded(
                command, output, folder=self.folder, remove_if_orphaned=remove_if_orphaned
            )

    def send(self, sig: signal.Signals) -> None:
        """Send a signal to the process, if it lives."""
        if self.process is not None:
            self.process.send_signal(sig)

    def await_end(self) -> None:
        """Wait for the process to end, kill it after the limit, and end its watcher."""
        if self.process is None:
            return
        await_end(self.process, STOP_LIMIT_SECONDS)
        self.process = None


def default_properties(node: Node, nodes: Sequence[Node]) -> dict[str, str]:
    """Return Kafka settings for one node of a small, quick cluster.

    The cluster creates no topic by itself.
    """
    replicas = str(min(3, len(nodes)))
    return {
        "node.id": str(node.id),
        "process.roles": "broker,controller",
        "listeners": f"PLAINTEXT://{node.address},CONTROLLER://{HOST}:{node.controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(
            f"{other.id}@{HOST}:{other.controller_port}" for other in nodes
        ),
        "log.dirs": str(node.folder / "data"),
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "default.replication.factor": replicas,
        "min.insync.replicas": "1",
        "offsets.topic.num.partitions": "50",  # Kafka's default: what laggard meets in the field
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",  # Kafka waits 3 s for more members
        "log.cleaner.dedupe.buffer.size": "8388608",  # 128 MB by default, a quarter of our heap
    }


def free_ports(count: int) -> list[int]:
    """Return ports on which no process listens at this moment."""
    ports: list[int] = []
    with ExitStack() as open_sockets:
        for port in random.sample(PORTS, len(PORTS)):
            probe = open_sockets.enter_context(socket.socket())
            # as Kafka does: TIME_WAIT is no obstacle
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind((HOST, port))
                ports.append(port)
            if len(ports) == count:
                break
    return ports
