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

from laggard.lag.arrays import MAX_TIMESTAMP_MS
from laggard.lag.commits import compact_commits
from laggard.names import NameFilter
from laggard.rebalance.generations import describe_generation
from laggard.rebalance.modern_records import CLASSIC_GROUP, ROLES, describe_modern
from laggard.wire.columnar import CommitColumns, decode_columns
from laggard.wire.decode import Outcome

DECODED = """
    kind string, group string, topic string, partition int, topic_id string,
    source_partition int, source_offset bigint, record_timestamp timestamp,
    committed_offset bigint, leader_epoch int, commit_timestamp timestamp, is_deleted boolean,
    first_committed_offset bigint, commits bigint, noop_commits bigint, rewound_records bigint,
    record_type int, record_version int, detail string,
    outcome string, reason string, field string, records bigint,
    key_bytes bigint, value_bytes bigint, key_hex string, head_hex string, sha256 string
"""  # kind: commit, rewind, generation (any record of a group), dead, count, timing (records: microseconds spent)
MAX_DEAD_LETTERS = 1000
HEAD_BYTES = 256
_TIMESTAMP = pa.timestamp("us", tz="UTC")
_COLUMNS = {
    name: {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "boolean": pa.bool_(),
        "timestamp": _TIMESTAMP,
    }[kind]
    for name, kind in (column.strip().split() for column in DECODED.split(","))
}
SCHEMA = pa.schema(list(_COLUMNS.items()))


@dataclass(frozen=True, slots=True)
class _Records:
    """All records of a task, in Kafka's order within each partition."""

    partition: np.ndarray[Any, np.dtype[np.int32]]
    offset: np.ndarray[Any, np.dtype[np.int64]]
    timestamp: pa.Array
    key: pa.Array
    value: pa.Array


def decode_stage(names: NameFilter) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for `mapInArrow`: records with columns partition, offset, timestamp, key, value."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        started = time.perf_counter_ns()
        # the whole task at once, so that a key comes out once; maxOffsetsPerTrigger bounds it
        gathered = list(batches)
        if not gathered:
            return
        yield from decode_records(pa.Table.from_batches(gathered).combine_chunks(), names)
        spent_us = (time.perf_counter_ns() - started) // 1000
        yield _batch(1, kind=pa.array(["timing"]), records=pa.array([spent_us], pa.int64()))

    return decode


def decode_records(table: pa.Table, names: NameFilter) -> Iterator[pa.RecordBatch]:
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
        yield _commits(records, columns, names, rows)
        _others(records, columns, names, rows)
        _count(columns, rows)
    yield rows.batch()


def _commits(records: _Records, columns: CommitColumns, names: NameFilter, rows: _Rows) -> pa.RecordBatch:
    is_watched = np.array(
        [
            key.key is not None and "topic" in key.key and names.watches(key.key["group"], key.key["topic"])
            for key in columns.keys
        ]
    )
    chosen = np.flatnonzero((columns.is_commit | columns.is_tombstone) & is_watched[columns.key_index])
    found = compact_commits(
        chosen, _same_keys(columns)[columns.key_index[chosen]], columns.is_commit[chosen], columns.offset[chosen]
    )
    keys = [columns.keys[index].key or {} for index in found.key.tolist()]
    last, deleted = found.last_row, found.is_deleted
    stamps = columns.commit_timestamp_ms[last]
    for row, offset_before in zip(found.rewind_rows.tolist(), found.rewind_from.tolist(), strict=True):
        key = columns.keys[int(columns.key_index[row])].key or {}
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
        record_timestamp=records.timestamp.take(pa.array(last)).cast(_TIMESTAMP),
        committed_offset=pa.array(columns.offset[last], pa.int64(), mask=deleted),
        leader_epoch=pa.array(columns.leader_epoch[last], pa.int32(), mask=deleted | (columns.leader_epoch[last] < 0)),
        commit_timestamp=pa.array(
            np.clip(stamps, 0, MAX_TIMESTAMP_MS) * 1000,
            _TIMESTAMP,
            mask=deleted | (stamps < 0) | (stamps > MAX_TIMESTAMP_MS),
        ),
        is_deleted=pa.array(deleted),
        first_committed_offset=pa.array(found.first_offset, pa.int64(), mask=~found.starts_with_commit),
        commits=pa.array(found.commits),
        noop_commits=pa.array(found.noop_commits),
        rewound_records=pa.array(found.rewound_records),
    )


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
                rows.add(kind="generation", group=group, detail=json.dumps(detail), **place)
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
            **{name: pa.array([row.get(name) for row in self._rows], kind) for name, kind in _COLUMNS.items()},
        )


def _batch(rows: int, **columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [columns[name] if name in columns else pa.nulls(rows, kind) for name, kind in _COLUMNS.items()], schema=SCHEMA
    )


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
