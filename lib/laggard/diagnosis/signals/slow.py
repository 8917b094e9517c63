"""Members and hosts that do less than the others, and partitions that cost more anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, isnan

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.group import Flags, MemberSignals, Signals, Slowness, TopicSignals
from laggard.diagnosis.signals.hot import median_of_others, owner_of
from laggard.diagnosis.signals.rates import RATE_COMMITS, falls_behind
from laggard.diagnosis.signals.statistics import is_most, known_sum, lower_median

_SHED_WINDOWS = fixed("shed_windows", 3, "busy windows on either side of a move, at least")
_SHED_LONGEST_WINDOWS = fixed("shed_longest_windows", 10, "busy windows on either side, at most")
# the pace of a slow member stays what it was, whatever it works on
_SHED_FELL = fixed("shed_fell", 0.85, "of the pace before")


@dataclass(frozen=True, slots=True)
class PaceAfterLoss:
    """Pace of a member while busy before and after it was left with fewer partitions, records/s."""

    before: float
    after: float
    kept: frozenset[tuple[str, int]]  # what it had before and still has

    @property
    def is_slower(self) -> bool:
        """True if it lost pace, as no slow member would.

        A partition that it kept then takes most of its time.
        """
        return self.after <= _SHED_FELL * self.before


def pace_after_loss(signals: Signals, slot: str) -> PaceAfterLoss | None:
    """Return the last time a member got fewer partitions and kept some.

    Return None if it did not, or was too rarely busy.
    """
    held = np.concatenate([topic.frame.named("slot") == slot for topic in signals.topics])
    now = held[:, -1]
    changed = np.flatnonzero((held != now[:, None]).any(axis=0))
    had_more = (held & now[:, None]).any(axis=0) & (held.sum(axis=0) > now.sum())
    if not had_more.any():
        return None
    last = int(np.flatnonzero(had_more)[-1])
    alike = (held == held[:, last, None]).all(axis=0)
    alike[last + 1 :] = False
    # a rebalance lies in the first window after it
    after = np.arange(held.shape[1]) > changed[-1] + 1
    rates = [
        _busy_rates(signals, chosen, windows)
        for chosen, windows in ((held[:, last], alike), (now, after))
    ]
    if min(map(len, rates)) < _SHED_WINDOWS:
        return None
    places = [
        (topic.frame.topic, int(each))
        for topic in signals.topics
        for each in topic.frame.partitions
    ]
    kept = frozenset(places[row] for row in np.flatnonzero(held[:, last] & now))
    before, later = (lower_median(each[-_SHED_LONGEST_WINDOWS:].tolist()) for each in rates)
    return PaceAfterLoss(before, later, kept)


def _busy_rates(signals: Signals, chosen: Flags, windows: Flags) -> Floats:
    """Return records/s of the chosen partitions in their always busy windows.

    In these windows they always had more to read.
    """
    consume, lowest = (
        np.concatenate([topic.frame[name] for topic in signals.topics])
        for name in ("consume", "lag_min")
    )
    floor = float(np.concatenate([topic.floor for topic in signals.topics])[chosen].sum())
    total = consume[chosen].sum(axis=0)
    found: Floats = total[windows & (lowest[chosen].sum(axis=0) > floor) & ~np.isnan(total)]
    return found


# above it, the assignment is to blame
SLOW_LOAD_RATIO = fixed("slow_load_ratio", 1.2, "times the median load")
ALIKE_LOWEST = fixed(
    "alike_lowest", 0.5, "of the median arrivals of the others: partitions get alike from here"
)
ALIKE_HIGHEST = fixed("alike_highest", 2.0, "of the median arrivals of the others: up to here")
PACE_WINDOWS = fixed("pace_windows", 2, "newest windows with a commit; one may have a commit more")
COSTLY_FLOORS = fixed("costly_floors", 0.5, "floors, of what was left in the windows of a rate")
# they show whether the lag came along, and whether it is new
MOVE_WINDOWS = fixed("move_windows", 3, "windows on either side of a move")
MOVE_INTERVALS = fixed("move_intervals", 2, "commit intervals after a move, at least")


def slowness(
    signals: Signals, topic: TopicSignals, slots: Sequence[str], places: Iterable[int]
) -> Slowness | None:
    """Return how far members that own lagging partitions fall behind.

    Return None if they do not, or it is not known.
    """
    found = _expected(signals, slots)
    most = signals.parameters.slow_ratio * found.shown
    if (
        isnan(found.pace + most + found.load)
        or found.pace > most
        or _is_at_pace([topic], slots, most)
    ):
        return None
    if any(is_itself_costly(signals, topic, place) for place in places):
        return None
    return found


def _expected(signals: Signals, slots: Sequence[str]) -> Slowness:
    """Return what members do beside what they should; NaN if it is not known.

    Who has more to do than the others is compared with what it did itself before: the assignment is
    to blame, unless it does less than that.
    """
    mine = [signals.members[slot] for slot in slots if slot in signals.members]
    others = _compared(signals, slots)
    load, everyone = (
        lower_median(member.arrival for member in mine),
        lower_median(m.arrival for m in [*mine, *others]),
    )
    is_more = load > SLOW_LOAD_RATIO * everyone
    shown = lower_median(member.seen for member in (mine if is_more else others))
    return Slowness(
        tuple(slots), lower_median(map(pace_of, mine)), shown, load, everyone, is_by_itself=is_more
    )


def _compared(signals: Signals, slots: Sequence[str]) -> list[MemberSignals]:
    """Return other members that have as much to do as these, else all others.

    A member with less to do shows less.
    """
    load = lower_median(signals.members[slot].arrival for slot in slots if slot in signals.members)
    others = [
        member
        for slot, member in signals.members.items()
        if slot not in slots and member.partitions
    ]
    return [member for member in others if load <= SLOW_LOAD_RATIO * member.arrival] or others


def is_at_pace_again(signals: Signals, subject: str) -> bool:
    """Return True if a member or all members of a host read as much as the others can again.

    The member is given by its slot.
    """
    slots = [each.slot for each in signals.members.values() if subject in {each.slot, each.host}]
    return bool(slots) and _is_at_pace(
        signals.topics, slots, signals.parameters.slow_ratio * _expected(signals, slots).shown
    )


def _is_at_pace(topics: Sequence[TopicSignals], slots: Sequence[str], least: float) -> bool:
    """Return True if by their newest commits they read as much as members that are not slow.

    Return False if `least` is NaN.

    One that was stalled drains its backlog at full speed, long before a mean over minutes tells.
    """
    newest = 0.0
    for each in topics:
        own = np.isin(each.frame.named("slot")[:, -1], slots)
        newest += known_sum(each.positions.newest_rates(PACE_WINDOWS)[own])
    return bool(newest > least * len(slots))


def pace_of(member: MemberSignals) -> float:
    """Return a member's present capacity in records/s.

    Consumption while busy counts before `capacity` shows it.

    Not if less than that arrived in one of its windows: it had no more to do. One that does
    nothing is not slow: it is stalled, or what it does is not known.
    """
    is_held_up = member.is_busy and not member.waits and 0 < member.consume <= member.least_arrival
    return float(np.fmin(member.capacity, member.consume if is_held_up else np.nan))


def costly_places(
    signals: Signals, topic: TopicSignals, active: Flags
) -> tuple[tuple[int, ...], bool]:
    """Return rows of partitions with usual arrivals but a slower drain, and True if proven.

    Usual means as much as the others get.

    Proof is another owner with whom they lagged, or other partitions of the owner that do not lag;
    or that their owner lost pace when it was left with fewer, which tells that one of those it
    kept takes its time. An owner that starts again and again reads less of any.
    """
    slow = [
        place
        for place in np.flatnonzero(active & topic.is_material).tolist()
        if _is_worked_slower(signals, topic, place)
        and not _is_at_the_common_pace(signals, topic, place)
        and signals.membership.place(str(topic.frame.named("slot")[place, -1]))
        not in signals.membership.looping
    ]
    proven = [
        place
        for place in slow
        if _has_fine_siblings(signals, topic, place) or is_itself_costly(signals, topic, place)
    ]
    if proven:
        return tuple(proven), True
    return tuple(place for place in slow if _is_alone(signals, topic, place)), False


def _is_where_it_was(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if a proven costly partition still lags with the owner that it had then."""
    known = (topic.frame.topic, int(topic.frame.partitions[place])) in signals.memory.costly
    return known and bool(topic.is_material[place]) and _last_move(topic, place) is None


