"""The load of each member and the drain time, with any number of members.

The functions are those that size a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from typing import Annotated, NamedTuple

import numpy as np

from laggard.answers.schema.types import Unsure
from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.rates import rolling_mean
from laggard.diagnosis.signals.statistics import known_sum, percentile
from laggard.diagnosis.verdict.sizing import Load, Replay, partition_loads, slowest_drain
from laggard.rebalance.assignors import TopicPartition

LOW, HIGH = 10, 90  # percentiles of recorded windows
_LEVEL = 1.25  # times a rate, up to which it is taken for the same


class Span(NamedTuple):
    """A value with its spread over the recorded windows; NaN is unknown, inf is never."""

    value: Annotated[Unsure, "the value; null: unknown"]
    p10: Annotated[Unsure, "p10 of what is recorded; null: unknown"] = nan
    p90: Annotated[Unsure, "p90 of what is recorded; null: unknown"] = nan


class Place(NamedTuple):
    """A partition of a topic."""

    topic: Annotated[str, "topic"]
    partition: Annotated[int, "partition"]


_DRAIN = "seconds until nothing is unread; Infinity: never at these rates"


@dataclass(frozen=True, slots=True)
class Share:
    """The work of one member."""

    member: Annotated[str, "slot of a member of now, or the number of one to come"]
    partitions: Annotated[tuple[Place, ...], "its partitions"]
    arrival_rate: Annotated[float, "records/s that arrive for it"]
    lag: Annotated[float, "records that it has not read"]
    drain_seconds: Annotated[Span, _DRAIN]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A group with a number of members; NaN is unknown."""

    members: Annotated[int, "members of the group"]
    idle_members: Annotated[
        int | None, "members without a partition; null: who owns what is unknown"
    ]
    largest_rate: Annotated[Unsure, "records/s that the busiest member gets; null: unknown"]
    drain_seconds: Annotated[Span, f"of the slowest member: {_DRAIN}"]
    unread_after_target: Annotated[Unsure, "records that are unread after the drain target"]
    loads: Annotated[tuple[Share, ...], "of members with a partition, the highest rate first"]
    unowned: tuple[TopicPartition, ...] = ()  # without a recorded owner


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
    known = {
        slot: member.capacity for slot, member in signals.members.items() if member.capacity > 0
    }
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
    now = sum(known_sum(topic.arriving) for topic in signals.topics)
    if not now > 0:
        return []
    arrivals = [topic.frame["arrival"].sum(axis=0) for topic in signals.topics]
    totals = np.sum(arrivals, axis=0) / now
    means = rolling_mean(totals[None, :], signals.parameters.rate_windows)[0]
    is_other = (means * _LEVEL < 1) | (means > _LEVEL)
    begin = int(np.flatnonzero(is_other).max(initial=-1)) + 1
    return [float(total) for total in totals[begin:] if not isnan(total)]


def _unread(topics: Sequence[TopicSignals]) -> dict[TopicPartition, float]:
    """Return the records unread now: the lag without what was consumed since the newest commit.

    The lag at that commit, by which the rules go, is up to a tick of arrivals too low: it says how
    lag develops.
    """
    unread: dict[TopicPartition, float] = {}
    for topic in topics:
        since = np.nan_to_num(topic.consume * topic.frame["frozen"][:, -1])
        left: Floats = np.where(
            np.isnan(topic.lag), np.nan, np.fmax(topic.envelope, topic.lag - since)
        )
        for row in np.flatnonzero(~np.isnan(left)):
            unread[topic.frame.topic, int(topic.frame.partitions[row])] = float(left[row])
    return unread


