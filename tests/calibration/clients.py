"""Java consumers in a process of their own, and the driver that commands them."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Thread

from kafka.admin import KafkaAdminClient

from differential.kafka import NoCompilerError
from laggard.demo.broker import Broker
from laggard.demo.node import TOOL_JVM
from laggard.ivy import find_java
from simulator.world import Config

PROGRAM = Path(__file__).with_name("Clients.java")
END_SECONDS = 10
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


class Clients:
    """A process of consumers (Clients.java)."""

    def __init__(self, broker: Broker, log: Path) -> None:
        command = [find_java(), *TOOL_JVM, "-Xmx384m", "-cp", broker.java_class_path, str(PROGRAM)]
        self._log = log
        with log.open("wb") as said:
            self.process = subprocess.Popen(
                [*command, broker.bootstrap_servers],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, bufsize=1,
            )  # fmt: skip
        self.held: dict[str, int] = {}
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    def tell(self, *words: object) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # `check` tells why
            self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("holds "):
                _, name, number = line.split()
                self.held[name] = int(number)

    def check(self) -> None:
        code = self.process.poll()
        if code is None:
            return
        said = self._log.read_text(encoding="utf-8", errors="replace")
        if "jdk.compiler" in said:
            raise NoCompilerError(said.strip())
        raise RuntimeError(f"the consumers ended with code {code}: {said[-2000:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(END_SECONDS)
        self._listener.join(END_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


class RealDriver:
    """Members in one process; those that will be killed in another, which goes with them."""

    def __init__(self, clients: Clients, doomed: Clients, admin: KafkaAdminClient) -> None:
        self._clients, self._doomed, self._admin = clients, doomed, admin
        self._homes: dict[str, Clients] = {}

    def start(self, config: Config, *, is_modern: bool, is_doomed: bool) -> None:
        home = self._homes[config.client_id] = self._doomed if is_doomed else self._clients
        settings = [
            f"{name}={value}" for name, value in properties(config, is_modern=is_modern).items()
        ]
        home.tell("start", config.client_id, config.topics[0], *settings)

    def close(self, config: Config) -> None:
        self._homes[config.client_id].tell("close", config.client_id)

    def crash(self, config: Config) -> None:
        self._homes[config.client_id].kill()

    def hang(self, config: Config, seconds: float) -> None:
        self._homes[config.client_id].tell("hang", config.client_id, round(seconds * 1000))

    def expand(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions({topic: partitions})

    def held(self, config: Config) -> int:
        return self._homes[config.client_id].held.get(config.client_id, 0)

    def check(self) -> None:
        """Raise if the consumers' process has ended by itself."""
        self._clients.check()


def properties(config: Config, *, is_modern: bool) -> dict[str, object]:
    """The Java client's names; the coordinator has the sessions and assignors of the new protocol
    (KIP-848).
    """
    classic = {
        "group.protocol": "classic",
        "session.timeout.ms": config.session_ms,
        "heartbeat.interval.ms": config.heartbeat_ms,
        "partition.assignment.strategy": ",".join(ASSIGNORS[name] for name in config.assignors),
    }
    static = {"group.instance.id": config.instance_id} if config.instance_id else {}
    return {
        "group.id": config.group,
        "client.id": config.client_id,
        **static,
        "max.poll.interval.ms": config.poll_interval_ms,
        "max.poll.records": config.max_records,
        "auto.commit.interval.ms": config.commit_ms,
        "metadata.max.age.ms": config.metadata_ms,
        "auto.offset.reset": "earliest",
        **({"group.protocol": "consumer"} if is_modern else classic),
    }
