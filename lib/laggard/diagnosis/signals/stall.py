"""Stall of a partition, its kind and its record: one answer for rules, verdict and forecasts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, Row, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import UNKNOWN_KIND, Flags, Membership, Signals, TopicSignals
from laggard.diagnosis.signals.rates import rates_at_commits
from laggard.diagnosis.signals.rosters import EVICTION_REASONS
from laggard.diagnosis.signals.statistics import known_sum

HELD = "held"  # by a transaction
DEFAULT_POLL_SECONDS = fixed(
    "default_poll_seconds", 300.0, "s, max.poll.interval.ms of Kafka's consumers"
)
BELOW_LOG_START = "below_log_start"
# a member's first long batch looks like a hang until it is done
_BATCH_TIMES = fixed("batch_times", 2.0, "times stall_min_seconds")
_REPEAT_COMMITS = fixed(
    "repeat_commits", 2, "commits of one offset, from which the owner repeats itself"
)


def holds(log_ends: Row, committed: float, slack: float) -> bool:
    """Return True if a transaction is open and the reader has read all records before it.

    A few records may be missing.

    A transaction that ended before it left a marker, and records if it was aborted: offsets that
    no reader gets. One that commits the last record it got, plus one, stays below them.
    """
    stable, end = log_ends.get("last_stable_offset"), log_ends.get("log_end_offset")
    return (
        stable is not None
        and end is not None
        and stable < end
        and bool(committed >= stable - slack)
    )


def with_lost(frame: TopicFrame, window_seconds: int) -> TopicFrame:
    """Add `frozen` of windows in which the next records had been deleted.

    Lag is unknown there, and yet readers stand.

    It goes on from the window before as long as the offset is the same; one that has just moved
    stood for no time.
    """
    is_lost = frame.named("status") == BELOW_LOG_START
    rows, windows = np.nonzero(is_lost)
    if not len(rows):
        return frame
    frozen, committed = frame["frozen"].copy(), frame["committed"]
    for row, at in zip(rows.tolist(), windows.tolist(), strict=True):
        if at and committed[row, at] == committed[row, at - 1]:
            frozen[row, at] = np.fmax(frozen[row, at - 1], 0.0) + window_seconds
    newest = is_lost[:, -1] & np.isnan(frozen[:, -1])
    frozen[newest, -1] = 0.0
    return replace(frame, numbers={**frame.numbers, "frozen": frozen})


def is_lost(frame: TopicFrame) -> Flags:
    """Return partitions with a deleted next record at the end of the newest window."""
    found: Flags = frame.named("status")[:, -1] == BELOW_LOG_START
    return found


def retained(frame: TopicFrame) -> Floats:
    """Return records of each partition that retention has not deleted."""
    return frame["end"][:, -1] - frame["start"][:, -1]


def _log_ends(frame: TopicFrame, row: int) -> Sequence[Row]:
    """Return the last stable offset and log end of a partition by window.

    There are none if no transaction was open in any window.
    """
    found: Sequence[Row] = frame.facts.get("windows", {}).get(int(frame.partitions[row]), ())
    return found


def _released_windows(frame: TopicFrame, row: int, slack: float) -> float:
    """Return windows since the blocking transaction ended; infinity if none was open.

    The last stable offset is known once per window: in which moment it let go is not.
    """
    committed = frame["committed"][row]
    for back, one in enumerate(reversed(_log_ends(frame, row)[-len(committed) :])):
        if committed[-1 - back] != committed[-1]:
            break
        if holds(one, committed[-1], slack):
            return back - 1
    return math.inf


def able_seconds(frame: TopicFrame, row: int, window_seconds: int) -> float:
    """Return seconds for which a partition's offset has not moved under an able owner.

    An able owner could read on.

    The clock begins again at the end of a window in which nobody had it, or after which its offset
    was lower: what an owner finds when it comes, or is sent back to, it has not let stand.
    """
    owners, committed = frame.named("owner")[row], frame["committed"][row]
    is_away = owners == ""
    is_away[1:] |= committed[1:] < committed[:-1]
    # of one that nobody has, and where owners are not known, there is no other clock
    if is_away[-1] or is_away.all():
        is_away = np.append(False, committed[1:] < committed[:-1])
    since = int(np.argmax(is_away[::-1])) if is_away.any() else math.inf
    return min(float(frame["frozen"][row, -1]), since * window_seconds)


def _turn_seconds(frame: TopicFrame, row: int, floor: Floats, window_seconds: int) -> float:
    """Return the longest halt in seconds that ended, of a partition with more to read.

    The partition of one owner did not move and then did.

    What stood in a stall that has healed does not count once its owner has caught up; nor does
    what stood before it got its owner, which may begin where somebody has set the offset.
    """
    slots = frame.named("slot")
    if not slots[row, -1]:
        return 0.0
    own = np.flatnonzero(slots[:, -1] == slots[row, -1])
    is_behind = frame["lag_min"][own].sum(axis=0) > floor[own].sum()
    is_behind &= (slots[own] == slots[row, -1]).all(axis=0)
    # newest windows in a row
    count = int(np.argmin(is_behind[::-1])) if not is_behind.all() else len(is_behind)
    if count < 2:
        return 0.0
    frozen, committed = frame["frozen"][own, -count:], frame["committed"][own, -count:]
    moves = np.fmax(1.0, frame["commits"][own] - frame["noops"][own])[:, -frozen.shape[1] + 1 :]
    stood = (frozen[:, :-1] + window_seconds - frozen[:, 1:]) / moves
    owners, places = frame.named("owner")[own, -frozen.shape[1] :], np.arange(frozen.shape[1])
    is_new = np.append(np.zeros((len(own), 1), bool), owners[:, 1:] != owners[:, :-1], axis=1)
    # window in which it got it
    since = np.maximum.accumulate(np.where(is_new, places, -len(frozen[0])), axis=1)
    is_turn = (
        (frozen <= (places - since + 1) * window_seconds)[:, :-1]
        & ~is_new[:, 1:]
        & (np.diff(committed) > 0)
    )
    return float(np.fmax.reduce(stood[is_turn], initial=0.0))


def _rhythm_seconds(frame: TopicFrame, row: int, window_seconds: int) -> float:
    """Return the mean of the newest commit gaps in seconds, times a turn's commits; 0 if unknown.

    The gaps are those with more to read.

    The commit interval, a median of many gaps, is late to tell of batches that take long by now.
    The others of the same owner, all that time with more to read, tell how many commits a
    partition waits for its turn in full batches.
    """
    lag, commits = frame["lag_min"], np.nan_to_num(frame["commits"])
    is_own = (frame.named("slot") == frame.named("slot")[row, -1]) & (lag > 0)
    # newest windows in a row
    count = int(np.argmin(is_own[row, ::-1])) if not is_own[row].all() else lag.shape[1]
    rates = rates_at_commits(commits[row, lag.shape[1] - count :])
    if not len(rates):
        return 0.0
    since = -min(count, max(1, int(frame["frozen"][row, -1] // window_seconds)))
    others = np.flatnonzero(is_own[:, since:].all(axis=1))
    others = others[others != row]
    moves = float((commits - np.nan_to_num(frame["noops"]))[others, since:].sum())
    turn = len(others) * float(commits[row, since:].sum()) / moves if moves else 1.0
    return window_seconds / float(rates[-1]) * max(1.0, turn)


def _is_owner_silent(frame: TopicFrame, row: int, windows: int) -> bool:
    """Return True if the owner committed no partition of the topic in the newest windows.

    It hangs or is in a batch.

    Where commits are not counted, one that moved no offset may have been silent.
    """
    slots = frame.named("slot")[:, -1]
    own = slots == slots[row]
    commits = frame["commits"][own, -windows:]
    if _is_uncounted(frame)[row]:  # nor is what it did known in a window without an answer
        commits = np.nan_to_num(frame["consumed"][own, -windows:])
    return bool(slots[row] != "" and (commits == 0).all())


def _is_uncounted(frame: TopicFrame) -> npt.NDArray[np.bool_]:
    """Return a mask of the partitions whose commits are polled and not counted."""
    found: npt.NDArray[np.bool_] = np.isnan(frame["commits"][:, -1]) & np.isnan(
        frame["repeats"][:, -1]
    )
    return found


def _longest_gaps(frame: TopicFrame, parameters: Parameters) -> Floats:
    """Return each partition's longest ended silence in seconds, times `stall_ci`.

    The value is 0 if no silence has ended.

    The commit interval is not known before the third gap; the first one says already that the next
    may be as long, also of other partitions: members run the same program. Where commits are not
    counted, no interval is ever known.
    """
    frozen = frame["frozen"]
    has_ended = frame["consumed"][:, 1:] > 0
    gaps: Floats = np.fmax.reduce(np.where(has_ended, frozen[:, :-1], 0.0), axis=1, initial=0.0)
    is_new = np.isnan(frame["interval"][:, -1]) & ~_is_uncounted(frame)
    gaps[is_new] = np.fmax.reduce(gaps[is_new], initial=0.0)
    return parameters.stall_ci * gaps


def stalls(
    frame: TopicFrame,
    *,
    has_members: bool,
    window_seconds: int,
    parameters: Parameters,
    poll_interval_seconds: float = 0.0,
    session_seconds: float = 0.0,
    hidden_seconds: float = 0.0,
    settled_seconds: float = math.inf,
    floor: Floats | None = None,
) -> tuple[str, ...]:
    """Return the kind of stall of each partition, "" for none.

    In a stall the offset does not move although records arrived since.

    Members commit as they lose partitions: gaps between rebalances are shorter than the timer's,
    and `settled_seconds` after the newest one its own have not been seen again.

    A few records behind which nothing came need not be records: a transaction's marker stays at
    the end of a log. While the commit interval is not known, a batch may take all of the longest
    poll interval of the members; an owner that commits nothing may have died and be missed a
    session later. Commits that may be hidden may say that it moved on. `floor` is that of the
    newest window: partitions of an owner that is behind with its work take turns, and turns may
    take a while.
    """
    is_unknown = np.isnan(frame["interval"][:, -1])
    interval = np.where(is_unknown, window_seconds, frame["interval"][:, -1])
    limit = np.maximum(parameters.stall_ci * interval, parameters.stall_min_seconds)
    # nor are the members' timeouts known where commits are polled
    is_uncounted = _is_uncounted(frame)
    longest = np.where(
        is_uncounted, max(poll_interval_seconds, DEFAULT_POLL_SECONDS), poll_interval_seconds
    )
    limit = np.where(
        is_unknown, np.maximum(limit, np.maximum(longest, _longest_gaps(frame, parameters))), limit
    )
    longest = parameters.stall_ci * np.fmax.reduce(frame["interval"], axis=1)
    limit = np.where(settled_seconds < longest, np.fmax(limit, longest), limit)
    frozen = frame["frozen"][:, -1].copy()
    for row in np.flatnonzero(frozen - hidden_seconds >= limit).tolist():
        frozen[row] = able_seconds(frame, row, window_seconds)
    kinds = [""] * len(frozen)
    for row in np.flatnonzero(frozen - hidden_seconds >= limit).tolist():
        since = min(frame["produced"].shape[1], math.ceil(frozen[row] / window_seconds) + 1)
        within = max(1, math.floor(frozen[row] / window_seconds))
        is_few = frame["lag"][row, -1] <= parameters.min_lag_records
        if not known_sum(frame["produced"][row, -(within if is_few else since) :]) > 0:
            continue
        rhythm = _rhythm_seconds(frame, row, window_seconds)
        if floor is not None:
            rhythm = max(rhythm, _turn_seconds(frame, row, floor, window_seconds))
        limit[row] = max(limit[row], parameters.stall_ci * rhythm)
        if _is_owner_silent(frame, row, math.ceil(parameters.stall_min_seconds / window_seconds)):
            silence = max(
                _BATCH_TIMES * parameters.stall_min_seconds,
                session_seconds + parameters.stall_min_seconds,
            )
            limit[row] = max(limit[row], silence)
        if (frame["lag"][row, -1 - int(limit[row] // window_seconds) :][:1] == 0).any():
            continue  # all was read so long ago: since when there was more is known by a poll or so
        slack = max(parameters.min_lag_records, 0.0 if floor is None else float(floor[row]))
        rows = _log_ends(frame, row)
        if rows and holds(rows[-1], frame["committed"][row, -1], slack):
            kinds[row] = HELD
        elif (
            min(frozen[row] - hidden_seconds, _released_windows(frame, row, slack) * window_seconds)
            < limit[row]
        ):
            continue
        elif has_members and frame.named("owner")[row, -1] == "":
            kinds[row] = "unowned"
        else:
            is_repeating = frame["repeats"][row, -1] >= _REPEAT_COMMITS
            counted = "repeating" if is_repeating else "silent"
            kinds[row] = UNKNOWN_KIND if is_uncounted[row] else counted
    return tuple(kinds)


_EVICTED_POSTERIOR = fixed("evicted_posterior", 0.5, "probability of these reasons together")
_UNRELATED_RATIO = fixed(
    "unrelated_ratio", 0.5, "evictions of members that never had it, per eviction of an owner"
)


@dataclass(frozen=True, slots=True)
class Eviction:
    """A member that was evicted, and its partitions at that time.

    They are None if its assignment is not known.
    """

    slot: str
    at: datetime
    held: frozenset[tuple[str, int]] | None


@dataclass(frozen=True, slots=True)
class Suspects:
    """Partitions of one topic that stalled before members that had them were evicted.

    They are rows of the topic's arrays.
    """

    topic: TopicSignals
    rows: tuple[int, ...]
    evictions: tuple[Eviction, ...]
    frozen_seconds: float  # longest
    share: float  # of the topics' partitions, these


def find_suspects(signals: Signals, slack_seconds: float) -> Suspects | None:
    """Return the partitions that stalled first, within the slack, with evictions since.

    The evictions took one owner after the other.

    A member that never had them may leave for a reason of its own. Where many of those that leave
    had other partitions it is a trouble of the whole group, and no record's. Those that the same
    members had all the time cannot be distinguished: they are named together until one moves on.
    """
    first, longest = _stalled_first(signals, slack_seconds)
    if not first:
        return None
    since = signals.frame.now - timedelta(seconds=longest)
    evictions = tuple(each for each in evictions_of(signals.membership) if each.at >= since)
    owners = {
        place: _owners(evictions, _place(signals.topics[place[0]], place[1])) for place in first
    }
    most = max(map(len, owners.values()))
    suspects = [place for place in first if len(owners[place]) == most]
    known = owners[suspects[0]]
    is_contrast = len(evictions) - most <= _UNRELATED_RATIO * most and all(
        owners[place] == known for place in suspects
    )
    if (
        not is_contrast
        or not any(each.held for each in known)
        or len({number for number, _ in suspects}) > 1
    ):
        return None
    topic = signals.topics[suspects[0][0]]
    partitions = sum(len(each.frame.partitions) for each in signals.topics)
    return Suspects(
        topic, tuple(row for _, row in suspects), known, longest, len(first) / partitions
    )


def _stalled_first(signals: Signals, slack_seconds: float) -> tuple[list[tuple[int, int]], float]:
    """Return the first stalled partitions, as topic numbers and rows, and the stall's seconds.

    The seconds count from the first stall.
    """
    stalled = [
        (float(each.frame["frozen"][row, -1]), number, int(row))
        for number, each in enumerate(signals.topics)
        for row in np.flatnonzero(each.is_stalled)
    ]
    longest = max((seconds for seconds, _, _ in stalled), default=0.0)
    return [
        (number, row) for seconds, number, row in stalled if seconds >= longest - slack_seconds
    ], longest


def _owners(evictions: Sequence[Eviction], place: tuple[str, int]) -> tuple[Eviction, ...]:
    """Return evictions of members that had a partition, or whose partitions are unknown."""
    return tuple(each for each in evictions if each.held is None or place in each.held)


def evictions_of(membership: Membership) -> Iterator[Eviction]:
    """Yield members that the group lost because they did not poll, did not answer, or died."""
    for row in membership.frame.rebalances:
        reasons = dict(row["cause_posterior"] or {})
        if (
            not row.get("live_read")
            or sum(reasons.get(name, 0.0) for name in EVICTION_REASONS) < _EVICTED_POSTERIOR
        ):
            continue
        before = [each for each in membership.rosters if each.generation < min(row["generations"])]
        members: Sequence[Row] = before[-1].rows if before else ()
        held = {member["slot"]: member["assigned"] for member in members}
        for slot in sorted(
            {*(row["left"] or ()), *(row["replaced"] or ())} & held.keys() if held else row["left"]
        ):
            places = held.get(slot)
            yield Eviction(
                slot,
                row["ended_at"],
                None
                if places is None
                else frozenset((place["topic"], place["partition"]) for place in places),
            )


def _place(topic: TopicSignals, row: int) -> tuple[str, int]:
    return topic.frame.topic, int(topic.frame.partitions[row])
