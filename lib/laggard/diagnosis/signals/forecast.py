"""Forecast drain time, loss of records and of offsets, and the breach of a service level.

Seconds from now on; +inf is "does not drain at the current rate", NaN "not known". A forecast holds
while the arrival rate stays within a quarter of what it was, the generation stays and the status is
ok.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from datetime import timedelta
from itertools import pairwise
from math import ceil, inf, isnan, nan

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, Row, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Flags, Loss, Signals, TopicSignals
from laggard.diagnosis.signals.rates import newest_level
from laggard.diagnosis.signals.stall import is_lost, retained
from laggard.diagnosis.signals.statistics import known_sum
from laggard.diagnosis.signals.trend import GROWING, slopes

PARTIAL_SHARE = fixed(
    "partial_share", 0.1, "share of the partitions with a commit that may be unknown"
)
_UNSEEN = frozenset({"blocked", "stale"})  # flags under which nothing about the group is known
_READER_INTERVALS = fixed(
    "reader_intervals", 2, "commit intervals in which a reader that never joins moves on"
)
_LITTLE_SHARE = fixed("little_share", 0.5, "of what the log keeps, above which a commit left much")
_PACE_TIMES = fixed(
    "pace_times",
    10.0,
    "times as fast as its offset has moved: so much in one commit interval no reader reads",
)
_BREACH_WINDOWS = fixed("breach_windows", 15, "windows of the slope of the time lag")
_NEAR_WINDOWS = fixed(
    "near_windows", 2, "windows on either side of the one in which a record arrived"
)
# of the log start, which moves by whole segments: below it a speed is a guess
FEW_JUMPS = fixed("few_jumps", 3, "jumps of the log start")
_START_WINDOWS = fixed(
    "start_windows", 5, "windows that the speed of a log start is taken over at least"
)


def drain_seconds(lag: float, arrival: float, consume: float, parameters: Parameters) -> float:
    """Return seconds until the lag has drained at today's rates, in records/s."""
    return _drain(lag, consume - arrival, parameters.drain_min_share * arrival)


def topic_drain_seconds(signals: Signals, topic: TopicSignals) -> float:
    """Return seconds until a topic is drained at today's rates; NaN if its backlog is not known.

    Of a group that is not seen well enough to have a verdict it is only known if what is seen does
    not drain.
    """
    records = backlog(signals, topic)
    if not records > 0:
        return records
    if signals.member_count == 0 and not is_read_by_others(signals):
        return inf  # what its members read before they left goes on no longer
    seconds = slowest_drain_seconds(topic, signals.parameters)
    return seconds if math.isinf(seconds) or is_seen(signals) else nan


def is_seen(signals: Signals, known: Container[str] = ("ok",)) -> bool:
    """Return True if enough of a group is known for a verdict.

    `known` are statuses of partitions.
    """
    return not _UNSEEN & signals.flags and partial_share(signals.topics, known) <= PARTIAL_SHARE


def partial_share(topics: Sequence[TopicSignals], known: Container[str] = ("ok",)) -> float:
    """Return the share of unknown statuses among partitions with a commit; NaN without a commit.

    A status is unknown if it is not in `known`.
    """
    statuses = [
        status for topic in topics for status in topic.frame.named("status")[:, -1].tolist()
    ]
    unknown = [status not in known for status in statuses if status not in {"", "no_commit"}]
    return sum(unknown) / len(unknown) if unknown else nan


def backlog(signals: Signals, topic: TopicSignals) -> float:
    """Return the number of known records of a topic to drain.

    Return NaN if there are none and not all lag is known.
    """
    records = 0.0 if is_kept_up(signals, topic) else float(topic.lag[topic.is_ok].sum())
    return records if records > 0 or is_whole(topic) else nan


def is_whole(topic: TopicSignals) -> bool:
    """Return True if the lag of all partitions with a commit is known."""
    status = topic.frame.named("status")[:, -1]
    committed = (status != "no_commit") & (status != "")
    return bool(committed.any()) and bool((status[committed] == "ok").all())


def is_read_by_others(signals: Signals) -> bool:
    """Return True if a client that never joins committed, or moved offsets, recently.

    Recently means within two of its commit intervals.
    """
    longest = max(
        (float(np.nanmax(each.interval, initial=0.0)) for each in signals.topics), default=0.0
    )
    due = max(1, ceil(_READER_INTERVALS * longest / signals.frame.window_seconds))
    windows = min(due, _windows_without_members(signals.frame))
    names = ("commits", "consumed")  # commits are not counted where offsets are polled
    newest = [
        each.frame[name][:, -windows:] for each in signals.topics for name in names if windows > 0
    ]
    return any(known_sum(each) > 0 for each in newest)


