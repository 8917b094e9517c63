"""Size a group: its own assignor replayed over today's load, and simple bounds beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isnan, nan

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.statistics import known_sum, lower_median
from laggard.rebalance.assignors import ASSIGNORS, Assignment, Member, TopicPartition, assign

_SIZE_WINDOWS = fixed(
    "size_windows", 5, "windows in a row that ask for more members than are published, or for fewer"
)
# between this and `pack_utilisation` a size stays: a busier window alone asks for no second change
_STAY_UTILISATION = fixed(
    "stay_utilisation", 0.95, "share of its capacity that a member may need at the published size"
)
# by these the exporter wants one member less, of sizes that are published
SCALE_IN_SECONDS = fixed(
    "scale_in_seconds", 3600, "s in which fewer members would do, before one less is wanted"
)
SCALE_IN_UTILISATION = fixed(
    "scale_in_utilisation", 0.4, "of the capacity: at most so much arrives meanwhile"
)
_TINY = 1e-9  # what sums of rates may be off


@dataclass(frozen=True, slots=True)
class Load:
    """Load of one partition on its owner."""

    arrival: float  # records/s
    lag: float  # records, at its newest commit
    work: float  # records/s that keep up and clear the lag within the drain target


@dataclass(frozen=True, slots=True)
class Sizing:
    """Required members of a group.

    The value is None or NaN if the capacity of a member or the load of a topic is not known.
    """

    members_lower_bound: int | None = None  # work / room, whatever the assignment
    # by first fit decreasing: what an assignor that knew the load could do
    members_packed: int | None = None
    members_desired: int | None = None  # what the group's own assignor needs, at most the ceiling
    target_unreachable: bool = False  # not even the ceiling clears the lag within the drain target
    drain_seconds: float = nan  # of the slowest member with members_desired
    drain_at_best_seconds: float = nan  # the same if each did what the best member has shown
    drain_now_seconds: float = nan  # of the slowest member as the group is
    moved_partitions: int | None = None  # by going to members_desired
    residual_records: float = nan  # lag left after the drain target with one member per partition
    work: float = nan  # records/s, of all partitions
    partitions_estimated: int = 0  # whose load is not known: taken as the median of the topic
    sizes: tuple[int, ...] = ()  # to remember, see `lasting`


def size(signals: Signals) -> Sizing:
    """Return the sizing of the group for `drain_target_seconds` of its policy."""
    loads, estimated = partition_loads(signals)
    now = [
        [loads[place] for place in member.partitions if place in loads]
        for member in signals.members.values()
    ]
    if isnan(signals.capacity) or signals.capacity <= 0 or not loads:
        return Sizing(partitions_estimated=estimated)
    room = signals.parameters.pack_utilisation * signals.capacity
    work = sorted((load.work for load in loads.values()), reverse=True)
    replay = Replay(signals, loads)
    found = _smallest(replay, work, room, signals.ceiling)
    sizes = _published(signals, replay, found)
    desired = min(sizes[0], signals.ceiling) if sizes else None
    after = replay.loads(desired) if desired else []
    return Sizing(
        members_lower_bound=lower_bound(work, room),
        members_packed=packed(work, room),
        members_desired=desired,
        target_unreachable=not _is_reached(replay, found, desired, room, signals.capacity),
        drain_seconds=slowest_drain(after, signals.capacity),
        drain_at_best_seconds=slowest_drain(after, max(signals.capacity, signals.best_capacity)),
        drain_now_seconds=slowest_drain(now, signals.capacity),
        moved_partitions=replay.moved(desired),
        residual_records=_residual(
            loads.values(), signals.capacity, signals.policy.drain_target_seconds
        ),
        work=sum(work),
        partitions_estimated=estimated,
        sizes=sizes,
    )


def _is_reached(
    replay: Replay, found: int | None, desired: int | None, room: float, capacity: float
) -> bool:
    """Return True if the chosen size, or a smaller published size, drains the lag in time.

    The smaller size stays published.

    A published size that stays, though another would now be chosen, is no sign that members do not
    help.
    """
    if not found or not desired:
        return False
    stays = desired < found and _largest(replay, desired) <= _STAY_UTILISATION * capacity
    return stays or _largest(replay, found) <= room + _TINY


def _published(signals: Signals, replay: Replay, found: int | None) -> tuple[int, ...]:
    """Return the size to publish and those found since then; see `lasting`.

    A published size above the members that there are is advice that somebody may be following: it
    stays while it still drains the lag in time, and while less is asked for only because some of
    the lag has drained.
    """
    if found is None:
        return ()
    before, members = signals.memory.sizes, signals.member_count or 0
    stays = False
    if before and min(before[0], found) > members:
        shown = min(before[0], signals.ceiling)
        if found > shown:
            stays = _largest(replay, shown) <= _STAY_UTILISATION * signals.capacity + _TINY
        else:
            stays = sum(known_sum(each.consume - each.arrival) for each in signals.topics) > 0
    return lasting(before, found, stays=stays)


def lasting(before: tuple[int, ...], found: int, *, stays: bool = False) -> tuple[int, ...]:
    """Return the size to publish, followed by the newest sizes.

    These are the sizes found since the published size was last found, this one included.

    Another size is published when all of `_SIZE_WINDOWS` windows lie on the same side of the
    published one, and then the nearest of them: loads and rates that swing by a little lead to
    sizes that do not stay.
    """
    if not before:
        return (found,)
    shown, newest = before[0], (*before[1:], found)[-_SIZE_WINDOWS:]
    if found == shown:
        return (shown,)
    if not stays and len(newest) == _SIZE_WINDOWS and (min(newest) > shown or max(newest) < shown):
        return (min(newest) if found > shown else max(newest),)
    return (shown, *newest)


def partition_loads(signals: Signals) -> tuple[dict[TopicPartition, Load], int]:
    """Return the load of each partition, and the number of estimated loads.

    The load is empty when a topic's load is not known at all.
    """
    found: dict[TopicPartition, Load] = {}
    estimated = 0
    for topic in signals.topics:
        arrival, lag = topic.arriving, np.where(np.isnan(topic.envelope), topic.lag, topic.envelope)
        unknown = np.isnan(arrival) | np.isnan(lag)
        if np.isnan(arrival).all() or np.isnan(lag).all():
            return {}, 0
        rates, lags = _known(arrival), _known(lag)
        places = zip(topic.frame.partitions.tolist(), rates.tolist(), lags.tolist(), strict=True)
        target = signals.policy.drain_target_seconds
        found |= {
            (topic.frame.topic, place): Load(rate, left, rate + left / target)
            for place, rate, left in places
        }
        estimated += int(unknown.sum())
    return found, estimated


def _known(values: Floats) -> Floats:
    """Replace NaN by the lower median of the values: unknown is not 0."""
    return np.where(np.isnan(values), lower_median(values.tolist()), values)


def lower_bound(work: Iterable[float], room: float) -> int:
    """Return the minimum number of members for any assignment.

    `work` and `room` are in records/s.
    """
    return max(1, ceil(sum(work) / room - _TINY))


def packed(work: Sequence[float], room: float) -> int:
    """Return the number of members by first fit decreasing.

    A partition above `room` fills a member by itself.
    """
    free: list[float] = []
    for need in sorted((min(each, room) for each in work), reverse=True):
        place = next((place for place, left in enumerate(free) if need <= left + _TINY), None)
        if place is None:
            free.append(room - need)
        else:
            free[place] -= need
    return max(1, len(free))


def slowest_drain(members: Iterable[Sequence[Load]], capacity: float) -> float:
    """Return seconds until the last member has drained; +inf if a member never does.

    Each member drains at `capacity` records/s.
    """
    worst = 0.0
    for held in members:
        lag, spare = sum(load.lag for load in held), capacity - sum(load.arrival for load in held)
        if lag > 0:
            worst = max(worst, lag / spare if spare > 0 else inf)
    return worst


def _residual(loads: Iterable[Load], capacity: float, seconds: float) -> float:
    return sum(max(0.0, load.lag + (load.arrival - capacity) * seconds) for load in loads)


class Replay:
    """The group's assignor with any number of members that all subscribe to all its topics."""

    def __init__(self, signals: Signals, loads: Mapping[TopicPartition, Load]) -> None:
        name = signals.frame.fact.get("assignor") or ""
        # else it is unknown, and partitions are dealt out one by one
        self.is_own = name in ASSIGNORS
        self._assignor = name if self.is_own else "roundrobin"
        if name == "cooperative-sticky":
            # what it holds back in its first round goes where sticky sends it in the second
            self._assignor = "sticky"
        self._loads = loads
        self._members = [signals.members[slot] for slot in sorted(signals.members)]
        self.counts = {topic.frame.topic: _count(topic) for topic in signals.topics}
        self._found: dict[int, Assignment] = {}

    def assignment(self, count: int) -> Assignment:
        """Return the partitions by member for `count` members.

        Present members come first and leave last.
        """
        if count not in self._found:
            topics = frozenset(self.counts)
            # any order will do: ranges and turns of equal members are the same for every order of
            # them
            members = [
                Member(f"{place:05}", topics, owned=self._members[place].partitions, generation=1)
                if place < len(self._members)
                else Member(f"{place:05}", topics)
                for place in range(count)
            ]
            self._found = {count: assign(self._assignor, members, self.counts)}
        return self._found[count]

    def loads(self, count: int) -> list[list[Load]]:
        """Return the load of each of `count` members."""
        return [
            [self._loads[place] for place in held if place in self._loads]
            for held in self.assignment(count).values()
        ]

    def moved(self, count: int | None) -> int | None:
        """Return the number of partitions that would change their owner."""
        if not count or not self._members:
            return None
        given = self.assignment(count)
        stay = sum(
            len(set(member.partitions) & set(given.get(f"{place:05}", ())))
            for place, member in enumerate(self._members)
        )
        return sum(len(member.partitions) for member in self._members) - stay


