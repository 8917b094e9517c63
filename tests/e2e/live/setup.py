"""A broker, a job that follows it from its first group on, and the clients' program."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import Place, Run, at, produce
from e2e.live.clients import running_clients
from e2e.live.members import TOPICS
from e2e.live.scenario import Scenario
from laggard.demo.broker import Broker

# by a heartbeat a modern member hears of its partitions: with Kafka's 5 s that would be most of the
# tests' time
HEARTBEATS = {
    f"group.{kind}.{name}heartbeat.interval.ms": "500"
    for kind in ("consumer", "share", "streams")
    for name in ("", "min.")
}
RECORDS = 3  # per partition


@dataclass(frozen=True)
class Setup:
    """What a scenario needs beside itself."""

    broker: Broker
    admin: KafkaAdminClient
    scenario: Scenario


@contextmanager
def start_setup(folder: Path, nodes: int = 1) -> Iterator[Setup]:
    with ExitStack() as running:
        broker = running.enter_context(Broker(nodes=nodes, properties=HEARTBEATS))
        servers = broker.bootstrap_servers
        admin = KafkaAdminClient(bootstrap_servers=servers)
        running.callback(admin.close)
        admin.create_topics(
            [NewTopic(name, number, min(3, nodes)) for name, number in TOPICS.items()]
        )
        place = Place(folder, servers)
        clients = running.enter_context(running_clients(broker))
        run = Run(place)
        running.callback(run.kill)
        counts = {
            at(topic, number): RECORDS for topic, count in TOPICS.items() for number in range(count)
        }
        produce(servers, counts)
        yield Setup(broker, admin, Scenario(clients, place, run, servers))
