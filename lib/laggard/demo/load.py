"""The load of the demo: a producer and the consumer groups of a scenario.

python -m laggard.demo.load BOOTSTRAP [DRILL]
"""

from __future__ import annotations

import itertools
import logging
import signal
import sys
import time
from collections.abc import Iterable, Mapping
from threading import Event, Thread
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata, TopicPartition

from laggard.demo.flag import Flag
from laggard.demo.scenarios import (
    CRASH,
    HANG,
    JOIN,
    LEAVE,
    REPLACE,
    RESTART,
    SLOW_DOWN,
    Part,
    Scenario,
    partition_rates,
    scenario_of,
)

STEP_SECONDS = 0.5
SETTLE_SECONDS = 1.5
BACK_SECONDS = 5.0  # until a member that was restarted is back
END_SECONDS = 5.0
VALUE = b'{"amount": 42, "currency": "EUR", "note": "made up for the demo"}'


class Member:
    """A consumer in a thread of its own."""

    def __init__(self, bootstrap: str, part: Part, number: int) -> None:
        self.number = number
        self.rate = part.rate
        self._topic = part.topic
        self._settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "group_id": part.group,
            "client_id": f"{part.group}-{number}",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 1000,
            "session_timeout_ms": 10_000,
            # so that the broker waits and answers twice a second, not per record
            "fetch_min_bytes": 1 << 20,
            "fetch_max_wait_ms": int(STEP_SECONDS * 1000),
            # so long a new leader begins one rebalance after the other
            "metadata_max_age_ms": 2_000,
            "metrics_enabled": False,
        }
        self._leaving = Event()
        self._hanging = Event()
        self._handled: dict[TopicPartition, float] = {}
        self._commits_from = 0.0
        self._thread = Thread(target=self._consume, name=self._settings["client_id"], daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Ask it to leave its group."""
        self._leaving.set()

    def hang(self) -> None:
        """Let it do nothing until it leaves; the client's own thread sends heartbeats on."""
        self._hanging.set()

    def settle(self) -> None:
        """Hold commits back for a moment.

        A commit that comes while others wait for a share begins the next rebalance.
        """
        self._commits_from = time.monotonic() + SETTLE_SECONDS

    def await_end(self) -> None:
        """Wait until it has left."""
        self._thread.join(END_SECONDS)

    def _consume(self) -> None:
        consumer = KafkaConsumer(**self._settings)
        consumer.subscribe([self._topic], listener=_Settling(self))
        then = time.monotonic()
        try:
            while not self._leaving.is_set():
                try:
                    consumer.poll(timeout_ms=int(STEP_SECONDS * 1000))
                    now = time.monotonic()
                    if self._hanging.is_set():
                        self._leaving.wait()
                    elif now - then >= STEP_SECONDS and now >= self._commits_from:
                        self._commit(consumer, now - then)
                        then = now
                # a rebalance came first, or the broker is not ready: the next round tells
                except KafkaError:
                    self._leaving.wait(STEP_SECONDS)
        finally:
            consumer.close()

    def _commit(self, consumer: KafkaConsumer, seconds: float) -> None:
        """Commit what was handled by now: the position, or as far as the rate allows."""
        begun: dict[TopicPartition, float] = {}
        waiting: dict[TopicPartition, float] = {}
        for partition in consumer.assignment():
            position = consumer.position(partition, timeout_ms=1000)
            if position is None:
                continue
            start = self._handled.get(partition)
            if start is None:  # given to this member just now
                start = consumer.committed(partition, timeout_ms=1000) or 0
            begun[partition], waiting[partition] = start, max(0.0, position - start)
        done = waiting
        if self.rate is not None:
            done = fair_shares(waiting, self.rate * seconds)
        self._handled = {partition: begun[partition] + done[partition] for partition in begun}
        offsets = {}
        for partition, offset in self._handled.items():
            offsets[partition] = OffsetAndMetadata(int(offset), "", -1)
        if offsets:
            consumer.commit(offsets)


class _Settling(ConsumerRebalanceListener):  # type: ignore[misc]  # the client has no types
    """Tells a member that it was given partitions."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_revoked(self, _: object) -> None:
        pass

    def on_partitions_assigned(self, _: object) -> None:
        self._member.settle()


def fair_shares(
    waiting: Mapping[TopicPartition, float], total: float
) -> dict[TopicPartition, float]:
    """Return fair shares of a total: none larger than its backlog, and the rest equal."""
    shares, left = {}, total
    for index, (partition, most) in enumerate(sorted(waiting.items(), key=lambda pair: pair[1])):
        shares[partition] = min(most, left / (len(waiting) - index))
        left -= shares[partition]
    return shares


class Load:
    """A scenario on one cluster, until `stop` is set.

    The trouble of a drill begins when `cue` is set.
    """

    def __init__(self, bootstrap: str, scenario: Scenario, stop: Flag, cue: Flag) -> None:
        self._bootstrap = bootstrap
        self._scenario = scenario
        self._stop = stop
        self._cue = cue
        self._numbers = itertools.count(1)

    def run(self) -> None:
        """Create the topics, run the load of all groups, and end them in order."""
        create_topics(self._bootstrap, self._scenario)
        parts = self._scenario.parts
        threads = [
            Thread(target=self._run_group, args=(part,), name=part.group, daemon=True)
            for part in parts
        ]
        for thread in threads:
            thread.start()
        try:
            self._produce()
        finally:
            for thread in threads:
                thread.join(2 * END_SECONDS)

    def _produce(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap, linger_ms=50, metrics_enabled=False
        )
        due, then = dict.fromkeys(partition_rates(self._scenario), 0.0), time.monotonic()
        while not self._stop.wait(STEP_SECONDS / 2):
            now = time.monotonic()
            for (topic, partition), rate in partition_rates(
                self._scenario, is_on=self._cue.is_set()
            ).items():
                waiting = due[topic, partition] + rate * (now - then)
                for _ in range(int(waiting)):
                    producer.send(topic, VALUE, partition=partition)
                due[topic, partition] = waiting % 1
            then = now
        producer.close(timeout=1)

    def _run_group(self, part: Part) -> None:
        members = [self._member(part) for _ in range(part.members)]
        self._cue.wait()
        script: Iterable[tuple[float, str]] = part.script
        if part.repeats:
            script = itertools.cycle(script)
        for wait, act in script:
            if self._stop.wait(wait):
                break
            members = self._act(part, act, members)
        self._stop.wait()
        for member in members:
            member.leave()
        for member in members:
            member.await_end()

    def _act(self, part: Part, act: str, members: list[Member]) -> list[Member]:
        """Let it happen; the members after it, the oldest first."""
        if act == JOIN:
            return [*members, self._member(part)]
        if act == HANG:
            members[0].hang()
        if act == SLOW_DOWN:
            for member in members:
                member.rate = part.slow_rate
        if act not in {LEAVE, REPLACE, RESTART, CRASH}:
            return members
        going, *stay = members
        if act == CRASH:
            *stay, going = members
        going.leave()
        going.await_end()
        if act == LEAVE:
            return stay
        if act == REPLACE:
            return [*stay, self._member(part)]
        self._stop.wait(BACK_SECONDS)
        return [*stay, self._member(part, going.number)]

    def _member(self, part: Part, number: int | None = None) -> Member:
        return Member(self._bootstrap, part, next(self._numbers) if number is None else number)


def create_topics(bootstrap: str, scenario: Scenario) -> None:
    """Make the topics be there."""
    # each call ends after kafka-python's 30 s
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        for topic, rates in scenario.topics.items():
            try:
                admin.create_topics(
                    [NewTopic(topic, num_partitions=len(rates), replication_factor=1)]
                )
            except TopicAlreadyExistsError:  # the folder was used before
                continue
    finally:
        admin.close()


def main(bootstrap: str, drill: str = "") -> int:
    """Run the load until SIGTERM or Ctrl-C; SIGUSR1 starts the fault of a drill."""
    logging.basicConfig(level=logging.WARNING)
    stop, cue = Flag(), Flag()

    def end(*_: object) -> None:
        stop.set()
        cue.set()  # nobody waits for it any longer

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    signal.signal(signal.SIGUSR1, lambda *_: cue.set())
    if not drill:
        cue.set()
    Load(bootstrap, scenario_of(drill), stop, cue).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
