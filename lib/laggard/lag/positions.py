"""Where each group stands on each partition after a tick: status, lag, identity. Pure functions of Arrow tables.

The status rules and their order are `schemas.STATUSES`; unknown stays null from column to column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag import time_lag
from laggard.lag.arrays import (
    TIMESTAMP,
    Ints,
    as_double,
    both,
    build,
    differ,
    equal,
    key_codes,
    match,
    null,
    repeat,
    seconds_between,
    take,
    when,
    where,
)  # fmt: skip
from laggard.lag.commit_gaps import SUMS, NewCommits, add_gaps, sum_gaps
from laggard.lag.envelope import lag_at_commits
from laggard.lag.flows import partition_flows
from laggard.lag.late import Probed, count_late
from laggard.lag.reached import reached_by
from laggard.lag.tick import Tick
from laggard.lag.windows import accumulate

KEY = ("group", "topic", "partition")
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
NOT_POLLED = "NOT_POLLED"  # the topic is newer than our list of topics
COMMIT_TRUNCATED = "COMMIT_TRUNCATED"  # the offsets topic lost the commit, and no newer one was read
ADVANCE_FAILED = "ADVANCE_FAILED"  # the group's tick raised: it is in quarantine
NO_COORDINATOR = "COORDINATOR_NOT_AVAILABLE"  # the leader of the group's offsets partition has not answered for long
NEGATIVE_OFFSET = "NEGATIVE_OFFSET"  # the newest commit: to the broker and to clients the group has no offset
_MOST_REPEATS = 2**31 - 1
_STRING, _LONG, _DOUBLE = pa.string(), pa.int64(), pa.float64()


@dataclass(frozen=True, slots=True)
class Merged:
    """Parallel rows: as they were before (`before`), the commit each got (`commit`), the poll's answer (`polled`).

    Columns of a side that has nothing for a row are null. `is_new` marks a commit or tombstone to be taken,
    `is_deleted` the tombstones among them.
    """

    keys: pa.Table
    before: pa.Table
    commit: pa.Table
    polled: pa.Table
    is_new: Any
    is_deleted: Any
    is_retired: Any


def merge(before: pa.Table, commits: pa.Table, polled: pa.Table, subscribed: pa.Table) -> Merged:
    """Bring the sides together by (group, topic, partition).

    `before`: rows of `partition_status`. `commits`: unique per key. `polled`: the poll's positions. `subscribed`:
    (group, topic) pairs that living members ask for; their partitions without a commit become rows too.
    """
    expected = _expected(subscribed, polled)
    old, new, wanted = key_codes([before, commits, expected], KEY)
    fresh = np.flatnonzero(match(new, old) < 0)
    # a topic that is gone is polled once more: the rows it has say so, and those that ended do not come back
    is_there = ~_flags(equal(expected["error"], UNKNOWN_TOPIC))
    missing = np.flatnonzero((match(wanted, old) < 0) & (match(wanted, new) < 0) & is_there)
    before_at = np.r_[np.arange(len(old)), np.full(len(fresh) + len(missing), -1)]
    commit_at = np.r_[match(old, new), fresh, np.full(len(missing), -1)]
    keys = pa.concat_tables([before.select(KEY), commits.select(KEY).take(fresh), expected.select(KEY).take(missing)])
    row, place = key_codes([keys, polled], KEY[1:])
    prior, commit = take(before, before_at), take(commits, commit_at)
    # a record read twice (the offsets topic was re-read) must not count twice
    is_later = pc.or_kleene(
        pc.greater(commit["source_offset"], prior["commit_source_offset"]),
        pc.not_equal(commit["source_partition"], prior["commit_source_partition"]),
    )
    is_new = pc.and_(pc.is_valid(commit["source_offset"]), pc.fill_null(is_later, True))
    # nobody subscribes to it any more, and it was never committed
    is_unwanted = pa.array(np.r_[match(old, wanted) < 0, np.zeros(len(fresh) + len(missing), bool)])
    # a negative offset commits nothing, but is there: only a row without a record of a commit may end by itself
    has_no_commit = pc.and_(pc.is_null(prior["committed_offset"]), pc.is_null(prior["commit_source_offset"]))
    was_uncommitted = pc.and_(pa.array(before_at >= 0), has_no_commit)
    is_gone = pc.and_(pc.and_(is_unwanted, was_uncommitted), pc.invert(is_new))
    is_gone = pc.and_(is_gone, polled.num_rows > 0)  # a poll that says nothing ends nothing
    is_deleted = pc.and_(is_new, pc.fill_null(commit["is_deleted"], False))
    # where a member still wants it, it is a partition without a commit
    there = wanted[is_there]
    is_not_there = np.r_[match(old, there) < 0, match(new[fresh], there) < 0, np.zeros(len(missing), bool)]
    is_retired = pc.or_(pc.and_(is_deleted, pa.array(is_not_there)), is_gone)
    return Merged(keys, prior, commit, take(polled, match(row, place)), is_new, is_deleted, is_retired)


def forget_truncated(rows: pa.Table, tick: Tick) -> pa.Table:
    """Rows of `partition_status` without the source offset of commits that the offsets topic no longer has.

    After an unclean election its log may be shorter than what was read. The broker's view wins: the next commit counts,
    though its source offset is lower, and until then the row is stale.
    """
    place = rows.schema.get_field_index("commit_source_offset")
    for partition, log_end in tick.truncated_partitions:
        found = rows["commit_source_offset"]
        is_lost = both(pc.equal(rows["commit_source_partition"], partition), pc.greater_equal(found, log_end))
        rows = rows.set_column(place, rows.schema.field(place), _unless(is_lost, found))
    return rows


def _expected(subscribed: pa.Table, polled: pa.Table) -> pa.Table:
    """(group, topic, partition) of every polled partition that a group subscribes to, with the poll's error."""
    of_pair, of_place = key_codes([subscribed, polled], ["topic"])
    order = np.argsort(of_place, kind="stable")
    low, high = np.searchsorted(of_place[order], of_pair), np.searchsorted(of_place[order], of_pair, side="right")
    counts = high - low
    pairs = np.repeat(np.arange(len(of_pair)), counts)
    places = (
        order[np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)]
        if len(pairs)
        else pairs
    )
    rows = subscribed.take(pairs)
    asked = {"group": rows["group"], "topic": rows["topic"]}
    return pa.table(asked | {name: polled[name].take(places) for name in ("partition", "error")})


