"""The simulated cluster of one workload: brokers, coordinator and members, and operations on them.

Baseline: topic `orders`, 12 partitions, 4 members, range, dynamic, one host each, 100 records/s per
partition, 600/s per member, auto-commit 5 s and on revoke and close, session 45 s, heartbeat 3 s,
poll interval 300 s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simulator.broker import Brokers
from simulator.clock import Clock, Network, Streams
from simulator.coordinator import Coordinator
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.producer import Rate, steady
from simulator.truth import Truth
from simulator.world import Config, World

SECOND, MINUTE = 1000, 60_000
GROUP, TOPIC = "billing", "orders"


class Cluster:
    """The cluster of one workload and operations on it; `mark` ends its names, to keep them apart
    from other runs'.
    """

    def __init__(self, seed: int, mark: str = "") -> None:
        self.mark = mark
        self.clock, self.streams, self.truth = Clock(), Streams(seed), Truth()
        self.brokers = Brokers(self.clock, self.streams)
        self.coordinator = Coordinator(self.clock, self.streams, self.brokers, self.truth)
        network = Network(self.clock, self.streams)
        self.world = World(self.clock, self.streams, network, self.coordinator, self.truth)
        # the name is part of the seed: another one gives other runs
        self.chance = self.streams("story")
        self.members: list[Any] = []
        self._started = self._rolling = 0

    def marked(self, name: str) -> str:
        """A group's or topic's name in this world."""
        return name + self.mark

    @property
    def group_name(self) -> str:
        return self.marked(GROUP)

    @property
    def topic_name(self) -> str:
        return self.marked(TOPIC)

    def topic(
        self,
        name: str = "",
        partitions: int = 12,
        rate: Rate | None = None,
        retention_ms: int | None = None,
    ) -> None:
        self.brokers.create(
            name or self.topic_name, [rate or steady(100)] * partitions, retention_ms
        )

    def config(self, index: int = 0, **changes: Any) -> Config:
        """The settings of the member with this number."""
        host = f"/10.0.0.{index + 1}"
        known = Config(
            changes.pop("group", self.group_name), "billing-app", host, (self.topic_name,)
        )
        return replace(known, **changes)

    def start(self, config: Config, kind: type[Member | ModernMember] = Member) -> Any:
        self._started += 1
        member = kind(self.world, config, f"{config.group}-{self._started}")
        self.members.append(member)
        member.start()
        return member

    def group(
        self, number: int = 4, kind: type[Member | ModernMember] = Member, **changes: Any
    ) -> list[Any]:
        """So many members, started within two seconds."""
        for index in range(number):
            config = self.config(index, **changes)
            self.clock.after(
                self.chance.randint(0, 2 * SECOND), lambda config=config: self.start(config, kind)
            )
        return self.members

    def static_group(
        self, number: int = 4, kind: type[Member | ModernMember] = Member, **changes: Any
    ) -> list[Any]:
        for index in range(number):
            config = self.config(index, instance_id=f"billing-{index}", **changes)
            self.clock.after(
                self.chance.randint(0, 2 * SECOND), lambda config=config: self.start(config, kind)
            )
        return self.members

    def living(self) -> list[Any]:
        return [member for member in self.members if not member.is_dead and not member.is_closing]

    def later(self, seconds: float, action: Callable[[], object], fault: str = "") -> None:
        """Do something so many seconds after the start, give or take up to three."""
        at = self.clock.now + round(seconds * SECOND) + self.chance.randint(0, 3 * SECOND)

        def run() -> None:
            if fault:
                self.truth.faults.append({"fault": fault, "at_ms": self.clock.now})
            action()

        self.clock.at(at, run)

    def restart(
        self,
        member: Any,
        gap_ms: int,
        *,
        how: str = "close",
        why: str = "deploy",
        new_host: bool = False,
    ) -> None:
        """Stop a member and start it again after a while."""
        getattr(member, how)(why)
        config = member.config
        if new_host:
            self._started += 1
            config = replace(config, host=f"/10.0.1.{self._started}")
        self.clock.after(gap_ms, lambda: self.start(config, type(member)))

    def roll(self, gap_ms: int, every_ms: int, index: int = 0) -> None:
        """One pod after the other, each new one on a new host."""
        number = len(self.members) if index == 0 else self._rolling
        self._rolling = number
        self.restart(self.members[index], gap_ms, new_host=True)
        if index + 1 < number:
            self.clock.after(every_ms, lambda: self.roll(gap_ms, every_ms, index + 1))
