"""Committed offsets that jumped forward over records nobody read: a reset to the end, or a tool's new position."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import both, differ, equal, seconds_between, when
from laggard.lag.positions import Merged
from laggard.lag.tick import Tick
from laggard.rebalance.partitions import floor_records, window_rate

FASTER = 10.0  # than what the group has done, and than what arrives: no reader catches up like this
_READABLE = pa.array(["ok", "below_log_start"])


def find_skips(merged: Merged, rows: pa.Table, empty_groups: Iterable[str], tick: Tick) -> Any:
    """Which rows skipped records in this tick; where a rate or the newest progress is not known, none did.

    A group that reads skips when it gets to the log end much faster than it can have read, counted from its newest
    progress: what piled up in a stop is caught up in one step. In a group without members nobody reads at all.
    """
    before = merged.before
    seconds = seconds_between(before["sampled_at"], before["base_at"])
    arrival = window_rate(before, "log_end_offset", "base_log_end_offset", "arrival_rate", seconds)
    consumed = window_rate(before, "committed_offset", "base_committed_offset", "consume_rate", seconds)
    # where arrivals have just risen, what is read in this tick is what came in it
    usual = pc.max_element_wise(arrival, consumed, before["arrival_rate"], before["consume_rate"], rows["arrival_rate"])
    jump = pc.subtract(rows["committed_offset"], before["committed_offset"])
    floor = floor_records(before, arrival, tick)
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
    lands_at_the_end = pc.greater_equal(rows["committed_offset"], pc.subtract(before["log_end_offset"], floor))
    was_readable = pc.is_in(before["status"], _READABLE)
    is_empty = pc.is_in(rows["group"], pa.array(sorted(empty_groups), pa.string()))
    return pc.fill_null(both(is_seen, when(is_empty, True, both(is_too_fast, lands_at_the_end, was_readable))), False)
