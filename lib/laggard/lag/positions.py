"""Status, lag and identity of each group on each partition after a tick, by pure Arrow functions.

The status rules and their order are `schemas.STATUSES`; unknown stays null from column to column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag import burrow, time_lag
from laggard.lag.arrays import (
    TIMESTAMP,
    both,
    build,
    differ,
    equal,
    flags,
    null,
    numbers,
    repeat,
    seconds_between,
    tuples,
    unless,
    when,
    where,
)  # fmt: skip
from laggard.lag.changes import commit_counts, commit_rhythm, lag_at_commits, moves
from laggard.lag.flows import partition_flows
from laggard.lag.late import Probed, count_late
from laggard.lag.loss.overtaken import find_overtaken
from laggard.lag.merged import KEY, UNKNOWN_TOPIC, Merged, Place
from laggard.lag.tick import Tick
from laggard.lag.windows import accumulate

NOT_POLLED = "NOT_POLLED"  # the topic is newer than our list of topics
# the offsets topic lost the commit, and no newer one was read
COMMIT_TRUNCATED = "COMMIT_TRUNCATED"
ADVANCE_FAILED = "ADVANCE_FAILED"  # the group's tick raised: it is in quarantine
# the leader of the group's offsets partition has not answered for long
NO_COORDINATOR = "COORDINATOR_NOT_AVAILABLE"
STALE_WINDOWS = 2  # a group that is asked for its offsets and did not give them for longer is stale
# the newest commit: to the broker and to clients the group has no offset
NEGATIVE_OFFSET = "NEGATIVE_OFFSET"
_STRING, _LONG, _DOUBLE = pa.string(), pa.int64(), pa.float64()


def advance_positions(
    merged: Merged,
    tick: Tick,
    schema: pa.Schema,
    probed: Probed | None = None,
    answers: Mapping[str, str | None] | None = None,
    withheld: Mapping[Place, str | None] | None = None,
) -> tuple[pa.Table, dict[str, Any]]:
    """Return rows of `partition_status` in the given schema, with the other results of a tick.

    The others are `was_recreated`, `rewound_…`, `flows`, `gaps` and `overtaken`.

    `answers`: of the groups that were asked for their offsets, None: they gave all, or an error;
    `withheld`: partitions that they left out of it.
    """
    before, commit, positions = merged.before, merged.commit, merged.positions
    answers, withheld = answers or {}, withheld or {}
    rows = merged.keys.num_rows
    known_id = where(pc.not_equal(before["topic_id"], ""), before["topic_id"])
    polled_id = where(pc.not_equal(positions["topic_id"], ""), positions["topic_id"])
    topic_id = _topic_id(merged, known_id, polled_id)
    is_other_topic = pc.and_(differ(polled_id, topic_id), pc.is_valid(topic_id))
    is_same_topic = pc.or_(pc.is_null(known_id), equal(known_id, topic_id))  # as before this tick
    # what a poll showed stands while later ones do not answer
    current_id = pc.coalesce(polled_id, before["current_topic_id"])
    current_id = where(pc.and_(differ(current_id, topic_id), pc.is_valid(topic_id)), current_id)

    def newest(new: str, old: str) -> Any:
        return when(merged.is_new, commit[new], before[old])

    committed = newest("committed_offset", "committed_offset")
    # a commit that repeats the offset proves nothing new: the poll that first met it counts
    is_moved = pc.and_(merged.is_new, pc.invert(equal(before["committed_offset"], committed)))
    polled_end = when(is_other_topic, null(_LONG), positions["log_end_offset"])
    log_end = polled_end
    if not tick.is_caught_up:
        log_end = pc.coalesce(polled_end, before["log_end_offset"])
    log_start = when(
        is_other_topic,
        # a log start only rises, so the newest known one stands until the window's first poll
        null(_LONG),
        pc.max_element_wise(
            positions["log_start_offset"], where(is_same_topic, before["log_start_offset"])
        ),
    )
    columns: dict[str, Any] = {
        "cluster": repeat(tick.cluster, _STRING, rows),
        **{name: merged.keys[name] for name in KEY},
        "topic_id": pc.coalesce(topic_id, ""),
        "current_topic_id": current_id,
        "batch_id": repeat(tick.batch_id, _LONG, rows),
        "poll_id": repeat(tick.poll_id, _LONG, rows),
        "sampled_at": repeat(tick.now, TIMESTAMP, rows),
        "commit_source_partition": unless(
            merged.is_deleted, newest("source_partition", "commit_source_partition")
        ),
        "commit_source_offset": unless(
            merged.is_deleted, newest("source_offset", "commit_source_offset")
        ),
        "commit_timestamp": newest("commit_timestamp", "commit_timestamp"),
        "committed_offset": committed,
        "leader_epoch": newest("leader_epoch", "leader_epoch"),
        "commit_poll_id": when(
            is_moved, repeat(tick.poll_id, _LONG, rows), before["commit_poll_id"]
        ),
        "answered_at": _answered_at(merged, answers, withheld, tick),
        "log_end_offset": log_end,
        "log_start_offset": log_start,
        "leader_broker": positions["leader_broker"],
        "ahead_records": pc.max_element_wise(pc.subtract(committed, log_end), 0, skip_nulls=False),
    }
    columns["status"], columns["error"] = _status(
        columns, positions, is_other_topic, answers or {}, withheld or {}, tick
    )
    columns |= _measures(columns, tick)
    columns |= _time_lag(columns, polled_end, before["end_points"], is_same_topic, tick)
    rhythm, gaps = commit_rhythm(merged, columns, tick, is_same_topic)
    columns |= rhythm
    # while the topic changes, a commit that names none may be in either: neither a fall nor a rise
    # is known of it
    is_of_either = both(merged.is_new, is_other_topic, pc.is_null(commit["topic_id"]))
    is_comparable = pc.and_(is_same_topic, pc.invert(is_of_either))
    fell_by, rates = moves(merged, tick, is_comparable, columns)
    columns |= rates
    counts = commit_counts(merged, fell_by, log_end)
    overtaken = find_overtaken(merged, columns, counts["rewound_records"], is_comparable, tick)
    columns["pace"] = overtaken.pace
    lag_at_commit = where(
        merged.is_new, lag_at_commits(before, commit, columns, is_same_topic, tick)
    )
    at_live_commit = where(pa.scalar(tick.is_caught_up), lag_at_commit)
    columns["rated"] = burrow.rate(
        before["rated"], at_live_commit, counts["rewound_records"], is_same_topic
    )
    columns["rewound_from"] = burrow.rewound_from(
        before, committed, counts["rewound_records"], is_same_topic
    )
    columns["verdict"] = burrow.verdicts(columns["rated"], columns)
    columns |= accumulate(
        before, columns, tick, **counts, lag_at_commit=lag_at_commit, is_same_topic=is_same_topic
    )
    columns |= count_late(before, columns, probed, tick, is_same_topic)
    was_recreated = pc.and_(is_other_topic, pc.invert(equal(before["current_topic_id"], polled_id)))
    changes = {
        "gaps": gaps,
        "was_recreated": was_recreated,
        "rewound_from": where(pc.greater(fell_by, 0), before["committed_offset"]),
        "rewound_to": commit["first_committed_offset"],
        "flows": partition_flows(
            before, columns, counts, fell_by, overtaken, is_same_topic=is_comparable, tick=tick
        ),
        "overtaken": overtaken,
    }
    return build(schema, columns), changes


def _topic_id(merged: Merged, known: Any, polled: Any) -> Any:
    """Return the topic id the row's commit belongs to.

    Few commits carry one; for the others it is the poll's when the commit is first seen. If the
    topic was recreated since the tick before, such a commit may be from either side: it stays with
    the old id until the next one, unless a tombstone lies before it.
    """
    seen_before = equal(pc.coalesce(merged.before["current_topic_id"], known), polled)
    has_commit = pc.is_valid(merged.before["committed_offset"])
    # the brokers delete a topic's commits with it: one that follows belongs to the topic that the
    # poll shows
    starts_over = pc.or_(
        pc.invert(has_commit), pc.fill_null(merged.commit["follows_deletion"], False)
    )
    attributed = when(pc.or_(starts_over, seen_before), polled, known)
    fresh = pc.coalesce(merged.commit["topic_id"], attributed, unless(starts_over, known), polled)
    return when(
        merged.is_new,
        fresh,
        when(has_commit, pc.coalesce(known, polled), pc.coalesce(polled, known)),
    )


def _answered_at(
    merged: Merged,
    answers: Mapping[str, str | None],
    withheld: Mapping[Place, str | None],
    tick: Tick,
) -> Any:
    """Return the tick at which the group last gave its offsets.

    The value is null if offsets are read from the offsets topic.
    """
    rows = merged.keys.num_rows
    if not tick.polls_commits:
        return pa.nulls(rows, TIMESTAMP)
    whole = pa.array([group for group, error in answers.items() if error is None], pa.string())
    has_answered = pc.is_in(merged.keys["group"], value_set=whole)
    if withheld:
        has_answered = pc.and_(
            has_answered, pa.array([key not in withheld for key in _places(merged.keys)])
        )
    return when(has_answered, repeat(tick.now, TIMESTAMP, rows), merged.before["answered_at"])


def _places(keys: Any) -> Iterator[Place]:
    return tuples(keys, KEY)


def _unanswered(
    columns: dict[str, Any],
    answers: Mapping[str, str | None],
    withheld: Mapping[Place, str | None],
    tick: Tick,
) -> tuple[Any, Any]:
    """Return a mask of rows whose offset is overdue, and the errors of the asked groups.

    An offset is overdue if the group has not given it for too long.
    """
    rows = len(columns["committed_offset"])
    if not tick.polls_commits:
        return repeat(False, pa.bool_(), rows), null(_STRING)
    oldest = repeat(tick.now - STALE_WINDOWS * tick.window, TIMESTAMP, rows)
    is_old = pc.fill_null(pc.less(columns["answered_at"], oldest), True)
    failed = {group: error for group, error in answers.items() if error is not None}
    index = pc.index_in(columns["group"], value_set=pa.array(list(failed), pa.string()))
    errors = pc.take(pa.array(list(failed.values()), _STRING), index)
    if withheld:
        errors = pc.coalesce(
            pa.array([withheld.get(key) for key in _places(columns)], _STRING), errors
        )
    return is_old, where(is_old, errors)


def _status(
    columns: dict[str, Any],
    positions: pa.Table,
    is_other_topic: Any,
    answers: Mapping[str, str | None],
    withheld: Mapping[Place, str | None],
    tick: Tick,
) -> tuple[Any, Any]:
    """Return one status per row, the first that applies, and Kafka's error name."""
    committed, end, start = (
        columns["committed_offset"],
        columns["log_end_offset"],
        columns["log_start_offset"],
    )
    rows = len(committed)
    is_unpolled = pc.is_null(positions["partition"])
    # missing only if topics were listed after the commit was met
    is_listed_since = pc.less(pc.fill_null(columns["commit_poll_id"], 0), tick.metadata_poll_id)
    is_unlisted = pc.and_(is_unpolled, is_listed_since)
    is_proven = pc.greater_equal(
        tick.poll_id, pc.add(columns["commit_poll_id"], 2)
    )  # that poll began after the commit was read
    is_lost = pc.and_(pc.is_valid(committed), pc.is_null(columns["commit_source_offset"]))
    is_negative = pc.and_(pc.is_null(committed), pc.is_valid(columns["commit_source_offset"]))
    silent = pc.is_in(
        columns["commit_source_partition"], value_set=pa.array(tick.silent_partitions, pa.int32())
    )
    blocked = pc.is_in(
        columns["commit_source_partition"], value_set=pa.array(tick.blocked_partitions, pa.int32())
    )
    is_old, answer_error = _unanswered(columns, answers, withheld, tick)
    cases = [
        ("stale", pc.or_(is_lost, not tick.is_caught_up)),
        ("topic_missing", pc.or_(is_unlisted, equal(positions["error"], UNKNOWN_TOPIC))),
        ("topic_recreated", is_other_topic),
        ("no_end_offset", pc.is_null(end)),
        ("stale", is_old),
        ("stale", silent),  # without any broker there is no end either, which says more
        ("source_blocked", blocked),
        ("no_commit", pc.is_null(committed)),
        ("committed_ahead", both(pc.greater(committed, end), is_proven)),
        ("below_log_start", pc.less(committed, start)),
    ]
    status: Any = pa.repeat("ok", rows)
    for name, applies in reversed(cases):
        status = when(applies, name, status)
    unpolled_error = when(
        is_unlisted, UNKNOWN_TOPIC, where(is_unpolled, pa.repeat(NOT_POLLED, rows))
    )
    of_commit = when(
        is_lost, COMMIT_TRUNCATED, where(is_negative, pa.repeat(NEGATIVE_OFFSET, rows))
    )
    of_commit = when(silent, NO_COORDINATOR, of_commit)
    return status, pc.coalesce(positions["error"], unpolled_error, answer_error, of_commit)


