"""One habit of a group under one fault: its workload, and the expected answers by its members'
capacities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from scenarios.cluster import ScenarioCluster
from scenarios.labels import CALM, YES, Labels, only
from scenarios.scoring import milliseconds
from simulator.cluster import MINUTE, SECOND
from simulator.member import Member
from simulator.member_modern import ModernMember
from simulator.producer import Rate

FAULTS = ("healthy", "shortage", "hot", "slow", "stalled", "burst")
# within which lag should be gone, and the share of a capacity that is planned with
DRAIN_SECONDS, ROOM = 900, 0.8


@dataclass(frozen=True)
class Habit:
    """How a group is set up; `capacity` in records/s of a member."""

    name: str
    parts: int = 12
    members: int = 4
    capacity: float = 600.0
    kind: type[Member | ModernMember] = Member
    tick_seconds: int = 30
    window_seconds: int = 60
    wave: Rate = field(default=lambda _: 1.0)  # factor on the arrivals
    costs: tuple[float, float] = (1.0, 1.0)  # of a record, drawn per partition
    # gives further topics
    prepare: Callable[[ScenarioCluster, Sequence[Rate]], tuple[str, ...]] = lambda _, __: ()
    config: Mapping[str, Any] = field(default_factory=dict)
    slow_unit: float = 1.0  # minutes: what all times are multiplied with

    def can(self, fault: str) -> bool:
        """True if there is more than one of what the fault takes one of."""
        if fault == "hot":
            return self.parts > 1
        return self.members > 1 if fault == "slow" else True


@dataclass
class Cell:
    """One run's truth, filled in during its simulation."""

    habit: Habit
    fault: str
    at: float = 0.0  # minute of the fault
    over: float = 0.0  # minute at which a burst has ended
    rates: list[Rate] = field(default_factory=list)
    part: int = 0
    work: list[float] = field(default_factory=list)  # cost factors by partition
    # (ms, records that nobody has processed yet)
    unread: list[tuple[int, int]] = field(default_factory=list)

    @property
    def span(self) -> tuple[float, float]:
        """Minutes between which verdicts are looked at."""
        unit = self.habit.slow_unit
        return (self.at - 4 * unit, self.at + 26 * unit) if self.fault == "healthy" else (
            self.at + 12 * unit, self.at + 26 * unit
        )  # fmt: skip

    def workload(self, cluster: ScenarioCluster) -> Labels:
        """The group under its fault; only the length of the labels is used."""
        habit, unit = self.habit, self.habit.slow_unit
        self.at = at = cluster.about(14 * unit)
        load = cluster.between(0.56, 0.6) if self.fault == "burst" else cluster.between(0.45, 0.6)
        ratio, heat, share = (
            cluster.between(1.2, 1.5),
            cluster.between(1.3, 1.8),
            cluster.between(0.4, 0.7),
        )
        # gone after 11 to 23 times the unit
        lasts, times = cluster.between(4.5, 6) * unit, cluster.between(3.6, 4.2)
        self.part, self.over = cluster.draw.randrange(habit.parts), at + lasts
        self.work = [cluster.between(*habit.costs) for _ in range(habit.parts)]
        # all members' capacity, per partition
        mean = habit.members * habit.capacity / sum(self.work)
        low = cluster.between(0.04, 0.09) if self.fault == "hot" else load

        def rate_of(part: int) -> Rate:
            def rate(ms: int) -> float:
                is_on = ms >= at * MINUTE and (self.fault != "burst" or ms < self.over * MINUTE)
                now = (
                    {"shortage": ratio, "burst": times * load}.get(self.fault, low)
                    if is_on
                    else low
                )
                if self.fault == "hot" and part == self.part and is_on:
                    return heat * habit.capacity / self.work[part] * habit.wave(ms)
                return now * mean * habit.wave(ms)

            return rate

        self.rates = [rate_of(part) for part in range(habit.parts)]
        cluster.rates(self.rates)
        more = habit.prepare(cluster, self.rates)
        cluster.world.costs = {(cluster.main, part): cost for part, cost in enumerate(self.work)}
        cluster.group(
            habit.members,
            habit.kind,
            capacity=habit.capacity,
            topics=(cluster.main, *more),
            **habit.config,
        )
        if self.fault == "slow":
            cluster.minute(at, lambda: self._weaken(cluster, share * load))
        elif self.fault == "stalled":
            cluster.minute(at, lambda: cluster.world.paused.add((cluster.main, self.part)))
        elif self.fault == "burst":
            cluster.every(10, at, at + 40 * unit, lambda: self._look(cluster))
        return Labels(at + (40 if self.fault == "burst" else 26) * unit)

    def _weaken(self, cluster: ScenarioCluster, share: float) -> None:
        cluster.owner((cluster.main, self.part)).capacity = share * self.habit.capacity

    def _look(self, cluster: ScenarioCluster) -> None:
        at = {place: offset for each in cluster.alive() for place, offset in each.positions.items()}
        left = sum(cluster.brokers.end(*place) - offset for place, offset in at.items())
        self.unread.append((cluster.clock.now, left))

    def right(self, row: Mapping[str, Any], since_start_ms: int) -> bool:
        """True if a verdict is what the members' true capacities say."""
        habit, verdict = self.habit, row["scale_verdict"]
        if self.fault in {"healthy", "burst"}:
            left = self._gone_ms - (milliseconds(row["window_end"]) or 0)
            # members to be in time
            late = YES | only("NO_IDLE") if left > 1000 * DRAIN_SECONDS else frozenset()
            return verdict in CALM | late | only("NOT_NEEDED_DRAINING")
        if self.fault == "shortage":
            if habit.members >= habit.parts:
                return bool(verdict == "NO_IDLE")
            # a period of any batch producer
            span = range(since_start_ms - 5 * MINUTE, since_start_ms, 10 * SECOND)
            means = [sum(map(rate, span)) / len(span) for rate in self.rates]
            each = [rate * cost for rate, cost in zip(means, self.work, strict=True)]
            least = self._members(max(each), habit.capacity)
            lag = (row["lag_envelope"] or 0) / habit.parts
            most = self._members(max(each) + lag / DRAIN_SECONDS, 0.85 * ROOM * habit.capacity) + 1
            return verdict in YES and least <= row["members_desired"] <= most
        alone = habit.members == habit.parts  # nothing tells a member from its only partition
        fine = {
            "hot": only("NO_HOT_PARTITION"),
            "slow": only("NO_UNHEALTHY_MEMBER", *(["NO_COSTLY_PARTITION"] if alone else [])),
            "stalled": only("NO_STALLED"),
        }
        return verdict in fine[self.fault]

    def _members(self, rate: float, room: float) -> int:
        parts = self.habit.parts
        return next((n for n in range(1, parts) if ceil(parts / n) * rate <= room), parts)

    def codes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Of these one must open, and of those any may."""
        if self.fault == "shortage":
            full = self.habit.members >= self.habit.parts
            return only("AT_PARTITION_CEILING" if full else "CAPACITY_SHORTAGE"), only(
                "CAPACITY_SHORTAGE"
            )
        alone = self.habit.members == self.habit.parts
        usual = only("CAPACITY_BURST", "CAPACITY_SHORTAGE", "AT_PARTITION_CEILING")
        must = {
            "hot": only("HOT_PARTITION_ARRIVAL"),
            "slow": only("SLOW_MEMBER", *(["COSTLY_PARTITION"] if alone else [])),
            "stalled": only("PARTITION_STALLED"),
        }.get(self.fault, frozenset())
        return must, usual if self.fault == "burst" else must

    @property
    def _gone_ms(self) -> float:
        """Time at which a burst has drained, all but a fiftieth of it."""
        peak = max((left for _, left in self.unread), default=0)
        return max((at for at, left in self.unread if left > peak / 50), default=-inf)

    def drain_error(
        self, cluster: ScenarioCluster, rows: Sequence[Mapping[str, Any]]
    ) -> float | None:
        """Forecast over truth when half of a backlog has drained; None if it is not known."""
        # between batches there is nothing to forecast
        if not self.unread or self.habit.wave(0) > 1:
            return None
        _, peak = max(self.unread, key=lambda each: each[1])
        top_ms = next(at for at, left in self.unread if left == peak)
        half_ms = next((at for at, left in self.unread if at > top_ms and left <= peak / 2), None)
        if half_ms is None or self.unread[-1][1] > peak / 50:
            return None
        after = [
            row
            for row in rows
            if row["topic"] == cluster.main and (milliseconds(row["window_end"]) or 0) >= half_ms
        ]
        left = (self._gone_ms - (milliseconds(after[0]["window_end"]) or 0)) / 1000
        drain = after[0]["drain_seconds"]
        if drain is None or left <= 0:
            return None
        return inf if drain == inf else drain / left