def advance_positions(
    merged: Merged, tick: Tick, schema: pa.Schema, probed: Probed | None = None
) -> tuple[pa.Table, dict[str, Any]]:
    """Rows of `partition_status` (schema given); `was_recreated`, `rewound_from`, `rewound_to`, `flows`, `gaps`."""
    before, commit, polled = merged.before, merged.commit, merged.polled
    rows = merged.keys.num_rows
    known_id = where(pc.not_equal(before["topic_id"], ""), before["topic_id"])
    polled_id = where(pc.not_equal(polled["topic_id"], ""), polled["topic_id"])
    topic_id = _topic_id(merged, known_id, polled_id)
    is_other_topic = pc.and_(differ(polled_id, topic_id), pc.is_valid(topic_id))
    is_same_topic = pc.or_(pc.is_null(known_id), equal(known_id, topic_id))  # as before this tick

    def newest(new: str, old: str) -> Any:
        return when(merged.is_new, commit[new], before[old])

    committed = newest("committed_offset", "committed_offset")
    # a commit that repeats the offset proves nothing new: the poll that first met it counts
    is_moved = pc.and_(merged.is_new, pc.invert(equal(before["committed_offset"], committed)))
    polled_end = when(is_other_topic, null(_LONG), polled["log_end_offset"])
    log_end = polled_end if tick.is_caught_up else pc.coalesce(polled_end, before["log_end_offset"])
    log_start = when(
        is_other_topic,
        null(_LONG),  # a log start only rises, so the newest known one stands until the window's first poll
        pc.max_element_wise(polled["log_start_offset"], where(is_same_topic, before["log_start_offset"])),
    )
    columns: dict[str, Any] = {
        "cluster": repeat(tick.cluster, _STRING, rows),
        **{name: merged.keys[name] for name in KEY},
        "topic_id": pc.coalesce(topic_id, ""),
        "current_topic_id": where(is_other_topic, polled_id),
        "batch_id": repeat(tick.batch_id, _LONG, rows),
        "poll_id": repeat(tick.poll_id, _LONG, rows),
        "sampled_at": repeat(tick.now, TIMESTAMP, rows),
        "commit_source_partition": _unless(merged.is_deleted, newest("source_partition", "commit_source_partition")),
        "commit_source_offset": _unless(merged.is_deleted, newest("source_offset", "commit_source_offset")),
        "commit_timestamp": newest("commit_timestamp", "commit_timestamp"),
        "committed_offset": committed,
        "leader_epoch": newest("leader_epoch", "leader_epoch"),
        "commit_poll_id": when(is_moved, repeat(tick.poll_id, _LONG, rows), before["commit_poll_id"]),
        "log_end_offset": log_end,
        "log_start_offset": log_start,
        "leader_broker": polled["leader_broker"],
        "ahead_records": pc.max_element_wise(pc.subtract(committed, log_end), 0, skip_nulls=False),
    }
    columns["status"], columns["error"] = _status(columns, polled, is_other_topic, tick)
    columns |= _measures(columns, tick)
    columns |= _time_lag(columns, polled_end, before["end_points"], is_same_topic, tick)
    rhythm, gaps = _rhythm(merged, columns, tick, is_same_topic)
    columns |= rhythm
    fell_by, moves = _moves(merged, tick, is_same_topic, columns)
    columns |= moves
    counts = _counts(merged, fell_by, log_end)
    lag_at_commit = where(merged.is_new, lag_at_commits(before, commit, columns, is_same_topic, tick))
    columns |= accumulate(before, columns, tick, **counts, lag_at_commit=lag_at_commit, is_same_topic=is_same_topic)
    columns |= count_late(before, columns, probed, tick, is_same_topic)
    was_recreated = pc.and_(is_other_topic, pc.invert(equal(before["current_topic_id"], polled_id)))
    changes = {
        "gaps": gaps,
        "was_recreated": was_recreated,
        "rewound_from": where(pc.greater(fell_by, 0), before["committed_offset"]),
        "rewound_to": commit["first_committed_offset"],
        "flows": partition_flows(
            before, columns, counts, fell_by, is_same_topic=is_same_topic, is_caught_up=tick.is_caught_up
        ),
    }
    return build(schema, columns), changes


