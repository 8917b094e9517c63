"""Facts of one tick on each partition of a group: the row before, the commit, the poll's answer.

Rows before may have times by an older clock; log ends are those that the group can read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    TIMESTAMP,
    both,
    by_name,
    equal,
    flags,
    key_codes,
    match,
    take,
    unless,
    when,
    where,
)
from laggard.lag.tick import Tick
from laggard.lag.time_lag import EndPoints, read_end_points, to_column

KEY = ("group", "topic", "partition")
Place = tuple[str, str, int]  # the same
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"

# the others in the row are data: times of commits
_OWN_TIMES = ("sampled_at", "base_at", "answered_at", "base_answered_at")

NO_STABLE_OFFSET = "NO_STABLE_OFFSET"  # the poll did not ask for it, or the broker did not give it


@dataclass(frozen=True, slots=True)
class Merged:
    """Parallel rows: the row before (`before`), the commit (`commit`), the poll (`positions`).

    `positions` is the poll's answer.

    Columns of a side that has nothing for a row are null. `is_new` marks a commit or tombstone to
    be taken, `is_deleted` the tombstones among them. `refused` counts by group the partitions
    without a commit that get no row.
    """

    keys: pa.Table
    before: pa.Table
    commit: pa.Table
    positions: pa.Table
    is_new: Any
    is_deleted: Any
    is_retired: Any
    refused: Mapping[str, int] = field(default_factory=dict)


def merge(
    before: pa.Table,
    commits: pa.Table,
    positions: pa.Table,
    subscribed: pa.Table,
    room: int | None = None,
    closed: Collection[str] = (),
) -> Merged:
    """Bring the sides together by (group, topic, partition).

    `before`: rows of `partition_status`. `commits`: unique per key. `positions`: those of the poll.
    `subscribed`: (group, topic) pairs that living members ask for; their partitions without a
    commit become rows too, up to `room` new ones. Not so in `closed` groups: partitions of these
    have commits that were refused.
    """
    expected = _expected(subscribed, positions)
    old, new, wanted = key_codes([before, commits, expected], KEY)
    fresh = np.flatnonzero(match(new, old) < 0)
    # a deleted topic is polled once more: its rows say so, and rows that ended do not return
    is_there = ~flags(equal(expected["error"], UNKNOWN_TOPIC))
    is_open = ~flags(pc.is_in(expected["group"], value_set=pa.array(list(closed), pa.string())))
    missing = np.flatnonzero(
        (match(wanted, old) < 0) & (match(wanted, new) < 0) & is_there & is_open
    )
    missing, beyond = missing[:room], missing[len(missing) if room is None else room :]
    refused = pc.value_counts(expected["group"].take(pa.array(beyond))).to_pylist()
    before_at = np.r_[np.arange(len(old)), np.full(len(fresh) + len(missing), -1)]
    commit_at = np.r_[match(old, new), fresh, np.full(len(missing), -1)]
    keys = pa.concat_tables(
        [before.select(KEY), commits.select(KEY).take(fresh), expected.select(KEY).take(missing)]
    )
    row_codes, position_codes = key_codes([keys, positions], KEY[1:])
    prior, commit = take(before, before_at), take(commits, commit_at)
    # a record read twice (the offsets topic was re-read) must not count twice, nor one of the
    # partition that a group was in before the offsets topic got more
    is_elsewhere = pc.not_equal(commit["source_partition"], prior["commit_source_partition"])
    is_newer = pc.greater_equal(commit["record_timestamp"], prior["commit_timestamp"])
    is_later = pc.if_else(
        pc.fill_null(is_elsewhere, False),
        pc.fill_null(is_newer, True),
        pc.greater(commit["source_offset"], prior["commit_source_offset"]),
    )
    is_new = pc.and_(pc.is_valid(commit["source_offset"]), pc.fill_null(is_later, True))
    # nobody subscribes to it any more, and it was never committed
    is_unwanted = pa.array(np.r_[match(old, wanted) < 0, np.zeros(len(fresh) + len(missing), bool)])
    # a negative offset commits nothing, but is there: only a row without a record of a commit may
    # end by itself
    has_no_commit = pc.and_(
        pc.is_null(prior["committed_offset"]), pc.is_null(prior["commit_source_offset"])
    )
    was_uncommitted = pc.and_(pa.array(before_at >= 0), has_no_commit)
    is_gone = pc.and_(pc.and_(is_unwanted, was_uncommitted), pc.invert(is_new))
    is_gone = pc.and_(is_gone, positions.num_rows > 0)  # a poll that says nothing ends nothing
    is_deleted = pc.and_(is_new, pc.fill_null(commit["is_deleted"], False))
    # where a member still wants it, it is a partition without a commit
    there = wanted[is_there]
    has_no_room = room is not None and len(missing) >= room
    is_not_there = np.r_[
        match(old, there) < 0,
        (match(new[fresh], there) < 0) | has_no_room,
        np.zeros(len(missing), bool),
    ]
    is_retired = pc.or_(pc.and_(is_deleted, pa.array(is_not_there)), is_gone)
    answers, counts = (
        take(positions, match(row_codes, position_codes)),
        {refusal["values"]: refusal["counts"] for refusal in refused},
    )
    return Merged(keys, prior, commit, answers, is_new, is_deleted, is_retired, counts)


def forget_truncated(rows: pa.Table, tick: Tick) -> pa.Table:
    """Return rows of `partition_status` without the source offset of lost commits.

    The offsets topic no longer has these commits.

    After an unclean election its log may be shorter than what was read. The broker's view wins:
    the next commit counts, though its source offset is lower, and until then the row is stale.
    """
    index = rows.schema.get_field_index("commit_source_offset")
    for partition, log_end in tick.truncated_partitions:
        offsets = rows["commit_source_offset"]
        is_lost = both(
            pc.equal(rows["commit_source_partition"], partition), pc.greater_equal(offsets, log_end)
        )
        rows = rows.set_column(index, rows.schema.field(index), unless(is_lost, offsets))
    return rows


def _expected(subscribed: pa.Table, positions: pa.Table) -> pa.Table:
    """Return (group, topic, partition) of every polled, subscribed partition and the poll error."""
    of_pair, of_place = key_codes([subscribed, positions], ["topic"])
    order = np.argsort(of_place, kind="stable")
    low, high = (
        np.searchsorted(of_place[order], of_pair),
        np.searchsorted(of_place[order], of_pair, side="right"),
    )
    counts = high - low
    pairs = np.repeat(np.arange(len(of_pair)), counts)
    places = pairs
    if len(pairs):
        places = order[
            np.arange(counts.sum())
            - np.repeat(np.cumsum(counts) - counts, counts)
            + np.repeat(low, counts)
        ]
    rows = subscribed.take(pairs)
    asked = {"group": rows["group"], "topic": rows["topic"]}
    return pa.table(asked | {name: positions[name].take(places) for name in ("partition", "error")})


def on_the_clock(rows: pa.Table, shift: timedelta | None) -> pa.Table:
    """Return `partition_status` rows with their own times moved by `shift`.

    Rates and ages stay those of true seconds. The times are left out if `shift` is unknown.
    """
    if shift == timedelta(0):
        return rows
    columns = {name: _moved(rows[name], shift) for name in _OWN_TIMES} | {
        "end_points": _points(rows, shift)
    }
    for name, column in columns.items():
        index = rows.schema.get_field_index(name)
        rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _moved(times: pa.ChunkedArray, shift: timedelta | None) -> pa.Array:
    if shift is None:
        return pa.nulls(len(times), TIMESTAMP)
    return pc.add(times, pa.scalar(shift, pa.duration("us")))


def _points(rows: pa.Table, shift: timedelta | None) -> pa.Array:
    kind = rows["end_points"].type
    if shift is None:
        return pa.array([[]] * rows.num_rows, kind)
    points = read_end_points(rows["end_points"])
    moved = points.times + round(shift / timedelta(microseconds=1))
    return to_column(EndPoints(points.starts, points.log_ends, moved)).cast(kind)


def readable_ends(merged: Merged, read_committed: Collection[str]) -> Merged:
    """Return rows with the polled `log_end_offset` as these groups see it.

    With committed records only, it is the last stable offset; null if that is unknown.

    An open transaction holds the last stable offset back. A commit between it and the log end
    proves that the group reads beyond it, whatever its policy says: then it has read all that it
    can.
    """
    positions, before, commit = merged.positions, merged.before, merged.commit
    applies = pc.is_in(
        merged.keys["group"], value_set=pa.array(sorted(read_committed), pa.string())
    )
    end, stable = positions["log_end_offset"], positions["last_stable_offset"]
    committed = when(merged.is_new, commit["committed_offset"], before["committed_offset"])
    passed = pc.min_element_wise(committed, end, skip_nulls=False)
    readable = where(pc.is_valid(stable), pc.max_element_wise(stable, passed))
    is_unknown = pc.and_(pc.and_(applies, pc.is_valid(end)), pc.is_null(stable))
    columns: dict[str, Any] = by_name(positions) | {
        "log_end_offset": when(applies, readable, end),
        "error": when(is_unknown, NO_STABLE_OFFSET, positions["error"]),
    }
    return replace(merged, positions=pa.table(columns))
