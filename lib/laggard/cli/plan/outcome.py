"""The load of each member and the drain time, with any number of members.

The functions are those that size a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from typing import NamedTuple

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.rates import rolling_mean
from laggard.diagnosis.signals.statistics import known_sum, percentile
from laggard.diagnosis.verdict.sizing import Load, Replay, partition_loads, slowest_drain
from laggard.rebalance.assignors import TopicPartition

LOW, HIGH = 10, 90  # percentiles of recorded windows
_LEVEL = 1.25  # times a rate, up to which it is taken for the same


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
    idle: int | None  # members without a partition; None: who owns what is not known
    drain: Span  # seconds, of the slowest member
    left: float  # records that are unread after the drain target
    unowned: tuple[TopicPartition, ...] = ()  # without a recorded owner

    @property
    def largest(self) -> float:
        """Records/s of the busiest member."""
        return max((each.arrival for each in self.shares), default=nan)


@dataclass(frozen=True, slots=True)
class Rates:
    """Measurements of a group; the spreads are those of recorded windows."""

    capacity: Span  # records/s of one member
    arrival: Span  # times the rate of now
    busy_windows: int = 0  # of all members, that `capacity` is taken from
    windows: int = 0  # that the spread of `arrival` is taken from
    # capacity of each member that has shown one
    own: Mapping[str, Span] = field(default_factory=dict)
    unread: Mapping[TopicPartition, float] = field(default_factory=dict)  # records, now
    # between commits: by so much what is unread and the end of a drain are uncertain
    commit_seconds: float = 0.0


def rates_of(signals: Signals, busy: Mapping[str, Sequence[float]]) -> Rates:
    """Take the spread of capacity and arrivals from p10 and p90 of the recorded windows.

    `busy` has records/s by member.
    """
    capacity = signals.capacity if signals.capacity > 0 else nan
    everyone = [rate for rates in busy.values() for rate in rates]
    known = {slot: each.capacity for slot, each in signals.members.items() if each.capacity > 0}
    windows = _level(signals)
    spread = Span(1.0)
    if len(windows) >= signals.parameters.rate_windows:
        spread = _spread(1.0, windows)

    return Rates(
        _spread(capacity, everyone),
        spread,
        len(everyone),
        len(windows),
        {slot: _spread(value, busy.get(slot, everyone)) for slot, value in known.items()},
        _unread(signals.topics),
        max(_intervals(signals), default=nan),
    )


def _spread(value: float, seen: Sequence[float]) -> Span:
    if isnan(value) or not seen:
        return Span(value)
    low, high = (percentile(seen, percent) for percent in (LOW, HIGH))
    return Span(value, min(low, value), max(high, value))


def _level(signals: Signals) -> list[float]:
    """Return the arrivals of each window over the present rate.

    The windows go back to the newest window with another rate.
    """
    now = sum(known_sum(each.arriving) for each in signals.topics)
    if not now > 0:
        return []
    totals = np.sum([each.frame["arrival"].sum(axis=0) for each in signals.topics], axis=0) / now
    means = rolling_mean(totals[None, :], signals.parameters.rate_windows)[0]
    is_other = (means * _LEVEL < 1) | (means > _LEVEL)
    begin = int(np.flatnonzero(is_other).max(initial=-1)) + 1
    return [float(each) for each in totals[begin:] if not isnan(each)]


def _unread(topics: Sequence[TopicSignals]) -> dict[TopicPartition, float]:
    """Return the records unread now: the lag without what was consumed since the newest commit.

    The lag at that commit, by which the rules go, is up to a tick of arrivals too low: it says how
    lag develops.
    """
    found: dict[TopicPartition, float] = {}
    for topic in topics:
        since = np.nan_to_num(topic.consume * topic.frame["frozen"][:, -1])
        left: Floats = np.where(
            np.isnan(topic.lag), np.nan, np.fmax(topic.envelope, topic.lag - since)
        )
        for place in np.flatnonzero(~np.isnan(left)):
            found[topic.frame.topic, int(topic.frame.partitions[place])] = float(left[place])
    return found


def _intervals(signals: Signals) -> list[float]:
    """Give the seconds between the commits of each partition; a window where they are not known."""
    known = (float(interval) for topic in signals.topics for interval in topic.interval)
    return [signals.frame.window_seconds if isnan(each) else each for each in known]


class Plan:
    """Outcomes of a group, as changed, by the number of members."""

    def __init__(
        self,
        signals: Signals,
        rates: Rates,
        *,
        now: int | None,
        keeps_owners: bool,
        pause: float = nan,
    ) -> None:
        """Build the plan; `pause` is the longest expected time of a rebalance, in seconds."""
        self.signals, self.rates = signals, rates
        loads, self.estimated = partition_loads(signals)
        self.loads = {
            place: replace(load, lag=rates.unread.get(place, load.lag))
            for place, load in loads.items()
        }
        self.replay = Replay(signals, self.loads)
        self._now = now if keeps_owners else None
        self._pause = 0.0 if isnan(pause) else pause
        best = max(rates.capacity.value, signals.best_capacity)  # NaN if the first is
        hot = [place for place, load in self.loads.items() if load.arrival > best]
        self._hot = sorted(hot, key=lambda place: -self.loads[place].arrival)
        self.is_sticky = signals.frame.fact.get("assignor") in {
            "sticky",
            "cooperative-sticky",
            "uniform",
        }

    def outcome(self, members: int) -> Outcome:
        """Return loads and drain time with so many members; those of today as they are."""
        seconds = self.rates.commit_seconds
        if members != self._now:
            seconds += self._pause
        held = self._held(members)
        shares = [
            self._share(*each, seconds)
            for each in held.items()
            if not self.loads.keys().isdisjoint(each[1])
        ]
        unowned = tuple(self.loads.keys() - {place for each in shares for place in each.partitions})
        left, drain = (nan, Span(nan)) if unowned else self._end(shares)
        return Outcome(
            members,
            tuple(sorted(shares, key=lambda each: (-each.arrival, each.name))),
            None if unowned else max(0, members - len(shares)),
            drain,
            left,
            unowned,
        )

    def _end(self, shares: Sequence[Share]) -> tuple[float, Span]:
        """Give unread records after the drain target, and drain seconds of the slowest member."""
        if not self.loads or isnan(self.rates.capacity.value):
            return nan, Span(nan)
        target = self.signals.policy.drain_target_seconds
        spare = [(self.capacity(each.name).value - each.arrival) * target for each in shares]
        left = sum(max(0.0, each.lag - most) for each, most in zip(shares, spare, strict=True))
        return left, Span(
            *(_latest(each) for each in zip(*(share.drain for share in shares), strict=True))
        )

    def capacity(self, name: str) -> Span:
        """Return the records/s that a member can consume.

        A present member has its own number; else it is that of the others.
        """
        return self.rates.own.get(name, self.rates.capacity)

    def hot(self) -> list[TopicPartition]:
        """Return partitions with more arrivals than any member has consumed, busiest first.

        A partition is never split.
        """
        return list(self._hot)

    def least_drain(self) -> tuple[TopicPartition | None, float]:
        """Return the partition with the longest drain by a member of its own, and its seconds."""
        drains = {
            place: drain_seconds(load, self.rates.capacity.value)
            for place, load in self.loads.items()
        }
        place = max(drains, key=drains.__getitem__, default=None)
        return (
            (None, nan)
            if place is None or isnan(self.rates.capacity.value)
            else (place, drains[place])
        )

    def _held(self, members: int) -> Mapping[str, Sequence[TopicPartition]]:
        slots = sorted(self.signals.members)
        if members == self._now:
            return {slot: self.signals.members[slot].partitions for slot in slots}
        found = self.replay.assignment(members) if members else {}
        # only sticky assignors leave with a member what it has
        names = slots if self.is_sticky else []
        return {
            names[number] if number < len(names) else f"member {number + 1}": places
            for number, places in enumerate(found.values())
        }

    def _share(self, name: str, held: Sequence[TopicPartition], seconds: float) -> Share:
        places = tuple(place for place in held if place in self.loads)
        loads = [self.loads[place] for place in places]
        arrival, lag = sum(load.arrival for load in loads), sum(load.lag for load in loads)
        drain = self._drain(Load(arrival, lag, nan), self.capacity(name), seconds)
        if not set(places).isdisjoint(self._hot):
            drain = Span(inf, inf, inf)
        return Share(name, places, arrival, lag, drain)

    def _drain(self, load: Load, capacity: Span, seconds: float) -> Span:
        """Return one member's drain time in seconds.

        Its interval allows for `seconds` of work more or less.
        """
        times = self.rates.arrival
        if isnan(capacity.value):
            return Span(nan)
        worst = drain_seconds(load, capacity.value)
        if isnan(capacity.low + times.low):
            return Span(worst)
        doubt = capacity.value * seconds if load.lag > 0 else 0.0
        early = Load(
            load.arrival * times.low,
            max(0.0, load.lag - capacity.value * self.rates.commit_seconds),
            nan,
        )
        late = Load(load.arrival * times.high, load.lag + doubt, nan)
        return Span(worst, drain_seconds(early, capacity.high), drain_seconds(late, capacity.low))


def _latest(ends: Sequence[float]) -> float:
    """Return the latest end; NaN if any end is unknown."""
    return nan if any(map(isnan, ends)) else max(ends, default=nan)


def drain_seconds(load: Load, capacity: float) -> float:
    """Return seconds until a member has drained.

    The result is inf also if a member without lag gets more than it can process.
    """
    return inf if load.arrival > capacity else slowest_drain([[load]], capacity)