def _intervals(signals: Signals) -> list[float]:
    """Give the seconds between the commits of each partition; a window where they are not known."""
    known = (float(interval) for topic in signals.topics for interval in topic.interval)
    return [signals.frame.window_seconds if isnan(seconds) else seconds for seconds in known]


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
            partition: replace(load, lag=rates.unread.get(partition, load.lag))
            for partition, load in loads.items()
        }
        self.replay = Replay(signals, self.loads)
        self._now = now if keeps_owners else None
        self._pause = 0.0 if isnan(pause) else pause
        best = max(rates.capacity.value, signals.best_capacity)  # NaN if the first is
        hot = [Place(*key) for key, load in self.loads.items() if load.arrival > best]
        self._hot = sorted(hot, key=lambda partition: -self.loads[partition].arrival)
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
            self._share(member, partitions, seconds)
            for member, partitions in held.items()
            if not self.loads.keys().isdisjoint(partitions)
        ]
        owned = {partition for share in shares for partition in share.partitions}
        unowned = tuple(self.loads.keys() - owned)
        left, drain = (nan, Span(nan)) if unowned else self._end(shares)
        return Outcome(
            members,
            idle_members=None if unowned else max(0, members - len(shares)),
            largest_rate=max((share.arrival_rate for share in shares), default=nan),
            drain_seconds=drain,
            unread_after_target=left,
            loads=tuple(sorted(shares, key=lambda share: (-share.arrival_rate, share.member))),
            unowned=unowned,
        )

    def _end(self, shares: Sequence[Share]) -> tuple[float, Span]:
        """Give unread records after the drain target, and drain seconds of the slowest member."""
        if not self.loads or isnan(self.rates.capacity.value):
            return nan, Span(nan)
        target = self.signals.policy.drain_target_seconds
        left = 0.0
        for share in shares:
            spare = self.capacity(share.member).value - share.arrival_rate
            left += max(0.0, share.lag - spare * target)
        ends = zip(*(share.drain_seconds for share in shares), strict=True)
        return left, Span(*map(_latest, ends))

    def capacity(self, name: str) -> Span:
        """Return the records/s that a member can consume.

        A present member has its own number; else it is that of the others.
        """
        return self.rates.own.get(name, self.rates.capacity)

    def hot(self) -> list[Place]:
        """Return partitions with more arrivals than any member has consumed, busiest first.

        A partition is never split.
        """
        return list(self._hot)

    def least_drain(self) -> tuple[Place | None, float]:
        """Return the partition with the longest drain by a member of its own, and its seconds."""
        if not self.loads or isnan(self.rates.capacity.value):
            return None, nan
        drains = {
            partition: drain_seconds(load, self.rates.capacity.value)
            for partition, load in self.loads.items()
        }
        slowest = max(drains, key=drains.__getitem__)
        return Place(*slowest), drains[slowest]

    def _held(self, members: int) -> Mapping[str, Sequence[TopicPartition]]:
        slots = sorted(self.signals.members)
        if members == self._now:
            return {slot: self.signals.members[slot].partitions for slot in slots}
        dealt = self.replay.assignment(members) if members else {}
        # only sticky assignors leave with a member what it has
        names = slots if self.is_sticky else []
        return {
            names[number] if number < len(names) else f"member {number + 1}": partitions
            for number, partitions in enumerate(dealt.values())
        }

    def _share(self, name: str, held: Sequence[TopicPartition], seconds: float) -> Share:
        partitions = tuple(Place(*key) for key in held if key in self.loads)
        loads = [self.loads[partition] for partition in partitions]
        arrival, lag = sum(load.arrival for load in loads), sum(load.lag for load in loads)
        drain = self._drain(Load(arrival, lag, nan), self.capacity(name), seconds)
        if not set(partitions).isdisjoint(self._hot):
            drain = Span(inf, inf, inf)
        return Share(name, partitions, arrival, lag, drain)

    def _drain(self, load: Load, capacity: Span, seconds: float) -> Span:
        """Return one member's drain time in seconds.

        Its interval allows for `seconds` of work more or less.
        """
        times = self.rates.arrival
        if isnan(capacity.value):
            return Span(nan)
        worst = drain_seconds(load, capacity.value)
        if isnan(capacity.p10 + times.p10):
            return Span(worst)
        doubt = capacity.value * seconds if load.lag > 0 else 0.0
        early = Load(
            load.arrival * times.p10,
            max(0.0, load.lag - capacity.value * self.rates.commit_seconds),
            nan,
        )
        late = Load(load.arrival * times.p90, load.lag + doubt, nan)
        return Span(worst, drain_seconds(early, capacity.p90), drain_seconds(late, capacity.p10))


def _latest(ends: Sequence[float]) -> float:
    """Return the latest end; NaN if any end is unknown."""
    return nan if any(map(isnan, ends)) else max(ends, default=nan)


def drain_seconds(load: Load, capacity: float) -> float:
    """Return seconds until a member has drained.

    The result is inf also if a member without lag gets more than it can process.
    """
    return inf if load.arrival > capacity else slowest_drain([[load]], capacity)
