"""Committed offsets that jumped over unread records: a reset to the end, or a tool's position."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import as_double, both, differ, equal, seconds_between, when, where
from laggard.lag.merged import Merged
from laggard.lag.reached import reached_by, reached_offset, reached_since_base
from laggard.lag.tick import Tick
from laggard.rebalance.analytics.partitions import arrived_since_base, floor_records, window_rate
from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters

FASTER = 10.0  # than what the group has done, and than what arrives: no reader catches up like this
_TIME = pa.timestamp("us", tz="UTC")
_READABLE = pa.array(["ok", "below_log_start"])


def find_skips(
    merged: Merged,
    rows: pa.Table,
    was_empty: Mapping[str, datetime | None],
    tick: Tick,
    limits: RebalanceParameters = DEFAULTS,
) -> Any:
    """Return the offsets skipped to in this tick; null if none, or if a value is unknown.

    The value is a rate or the newest progress.

    `was_empty` are the groups that had no member before the tick, with the time of their first
    group record in it. What is committed before that record comes from nobody who reads: every
    jump is a skip. A group that reads skips when it gets to the log end much faster than it can
    have read, counted from its newest progress: what piled up in a stop is caught up in one step.
    """
    before = merged.before
    seconds = seconds_between(before["sampled_at"], before["base_at"])
    arrival = window_rate(arrived_since_base(before), before["arrival_rate"], seconds)
    consumed = window_rate(reached_since_base(before), before["consume_rate"], seconds)
    # where arrivals have just risen, what is read in this tick is what came in it
    usual = pc.max_element_wise(
        arrival, consumed, before["arrival_rate"], before["consume_rate"], rows["arrival_rate"]
    )
    # on this topic, not on an older one
    is_timed = pc.or_(pc.is_valid(consumed), pc.is_valid(before["consume_rate"]))
    usual = where(both(is_timed, pc.greater(usual, 0)), usual)  # after a rest its speed is unknown
    returned_at = pa.array([was_empty.get(group) for group in rows["group"].to_pylist()], _TIME)
    is_empty = pc.is_in(rows["group"], pa.array(sorted(was_empty), pa.string()))
    is_before = pc.less(merged.commit["first_commit_timestamp"], returned_at)
    is_outside = both(is_empty, pc.fill_null(is_before, True))
    to = when(is_outside, merged.commit["first_committed_offset"], rows["committed_offset"])
    jump = as_double(pc.subtract(reached_offset(to, rows["log_end_offset"]), reached_by(before)))
    floor = floor_records(before, arrival, tick, limits)
    is_seen = both(
        merged.is_new,
        pa.scalar(tick.is_caught_up and tick.has_history),
        differ(before["status"], "stale"),
        equal(before["topic_id"], rows["topic_id"]),
        pc.greater(jump, floor),
    )
    tick_seconds = seconds_between(rows["sampled_at"], before["sampled_at"])
    still = seconds_between(rows["sampled_at"], before["progressed_at"])
    elapsed = pc.max_element_wise(tick_seconds, still, skip_nulls=False)
    is_too_fast = pc.greater(jump, pc.multiply(pc.multiply(usual, elapsed), FASTER))
    lands_at_the_end = pc.greater_equal(
        as_double(rows["committed_offset"]), pc.subtract(as_double(before["log_end_offset"]), floor)
    )
    was_readable = pc.is_in(before["status"], _READABLE)
    return where(
        both(is_seen, when(is_outside, True, both(is_too_fast, lands_at_the_end, was_readable))), to
    )
