"""Tumbling windows by the poll's clock: accumulators in the status row, and the ended window's row.

produced and consumed are differences between the last ticks of two adjacent windows, so they add
up without a hole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    add_saturating,
    as_double,
    both,
    build,
    by_name,
    equal,
    repeat,
    seconds_between,
    when,
    where,
)
from laggard.lag.tick import Tick, was_followed

_LONG, _DOUBLE, _TIMESTAMP = pa.int64(), pa.float64(), pa.timestamp("us", tz="UTC")


def accumulate(
    before: pa.Table,
    now: dict[str, Any],
    tick: Tick,
    *,
    commits: Any,
    noop_commits: Any,
    rewound_records: Any,
    lag_at_commit: Any,
    is_same_topic: Any,
) -> dict[str, Any]:
    """Return the `window_…` and `base_…` columns after this tick.

    A row joins its first window when that begins, so no window is half seen; while catching up, and
    while time is held, nothing is counted. Offsets of a topic say nothing of another one that has
    got its name.
    """
    rows = before.num_rows
    start = repeat(tick.window_start, _TIMESTAMP, rows)
    continues = pc.and_(equal(before["window_start"], start), tick.counts)
    counts = pc.or_(continues, tick.opens_window)
    # only the last tick of the window right before may be the base: nothing is produced across a
    # hole
    follows = pc.fill_null(
        pc.greater_equal(
            before["sampled_at"], repeat(tick.window_start - tick.window, _TIMESTAMP, rows)
        ),
        False,
    )
    is_ok = pc.equal(now["status"], "ok")

    def summed(column: str, added: Any, kind: pa.DataType) -> Any:
        carried = when(
            continues, pc.fill_null(before[column], 0), pa.scalar(0, before[column].type)
        )
        return where(counts, pc.cast(add_saturating(carried, added), kind))

    def extreme(column: str, pick: Any, lag: Any) -> Any:
        return where(
            counts, pick(where(both(continues, is_same_topic), before[column]), where(is_ok, lag))
        )

    def base(column: str, source: str) -> Any:
        opening = where(both(follows, is_same_topic, was_followed(before, tick)), before[source])
        return where(counts, when(continues, where(is_same_topic, before[column]), opening))

    base_answered_at = pa.nulls(rows, _TIMESTAMP)
    if tick.polls_commits:
        base_answered_at = base("base_answered_at", "answered_at")
    return {
        "window_start": where(counts, start),
        "window_ticks": summed("window_ticks", 1, pa.int32()),
        "window_ok_ticks": summed("window_ok_ticks", pc.cast(is_ok, pa.int32()), pa.int32()),
        "window_lag_min": extreme("window_lag_min", pc.min_element_wise, now["lag"]),
        "window_lag_max": extreme("window_lag_max", pc.max_element_wise, now["lag"]),
        "window_commits": summed("window_commits", commits, _LONG),
        "window_noop_commits": summed("window_noop_commits", noop_commits, _LONG),
        "window_rewound_records": summed("window_rewound_records", rewound_records, _LONG),
        "window_lag_envelope": extreme("window_lag_envelope", pc.min_element_wise, lag_at_commit),
        "base_at": base("base_at", "sampled_at"),
        "base_answered_at": base_answered_at,
        "base_log_end_offset": base("base_log_end_offset", "log_end_offset"),
        "base_committed_offset": base("base_committed_offset", "committed_offset"),
    }


def in_a_window(rows: pa.Table) -> pa.Table:
    """Return the status rows that have a window to close."""
    return rows.filter(pc.greater(pc.fill_null(rows["window_ticks"], 0), 0))


def close_windows(
    rows: pa.Table, owners: Mapping[str, Any], tick: Tick, schema: pa.Schema
) -> pa.Table:
    """Return rows of `lag_windows` (schema given) for the status rows' windows, at their last tick.

    `rows`: those `in_a_window`. `owners`: columns of who has each partition, parallel to them.
    """
    seconds = seconds_between(rows["sampled_at"], rows["base_at"])
    risen = pc.subtract(rows["log_end_offset"], rows["base_log_end_offset"])
    produced = where(pc.greater_equal(risen, 0), risen)
    # the difference of two commits, also of those newer than their poll; but nobody reads more than
    # the log ever had
    moved = pc.subtract(rows["committed_offset"], rows["base_committed_offset"])
    log_end = pc.max_element_wise(rows["log_end_offset"], rows["base_log_end_offset"])
    moved = where(pc.fill_null(pc.less_equal(pc.abs(moved), log_end), True), moved)
    consumed = where(
        pc.and_(pc.equal(rows["window_rewound_records"], 0), pc.is_valid(produced)), moved
    )
    consuming = seconds
    # a window without an answer tells nothing; what it held is in the next one that has one
    if tick.polls_commits:
        consuming = seconds_between(rows["answered_at"], rows["base_answered_at"])
        consuming = where(pc.greater(consuming, 0), consuming)
        consumed = where(pc.is_valid(consuming), consumed)
    window_us = pa.scalar(tick.window, pa.duration("us"))
    columns = by_name(rows) | dict(owners)
    columns |= {
        "date": pc.cast(rows["window_start"], pa.date32()),
        "window_end": pc.add(rows["window_start"], window_us),
        "batch_id": repeat(tick.batch_id, _LONG, rows.num_rows),
        "ticks": rows["window_ticks"],
        "ok_ticks": rows["window_ok_ticks"],
        "lag_min": rows["window_lag_min"],
        "lag_max": rows["window_lag_max"],
        "produced": produced,
        "consumed": consumed,
        "arrival_rate": pc.divide(as_double(produced), seconds),
        "consume_rate": pc.divide(as_double(consumed), consuming),
        "commits": rows["window_commits"],
        "noop_commits": rows["window_noop_commits"],
        "rewound_records": rows["window_rewound_records"],
        "lag_envelope": rows["window_lag_envelope"],
        "frozen_seconds": _frozen_seconds(rows, tick),
        "headroom_records": pc.subtract(rows["committed_offset"], rows["log_start_offset"]),
        "matured_records": rows["window_matured_records"],
        "late_records": rows["window_late_records"],
    }
    return build(schema, columns)


def _frozen_seconds(rows: pa.Table, tick: Tick) -> Any:
    """Return seconds without progress on unread records, as far as known.

    A later record counts from its arrival.
    """
    known_at = rows["answered_at"] if tick.polls_commits else rows["sampled_at"]
    still = pc.max_element_wise(
        seconds_between(known_at, rows["progressed_at"]), 0.0, skip_nulls=False
    )
    unread = rows["time_lag_seconds"]
    if tick.polls_commits:
        unread = pc.max_element_wise(
            pc.subtract(unread, seconds_between(rows["sampled_at"], known_at)),
            0.0,
            skip_nulls=False,
        )
    frozen = pc.min_element_wise(still, unread)
    return where(pc.is_valid(rows["lag"]), when(pc.equal(rows["lag"], 0), 0.0, frozen))
