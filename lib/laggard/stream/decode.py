"""The decode stage: Kafka records in, compacted rows out, through `mapInArrow`.

Every record becomes part of a commit row, a generation row or a dead letter, and each is counted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from laggard.lag.arrays import MAX_TIMESTAMP_MS, Ints
from laggard.lag.commits import Bools, compact_commits
from laggard.names import NameFilter
from laggard.rebalance.generations import describe_generation
from laggard.rebalance.modern_records import CLASSIC_GROUP, ROLES, describe_modern
from laggard.stream.decoded import COLUMNS, SCHEMA, TIMESTAMP
from laggard.stream.edges import edge_rows
from laggard.wire.columnar import CommitColumns, decode_columns
from laggard.wire.decode import Outcome

MAX_DEAD_LETTERS = 1000
HEAD_BYTES = 256
_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode  # details have no cycles


@dataclass(frozen=True, slots=True)
class _Records:
    """All records of a task, in Kafka's order within each partition."""

    partition: np.ndarray[Any, np.dtype[np.int32]]
    offset: np.ndarray[Any, np.dtype[np.int64]]
    timestamp: pa.Array
    key: pa.Array
    value: pa.Array


def decode_stage(
    names: NameFilter, *, with_edges: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: records with columns partition, offset, timestamp, key, value."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter_ns()
        # the whole task at once, so that a key comes out once; maxOffsetsPerTrigger bounds it
        gathered = list(batches)
        if not gathered:
            return
        yield from decode_records(pa.Table.from_batches(gathered).combine_chunks(), names, with_edges=with_edges)
        spent_us = (time.perf_counter_ns() - started) // 1000
        yield _batch(1, kind=pa.array(["timing"]), records=pa.array([spent_us], pa.int64()))

    return decode


def decode_records(table: pa.Table, names: NameFilter, *, with_edges: bool = True) -> Iterator[pa.RecordBatch]:
    """Rows of `DECODED` for records in Kafka's order within each partition; rows without a partition are polls."""
    rows = _Rows()
    table = table.filter(table["partition"].is_valid())
    if table.num_rows:
        records = _Records(
            table["partition"].to_numpy(),
            table["offset"].to_numpy(),
            _one_chunk(table["timestamp"]),
            _one_chunk(table["key"]),
            _one_chunk(table["value"]),
        )
        columns = decode_columns(records.key, records.value)
        keys = _watched_keys(columns, names)
        chosen = np.flatnonzero((columns.is_commit | columns.is_tombstone) & keys.is_watched[columns.key_index])
        yield _commits(records, columns, keys, chosen, rows)
        if with_edges:
            yield _edges(records, columns, keys, chosen)
        _others(records, columns, names, rows)
        _count(columns, rows)
    yield rows.batch()


@dataclass(frozen=True, slots=True)
class _Keys:
    """The distinct keys: what they name, whether it is watched, and the first key that names the same."""

    named: list[dict[str, Any]]
    is_watched: Bools
    same: Ints


def _watched_keys(columns: CommitColumns, names: NameFilter) -> _Keys:
    named = [key.key or {} for key in columns.keys]
    pairs = [(key["group"], key["topic"]) if "topic" in key else None for key in named]
    watched = {pair for pair in set(pairs) if pair is not None and names.watches(*pair)}  # few pairs, many partitions
    return _Keys(named, np.array([pair in watched for pair in pairs], bool), _same_keys(columns))


def _commits(records: _Records, columns: CommitColumns, known: _Keys, chosen: Ints, rows: _Rows) -> pa.RecordBatch:
    found = compact_commits(
        chosen,
        known.same[columns.key_index[chosen]],
        columns.is_commit[chosen],
        columns.offset[chosen],
        columns.commit_timestamp_ms[chosen],
    )
    keys = [known.named[index] for index in found.key.tolist()]
    last, deleted = found.last_row, found.is_deleted
    for row, offset_before in zip(found.rewind_rows.tolist(), found.rewind_from.tolist(), strict=True):
        key = known.named[int(columns.key_index[row])]
        rows.add(
            kind="rewind", group=key["group"], topic=key["topic"], partition=key["partition"],
            source_partition=int(records.partition[row]), source_offset=int(records.offset[row]),
            record_timestamp=records.timestamp[row].as_py(), first_committed_offset=offset_before,
            committed_offset=int(columns.offset[row]), records=offset_before - int(columns.offset[row]),
        )  # fmt: skip
    return _batch(
        len(last),
        kind=pa.repeat("commit", len(last)),
        group=pa.array([key["group"] for key in keys], pa.string()),
        topic=pa.array([key["topic"] for key in keys], pa.string()),
        partition=pa.array([key["partition"] for key in keys], pa.int32()),
        topic_id=pa.array(
            [
                None if gone else columns.topic_id(row)
                for row, gone in zip(last.tolist(), deleted.tolist(), strict=True)
            ],
            pa.string(),
        ),
        source_partition=pa.array(records.partition[last], pa.int32()),
        source_offset=pa.array(records.offset[last], pa.int64()),
        record_timestamp=records.timestamp.take(pa.array(last)).cast(TIMESTAMP),
        committed_offset=pa.array(columns.offset[last], pa.int64(), mask=deleted),
        leader_epoch=pa.array(columns.leader_epoch[last], pa.int32(), mask=deleted | (columns.leader_epoch[last] < 0)),
        commit_timestamp=_times(columns, last, ~deleted),
        is_deleted=pa.array(deleted),
        first_committed_offset=pa.array(found.first_offset, pa.int64(), mask=~found.starts_with_commit),
        first_commit_timestamp=_times(columns, found.first_row, found.starts_with_commit),
        progress_timestamp=_times(columns, found.progress_row, found.progress_row >= 0),
        commits=pa.array(found.commits),
        noop_commits=pa.array(found.noop_commits),
        repeat_commits=pa.array(found.repeat_commits),
        rewound_records=pa.array(found.rewound_records),
        commit_gaps=pa.array(found.gaps),
        commit_gap_ms=pa.array(found.gap_ms),
        commit_gap_squares=pa.array(found.gap_squares),
    )


def _edges(records: _Records, columns: CommitColumns, known: _Keys, chosen: Ints) -> pa.RecordBatch:
    records_of: dict[str, list[int]] = {}
    for row, outcome in columns.others.items():
        if outcome.group is not None and outcome.outcome in ("record", "tombstone"):
            records_of.setdefault(outcome.group, []).append(row)
    found = unseen = chosen[:0]
    if records_of and len(chosen):
        key = known.same[columns.key_index[chosen]]
        groups = [each.get("group") for each in known.named]
        found, unseen = edge_rows(records_of, groups, chosen, key, columns.is_commit[chosen], columns.offset[chosen])
    keys = [known.named[index] for index in columns.key_index[found].tolist()]
    return _batch(
        len(found),
        kind=pa.repeat("edge", len(found)),
        **{name: pa.array([key[name] for key in keys], COLUMNS[name]) for name in ("group", "topic", "partition")},
        source_partition=pa.array(records.partition[found], pa.int32()),
        source_offset=pa.array(records.offset[found], pa.int64()),
        committed_offset=pa.array(columns.offset[found], pa.int64()),
        commit_timestamp=_times(columns, found, np.ones(len(found), bool)),
        commits=pa.array(unseen + 1, pa.int64()),
    )


def _times(columns: CommitColumns, rows: Ints, is_known: Bools) -> pa.Array:
    """Commit times of these rows; a time that no calendar knows is null."""
    stamps = columns.commit_timestamp_ms[rows]
    is_known = is_known & (stamps >= 0) & (stamps <= MAX_TIMESTAMP_MS)
    return pa.array(np.clip(stamps, 0, MAX_TIMESTAMP_MS) * 1000, TIMESTAMP, mask=~is_known)


def _same_keys(columns: CommitColumns) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Per distinct key the first one that names the same partition of a group: types 0 and 1 both do."""
    numbers = np.arange(len(columns.keys), dtype=np.int64)
    if any(key.record_type == 0 for key in columns.keys):
        seen: dict[tuple[Any, ...], int] = {}
        for number, key in enumerate(columns.keys):
            if key.key is not None:
                numbers[number] = seen.setdefault(tuple(key.key.values()), number)
    return numbers


def _others(records: _Records, columns: CommitColumns, names: NameFilter, rows: _Rows) -> None:
    dead = 0
    for row, outcome in sorted(columns.others.items()):
        place = {
            "source_partition": int(records.partition[row]),
            "source_offset": int(records.offset[row]),
            "record_timestamp": records.timestamp[row].as_py(),
            "record_type": outcome.record_type,
            "record_version": outcome.value_version,
        }
        if outcome.outcome in ("record", "tombstone"):
            group = outcome.group
            if group is not None and names.watches_group(group) and (detail := _describe(outcome)) is not None:
                rows.add(kind="generation", group=group, detail=_to_json(detail), **place)
        elif outcome.outcome == "malformed":
            dead += 1
            if dead <= MAX_DEAD_LETTERS:  # the rest is only counted
                rows.add(kind="dead", reason=outcome.error, field=outcome.field, **place, **_evidence(records, row))


def _describe(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.record_type == CLASSIC_GROUP:
        return describe_generation(outcome.value)
    if outcome.record_type in ROLES and outcome.key is not None:
        return describe_modern(outcome.record_type, outcome.key, outcome.value)
    return None


def _evidence(records: _Records, row: int) -> dict[str, Any]:
    key, value = records.key[row].as_py(), records.value[row].as_py()
    return {
        "key_bytes": None if key is None else len(key),
        "value_bytes": None if value is None else len(value),
        "key_hex": None if key is None else key[:HEAD_BYTES].hex(),
        "head_hex": None if value is None else value[:HEAD_BYTES].hex(),
        "sha256": None if value is None else hashlib.sha256(value).hexdigest(),
    }


def _count(columns: CommitColumns, rows: _Rows) -> None:
    """One count row per outcome, type and version: records in = decoded + tombstones + unknown + dead."""
    counts: Counter[tuple[str, int | None, int | None, str | None]] = Counter()
    counts["record", 1, None, None] += int(columns.is_commit.sum())
    counts["tombstone", 1, None, None] += int(columns.is_tombstone.sum())
    for outcome in columns.others.values():
        version = outcome.value_version if outcome.outcome == "unsupported" else None
        counts[outcome.outcome, outcome.record_type, version, outcome.error] += 1
    for (name, record_type, version, reason), number in counts.items():
        if number:
            rows.add(
                kind="count",
                outcome=name,
                record_type=record_type,
                record_version=version,
                reason=reason,
                records=number,
            )


class _Rows:
    """Rare rows, gathered one by one."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def add(self, **columns: Any) -> None:
        self._rows.append(columns)

    def batch(self) -> pa.RecordBatch:
        return _batch(
            len(self._rows),
            **{name: pa.array([row.get(name) for row in self._rows], kind) for name, kind in COLUMNS.items()},
        )


def _batch(rows: int, **columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [columns[name] if name in columns else pa.nulls(rows, kind) for name, kind in COLUMNS.items()], schema=SCHEMA
    )


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