def is_itself_costly(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if a move of partitions shows that it costs more with any owner.

    The move may be now or earlier.
    """
    return (
        has_followed(signals, topic, place)
        or _is_kept_and_costly(signals, topic, place)
        or _is_where_it_was(signals, topic, place)
    )


def _is_kept_and_costly(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if its owner became slower after it kept this and fewer other partitions."""
    slot = str(topic.frame.named("slot")[place, -1])
    found = pace_after_loss(signals, slot) if slot else None
    return (
        found is not None
        and found.is_slower
        and (topic.frame.topic, int(topic.frame.partitions[place])) in found.kept
    )


def _is_worked_slower(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if a partition gets as much as the others but less is consumed.

    The difference is more than one late commit.

    Where each of the newest commits left more than the one before it, none has to come. What is
    left of a stall tells nothing of what its records cost.
    """
    arrival, others = float(topic.arrival[place]), median_of_others(topic.arrival, place)
    if not (
        ALIKE_LOWEST * others <= arrival <= ALIKE_HIGHEST * others and topic.consume[place] > 0
    ):
        return False
    seconds, windows = signals.frame.window_seconds, _of_its_rate(signals, topic, place)
    if topic.positions.stood[place, windows].any():
        return False
    if falls_behind(
        topic.frame["envelope"][place], signals.parameters.trend_effect * arrival, seconds
    ):
        return True
    left = (
        known_sum(topic.frame["arrival"][place, windows] - topic.frame["consume"][place, windows])
        * seconds
    )
    return bool(left > COSTLY_FLOORS * topic.floor[place])


def _of_its_rate(signals: Signals, topic: TopicSignals, place: int) -> slice:
    """Return the newest windows, which hold several commits of a partition."""
    interval = topic.interval[place]
    commits = 0 if isnan(interval) else ceil(RATE_COMMITS * interval / signals.frame.window_seconds)
    return slice(-max(signals.parameters.rate_windows, commits), None)


def _is_at_the_common_pace(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if most other members have shown their rate, no higher than the owner's rate.

    The owner is that of the partition.

    Then all are held up alike, and some have more partitions to share it out to; or the owner was
    given too many. So was one that reads more than any other ever did.
    """
    owner = owner_of(signals, topic, place)
    others = [
        member for member in signals.members.values() if member is not owner and member.partitions
    ]
    shown = [pace_of(member) for member in others if member.is_busy or not isnan(member.capacity)]
    if owner is None or not others:
        return False
    pace = pace_of(owner)
    if is_most(len(others) - len(shown), len(others)):
        return all(pace > member.seen for member in others)
    return pace >= signals.parameters.slow_ratio * lower_median(shown)


def _has_fine_siblings(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if this is the only lagging partition of its owner, and not just now.

    Of several lagging partitions, one is first.

    Of an owner that was found to be slow, one is also the last. One of which as much is consumed
    as of any other gets more than they do.
    """
    owner = owner_of(signals, topic, place)
    if (
        owner is None
        or len(owner.partitions) == 1
        or owner.material != 1
        or _is_found_slow(signals, owner)
    ):
        return False
    own = np.concatenate(
        [each.consume[each.frame.named("slot")[:, -1] == owner.slot] for each in signals.topics]
    )
    is_less = bool(topic.consume[place] < np.fmax.reduce(own))
    return is_less and _lagged(signals, topic, place, topic.frame["lag"].shape[1] - 1)


def _is_found_slow(signals: Signals, member: MemberSignals) -> bool:
    """Return True if a finding is open that this member, or its host, is slow."""
    named = {("SLOW_MEMBER", member.slot), ("SLOW_HOST", member.host)}
    return any(
        each.opened_ms is not None and (each.code, each.subject) in named
        for each in signals.memory.tracks
    )


def _lagged(signals: Signals, topic: TopicSignals, place: int, last: int) -> bool:
    """Return True if a partition was read, and its lag counted, in all windows up to this one.

    What is left of a stall tells nothing of what its records cost.
    """
    windows = slice(max(0, last - MOVE_WINDOWS + 1), last + 1)
    lags = topic.frame["lag"][place, windows]
    least = max(topic.floor[place], signals.parameters.min_lag_records)
    return len(lags) == MOVE_WINDOWS and bool(
        (lags > least).all() and not topic.positions.stood[place, windows].any()
    )


def _is_alone(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if a partition's owner has no other partition and no other owner had it.

    It is then unknown if the partition or the owner is slow.

    One that had others meanwhile, as a member that crashes leaves its own for a while, could not
    read more of this.
    """
    owner = owner_of(signals, topic, place)
    if owner is None or len(owner.partitions) != 1 or _last_move(topic, place) is not None:
        return False
    windows = _of_its_rate(signals, topic, place)
    held = [
        (each.frame.named("slot")[:, windows] == owner.slot).any(axis=1) for each in signals.topics
    ]
    return int(np.concatenate(held).sum()) == 1


def has_followed(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if a partition lagged with its former owner and still fills too fast.

    It fills faster than the new owner drains it. A healthy new owner would be reducing the
    backlog.
    """
    moved = _last_move(topic, place)
    if moved is None or not topic.is_material[place]:
        return False
    before, since = moved
    interval = topic.interval[place]
    wait = max(
        MOVE_WINDOWS,
        ceil(MOVE_INTERVALS * interval / signals.frame.window_seconds)
        if not isnan(interval)
        else 0,
    )
    rates = [topic.frame[name][place, since + 1 :] for name in ("consume", "arrival")]
    known = ~np.isnan(rates[0] + rates[1])
    is_slower = known.sum() >= wait and bool(rates[0][known].mean() < rates[1][known].mean())
    return is_slower and _lagged(signals, topic, place, before)


def _last_move(topic: TopicSignals, place: int) -> tuple[int, int] | None:
    """Return the last window of the former owner and the first of this owner.

    Return None if the owner never changed.
    """
    slots = topic.frame.named("slot")[place]
    others = np.flatnonzero((slots != "") & (slots != slots[-1]))
    if slots[-1] == "" or not len(others):
        return None
    before = int(others[-1])
    return before, before + 1 + int(np.flatnonzero(slots[before + 1 :] == slots[-1])[0])
