"""A batch's constants from its poll and the `batches` row before it, and the rows that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import TIMESTAMP, build, by_name, repeat, tuples
from laggard.lag.tick import Tick
from laggard.sources.offsets_topic import is_read, unanswered
from laggard.sources.snapshot import Snapshot
from laggard.stream.job.source_positions import truncated_partitions
from laggard.stream.job.tick_clock import clock_column, closed_to, is_open, place
from laggard.tables.arrow import arrow_schema
from laggard.tables.published import BACKFILL, TICK
from laggard.tables.schema.schemas import TOPIC_WINDOWS


def next_tick(
    last: Mapping[str, Any] | None,
    snapshot: Snapshot,
    source_to: Mapping[int, int],
    *,
    cluster: str,
    batch_id: int,
    window_seconds: int,
    has_history: bool,
    rereads: bool = False,
    written: Mapping[int, int] | None = None,
    silent: frozenset[int] = frozenset(),
) -> Tick:
    """Return the tick of a batch that reads to these positions, after the newest published row.

    `rereads`: some of its records were read before. `written`: positions up to which history has
    their rows, though the topic is read again from its start. `silent`: offsets partitions that did
    not answer after the poll. Live ticks begin when every partition has been read once: what a
    silent broker gives later would be taken for new.
    """
    was_live = last is not None and last["kind"] == TICK
    moment = place(last, snapshot)
    parts = snapshot.offsets_partitions
    unread = unanswered(parts) | silent
    is_caught_up = (has_history or unread <= source_to.keys()) and _has_read_all(
        snapshot, source_to, silent, was_live=was_live, has_history=has_history
    )
    before = last["source_to"] if last else {}
    truncated = truncated_partitions(before, source_to)
    blocked, blocked_before = _blocked(parts, unread)
    tick = Tick(
        cluster=cluster,
        batch_id=batch_id,
        poll_id=snapshot.poll_id,
        metadata_poll_id=snapshot.metadata_poll_id,
        now=moment.now,
        window_seconds=window_seconds,
        is_caught_up=is_caught_up and not rereads,  # what was read before is not counted again
        opens_window=False,
        closes_windows=False,
        has_history=has_history,
        blocked_partitions=blocked,
        unread_partitions=unread,
        silent_partitions=blocked_before,
        truncated_partitions=tuple((number, source_to[number]) for number in truncated),
        rereads=rereads,
        written=_still_written(written or {}, parts),
        wall=moment.wall,
        polls_commits=snapshot.pending_groups is not None,
        is_held=moment.is_held,
        shift=moment.shift,
    )
    return _at_border(last, tick)


def _at_border(last: Mapping[str, Any] | None, tick: Tick) -> Tick:
    """Return the same with the windows that it opens and closes."""
    if last is None:
        return tick
    opens = tick.counts and last["polled_at"] < tick.window_start
    # a window is closed once, also where ticks went on in it after it had to end early
    closes = (
        last["kind"] == TICK and (opens or not tick.counts) and is_open(last, tick.window_seconds)
    )
    return replace(tick, opens_window=opens, closes_windows=closes)


def _still_written(written: Mapping[int, int], parts: pa.Table) -> tuple[tuple[int, int], ...]:
    """Return partitions and positions, without those whose log now ends lower.

    Offsets of these are given out again.
    """
    ends = dict(tuples(parts, ("offsets_partition", "high_watermark")))
    return tuple(
        (part, end) for part, end in sorted(written.items()) if (ends.get(part) or end) >= end
    )


def _blocked(parts: pa.Table, unread: frozenset[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Find offsets partitions behind an open transaction.

    Apart from them are those that were, and do not answer now.
    """
    blocked = parts.filter(pc.is_valid(parts["blocked_since"]))["offsets_partition"].to_pylist()
    return tuple(number for number in blocked if number not in unread), tuple(
        number for number in blocked if number in unread
    )


def _has_read_all(
    snapshot: Snapshot,
    source_to: Mapping[int, int],
    silent: frozenset[int],
    *,
    was_live: bool,
    has_history: bool,
) -> bool:
    """Return True if all that the poll found is read.

    Without an answer on the offsets topic, it is as it was before.
    """
    parts = snapshot.offsets_partitions
    if parts.num_rows:
        left_out = pc.is_in(
            parts["offsets_partition"], value_set=pa.array(sorted(silent), pa.int32())
        )
        return is_read(source_to, parts.filter(pc.invert(left_out)))
    if snapshot.pending_groups is not None:  # every group was asked once, or they were before
        return snapshot.positions.num_rows > 0 and (has_history or not snapshot.pending_groups)
    return was_live and snapshot.positions.num_rows > 0


def batch_row(
    last: Mapping[str, Any] | None,
    tick: Tick,
    snapshot: Snapshot,
    source_to: Mapping[int, int],
    versions: Mapping[str, int],
) -> dict[str, Any]:
    """Return the `batches` columns that come from the poll, positions and table versions."""
    parts = {part["offsets_partition"]: part for part in snapshot.offsets_partitions.to_pylist()}
    for part in parts.values():
        if part["last_stable_offset"] is None:  # it is unknown whether a transaction is in the way
            part["blocked_since"] = None

    def by_partition(column: str) -> dict[int, Any] | None:
        if not parts:
            return None
        return {key: part[column] for key, part in parts.items() if part[column] is not None}

    source_from = dict.fromkeys(source_to, 0) | (last["source_to"] if last else {})
    return {
        "kind": TICK if tick.is_caught_up else BACKFILL,
        "gap_seq": 0,
        "poll_id": tick.poll_id,
        "source_from": source_from,
        "source_to": dict(source_to),
        "clock": clock_column(snapshot.reading),
        "windows_closed_to": closed_to(last, tick, snapshot),
        "source_high_watermark": by_partition("high_watermark"),
        "source_last_stable_offset": by_partition("last_stable_offset"),
        "source_blocked_since": by_partition("blocked_since"),
        "source_log_start_offset": by_partition("log_start_offset"),
        "source_coordinator": by_partition("coordinator"),
        "table_versions": dict(versions),
        "offsets_retention_minutes": snapshot.offsets_retention_minutes,
    }


def topic_windows(snapshot: Snapshot, tick: Tick) -> pa.Table:
    """Return rows of `topic_windows` for the window that this poll closed."""
    closed = snapshot.closed
    start = pa.scalar(snapshot.window_start_ms * 1000, TIMESTAMP).as_py()
    is_missing = pc.fill_null(pc.equal(closed["error"], "UNKNOWN_TOPIC_OR_PARTITION"), False)
    unknown = pc.if_else(is_missing, "topic_missing", "no_end_offset")
    rows = closed.num_rows
    # a poll that an older job left in the checkpoint does not say how far the start moved
    columns = by_name(closed) | {
        "date": repeat(start.date(), pa.date32(), rows),
        "cluster": repeat(tick.cluster, pa.string(), rows),
        "window_start": repeat(start, TIMESTAMP, rows),
        "window_end": repeat(start + tick.window, TIMESTAMP, rows),
        "status": pc.if_else(pc.is_valid(closed["log_end_offset"]), "ok", unknown),
        "batch_id": repeat(tick.batch_id, pa.int64(), rows),
    }
    return build(arrow_schema(TOPIC_WINDOWS), columns)
