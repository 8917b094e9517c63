"""Rows between decoding and `advance`: kinds with their columns, and a task's rows as a batch.

Where coordinators are polled nothing is decoded: the rows are made of the poll.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    TIMESTAMP,
    both,
    differ,
    equal,
    flags,
    key_codes,
    match,
    of_groups,
    one_chunk,
    repeat,
    take,
    tuples,
    where,
)
from laggard.lag.merged import KEY, UNKNOWN_TOPIC, Place
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.sources.groups.ended_groups import GROUP_GONE
from laggard.sources.snapshot import Snapshot
from laggard.tables.arrow import arrow_type

Value = TypeVar("Value")
_KEY = "group:string,topic:string,partition:int"
_SOURCE = "source_partition:int,source_offset:bigint,record_timestamp:timestamp"
KINDS = {
    "commit": (  # one per key: its newest record, and sums over all of them
        f"{_KEY},topic_id:string,{_SOURCE},committed_offset:bigint,leader_epoch:int,"
        "commit_timestamp:timestamp,"
        "is_deleted:boolean,follows_deletion:boolean,"
        "first_committed_offset:bigint,first_commit_timestamp:timestamp,"
        "progress_timestamp:timestamp,"
        "commits:bigint,noop_commits:bigint,repeat_commits:bigint,rewound_records:bigint,"
        "commit_gaps:bigint,commit_gap_ms:bigint,commit_gap_squares:bigint"
    ),
    "edge": (  # a commit next to a group record: decode.edge_rows
        f"{_KEY},source_partition:int,source_offset:bigint,committed_offset:bigint,"
        "commit_timestamp:timestamp,"
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
# a row has one kind, and the columns of that kind in a struct of its name; all other structs are
# null
DECODED = ", ".join(f"{kind} struct<{columns}>" for kind, columns in KINDS.items())
SCHEMA = pa.schema([(kind, arrow_type(f"struct<{columns}>")) for kind, columns in KINDS.items()])
COLUMNS = {kind: pa.schema(list(SCHEMA.field(kind).type)) for kind in KINDS}


def rows_of(kind: str, number: int, **columns: pa.Array) -> pa.RecordBatch:
    """Return `number` rows of a kind with these columns; all other columns are null."""
    arrays = _or_nulls(COLUMNS[kind], columns, number)
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS[kind])


def as_decoded(kind: str, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a kind as rows of `DECODED`."""
    arrays = _or_nulls(SCHEMA, {kind: rows.to_struct_array()}, rows.num_rows)
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _or_nulls(schema: pa.Schema, columns: Mapping[str, pa.Array], number: int) -> list[pa.Array]:
    """Return a schema's columns; null if there is none."""
    arrays = []
    for column in schema:
        if column.name in columns:
            arrays.append(columns[column.name])
        else:
            arrays.append(pa.nulls(number, column.type))
    return arrays


def of_kind(decoded: pa.Table, kind: str) -> pa.Table:
    """Return rows of one kind, with its columns."""
    batches = map(pa.RecordBatch.from_struct_array, decoded[kind].drop_null().chunks)
    return pa.Table.from_batches(batches, COLUMNS[kind])


def groups_of(decoded: pa.RecordBatch) -> pa.Array:
    """Return the group of each row; null for kinds without a group."""
    kinds = (kind for kind in KINDS if "group" in COLUMNS[kind].names)
    return pc.coalesce(*(decoded[kind].field("group") for kind in kinds))


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of the coordinators beside commits, by group; empty if the offsets topic is read."""

    errors: Mapping[str, str | None]  # of groups that were asked; None: their offsets are complete
    described: Mapping[str, str]  # JSON, as rebalance/membership/described.py makes it
    gone: Collection[str] = ()
    # partitions without offset in these, and why
    withheld: Mapping[Place, str | None] = field(default_factory=dict)
    # groups that were listed only after a complete listing that lacked them
    new: Collection[str] = ()

    def of(self, groups: Collection[str]) -> Answers:
        """Return a copy with these groups only."""
        return Answers(
            values_of(groups, self.errors),
            values_of(groups, self.described),
            [group for group in self.gone if group in groups],
            {key: error for key, error in self.withheld.items() if key[0] in groups},
            [group for group in self.new if group in groups],
        )

    @property
    def complete(self) -> list[str]:
        """Groups whose offsets are complete."""
        return [group for group, error in self.errors.items() if error is None]

    @property
    def groups(self) -> set[str]:
        """All groups that they name."""
        return {*self.errors, *self.described, *self.gone}


def values_of(groups: Collection[str], values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the values of these groups only."""
    return {group: value for group, value in values.items() if group in groups}