def _windows_without_members(frame: GroupFrame) -> int:
    """Return the number of newest windows without a member in the group.

    Members must be absent at the windows' ends and in between.
    """
    # of the first of two windows nothing may be known yet; an older gap in what is known may hide
    # members
    others = [
        (row is None and age > 1) or bool(row and row.get("members"))
        for age, row in enumerate(frame.facts[::-1])
    ]
    windows = others.index(True) - 1 if True in others else len(others)
    changes = [
        row["record_timestamp"] for row in frame.generations if row["member_count"] or row["left"]
    ]
    if changes:
        windows = min(
            windows, (frame.now - max(changes)) // timedelta(seconds=frame.window_seconds)
        )
    return max(0, windows)


def is_kept_up(signals: Signals, topic: TopicSignals) -> bool:
    """Return True if a topic is read and its lag is only the records between two commits.

    There is then nothing to drain.

    That it is read as fast as it is written leaves nothing to spare, and means no backlog that
    never drains.
    """
    is_behind = topic.is_material | topic.is_stalled
    return (
        signals.member_count != 0
        and bool(topic.is_ok.any())
        and not is_behind.any()
        and topic.trend.name != GROWING
    )


def slowest_drain_seconds(topic: TopicSignals, parameters: Parameters) -> float:
    """Return seconds until the last member has drained its lag.

    Spare capacity of a member is of no use to another member.

    Members whose lag is below the floor, and stalled partitions, count with the topic as a whole
    alone.
    """
    slots = topic.frame.named("slot")[:, -1]
    behind = topic.is_ok & (topic.is_material | topic.is_stalled)
    whole = behind if behind.any() else topic.is_ok
    known = behind & ~topic.is_stalled & (slots != "")
    chosen = [whole] + [known & (slots == slot) for slot in sorted(set(slots[known]))]
    reads = paces(topic, parameters)
    drains = [_drained(topic, rows, reads, parameters) for rows in chosen]
    return nan if any(isnan(each) for each in drains) else max(drains)


def _drained(
    topic: TopicSignals, rows: npt.NDArray[np.bool_], reads: Floats, parameters: Parameters
) -> float:
    """Return seconds until these partitions have drained.

    Records that were read since a commit are not in the lag yet.
    """
    ages = topic.frame["frozen"][:, -1]
    since = np.where(ages <= topic.positions.patience[:, 0], ages, 0.0)
    left = np.clip(topic.envelope - (reads - topic.arriving) * since, 0.0, topic.lag)
    left = np.where(since > 0, left, topic.lag)
    lag, arrival, consume = (float(each[rows].sum()) for each in (left, topic.arriving, reads))
    return drain_seconds(lag, arrival, consume, parameters)


def paces(topic: TopicSignals, parameters: Parameters) -> Floats:
    """Return the present records/s of each partition: the mean of the newest commit gaps.

    If the rate has changed, the mean starts at the change.

    A mean over some gaps has a stall in it that is over, and what a burst was read at that has
    passed.
    """
    gaps = topic.positions.gap_rates(parameters.rate_windows)
    for newer, older in pairwise(gaps):
        np.copyto(older, newer, where=np.isnan(older))  # history is shorter
    found = newest_level(
        np.stack(gaps[::-1], axis=1), parameters.rate_windows, parameters.arrival_up_ratio
    )
    return np.where(np.isnan(found), topic.consume, found)


def drain_range(
    lag: float, arrival: float, slope_low: float, slope_high: float, parameters: Parameters
) -> tuple[float, float]:
    """Return the shortest and longest drain time in seconds.

    It is by the interval of the trend's slope in records/s.
    """
    least = parameters.drain_min_share * arrival
    return _drain(lag, -slope_low, least), _drain(lag, -slope_high, least)


def drain_at_capacity_seconds(lag: float, arrival: float, capacity: float, members: float) -> float:
    """Return seconds until the lag has drained if every member read at its capacity.

    `capacity` is in records/s of each member.
    """
    return nan if isnan(capacity) else _drain(lag, members * capacity - arrival, 0.0)


def _drain(lag: float, speed: float, least: float) -> float:
    if lag <= 0:
        return 0.0
    if isnan(lag + speed + least):
        return nan
    return lag / speed if speed > least else inf


def catch_up_ratio(arrival: float, consume: float) -> float:
    """Return the ratio of consumed to arriving records; NaN while nothing arrives."""
    return consume / arrival if arrival > 0 else nan