def _unless(condition: Any, value: Any) -> Any:
    return where(pc.invert(condition), value)


def _topic_id(merged: Merged, known: Any, polled: Any) -> Any:
    """The topic id the row's commit belongs to.

    Few commits carry one; for the others it is the poll's when the commit is first seen. If the topic was recreated
    since the tick before, such a commit may be from either side: it stays with the old id until the next one, unless a
    tombstone lies before it.
    """
    seen_before = equal(pc.coalesce(merged.before["current_topic_id"], known), polled)
    has_commit = pc.is_valid(merged.before["committed_offset"])
    # the brokers delete a topic's commits with it: one that follows belongs to the topic that the poll shows
    starts_over = pc.or_(pc.invert(has_commit), pc.fill_null(merged.commit["follows_deletion"], False))
    attributed = when(pc.or_(starts_over, seen_before), polled, known)
    fresh = pc.coalesce(merged.commit["topic_id"], attributed, _unless(starts_over, known), polled)
    return when(merged.is_new, fresh, when(has_commit, pc.coalesce(known, polled), pc.coalesce(polled, known)))


def _status(columns: dict[str, Any], polled: pa.Table, is_other_topic: Any, tick: Tick) -> tuple[Any, Any]:
    """One status per row, the first that applies, and Kafka's error name."""
    committed, end, start = columns["committed_offset"], columns["log_end_offset"], columns["log_start_offset"]
    rows = len(committed)
    is_unpolled = pc.is_null(polled["partition"])
    # missing only if topics were listed after the commit was met
    is_listed_since = pc.less(pc.fill_null(columns["commit_poll_id"], 0), tick.metadata_poll_id)
    is_unlisted = pc.and_(is_unpolled, is_listed_since)
    is_proven = pc.greater_equal(
        tick.poll_id, pc.add(columns["commit_poll_id"], 2)
    )  # that poll began after the commit was read
    is_lost = pc.and_(pc.is_valid(committed), pc.is_null(columns["commit_source_offset"]))
    is_negative = pc.and_(pc.is_null(committed), pc.is_valid(columns["commit_source_offset"]))
    silent = pc.is_in(columns["commit_source_partition"], value_set=pa.array(tick.silent_partitions, pa.int32()))
    blocked = pc.is_in(columns["commit_source_partition"], value_set=pa.array(tick.blocked_partitions, pa.int32()))
    cases = [
        ("stale", pc.or_(is_lost, not tick.is_caught_up)),
        ("topic_missing", pc.or_(is_unlisted, equal(polled["error"], UNKNOWN_TOPIC))),
        ("topic_recreated", is_other_topic),
        ("no_end_offset", pc.is_null(end)),
        ("stale", silent),  # without any broker there is no end either, which says more
        ("source_blocked", blocked),
        ("no_commit", pc.is_null(committed)),
        ("committed_ahead", both(pc.greater(committed, end), is_proven)),
        ("below_log_start", pc.less(committed, start)),
    ]
    status: Any = pa.repeat("ok", rows)
    for name, applies in reversed(cases):
        status = when(applies, name, status)
    unpolled_error = when(is_unlisted, UNKNOWN_TOPIC, where(is_unpolled, pa.repeat(NOT_POLLED, rows)))
    of_commit = when(is_lost, COMMIT_TRUNCATED, where(is_negative, pa.repeat(NEGATIVE_OFFSET, rows)))
    of_commit = when(silent, NO_COORDINATOR, of_commit)
    return status, pc.coalesce(polled["error"], unpolled_error, of_commit)