def _measures(columns: dict[str, Any], tick: Tick) -> dict[str, Any]:
    """Return lag and the number of retained records, if the status allows them."""
    committed, end, start = (
        columns["committed_offset"],
        columns["log_end_offset"],
        columns["log_start_offset"],
    )
    is_ok, is_below = (
        pc.equal(columns["status"], "ok"),
        pc.equal(columns["status"], "below_log_start"),
    )
    lag = where(is_ok, pc.max_element_wise(pc.subtract(end, committed), 0, skip_nulls=False))
    nothing_lost = where(pc.and_(is_ok, pc.is_valid(start)), pc.multiply(lag, 0))
    return {
        "lag": lag,
        "lost_records": when(is_below, pc.subtract(start, committed), nothing_lost),
        "readable_records": when(is_below, pc.subtract(end, start), lag),
        # a client's time is not comparable with one that is held
        "commit_age_seconds": where(
            pa.scalar(not tick.is_held),
            seconds_between(columns["sampled_at"], columns["commit_timestamp"]),
        ),
    }


def _time_lag(
    columns: dict[str, Any], polled_end: Any, end_points: Any, is_same_topic: Any, tick: Tick
) -> dict[str, Any]:
    end, committed, lag = (
        numbers(column) for column in (polled_end, columns["committed_offset"], columns["lag"])
    )
    now_us = int(tick.now.timestamp() * 1_000_000)
    points = time_lag.add_point(
        time_lag.read_end_points(end_points), flags(is_same_topic), end[0], end[1], now_us
    )
    points = time_lag.thin(time_lag.drop_passed(points, committed[0], committed[1]))
    age = time_lag.age_of_first_unread(points, committed[0], now_us)
    is_behind = lag[1] & (lag[0] > 0) & (points.lengths > 0)
    is_level = lag[1] & (lag[0] == 0)
    is_known = is_behind | is_level
    return {
        "time_lag_seconds": pa.array(np.where(is_level, 0.0, age.seconds), _DOUBLE, mask=~is_known),
        "time_lag_method": pa.array(
            np.where(is_level, "caught_up", "history").astype(object), _STRING, mask=~is_known
        ),
        "time_lag_error_seconds": pa.array(
            np.where(is_level, 0.0, age.error_seconds),
            _DOUBLE,
            mask=~(is_level | (is_behind & ~age.is_censored)),
        ),
        "time_lag_censored": pa.array(~is_level & age.is_censored, mask=~is_known),
        "end_points": time_lag.to_column(points),
    }