@dataclass(frozen=True, slots=True)
class Batch:
    """Decoding result: commits (unique per key), group records in Kafka's order, rewinds, edges."""

    commits: pa.Table
    records: Sequence[dict[str, Any]]
    rewinds: Sequence[dict[str, Any]]
    edges: pa.Table
    answers: Answers = Answers({}, {})
    # by group: (topic, partition) of commits that were refused, now or before, and have no row
    refused: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    room: int | None = None  # for rows of partitions without a commit; None: as many as there are


def read_batch(decoded: pa.Table) -> Batch:
    """Return the rows of a task, by kind."""
    records = of_kind(decoded, "group_record").to_pylist()
    return Batch(
        commits=of_kind(decoded, "commit"),
        records=sorted(records, key=itemgetter("source_partition", "source_offset")),
        rewinds=of_kind(decoded, "rewind").to_pylist(),
        edges=of_kind(decoded, "edge"),
    )


def polled_batch(
    snapshot: Snapshot, partition_status: pa.Table, names: NameFilter, tick: Tick, own: Any
) -> Batch:
    """Return the batch of a shard.

    `own` gives a mask of its groups, `partition_status` has its earlier rows.

    A poll says where a group stands and not when it committed. So a change becomes one commit at
    an unknown time, which was made between the poll before that asked the group and this one, and
    what did not change becomes nothing.
    """
    answers = _answers(snapshot, own)
    whole = answers.complete
    committed = snapshot.committed.filter(own(snapshot.committed["group"]))
    committed = of_groups(committed, whole)
    left_out = _left_out(committed, partition_status, whole)
    hidden = _hidden(snapshot, partition_status, names)
    is_ended = left_out & ~hidden | flags(
        pc.is_in(partition_status["group"], pa.array(answers.gone, pa.string()))
    )
    commits = [
        _changes(committed, partition_status, answers.new, tick),
        _deletions(partition_status, is_ended, tick),
    ]
    withheld = _withheld(committed, partition_status.filter(pa.array(left_out & hidden)))
    edges = COLUMNS["edge"].empty_table()
    return Batch(pa.Table.from_batches(commits), (), (), edges, replace(answers, withheld=withheld))


def _answers(snapshot: Snapshot, own: Any) -> Answers:
    errors: dict[str, str | None] = {}
    described: dict[str, str] = {}
    gone: list[str] = []
    new: list[str] = []
    for row in snapshot.answers.filter(own(snapshot.answers["group"])).to_pylist():
        group = row["group"]
        if row["error"] == GROUP_GONE:
            gone.append(group)
        elif row["is_asked"]:
            errors[group] = row["error"]
        if row["description"] is not None:
            described[group] = row["description"]
        if row["is_new"]:
            new.append(group)
    return Answers(errors, described, gone, new=new)


