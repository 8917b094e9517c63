"""Rows between the decode stage and the advance stage: the kinds with their columns, and a task's rows as one batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.merged import Place
from laggard.tables.arrow import arrow_type

TIMESTAMP = pa.timestamp("us", tz="UTC")
_KEY = "group:string,topic:string,partition:int"
_SOURCE = "source_partition:int,source_offset:bigint,record_timestamp:timestamp"
KINDS = {
    "commit": (  # one per key: its newest record, and sums over all of them
        f"{_KEY},topic_id:string,{_SOURCE},committed_offset:bigint,leader_epoch:int,commit_timestamp:timestamp,"
        "is_deleted:boolean,follows_deletion:boolean,"
        "first_committed_offset:bigint,first_commit_timestamp:timestamp,progress_timestamp:timestamp,"
        "commits:bigint,noop_commits:bigint,repeat_commits:bigint,rewound_records:bigint,"
        "commit_gaps:bigint,commit_gap_ms:bigint,commit_gap_squares:bigint"
    ),
    "edge": (  # a commit next to a group record: edges.py
        f"{_KEY},source_partition:int,source_offset:bigint,committed_offset:bigint,commit_timestamp:timestamp,"
        "unseen:bigint"
    ),
    "rewind": f"{_KEY},{_SOURCE},from_offset:bigint,to_offset:bigint,records:bigint",
    "group_record": f"group:string,{_SOURCE},record_type:int,record_version:int,detail:string",
    "dead_letter": (
        f"{_SOURCE},record_type:int,reason:string,field:string,"
        "key_bytes:bigint,value_bytes:bigint,key_hex:string,head_hex:string,sha256:string"
    ),
    "count": "outcome:string,record_type:int,record_version:int,reason:string,records:bigint",
    "timing": "spent_us:bigint",
}
# a row has one kind, and the columns of that kind in a struct of its name; all other structs are null
DECODED = ", ".join(f"{kind} struct<{columns}>" for kind, columns in KINDS.items())
SCHEMA = pa.schema([(kind, arrow_type(f"struct<{columns}>")) for kind, columns in KINDS.items()])
COLUMNS = {kind: pa.schema(list(SCHEMA.field(kind).type)) for kind in KINDS}


def rows_of(kind: str, number: int, **columns: pa.Array) -> pa.RecordBatch:
    """So many rows of a kind with these columns; all others are null."""
    found = [columns[each.name] if each.name in columns else pa.nulls(number, each.type) for each in COLUMNS[kind]]
    return pa.RecordBatch.from_arrays(found, schema=COLUMNS[kind])


def as_decoded(kind: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a kind as rows of `DECODED`."""
    number = rows.num_rows
    found = [rows.to_struct_array() if each.name == kind else pa.nulls(number, each.type) for each in SCHEMA]
    return pa.RecordBatch.from_arrays(found, schema=SCHEMA)


def of_kind(decoded: pa.Table, kind: str) -> pa.Table:
    """Rows of one kind, with its columns."""
    found = [pa.RecordBatch.from_struct_array(chunk) for chunk in decoded[kind].drop_null().chunks]
    return pa.Table.from_batches(found, COLUMNS[kind])


def groups_of(decoded: pa.RecordBatch) -> pa.Array:
    """Group of each row; null in kinds that are of no group."""
    return pc.coalesce(*(decoded[kind].field("group") for kind in KINDS if "group" in COLUMNS[kind].names))


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of the coordinators beside commits, by group; empty if the offsets topic is read."""

    errors: Mapping[str, str | None]  # of groups that were asked; None: their offsets are complete
    described: Mapping[str, str]  # JSON, as rebalance/described.py makes it
    gone: Collection[str] = ()
    withheld: Mapping[Place, str | None] = field(default_factory=dict)  # partitions without offset in these, and why
    new: Collection[str] = ()  # groups that were listed only after a complete listing that lacked them

    def of(self, groups: Collection[str]) -> Answers:
        """The same of these groups only."""
        errors = {group: error for group, error in self.errors.items() if group in groups}
        described = {group: text for group, text in self.described.items() if group in groups}
        withheld = {place: error for place, error in self.withheld.items() if place[0] in groups}
        gone, new = ([group for group in each if group in groups] for each in (self.gone, self.new))
        return Answers(errors, described, gone, withheld, new)

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
    records = of_kind(decoded, "group_record").to_pylist()
    return Batch(
        commits=of_kind(decoded, "commit"),
        records=sorted(records, key=lambda row: (row["source_partition"], row["source_offset"])),
        rewinds=of_kind(decoded, "rewind").to_pylist(),
        edges=of_kind(decoded, "edge"),
    )