def _count(topic: TopicSignals) -> int:
    return int(topic.frame.partitions.max(initial=-1)) + 1


def _smallest(replay: Replay, work: Sequence[float], room: float, ceiling: int) -> int | None:
    """Return the fewest members without a load above `room`, else the ceiling.

    Return None without a ceiling.

    The largest load may rise with one member more, so every count is looked at, from the lower
    bound upwards.
    """
    if ceiling < 1:
        return None
    if work[0] > room + _TINY:
        return ceiling
    lightest = np.concatenate(([0.0], np.cumsum(work[::-1])))
    for count in range(lower_bound(work, room), ceiling):
        # the owner of the heaviest partition has at least this many more, and no lighter ones exist
        others = sum(partitions // count for partitions in replay.counts.values()) - 1
        if work[0] + lightest[max(0, others)] > room + _TINY:
            continue
        largest = _largest(replay, count)
        if largest <= room + _TINY:
            return count + _prefers_next(replay, count, largest)
    return ceiling


def _prefers_next(replay: Replay, count: int, largest: float) -> bool:
    """Return True if one more member divides the partitions evenly and lowers the largest load."""
    total = sum(replay.counts.values())
    return (
        total % count != 0
        and total % (count + 1) == 0
        and _largest(replay, count + 1) < largest - _TINY
    )


def _largest(replay: Replay, count: int) -> float:
    return max(sum(load.work for load in held) for held in replay.loads(count))
