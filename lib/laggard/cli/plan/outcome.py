"""The load of each member and the drain time, with any number of members: by the functions that size a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np

from laggard.diagnosis.order import known_sum, percentile
from laggard.diagnosis.signals.group import Signals

# the assignor as the verdict replays it
from laggard.diagnosis.verdict.sizing import Load, partition_loads, slowest_drain
from laggard.diagnosis.verdict.sizing import _Replay as Replay
from laggard.rebalance.assignors import TopicPartition

LOW, HIGH = 10, 90  # percentiles of recorded windows


class Span(NamedTuple):
    """A value, and between which it lies by the recorded windows; NaN is not known, inf never."""

    value: float
    low: float = nan
    high: float = nan


@dataclass(frozen=True, slots=True)
class Share:
    """One member and what it would have to do."""

    name: str
    partitions: tuple[TopicPartition, ...]
    arrival: float  # records/s
    lag: float  # records
    drain: Span  # seconds


@dataclass(frozen=True, slots=True)
class Outcome:
    """A group with a number of members; NaN is not known."""

    members: int
    shares: tuple[Share, ...]  # of members with a partition, the highest rate first
    idle: int  # members without a partition
    drain: Span  # seconds, of the slowest member
    left: float  # records that are unread after the drain target

    @property
    def largest(self) -> float:
        """Records/s of the busiest member."""
        return max((each.arrival for each in self.shares), default=nan)


@dataclass(frozen=True, slots=True)
class Rates:
    """Capacity of a member and rate of arrivals, each with its spread over recorded windows."""

    capacity: Span  # records/s of one member
    arrival: Span  # times the rate of now
    busy_windows: int = 0  # of all members, that `capacity` is taken from
    windows: int = 0  # that the spread of `arrival` is taken from


def rates_of(signals: Signals, busy_rates: Sequence[float]) -> Rates:
    """Take the spread of both from p10 and p90 of the recorded windows."""
    capacity = signals.capacity if signals.capacity > 0 else nan
    known = Span(capacity)
    if not isnan(capacity) and busy_rates:
        low, high = (percentile(busy_rates, percent) for percent in (LOW, HIGH))
        known = Span(capacity, min(low, capacity), max(high, capacity))
    now = sum(known_sum(each.arrival) for each in signals.topics)
    totals = np.sum([each.frame["arrival"].sum(axis=0) for each in signals.topics], axis=0) if signals.topics else []
    seen = [float(each) for each in totals if not isnan(each)]
    spread = Span(1.0)
    if len(seen) >= signals.parameters.rate_windows and now > 0:
        low, high = (percentile(seen, percent) / now for percent in (LOW, HIGH))
        spread = Span(1.0, min(low, 1.0), max(high, 1.0))
    return Rates(known, spread, len(busy_rates), len(seen))


class Plan:
    """Outcomes of a group, as changed, by the number of members."""

    def __init__(self, signals: Signals, rates: Rates, *, now: int | None, keeps_owners: bool) -> None:
        self.signals, self.rates = signals, rates
        self.loads, self.estimated = partition_loads(signals)
        self.replay = Replay(signals, self.loads)
        self._now = now if keeps_owners else None
        self._is_sticky = signals.frame.fact.get("assignor") in {"sticky", "cooperative-sticky", "uniform"}

    def outcome(self, members: int) -> Outcome:
        """Return loads and drain time with so many members; those of today as they are."""
        held = {
            name: tuple((place, self.loads[place]) for place in places if place in self.loads)
            for name, places in self._held(members).items()
        }
        shares = [self._share(name, each) for name, each in held.items() if each]
        each_load = [[load for _, load in each] for each in held.values()]
        left = nan
        if self.loads and not isnan(self.rates.capacity.value):
            seconds = self.signals.policy.drain_target_seconds
            sums = [(sum(load.lag for load in each), sum(load.arrival for load in each)) for each in each_load]
            left = sum(max(0.0, lag + (arrival - self.rates.capacity.value) * seconds) for lag, arrival in sums)
        return Outcome(
            members,
            tuple(sorted(shares, key=lambda each: (-each.arrival, each.name))),
            max(0, members - len(shares)),
            self._drain(each_load) if members else Span(inf),
            left,
        )

    def hot(self) -> list[TopicPartition]:
        """Partitions that get more than one member can do, the busiest first: they are never split."""
        capacity = self.rates.capacity.value
        found = [place for place, load in self.loads.items() if load.arrival >= capacity]
        return sorted(found, key=lambda place: -self.loads[place].arrival)

    def least_drain(self) -> tuple[TopicPartition | None, float]:
        """Return the partition that takes longest when it has a member to itself, and its seconds."""
        drains = {place: drain_seconds([[load]], self.rates.capacity.value) for place, load in self.loads.items()}
        place = max(drains, key=drains.__getitem__, default=None)
        return (None, nan) if place is None or isnan(self.rates.capacity.value) else (place, drains[place])

    def _held(self, members: int) -> Mapping[str, Sequence[TopicPartition]]:
        slots = sorted(self.signals.members)
        if members == self._now:
            return {slot: self.signals.members[slot].partitions for slot in slots}
        found = self.replay.assignment(members) if members else {}
        # only sticky assignors leave with a member what it has
        names = slots if self._is_sticky else []
        return {
            names[number] if number < len(names) else f"member {number + 1}": places
            for number, places in enumerate(found.values())
        }

    def _share(self, name: str, held: Sequence[tuple[TopicPartition, Load]]) -> Share:
        loads = [load for _, load in held]
        arrival, lag = sum(load.arrival for load in loads), sum(load.lag for load in loads)
        return Share(name, tuple(place for place, _ in held), arrival, lag, self._drain([loads]))

    def _drain(self, members: Sequence[Sequence[Load]]) -> Span:
        capacity, arrival = self.rates.capacity, self.rates.arrival
        if isnan(capacity.value) or not self.loads:
            return Span(nan)
        worst = drain_seconds(members, capacity.value)
        if isnan(capacity.low + arrival.low):
            return Span(worst)
        soonest, latest = (_times(members, times) for times in (arrival.low, arrival.high))
        return Span(worst, drain_seconds(soonest, capacity.high), drain_seconds(latest, capacity.low))


def drain_seconds(members: Sequence[Sequence[Load]], capacity: float) -> float:
    """Return seconds until the slowest member has drained; inf also if one without lag gets more than it can do."""
    is_short = any(sum(load.arrival for load in held) > capacity for held in members)
    return inf if is_short else slowest_drain(members, capacity)


def _times(members: Sequence[Sequence[Load]], times: float) -> list[list[Load]]:
    return [[replace(load, arrival=times * load.arrival) for load in held] for held in members]