def loss_seconds(
    *,
    committed: float,
    log_start: float,
    log_start_speed: float,
    consume: float,
    retention_seconds: float,
    time_lag: float,
    arrival_at_read: float,
) -> float:
    """Return seconds until retention deletes an unread record; 0 when it already does.

    By offsets: the log start moves at `log_start_speed` (records/s, a mean over 3 jumps or more,
    as it moves by whole segments) and overtakes the committed offset. By time: the oldest unread
    record reaches `retention_seconds` (inf without limit), `arrival_at_read` being the rate at
    which the records at the read position were written. The earlier one that is known counts;
    never takes all inputs.
    """
    by_offsets = _overtaken(committed - log_start, log_start_speed - consume)
    speed = nan if isnan(arrival_at_read + consume) else 0.0
    if arrival_at_read > 0:
        speed = 1 - consume / arrival_at_read
    by_time = _overtaken(retention_seconds - time_lag, speed)
    soonest = min((each for each in (by_offsets, by_time) if not isnan(each)), default=nan)
    return nan if soonest == inf and isnan(by_offsets + by_time) else soonest


def _overtaken(headroom: float, speed: float) -> float:
    if isnan(headroom + speed):
        return nan
    return max(0.0, headroom) / speed if speed > 0 else inf


def slo_breach_seconds(slo_seconds: float, time_lag: float, slope: float) -> float:
    """Return seconds until the time lag passes the service level.

    `slope` is in s/s, NaN if it is not significant.
    """
    if slo_seconds <= 0 or isnan(time_lag):
        return nan
    return 0.0 if time_lag >= slo_seconds else _overtaken(slo_seconds - time_lag, slope)


def offsets_expiry_ms(since_ms: float, retention_minutes: float) -> float:
    """Return the time in ms since the epoch when the broker may delete committed offsets.

    Its sweep comes up to 10 min later.

    `since_ms` is when a classic group became empty. For simple and KIP-848 groups it is the commit
    of the partition, and only topics that no live member subscribes to expire.
    """
    return since_ms + 60_000 * retention_minutes


def known_losses(signals: Signals, topic: TopicSignals) -> Floats:
    """Return the records of each partition that were deleted unread, [partitions].

    The value is NaN if it is not known.
    """
    return np.where(may_be_past(signals, topic), np.nan, topic.frame["lost"][:, -1])


def may_be_past(signals: Signals, topic: TopicSignals) -> Flags:
    """Return partitions below their log start whose reader may have read on in time.

    In time means before retention deleted the records.

    That is one which keeps up, but commits seldom: its newest commit is not old and left little to
    read, and what was deleted since is no more than it could have read meanwhile.
    """
    found = is_lost(topic.frame)
    if not found.any() or (signals.member_count == 0 and not is_read_by_others(signals)):
        return np.zeros_like(found)
    little = np.fmin(topic.least_floor[:, -1], _LITTLE_SHARE * retained(topic.frame))
    readable = _PACE_TIMES * _progress(topic.frame, signals.frame.window_seconds) * topic.interval
    is_too_much = (topic.frame["lost"][:, -1] > readable) & (readable > 0)
    return found & (topic.envelope <= little) & ~is_too_much


def _progress(frame: TopicFrame, window_seconds: int) -> Floats:
    """Return the records/s by which each committed offset moved in all windows.

    The value is NaN if the offset is known in one window at most.
    """
    committed = frame["committed"]
    first = np.argmax(~np.isnan(committed), axis=1)
    seconds = float(window_seconds) * (committed.shape[1] - 1 - first)
    moved = committed[:, -1] - committed[np.arange(len(committed)), first]
    return np.where(seconds > 0, moved / np.maximum(seconds, 1.0), np.nan)


def losses(signals: Signals) -> dict[str, Loss]:
    """Return by topic which partition loses records to retention first, and in how many seconds."""
    return {each.frame.topic: _loss(signals, each) for each in signals.topics}


