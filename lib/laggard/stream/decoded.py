"""Rows between the decode stage and the advance stage: their columns, and a task's rows as one batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.merged import Place

DECODED = """
    kind string, group string, topic string, partition int, topic_id string,
    source_partition int, source_offset bigint, record_timestamp timestamp,
    committed_offset bigint, leader_epoch int, commit_timestamp timestamp, is_deleted boolean,
    follows_deletion boolean,
    first_committed_offset bigint, first_commit_timestamp timestamp, progress_timestamp timestamp,
    commits bigint, noop_commits bigint, repeat_commits bigint, rewound_records bigint,
    commit_gaps bigint, commit_gap_ms bigint, commit_gap_squares bigint,
    record_type int, record_version int, detail string,
    outcome string, reason string, field string, records bigint,
    key_bytes bigint, value_bytes bigint, key_hex string, head_hex string, sha256 string
"""
# kind: commit (one per key), edge (a commit next to a group record: edges.py), rewind, generation (any record of a
# group), dead, count, timing (records: microseconds spent)
TIMESTAMP = pa.timestamp("us", tz="UTC")
_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": TIMESTAMP,
}
COLUMNS = {name: _TYPES[kind] for name, kind in (column.strip().split() for column in DECODED.split(","))}
SCHEMA = pa.schema(list(COLUMNS.items()))


def batch_of(rows: int, **columns: pa.Array) -> pa.RecordBatch:
    """So many rows with these columns; all others are null."""
    return pa.RecordBatch.from_arrays(
        [columns[name] if name in columns else pa.nulls(rows, kind) for name, kind in COLUMNS.items()], schema=SCHEMA
    )


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of the coordinators beside commits, by group; empty if the offsets topic is read."""

    errors: Mapping[str, str | None]  # of groups that were asked; None: their offsets are complete
    described: Mapping[str, str]  # JSON, as rebalance/described.py makes it
    gone: Collection[str] = ()
    untold: Mapping[Place, str | None] = field(default_factory=dict)  # partitions without offset in these, and why
    new: Collection[str] = ()  # groups that were listed only after a complete listing that lacked them

    def of(self, groups: Collection[str]) -> Answers:
        """The same of these groups only."""
        errors = {group: error for group, error in self.errors.items() if group in groups}
        described = {group: text for group, text in self.described.items() if group in groups}
        untold = {place: error for place, error in self.untold.items() if place[0] in groups}
        gone, new = ([group for group in each if group in groups] for each in (self.gone, self.new))
        return Answers(errors, described, gone, untold, new)

    @property
    def groups(self) -> set[str]:
        """All groups that they name."""
        return {*self.errors, *self.described, *self.gone}


@dataclass(frozen=True, slots=True)
class Batch:
    """Result of the decode stage: commits (unique per key), group records in Kafka's order, rewinds, edges."""

    commits: pa.Table
    records: Sequence[dict[str, Any]]
    rewinds: Sequence[dict[str, Any]]
    edges: pa.Table
    answers: Answers = Answers({}, {})
    # by group: (topic, partition) of commits that were refused, now or before, and have no row
    refused: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    room: int | None = None  # for rows of partitions without a commit; None: as many as there are


def read_batch(decoded: pa.Table) -> Batch:
    """The rows of a task, by kind."""
    records = of_kind(decoded, "generation").to_pylist()
    return Batch(
        commits=of_kind(decoded, "commit"),
        records=sorted(records, key=lambda row: (row["source_partition"], row["source_offset"])),
        rewinds=[_rewind(row) for row in of_kind(decoded, "rewind").to_pylist()],
        edges=of_kind(decoded, "edge"),
    )


def of_kind(decoded: pa.Table, kind: str) -> pa.Table:
    """Rows of one kind."""
    return decoded.filter(pc.equal(decoded["kind"], kind))


def _rewind(row: dict[str, Any]) -> dict[str, Any]:
    names = ("group", "topic", "partition", "records", "source_partition", "source_offset", "record_timestamp")
    return {
        **{name: row[name] for name in names},
        "from_offset": row["first_committed_offset"],
        "to_offset": row["committed_offset"],
    }
