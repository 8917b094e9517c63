"""The load of the demo: a producer and five consumer groups, each with another way to lag.

python -m laggard.demo.cast BOOTSTRAP
"""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata, TopicPartition

# Records per second of each partition, by its number.
TOPICS: Mapping[str, tuple[int, ...]] = {
    "orders": (8, 8, 8, 8, 8, 8),
    "payments": (4, 4, 60, 4),
    "emails": (4, 4, 4),
}
HOT_PARTITION = "payments-2"
STEP_SECONDS = 0.5
RESTART_SECONDS = 20.0
END_SECONDS = 5.0
VALUE = b'{"amount": 42, "currency": "EUR", "note": "made up for the demo"}'


@dataclass(frozen=True)
class Part:
    """One group of the cast; without a rate a member keeps up with whatever comes."""

    group: str
    topic: str
    members: int = 1
    rate: float | None = None  # records per second a member handles on each partition
    leaves_after: float | None = None  # seconds, then the group stays empty
    restarts: bool = False  # every RESTART_SECONDS its oldest member gives way to a new one


CAST = (
    Part("checkout", "orders", members=2),
    Part("reporting", "orders", rate=3),
    Part("fraud", "payments", rate=25),
    Part("archive", "orders", leaves_after=8),
    Part("mailer", "emails", members=2, restarts=True),
)


class Member:
    """A consumer in a thread of its own."""

    def __init__(self, bootstrap: str, part: Part, number: int) -> None:
        self._part = part
        self._settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "group_id": part.group,
            "client_id": f"{part.group}-{number}",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 1000,
            "session_timeout_ms": 10_000,
            "fetch_min_bytes": 1 << 20,  # so that the broker waits and answers twice a second, not per record
            "fetch_max_wait_ms": int(STEP_SECONDS * 1000),
            "metadata_max_age_ms": 10_000,
            "metrics_enabled": False,
        }
        self._leaving = Event()
        self._handled: dict[TopicPartition, float] = {}
        self._thread = Thread(target=self._consume, name=self._settings["client_id"], daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Ask it to leave its group."""
        self._leaving.set()

    def await_end(self) -> None:
        """Wait until it has left."""
        self._thread.join(END_SECONDS)

    def _consume(self) -> None:
        consumer = KafkaConsumer(self._part.topic, **self._settings)
        then = time.monotonic()
        try:
            while not self._leaving.is_set():
                try:
                    consumer.poll(timeout_ms=int(STEP_SECONDS * 1000))
                    now = time.monotonic()
                    if now - then >= STEP_SECONDS:
                        self._commit(consumer, now - then)
                        then = now
                except KafkaError:  # a rebalance came first, or the broker is not ready: the next round tells
                    self._leaving.wait(STEP_SECONDS)
        finally:
            consumer.close()

    def _commit(self, consumer: KafkaConsumer, seconds: float) -> None:
        """Commit what was handled by now: the position, or as far as the rate allows."""
        rate, assigned = self._part.rate, consumer.assignment()
        done: dict[TopicPartition, float] = {}
        for partition in assigned:
            position = consumer.position(partition, timeout_ms=1000)
            if position is None:
                continue
            if rate is None:
                done[partition] = position
                continue
            start = self._handled.get(partition)
            if start is None:  # given to this member just now
                start = consumer.committed(partition, timeout_ms=1000) or 0
            done[partition] = min(position, start + rate * seconds)
        if done:
            consumer.commit({partition: OffsetAndMetadata(int(offset), "", -1) for partition, offset in done.items()})
        self._handled = done


class Play:
    """The whole cast on one cluster, until `stop` is set."""

    def __init__(self, bootstrap: str, stop: Event) -> None:
        self._bootstrap = bootstrap
        self._stop = stop
        self._number = 0

    def run(self) -> None:
        """Create the topics, let all parts play, and end them in order."""
        create_topics(self._bootstrap)
        threads = [Thread(target=self._play, args=(part,), name=part.group, daemon=True) for part in CAST]
        for thread in threads:
            thread.start()
        try:
            self._produce()
        finally:
            for thread in threads:
                thread.join(2 * END_SECONDS)

    def _produce(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, linger_ms=50, metrics_enabled=False)
        start, sent = time.monotonic(), dict.fromkeys(partition_rates(), 0)
        while not self._stop.wait(STEP_SECONDS / 2):
            seconds = time.monotonic() - start
            for (topic, partition), rate in partition_rates().items():
                due = int(rate * seconds) - sent[topic, partition]
                for _ in range(due):
                    producer.send(topic, VALUE, partition=partition)
                sent[topic, partition] += due
        producer.close(timeout=1)

    def _play(self, part: Part) -> None:
        members = [self._member(part) for _ in range(part.members)]
        for wait in _waits(part):
            if self._stop.wait(wait):
                break
            oldest = members.pop(0)
            oldest.leave()
            oldest.await_end()
            if part.restarts:
                members.append(self._member(part))
        self._stop.wait()
        for member in members:
            member.leave()
        for member in members:
            member.await_end()

    def _member(self, part: Part) -> Member:
        self._number += 1
        return Member(self._bootstrap, part, self._number)


def _waits(part: Part) -> Iterator[float]:
    """Seconds until each next change of the group's members."""
    if part.leaves_after is not None:
        yield part.leaves_after
    while part.restarts:
        yield RESTART_SECONDS


def partition_rates() -> dict[tuple[str, int], int]:
    """Records per second of each topic and partition."""
    return {(topic, number): rate for topic, rates in TOPICS.items() for number, rate in enumerate(rates)}


def create_topics(bootstrap: str) -> None:
    """Make the topics be there."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        for topic, rates in TOPICS.items():
            try:
                admin.create_topics([NewTopic(topic, num_partitions=len(rates), replication_factor=1)])
            except TopicAlreadyExistsError:  # the folder was used before
                continue
    finally:
        admin.close()


def main(bootstrap: str) -> int:
    """Play until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.WARNING)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Play(bootstrap, stop).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
