"""The decode stage: Kafka records in, compacted rows out, through `mapInArrow`.

Every record becomes part of a commit row, a generation row or a dead letter, and each is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import MAX_TIMESTAMP_MS, TIMESTAMP, Ints, both, where
from laggard.lag.commits import Bools, compact_commits
from laggard.names import NameFilter
from laggard.stream.tick.decoded import as_decoded, rows_of
from laggard.stream.tick.rare_rows import RareRows, Records, set_aside
from laggard.wire.columnar import CommitColumns, decode_columns


def decode_stage(
    names: NameFilter, *, with_edges: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the `mapInArrow` function that decodes records.

    The records have partition, offset, timestamp, key and value.
    """

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter_ns()
        # the whole task at once, so that a key comes out once; maxOffsetsPerTrigger bounds it
        gathered = list(batches)
        if not gathered:
            return
        yield from decode_records(
            pa.Table.from_batches(gathered).combine_chunks(), names, with_edges=with_edges
        )
        spent_us = (time.perf_counter_ns() - started) // 1000
        yield as_decoded("timing", rows_of("timing", 1, spent_us=pa.array([spent_us], pa.int64())))

    return decode


def decode_records(
    table: pa.Table, names: NameFilter, *, with_edges: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield `DECODED` rows for records in Kafka's order within each partition.

    Rows without a partition are polls.
    """
    rows = RareRows()
    table = table.filter(table["partition"].is_valid())
    if table.num_rows:
        records = Records(
            table["partition"].to_numpy(),
            table["offset"].to_numpy(),
            _in_calendar(_one_chunk(table["timestamp"])),
            _one_chunk(table["key"]),
            _one_chunk(table["value"]),
        )
        columns = decode_columns(records.key, records.value)
        set_aside(records, columns)
        keys = _watched_keys(columns, names)
        is_past = _of_past_places(records, columns)
        is_counted = (columns.is_commit | columns.is_tombstone) & ~is_past
        chosen = np.flatnonzero(is_counted & keys.is_watched[columns.key_index])
        yield as_decoded("commit", _commits(records, columns, keys, chosen, rows))
        if with_edges:
            yield as_decoded("edge", _edges(records, columns, keys, chosen, is_past))
        rows.add_others(records, columns, names, is_past)
        rows.add_counts(columns)
    yield from rows.batches()


@dataclass(frozen=True, slots=True)
class _Keys:
    """Distinct keys: their names, a watched flag, and the first key of the same name."""

    named: list[dict[str, Any]]
    is_watched: Bools
    same: Ints


def _watched_keys(columns: CommitColumns, names: NameFilter) -> _Keys:
    named = [key.key or {} for key in columns.keys]
    pairs = [(key["group"], key["topic"]) if "topic" in key else None for key in named]
    # few pairs, many partitions
    watched = {pair for pair in set(pairs) if pair is not None and names.watches(*pair)}
    return _Keys(named, np.array([pair in watched for pair in pairs], bool), _same_keys(columns))


def _commits(
    records: Records, columns: CommitColumns, known: _Keys, chosen: Ints, rows: RareRows
) -> pa.RecordBatch:
    compacted = compact_commits(
        chosen,
        known.same[columns.key_index[chosen]],
        columns.is_commit[chosen],
        columns.offset[chosen],
        columns.commit_timestamp_ms[chosen],
    )
    keys = [known.named[index] for index in compacted.key.tolist()]
    last, deleted = compacted.last_row, compacted.is_deleted
    for row, offset_before in zip(
        compacted.rewind_rows.tolist(), compacted.rewind_from.tolist(), strict=True
    ):
        key = known.named[int(columns.key_index[row])]
        rows.add(
            "rewind", group=key["group"], topic=key["topic"], partition=key["partition"],
            source_partition=int(records.partition[row]), source_offset=int(records.offset[row]),
            record_timestamp=records.timestamp[row].as_py(), from_offset=offset_before,
            to_offset=int(columns.offset[row]), records=offset_before - int(columns.offset[row]),
        )  # fmt: skip
    topic_ids = [
        None if gone else columns.topic_id(row)
        for row, gone in zip(last.tolist(), deleted.tolist(), strict=True)
    ]
    return rows_of(
        "commit",
        len(last),
        **_key_columns(keys),
        topic_id=pa.array(topic_ids, pa.string()),
        source_partition=pa.array(records.partition[last], pa.int32()),
        source_offset=pa.array(records.offset[last], pa.int64()),
        record_timestamp=records.timestamp.take(pa.array(last)).cast(TIMESTAMP),
        committed_offset=pa.array(
            columns.offset[last], pa.int64(), mask=deleted | (columns.offset[last] < 0)
        ),
        leader_epoch=pa.array(
            columns.leader_epoch[last], pa.int32(), mask=deleted | (columns.leader_epoch[last] < 0)
        ),
        commit_timestamp=_times(columns, last, ~deleted),
        is_deleted=pa.array(deleted),
        follows_deletion=pa.array(compacted.follows_deletion),
        first_committed_offset=pa.array(
            compacted.first_offset, pa.int64(), mask=~compacted.starts_with_commit
        ),
        first_commit_timestamp=_times(columns, compacted.first_row, compacted.starts_with_commit),
        progress_timestamp=_times(columns, compacted.progress_row, compacted.progress_row >= 0),
        commits=pa.array(compacted.commits),
        noop_commits=pa.array(compacted.noop_commits),
        repeat_commits=pa.array(compacted.repeat_commits),
        rewound_records=pa.array(compacted.rewound_records),
        commit_gaps=pa.array(compacted.gaps),
        commit_gap_ms=pa.array(compacted.gap_ms),
        commit_gap_squares=pa.array(compacted.gap_squares),
    )


def _of_past_places(records: Records, columns: CommitColumns) -> Bools:
    """Return a mask of records of a group in other partitions than that of its newest record.

    After the offsets topic got more partitions, a group's coordinator reads and writes another one;
    what lies in the one before was true once (GroupMetadataManager.partitionFor, with the number
    that the broker had at its start).
    """
    numbers: dict[str | None, int] = {None: 0}
    of_key = np.array(
        [numbers.setdefault(key.group, len(numbers)) for key in columns.keys], np.int64
    )
    group, partition = of_key[columns.key_index], records.partition
    one_of = np.zeros(len(numbers), partition.dtype)
    one_of[group] = partition
    is_split = np.zeros(len(numbers), bool)
    is_split[group[one_of[group] != partition]] = True
    is_split[0] = False  # of no group
    rows = np.flatnonzero(is_split[group])
    if not len(rows):
        return np.zeros(len(group), bool)
    at_us = records.timestamp.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    rows = rows[np.argsort(at_us[rows], kind="stable")]
    one_of[group[rows]] = partition[rows]  # the newest comes last and stays
    return np.asarray(is_split[group] & (one_of[group] != partition))


def _edges(
    records: Records, columns: CommitColumns, known: _Keys, chosen: Ints, is_past: Bools
) -> pa.RecordBatch:
    records_of = _group_records(columns, is_past)
    edges = unseen = chosen[:0]
    if records_of and len(chosen):
        key = known.same[columns.key_index[chosen]]
        groups = [named_key.get("group") for named_key in known.named]
        offset = columns.offset[chosen]
        edges, unseen = edge_rows(
            records_of, groups, chosen, key, columns.is_commit[chosen] & (offset >= 0), offset
        )
    keys = [known.named[index] for index in columns.key_index[edges].tolist()]
    return rows_of(
        "edge",
        len(edges),
        **_key_columns(keys),
        source_partition=pa.array(records.partition[edges], pa.int32()),
        source_offset=pa.array(records.offset[edges], pa.int64()),
        committed_offset=pa.array(columns.offset[edges], pa.int64()),
        commit_timestamp=_times(columns, edges, np.ones(len(edges), bool)),
        unseen=pa.array(unseen, pa.int64()),
    )


def _group_records(columns: CommitColumns, is_past: Bools) -> dict[str, list[int]]:
    """Return rows of the groups' own records, by group."""
    rows_by_group: dict[str, list[int]] = {}
    for row, outcome in columns.others.items():
        if (
            outcome.group is not None
            and outcome.outcome in ("record", "tombstone")
            and not is_past[row]
        ):
            rows_by_group.setdefault(outcome.group, []).append(row)
    return rows_by_group


def _key_columns(keys: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    types = {"group": pa.string(), "topic": pa.string(), "partition": pa.int32()}
    return {name: pa.array(list(map(itemgetter(name), keys)), kind) for name, kind in types.items()}


def _times(columns: CommitColumns, rows: Ints, is_known: Bools) -> pa.Array:
    """Commit times of these rows; a time that no calendar knows is null."""
    stamps = columns.commit_timestamp_ms[rows]
    is_known = is_known & (stamps >= 0) & (stamps <= MAX_TIMESTAMP_MS)
    return pa.array(np.clip(stamps, 0, MAX_TIMESTAMP_MS) * 1000, TIMESTAMP, mask=~is_known)


def _in_calendar(times: pa.Array) -> pa.Array:
    """Record timestamps; one that no calendar knows is null."""
    times = times.cast(TIMESTAMP)
    latest = pa.scalar(MAX_TIMESTAMP_MS * 1000, TIMESTAMP)
    is_known = both(pc.greater_equal(times, pa.scalar(0, TIMESTAMP)), pc.less_equal(times, latest))
    return where(is_known, times)


def _same_keys(columns: CommitColumns) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return per distinct key the index of the first key for the same group and partition.

    Types 0 and 1 both name it.
    """
    numbers = np.arange(len(columns.keys), dtype=np.int64)
    if any(key.record_type == 0 for key in columns.keys):
        seen: dict[tuple[Any, ...], int] = {}
        for number, key in enumerate(columns.keys):
            if key.key is not None:
                numbers[number] = seen.setdefault(tuple(key.key.values()), number)
    return numbers


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks)


def edge_rows(
    records_of: Mapping[str, Sequence[int]],
    groups: Sequence[str | None],
    rows: Ints,
    key: Ints,
    is_commit: Bools,
    offset: Ints,
) -> tuple[Ints, Ints]:
    """Return the edges' row numbers, ascending, and the moving commits before each edge.

    The count leaves out edges.

    Edges are the commits next to a group's own records: where a rebalance stopped a partition, and
    where it went on. Between two records a key's first commit, its last, and the last that moved
    the offset tell all that the pauses need. Commits and records of a group lie in one partition
    of the offsets topic, so their order is exact.

    `records_of`: row numbers of each group's records. `groups`: group by key number. The others
    are parallel, one element per commit or tombstone: its row number, key number, commit or
    tombstone, committed offset.
    """
    numbers = {group: number for number, group in enumerate(records_of)}
    group_of_key = np.array([numbers.get(group or "", -1) for group in groups], np.int64)
    group = group_of_key[key]
    near = np.flatnonzero((group >= 0) & is_commit)
    if not len(near):
        return near, near
    width = int(max(rows.max(), *map(max, records_of.values()))) + 1
    starts = np.repeat(np.arange(len(records_of)) * width, list(map(len, records_of.values())))
    places = np.sort(starts + list(chain.from_iterable(records_of.values())))
    # how many records of all groups up to its own lie before a commit: another number between any
    # two of them
    segment = np.searchsorted(places, group[near] * width + rows[near])
    _, piece = np.unique(key[near] * (len(places) + 1) + segment, return_inverse=True)
    compacted = compact_commits(rows[near], piece.astype(np.int64), is_commit[near], offset[near])
    has_moved = compacted.progress_row >= 0
    edges = np.unique(
        np.r_[compacted.first_row, compacted.last_row, compacted.progress_row[has_moved]]
    )
    unseen = np.zeros(len(edges), np.int64)
    # of those that moved on, less the first and the last
    between = np.maximum(0, compacted.commits - compacted.noop_commits - 2)
    unseen[np.searchsorted(edges, compacted.progress_row[has_moved])] = between[has_moved]
    return edges, unseen