def _changes(
    committed: pa.Table, before: pa.Table, fresh: Collection[str], tick: Tick
) -> pa.RecordBatch:
    new, old = key_codes([committed, before], KEY)
    prior = take(
        before.select(["committed_offset", "leader_epoch", "current_topic_id"]), match(new, old)
    )
    # the brokers deleted the offsets of the topic that was there before: what they give since is of
    # the new one
    is_of_another = pc.is_valid(prior["current_topic_id"])
    is_same = both(
        equal(prior["committed_offset"], committed["committed_offset"]),
        pc.invert(differ(prior["leader_epoch"], committed["leader_epoch"])),
        pc.invert(is_of_another),
    )
    is_changed = pc.and_(pc.is_valid(committed["committed_offset"]), pc.invert(is_same))
    rows, prior = committed.filter(is_changed), prior.filter(is_changed)
    # one that is there for the first time may be of long ago, but in a group that is new or
    # answered before
    answered = pc.unique(before.filter(pc.is_valid(before["answered_at"]))["group"]).to_pylist()
    is_watched = pc.is_in(rows["group"], value_set=pa.array([*answered, *fresh], pa.string()))
    has_risen = pc.coalesce(
        pc.greater(rows["committed_offset"], prior["committed_offset"]), is_watched
    )
    has_risen = pc.or_(has_risen, pc.is_valid(prior["current_topic_id"]))
    seen = where(has_risen, repeat(tick.now, TIMESTAMP, rows.num_rows))
    return _commits(
        rows,
        tick,
        committed_offset=one_chunk(rows["committed_offset"]),
        first_committed_offset=one_chunk(rows["committed_offset"]),
        leader_epoch=one_chunk(rows["leader_epoch"]),
        progress_timestamp=one_chunk(seen),
        is_deleted=repeat(False, pa.bool_(), rows.num_rows),
    )


def _left_out(committed: pa.Table, before: pa.Table, whole: Collection[str]) -> Any:
    """Return a mask of rows that are missing in the answer of their group."""
    new, old = key_codes([committed, before], KEY)
    return (match(old, new) < 0) & flags(
        pc.is_in(before["group"], pa.array(list(whole), pa.string()))
    )


def _deletions(before: pa.Table, is_ended: Any, tick: Tick) -> pa.RecordBatch:
    """Return deletions of the commits that no longer exist."""
    had_commit = pc.or_(
        pc.is_valid(before["committed_offset"]), pc.is_valid(before["commit_source_offset"])
    )
    rows = before.filter(pa.array(flags(had_commit) & is_ended))
    return _commits(rows, tick, is_deleted=repeat(True, pa.bool_(), rows.num_rows))


def _withheld(committed: pa.Table, hidden: pa.Table) -> dict[Place, str | None]:
    """Return partitions that an answer lacks: failed ones, and those of topics left out."""
    failed = committed.filter(pc.is_null(committed["committed_offset"])).select([*KEY, "error"])
    errors: dict[Place, str | None] = dict.fromkeys(_places(hidden))
    return errors | dict(zip(_places(failed), failed["error"].to_pylist(), strict=True))


def _places(rows: pa.Table) -> list[Place]:
    return list(tuples(rows, KEY))


def _hidden(snapshot: Snapshot, before: pa.Table, names: NameFilter) -> Any:
    """Return a mask of rows of topics that we perhaps may not describe.

    Coordinators leave these topics out silently.
    """
    topics = pc.unique(before["topic"]).to_pylist()
    pairs = snapshot.positions.select(["topic", "error"]).group_by(["topic", "error"]).aggregate([])
    errors: dict[str, set[str | None]] = {}
    for row in pairs.to_pylist():
        errors.setdefault(row["topic"], set()).add(row["error"])
    seen = []
    for topic in topics:
        if topic in errors:
            is_seen = not errors[topic].isdisjoint({None, UNKNOWN_TOPIC})
        else:
            is_seen = snapshot.lists_all_topics and names.watches_topic(topic)
        if is_seen:
            seen.append(topic)
    return ~flags(pc.is_in(before["topic"], value_set=pa.array(seen, pa.string())))


def _commits(rows: pa.Table, tick: Tick, **columns: pa.Array) -> pa.RecordBatch:
    number = rows.num_rows
    zeros = repeat(0, pa.int64(), number)
    counts = (
        "noop_commits",
        "repeat_commits",
        "rewound_records",
        "commit_gaps",
        "commit_gap_ms",
        "commit_gap_squares",
    )
    return rows_of(
        "commit",
        number,
        **{name: one_chunk(rows[name]) for name in KEY},
        source_offset=repeat(tick.poll_id, pa.int64(), number),
        follows_deletion=repeat(False, pa.bool_(), number),
        commits=repeat(1, pa.int64(), number),
        **dict.fromkeys(counts, zeros),
        **columns,
    )