def _measures(columns: dict[str, Any], tick: Tick) -> dict[str, Any]:
    """Lag and what the log still holds, where the status allows them."""
    committed, end, start = columns["committed_offset"], columns["log_end_offset"], columns["log_start_offset"]
    is_ok, is_below = pc.equal(columns["status"], "ok"), pc.equal(columns["status"], "below_log_start")
    lag = where(is_ok, pc.max_element_wise(pc.subtract(end, committed), 0, skip_nulls=False))
    nothing_lost = where(pc.and_(is_ok, pc.is_valid(start)), pc.multiply(lag, 0))
    return {
        "lag": lag,
        "lost_records": when(is_below, pc.subtract(start, committed), nothing_lost),
        "readable_records": when(is_below, pc.subtract(end, start), lag),
        # a client's time is not comparable with one that is held
        "commit_age_seconds": where(
            pa.scalar(not tick.is_held), seconds_between(columns["sampled_at"], columns["commit_timestamp"])
        ),
    }


def _time_lag(
    columns: dict[str, Any], polled_end: Any, end_points: Any, is_same_topic: Any, tick: Tick
) -> dict[str, Any]:
    end, committed, lag = (_numbers(column) for column in (polled_end, columns["committed_offset"], columns["lag"]))
    now_us = int(tick.now.timestamp() * 1_000_000)
    points = time_lag.add_point(time_lag.read_end_points(end_points), _flags(is_same_topic), end[0], end[1], now_us)
    points = time_lag.thin(time_lag.drop_passed(points, committed[0], committed[1]))
    age = time_lag.age_of_first_unread(points, committed[0], now_us)
    is_behind = lag[1] & (lag[0] > 0) & (points.lengths > 0)
    is_level = lag[1] & (lag[0] == 0)
    is_known = is_behind | is_level
    return {
        "time_lag_seconds": pa.array(np.where(is_level, 0.0, age.seconds), _DOUBLE, mask=~is_known),
        "time_lag_method": pa.array(np.where(is_level, "caught_up", "history").astype(object), _STRING, mask=~is_known),
        "time_lag_error_seconds": pa.array(
            np.where(is_level, 0.0, age.error_seconds), _DOUBLE, mask=~(is_level | (is_behind & ~age.is_censored))
        ),
        "time_lag_censored": pa.array(~is_level & age.is_censored, mask=~is_known),
        "end_points": time_lag.to_column(points),
    }