def _loss(signals: Signals, each: TopicSignals) -> Loss:
    frame = each.frame
    retention = retention_seconds(frame.facts)
    # lag that is only the commit interval is read long before it is deleted: behind a reader at the
    # end of the log retention removes what a busier hour had brought, faster than anything is read
    # now
    is_overdue = (frame["frozen"][:, -1] > each.positions.patience[:, 0]) & (each.lag > 0)
    matters = each.is_ok & (
        each.is_material & (each.envelope > each.floor) | each.is_stalled | is_overdue
    )
    deleted = np.flatnonzero(known_losses(signals, each) > 0)
    if deleted.size:  # what the log starts behind is deleted as it goes on
        return Loss(0.0, int(frame.partitions[deleted[0]]))
    if not matters.any():
        is_unknown = (
            math.isnan(retention) or not each.is_ok.any() or may_be_past(signals, each).any()
        )
        return Loss(math.nan if is_unknown else math.inf)
    found = Loss(math.nan)
    speeds, means, jumps = start_speeds(frame, signals.frame.window_seconds)
    reads = paces(each, signals.parameters)
    for row in np.flatnonzero(matters):
        seconds = loss_seconds(
            committed=float(frame["committed"][row, -1]),
            log_start=float(frame["start"][row, -1]),
            log_start_speed=float(speeds[row]),
            consume=float(reads[row]),
            retention_seconds=retention,
            time_lag=float(frame["time_lag"][row, -1]),
            arrival_at_read=_arrival_at_read(frame, int(row), signals.frame.window_seconds),
        )
        if not math.isnan(seconds) and (math.isnan(found.seconds) or seconds < found.seconds):
            found = Loss(
                float(seconds), int(frame.partitions[row]), int(jumps[row]), float(means[row])
            )
    return found


def start_speeds(frame: TopicFrame, window_seconds: int) -> tuple[Floats, Floats, Floats]:
    """Return each log start's present and mean rise, and the number of its jumps.

    Rises are in records/s, NaN if unknown.

    It moves by whole segments, and under retention by size as fast as the log grows: the newest
    jumps count, so many that they span `_START_WINDOWS`, and not those of before arrivals changed
    or the log was full. With fewer jumps than `FEW_JUMPS` it is the mean over all recorded
    windows.
    """
    start = frame["start"]
    rises = np.diff(start, axis=1)
    known = ~np.isnan(rises)
    counts = known.sum(axis=1)
    rises = np.where(known, rises, 0.0)
    jumps = (rises > 0).sum(axis=1)
    means = np.where(
        counts > 0, rises.sum(axis=1) / (np.maximum(counts, 1) * window_seconds), np.nan
    )
    speeds = means.copy()
    for row in np.flatnonzero(jumps > FEW_JUMPS):
        at = np.flatnonzero(rises[row] > 0)
        far = at[at <= at[-1] - _START_WINDOWS]
        first = min(int(at[-1 - FEW_JUMPS]), int(far[-1]) if len(far) else int(at[0]))
        newer = at[at > first]
        gap = (newer[-1] - first) / len(newer)
        # a start that has not moved for longer than usual has slowed down
        span = max(newer[-1] - first, rises.shape[1] - 1 - first - gap)
        speeds[row] = rises[row, newer].sum() / (span * window_seconds)
    return speeds, means, jumps.astype(float)


def retention_seconds(facts: Row) -> float:
    """Return the topic's retention in seconds: inf without a limit.

    Return NaN if the configuration could not be read.
    """
    if not facts.get("config_known"):
        return math.nan
    limit = facts.get("retention_seconds")
    return (
        math.inf
        if limit is None or "delete" not in (facts.get("cleanup_policy") or "delete")
        else float(limit)
    )


def _arrival_at_read(frame: TopicFrame, row: int, window_seconds: int) -> float:
    """Return records/s at the arrival of the first unread record.

    If the history is shorter, the rate is that of the oldest windows.
    """
    back = frame["time_lag"][row, -1] / window_seconds
    rates = frame["arrival"][row]
    if math.isnan(back):
        return math.nan
    place = len(rates) - 1 - int(back)
    near = rates[max(0, place - _NEAR_WINDOWS) : max(1, place + _NEAR_WINDOWS + 1)]
    count = np.count_nonzero(~np.isnan(near))
    return known_sum(near) / count if count else math.nan


def breach_seconds(signals: Signals) -> dict[str, float]:
    """Return seconds until each topic's time lag exceeds the SLO; empty without an SLO.

    The value is NaN unless the lag clearly grows.
    """
    slo = signals.policy.slo_time_lag_seconds
    if not slo:
        return {}
    seconds = signals.frame.windows / 1000.0
    found = {}
    for each in signals.topics:
        ages = each.frame["time_lag"]
        largest = np.where(np.isnan(ages).all(axis=0), np.nan, np.fmax.reduce(ages, axis=0))
        slope = float(
            slopes(
                seconds[-_BREACH_WINDOWS:], largest[None, -_BREACH_WINDOWS:], signals.parameters
            )[0]
        )
        grows = each.trend.name == "growing"
        found[each.frame.topic] = slo_breach_seconds(
            slo, float(largest[-1]), slope if grows else math.nan
        )
    return found
