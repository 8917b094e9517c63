"""Load of each member, its busy state, its shown capacity, and the group's typical capacity.

The latter is the capacity that any member of its group can have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, Names
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Flags, MemberSignals, TopicSignals
from laggard.diagnosis.signals.rates import falls_behind
from laggard.diagnosis.signals.statistics import is_most, lower_median, percentile
from laggard.diagnosis.signals.trend import GROWING

Ints: TypeAlias = npt.NDArray[np.int64]
Busy = Mapping[str, tuple[tuple[int, float], ...]]  # slot -> (begin of the window in ms, records/s)
# commits and windows do not beat together
_CAPACITY_PERCENT = fixed("capacity_percent", 75, "percentile of what a busy member did")
_TYPICAL_RATIO = fixed(
    "typical_ratio", 1.2, "of the capacity: more than that is done without being busy"
)
_SCATTER_LOW = fixed("scatter_low", 25, "percentile of what busy members did")
_SCATTER_HIGH = fixed(
    "scatter_high", 75, "percentile likewise: half of what lies between them is not certain"
)
_SETTLED_WINDOWS = fixed(
    "settled_windows", 3, "windows with one generation and the same partitions"
)


def member_signals(frame: GroupFrame, topics: Sequence[TopicSignals], before: Busy,
parameters: Parameters) -> tuple[
    dict[str, MemberSignals], dict[str, tuple[tuple[int, float], ...]]
]:  # fmt: skip
    """Return the members by slot, and each member's newest busy windows.

    The present window is included.
    """
    busy_in = _kept(before, frame.now_ms - parameters.capacity_lookback_hours * 3_600_000)
    slots = sorted(
        {slot for each in topics for slot in each.frame.named("slot")[:, -1].tolist()} - {""}
    )
    owners = [_owners(each.frame.named("slot"), slots) for each in topics]
    longest = _intervals(topics, owners, len(slots))
    spans = np.maximum(1, np.ceil(longest / frame.window_seconds)).astype(np.int64)
    shown = _shown(topics, owners, len(slots), parameters.rate_windows)
    most = np.fmax.reduce(shown, axis=1, initial=np.nan).tolist()
    newest = _newest_rates(topics, owners, spans)
    held_by = [_rows_by_owner(owner[:, -1], len(slots)) for owner in owners]
    summed = [
        np.array([each.arrival, each.consume, np.where(np.isnan(each.lag), 0.0, each.lag)])
        for each in topics
    ]
    is_busy, busy_for = _busy(topics, owners, len(slots))
    is_busy &= _same_generation(frame)
    longest_span = int(spans.max(initial=1))
    recent = parameters.rate_windows + longest_span - 1
    waits = _waits(topics, owners, len(slots), recent, parameters)
    arrivals = _sums([each.frame["arrival"] for each in topics], owners, len(slots))
    least_arrival = np.fmin.reduce(arrivals[:, -recent:], axis=1, initial=np.nan).tolist()
    is_rare = longest > frame.window_seconds
    is_behind = _fall_behind(frame, topics, owners, is_rare, parameters)
    has_work = (is_busy & (busy_for >= spans) | is_behind) & (np.array(newest) > 0)
    # one that waits now and then shows no capacity; a stall is over once the gap is in which it got
    # going again
    now_and_then = _waits(
        topics, owners, len(slots), recent, parameters, parameters.stall_min_seconds
    )
    is_at_work = (
        has_work & ~now_and_then & ~_waits(topics, owners, len(slots), longest_span + 1, parameters)
    )
    found: dict[str, MemberSignals] = {}
    for number, slot in enumerate(slots):
        if is_at_work[number]:
            now = int(frame.windows[-1]), newest[number]
            busy_in[slot] = (*busy_in.get(slot, ()), now)[-parameters.busy_windows :]
        found[slot] = _member(
            slot,
            list(zip(topics, (held[number] for held in held_by), summed, strict=True)),
            capacity=_capacity(busy_in.get(slot, ()), parameters),
            seen=most[number],
            least_arrival=least_arrival[number],
            is_busy=bool(is_busy[number]),
            waits=bool(waits[number]),
        )
    return found, busy_in


def _kept(before: Busy, oldest_ms: float) -> dict[str, tuple[tuple[int, float], ...]]:
    """Drop remembered values that are too old."""
    kept = {
        slot: tuple(each for each in samples if each[0] >= oldest_ms)
        for slot, samples in before.items()
    }
    return {slot: samples for slot, samples in kept.items() if samples}


def _capacity(busy: Sequence[tuple[int, float]], parameters: Parameters) -> float:
    """Return capacity by the newest windows in which a member was busy; NaN if too few."""
    known = [rate for _, rate in busy]
    return (
        percentile(known, _CAPACITY_PERCENT)
        if len(known) >= parameters.busy_min_windows
        else math.nan
    )


def _member(
    slot: str,
    of_topics: Sequence[tuple[TopicSignals, Ints, Floats]],
    *,
    capacity: float,
    seen: float,
    least_arrival: float,
    is_busy: bool,
    waits: bool,
) -> MemberSignals:
    """Return a member's signals from its rows of each topic.

    The rows come with their arrivals, consumption and lag.
    """
    parts = [each for each in of_topics if len(each[1])]
    first, mine, _ = parts[0]
    sums = [np.add.reduce(values[:, held], axis=1).tolist() for _, held, values in parts]
    arrival, consume, lag = (float(sum(each)) for each in zip(*sums, strict=True))
    return MemberSignals(
        slot=slot,
        client_id=first.frame.named("client_id")[mine[0], -1],
        host=first.frame.named("host")[mine[0], -1],
        partitions=tuple(
            (each.frame.topic, part)
            for each, held, _ in parts
            for part in each.frame.partitions[held].tolist()
        ),
        arrival=arrival,
        consume=consume,
        capacity=capacity,
        seen=seen,
        least_arrival=least_arrival,
        is_busy=is_busy,
        waits=waits,
        material=sum(int(np.count_nonzero(each.is_material[held])) for each, held, _ in parts),
        lag=lag,
    )


def _newest_rates(
    topics: Sequence[TopicSignals], owners: Sequence[Ints], spans: Ints
) -> list[float]:
    """Return records/s per slot over its `spans` windows up to the newest commits.

    The value is NaN if a partition's rate is unknown.
    """
    windows = np.append(spans, 1)  # -1 is nobody
    rates = [
        each.positions.newest_rates(windows[owner[:, -1]])[:, None]
        for each, owner in zip(topics, owners, strict=True)
    ]
    found: list[float] = (
        _sums(rates, [owner[:, -1:] for owner in owners], len(spans)).ravel().tolist()
    )
    return found


def _shown(
    topics: Sequence[TopicSignals], owners: Sequence[Ints], slots: int, windows: int
) -> Floats:
    """Return each slot's consumed records/s over some windows up to each window.

    The shape is [slots, windows]; NaN if not known.

    It is not known if a partition had another owner meanwhile, stood for a part of them or jumped
    over deleted records, or if its newest commit is older than those of the slot's others: what
    was done by others, or at other times, adds up to more than a member can do.
    """
    rates, reads = [], []
    for each, owner in zip(topics, owners, strict=True):
        known, at = each.positions, np.arange(owner.shape[1])
        since = known.begin(known.newest, windows)
        is_other = (np.diff(owner, axis=1, prepend=owner[:, :1]) != 0) | known.jumped
        moves, stands = (np.cumsum(changes, axis=1) for changes in (is_other, known.stood))
        moved, stood = (
            counts - np.take_along_axis(counts, since, axis=1) for counts in (moves, stands)
        )
        stands_all = known.stood & (stood == at - since)
        is_own = (moved == 0) & (stands_all | (stood == 0))
        rates.append(np.where(is_own, known.rates(windows), np.nan))
        reads.append((owner >= 0) & ~stands_all)
    total = _sums(rates, owners, slots)
    if all(each.positions.is_whole for each in topics):
        return total
    oldest, newest = np.full(total.shape, np.inf), np.full(total.shape, -np.inf)
    for each, owner, is_read in zip(topics, owners, reads, strict=True):
        held, at = np.nonzero(is_read)
        place = owner[held, at], at
        np.fmin.at(oldest, place, each.positions.newest[held, at])
        np.fmax.at(newest, place, each.positions.newest[held, at])
    return np.where(oldest == newest, total, np.nan)


def _owners(names: Names, slots: Sequence[str]) -> Ints:
    """Return the slot number of each partition per window, [partitions, windows].

    The number is -1 if the slot is none of them.
    """
    numbers = {slot: number for number, slot in enumerate(slots)}
    newest = np.array([numbers.get(name, -1) for name in names[:, -1].tolist()], np.int64)
    found = np.repeat(newest[:, None], names.shape[1], axis=1)
    others = names != names[:, -1:]  # few: most partitions stay where they are
    found[others] = [numbers.get(name, -1) for name in names[others].tolist()]
    return found


def _rows_by_owner(newest: Ints, slots: int) -> list[Ints]:
    """Return the rows of each slot, ascending."""
    order = np.argsort(newest, kind="stable")
    return np.split(order, np.searchsorted(newest[order], np.arange(slots + 1)))[1:-1]


def _sums(values: Sequence[Floats], owners: Sequence[Ints], slots: int) -> Floats:
    """Return each topic's values summed over the partitions of each slot, [slots, windows].

    The sum is NaN if a value is unknown.
    """
    total = has = np.zeros((slots, owners[0].shape[1] if owners else 0))
    for each, owner in zip(values, owners, strict=True):
        is_held = owner >= 0
        place = (owner * owner.shape[1] + np.arange(owner.shape[1]))[is_held]
        total = total + np.bincount(place, each[is_held], total.size).reshape(total.shape)
        has = has + np.bincount(place, minlength=total.size).reshape(total.shape)
    return np.where(has > 0, total, np.nan)


def _intervals(topics: Sequence[TopicSignals], owners: Sequence[Ints], slots: int) -> Floats:
    """Return per slot the longest commit interval of its partitions in seconds, 0 if unknown."""
    longest = np.zeros(slots)
    for each, owner in zip(topics, owners, strict=True):
        held = owner[:, -1] >= 0
        np.fmax.at(longest, owner[held, -1], each.interval[held])
    return longest


def _busy(topics: Sequence[TopicSignals], owners: Sequence[Ints], slots: int) -> tuple[Flags, Ints]:
    """Return the busy flag of each slot, and its windows in a row with more to read.

    In these windows the slot had its partitions and more to read.

    It is busy with the same partitions for three windows, and never a moment without more to read
    than commits hide. What is left of a stalled partition keeps nobody busy: its owner has that
    much more to read, and does not read it.
    """
    count = owners[0].shape[1] if owners else 1
    smallest, floor, is_other = (np.zeros((slots, count)) for _ in range(3))
    has_changed = np.zeros(slots, np.bool_)
    for each, owner in zip(topics, owners, strict=True):
        now = owner[:, -1]
        held = now >= 0
        place = (now[held, None] * count + np.arange(count)).ravel()
        is_standing = each.frame["frozen"][held] > each.positions.patience[held]
        least, least_floor = (
            np.where(is_standing, 0.0, lags[held]) for lags in (each.least, each.least_floor)
        )
        smallest += np.bincount(place, least.ravel(), smallest.size).reshape(smallest.shape)
        floor += np.bincount(place, least_floor.ravel(), floor.size).reshape(floor.shape)
        differs = owner != now[:, None]
        if differs.any():
            np.add.at(is_other, now[held], differs[held])
            lately = slice(-_SETTLED_WINDOWS, -1)
            for side in (owner, np.broadcast_to(now[:, None], owner.shape)):
                moved = side[:, lately][differs[:, lately]]
                has_changed[moved[moved >= 0]] = True
    is_more = smallest > floor  # not where one is NaN
    rests = (~is_more | (is_other > 0))[:, ::-1]
    busy_for: Ints = np.where(rests.any(axis=1), rests.argmax(axis=1), count)
    return is_more[:, -1] & ~has_changed, busy_for


def _waits(
    topics: Sequence[TopicSignals],
    owners: Sequence[Ints],
    slots: int,
    windows: int,
    parameters: Parameters,
    less_than: float = math.inf,
) -> Flags:
    """Mark slots with all partitions at a halt for several commit intervals.

    The halt is in one of the newest windows.

    Those do not count that stood for `less_than` so many seconds or longer.

    It waits now and then, or its commits are not seen before long: what it does is not what it can
    do.
    """
    found = np.ones((slots, windows), np.bool_)
    for each, owner in zip(topics, owners, strict=True):
        held = owner[:, -1] >= 0
        frozen = each.frame["frozen"][held, -windows:]
        # not where one is NaN
        is_standing = (frozen >= parameters.stall_ci * each.interval[held, None]) & (
            frozen < less_than
        )
        np.logical_and.at(found[:, : frozen.shape[1]], owner[held, -1], is_standing)
        found[:, frozen.shape[1] :] = False
    waits: Flags = np.logical_or.reduce(found, axis=1)
    return waits


def _fall_behind(
    frame: GroupFrame,
    topics: Sequence[TopicSignals],
    owners: Sequence[Ints],
    is_rare: Flags,
    parameters: Parameters,
) -> Flags:
    """Mark slots with growing lag of a topic and more left at each newest commit.

    More means more than at the commit before.

    Only those count whose commits are rarer than windows. One that runs out of records leaves no
    more than what arrives in one batch, each time again.
    """
    slots = len(is_rare)
    is_growing, arrival = np.zeros(slots, np.bool_), np.zeros(slots)
    if not is_rare.any() or not any(each.trend.name == GROWING for each in topics):
        return is_growing
    standing = [each.frame["frozen"] > each.positions.patience for each in topics]
    envelopes = [
        np.where(stands, 0.0, each.frame["envelope"])
        for each, stands in zip(topics, standing, strict=True)
    ]
    left = _sums(envelopes, owners, slots)
    for each, owner in zip(topics, owners, strict=True):
        now = owner[:, -1]
        held = now >= 0
        np.add.at(arrival, now[held], each.arrival[held])
        is_growing[now[held]] |= each.trend.name == GROWING
        rows, windows = np.nonzero(owner != now[:, None])
        for slot, window in zip(
            [*now[rows], *owner[rows, windows]], [*windows, *windows], strict=True
        ):
            if slot >= 0:
                left[slot, : window + 1] = np.nan  # it had other partitions
    least = parameters.trend_exit_effect * arrival
    behind = [
        falls_behind(mine, rate, frame.window_seconds)
        for mine, rate in zip(left, least.tolist(), strict=True)
    ]
    return is_rare & is_growing & np.array(behind, np.bool_)


def _same_generation(frame: GroupFrame) -> bool:
    """Return True if no generation began in this window or the one before."""
    newest = frame.facts[-_SETTLED_WINDOWS:]
    numbers = {(row["generation"], row["group_epoch"]) for row in newest if row is not None}
    return len(newest) == _SETTLED_WINDOWS and None not in newest and len(numbers) == 1


def typical_capacity(
    members: Mapping[str, MemberSignals], busy: Busy, parameters: Parameters
) -> float:
    """Return the capacity of a member in records/s: the median of busy members.

    The capacity is NaN if too few members were busy.

    Also if half of the members do more than that without being busy: those that were are slower
    than the others.
    """
    known = lower_median(each.capacity for each in members.values())
    if math.isnan(known):
        known = lower_median(_shown_together(busy, parameters))
    better = sum(
        math.isnan(each.capacity) and each.consume > _TYPICAL_RATIO * known
        for each in members.values()
    )
    return math.nan if better and not is_most(len(members) - better, len(members)) else known


def _shown_together(busy: Busy, parameters: Parameters) -> list[float]:
    """Return the newest rates of all busy members in records/s.

    There are none if there are fewer than `busy_min_windows`.

    Members of a group are the same program: what several did in a window, and what those did that
    were replaced, tells what one can do before any of them was busy for long.
    """
    newest = sorted(sample for each in busy.values() for sample in each)[-parameters.busy_windows :]
    return [rate for _, rate in newest] if len(newest) >= parameters.busy_min_windows else []


def lasting_capacity(before: float, now: float, busy: Busy) -> float:
    """Return the earlier capacity unless the present one clearly differs.

    It differs clearly if by more than its rates scatter.
    """
    rates = [rate for each in busy.values() for _, rate in each]
    doubt = (percentile(rates, _SCATTER_HIGH) - percentile(rates, _SCATTER_LOW)) / 2
    return before if abs(now - before) <= doubt else now  # now, where one of them is not known