def _rhythm(
    merged: Merged, columns: dict[str, Any], tick: Tick, is_same_topic: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """When the group commits, and the sums of its gaps.

    What was read while catching up was thinned out by compaction and tells no rhythm.
    """
    before, commit = merged.before, merged.commit
    is_followed = pc.fill_null(pc.not_equal(before["status"], "stale"), tick.has_history)
    is_live = pc.and_(pc.and_(merged.is_new, is_followed), tick.is_caught_up)
    newest = where(is_live, commit["commits"])
    new = NewCommits(
        _numbers(newest)[0],
        _milliseconds(commit["first_commit_timestamp"]),
        _milliseconds(commit["commit_timestamp"]),
        _milliseconds(where(is_same_topic, before["commit_timestamp"])),
    )
    gaps, interval = add_gaps(
        where(is_same_topic, before["commit_gaps"]), where(is_same_topic, before["commit_interval_seconds"]), new
    )
    was_behind = pc.greater(commit["first_committed_offset"], where(is_same_topic, before["committed_offset"]))
    is_first = pc.or_(pc.is_null(before["committed_offset"]), pc.invert(is_same_topic))
    moved_on = where(pc.or_(pc.fill_null(was_behind, False), is_first), commit["first_commit_timestamp"])
    progress = where(is_live, pc.coalesce(commit["progress_timestamp"], moved_on))
    is_repeated = equal(before["committed_offset"], commit["first_committed_offset"])
    carried = pc.fill_null(where(is_same_topic, before["repeat_commits"]), 0)
    repeats = when(pc.is_valid(progress), 0, pc.add(pc.cast(carried, _LONG), pc.cast(is_repeated, _LONG)))
    repeats = when(is_live, pc.add(repeats, commit["repeat_commits"]), carried)
    return {
        "repeat_commits": where(pc.is_valid(columns["committed_offset"]), pc.min_element_wise(repeats, _MOST_REPEATS)),
        "commit_gaps": gaps,
        "commit_interval_seconds": interval,
        "progressed_at": pc.coalesce(progress, where(is_same_topic, before["progressed_at"])),
    }, sum_gaps(new, {name: where(is_live, commit[name]) for name in SUMS})


def _moves(merged: Merged, tick: Tick, is_same_topic: Any, columns: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """How far the committed offset fell at the border of two ticks, and the rates since the tick before."""
    before = merged.before
    held = where(is_same_topic, reached_by(before))
    # no record lies beyond the log end: only from there on it is read again
    fell = pc.subtract(held, merged.commit["first_committed_offset"])
    fell_by = where(pc.and_(merged.is_new, pc.fill_null(pc.greater(fell, 0), False)), fell)
    seconds = seconds_between(columns["sampled_at"], before["sampled_at"])
    was_live = differ(before["status"], "stale")  # what was carried while catching up was not observed then
    elapsed = where(both(pc.greater(seconds, 0), was_live, pa.scalar(tick.is_caught_up)), seconds)
    arrived = pc.subtract(columns["log_end_offset"], where(is_same_topic, before["log_end_offset"]))
    consumed = pc.subtract(reached_by(columns), held)
    is_forward = pc.and_(pc.is_null(fell_by), pc.equal(pc.fill_null(merged.commit["rewound_records"], 0), 0))
    return fell_by, {
        "arrival_rate": pc.divide(as_double(where(pc.greater_equal(arrived, 0), arrived)), elapsed),
        "consume_rate": pc.divide(as_double(where(is_forward, consumed)), elapsed),
    }


def _counts(merged: Merged, fell_by: Any, log_end: Any) -> dict[str, Any]:
    """Commits of this tick, those that repeat the offset, and records rewound; 0 is measured.

    More than the whole log was not read, so it cannot be read again: a commit from beyond the log end fell.
    """
    commit = merged.commit
    repeats = pc.and_(merged.is_new, equal(merged.before["committed_offset"], commit["first_committed_offset"]))
    inside = where(merged.is_new, commit["rewound_records"])
    is_read = pc.fill_null(pc.less_equal(inside, log_end), True)

    def counted(name: str) -> Any:
        return when(merged.is_new, commit[name], pa.scalar(0, _LONG))

    return {
        "commits": counted("commits"),
        "noop_commits": pc.add(counted("noop_commits"), pc.cast(repeats, _LONG)),
        "rewound_records": pc.add(pc.fill_null(where(is_read, inside), 0), pc.fill_null(fell_by, 0)),
    }


def _numbers(column: Any) -> tuple[Ints, Any]:
    """Values with 0 where unknown, and which are known."""
    return pc.fill_null(column, 0).to_numpy().astype(np.int64), _flags(pc.is_valid(column))


def _milliseconds(times: Any) -> Ints:
    """Times in ms, -1 where unknown."""
    found: Ints = pc.fill_null(pc.cast(times, _LONG), -1000).to_numpy().astype(np.int64) // 1000
    return found


def _flags(column: Any) -> Any:
    return np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    ).astype(bool)
