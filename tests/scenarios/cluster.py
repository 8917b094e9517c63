"""A simulated cluster with a fault at a known minute; its draws come from a random stream of their
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

from simulator.clock import START_MS
from simulator.cluster import MINUTE, SECOND, Cluster
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.offsets_log import PARTITIONS, partition_of
from simulator.producer import Rate, steady
from simulator.reader import Reader
from simulator.records import TopicPartition
from simulator.world import Config

HEALTHY, WITH_BASELINE = 14, 80  # minutes before a fault: enough for trends, enough for a baseline
# fewer and larger batches than a busy consumer's: half the events, the same rates
BATCH_MS = (1000, 1000)


@cache
def group_name(offsets_partition: int, number: int = 0) -> str:
    """A group that lives in this partition of the offsets topic; the others there have other
    numbers.
    """
    names = (
        name
        for name in (f"billing-{each}" for each in range(100_000))
        if partition_of(name) == offsets_partition
    )
    return next(islice(names, number, None))


class Checkpointer(Reader):
    """A reader without membership, as Flink's: assigned by itself, offsets stored with each
    checkpoint.
    """

    def __init__(
        self, cluster: ScenarioCluster, config: Config, places: list[TopicPartition]
    ) -> None:
        super().__init__(cluster.world, config, f"{config.group}-checkpoints")
        self.positions = dict.fromkeys(places, 0)

    def start(self) -> None:
        self.resume()

    def identity(self) -> tuple[str, int]:
        return "", -1

    def is_known(self) -> bool:
        return True

    def before_poll(self) -> bool:
        return True

    def leave(self) -> None:
        """Nobody would notice."""

    def commit(self, places: Any = None, done: Any = None) -> None:
        self._committed_ms = self.clock.now
        self.world.coordinator.store(self.config.group, dict(self.positions))
        if done is not None:
            done("")


class ScenarioCluster(Cluster):
    """The world of one scenario run. `place` keeps its names apart from those of runs recorded
    beside it.

    Its groups lie in the offsets partitions from `place` on; `members` replaces the number of
    members at a minute of a counterfactual run.
    """

    def __init__(self, seed: int, place: int = 0) -> None:
        super().__init__(seed)
        self.place = place
        self.main = f"orders-{place}"
        self.names: list[str] = []  # of groups, in order of first use
        self.known_topics: set[str] = set()
        self.draw = self.streams("scenario")

    # names

    def name(self, number: int = 0) -> str:
        """The group with this number."""
        name = group_name((self.place + number) % PARTITIONS)
        if name not in self.names:
            self.names.append(name)
        return name

    def neighbour(self, number: int) -> str:
        """The group with this number in the offsets partition of the first one; 0 is the first one
        itself.
        """
        name = group_name(self.place % PARTITIONS, number)
        if name not in self.names:
            self.names.append(name)
        return name

    def at_ms(self, minutes: float) -> int:
        """A minute of the run in milliseconds since the epoch."""
        return START_MS + round(minutes * MINUTE)

    # drawing

    def between(self, low: float, high: float) -> float:
        return self.draw.uniform(low, high)

    def about(self, minutes: float) -> float:
        """About that minute, at any phase of windows and commits."""
        return minutes + self.between(0, 2)

    def one_of(self, *values: Any) -> Any:
        return self.draw.choice(values)

    # topics and members

    def topic(
        self,
        name: str = "",
        partitions: int = 12,
        rate: Rate | None = None,
        retention_ms: int | None = None,
    ) -> None:
        self.rates([rate or steady(100)] * partitions, name, retention_ms)

    def rates(self, rates: list[Rate], name: str = "", retention_ms: int | None = None) -> None:
        """A topic with one partition per rate."""
        self.known_topics.add(name or self.main)
        self.brokers.create(name or self.main, rates, retention_ms)

    def config(self, index: int = 0, **changes: Any) -> Config:
        group = changes.pop("group", None) or self.name()
        known = Config(
            group, "billing-app", f"/10.0.{self.place}.{index + 1}", (self.main,), batch_ms=BATCH_MS
        )
        return replace(known, **changes)

    def static(self, number: int, **changes: Any) -> None:
        """So many static members, started within two seconds."""
        for index in range(number):
            config = self.config(index, instance_id=f"billing-{index}", **changes)
            self.clock.after(
                self.chance.randint(0, 2 * SECOND), lambda config=config: self.start(config)
            )

    def grow(
        self, number: int, kind: type[Member | ModernMember] = Member, group: str = ""
    ) -> None:
        """So many more members like the others, healthy."""
        first = 100 + self._started
        for index in range(number):
            self.start(self.config(first + index, **self._like(group)), kind)

    def _like(self, group: str) -> dict[str, Any]:
        config = next(
            each.config for each in self.members if each.config.group == (group or self.name())
        )
        same = (
            "group",
            "topics",
            "assignors",
            "session_ms",
            "poll_interval_ms",
            "commit_ms",
            "capacity",
            "batch_ms",
        )
        return {name: getattr(config, name) for name in same}

    # who and when

    def minute(self, minutes: float, action: Callable[[], object], fault: str = "") -> None:
        """Do something at a minute of the run."""

        def run() -> None:
            if fault:
                self.truth.faults.append({"fault": fault, "at_ms": self.clock.now})
            action()

        self.clock.at(self.at_ms(minutes), run)

    def every(self, seconds: float, begin: float, end: float, action: Callable[[], object]) -> None:
        """Do something again and again between two minutes."""
        at = self.at_ms(begin)
        while at < self.at_ms(end):
            self.clock.at(at, action)
            at += round(seconds * SECOND)

    def alive(self, group: str = "") -> list[Any]:
        """Living members of a group, in order of host."""
        found = [each for each in self.living() if each.config.group == (group or self.name())]
        return sorted(found, key=lambda each: (len(each.config.host), each.config.host))

    def owner(self, place: TopicPartition, group: str = "") -> Any:
        return next((each for each in self.alive(group) if place in each.positions), None)

    def backlog(self, group: str = "") -> int:
        """Records between the ends and what is committed, at this very moment."""
        name = group or self.name()
        topics = {
            topic
            for each in self.members
            if each.config.group == name
            for topic in each.config.topics
        }
        committed = self.coordinator.committed
        return sum(
            max(0, self.brokers.end(topic, part) - committed.get((name, topic, part), (0, 0))[0])
            for topic in sorted(topics)
            for part in range(len(self.brokers.topics[topic].logs))
        )
