"""The advance stage: `advance` on every executor, each with all rows of its groups, through `mapInArrow`.

Rows travel whole: each task gives one packed Arrow table per Delta table, which the writes then open. Spark plans the
same few steps every tick, however many columns the tables have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laggard.lag.tick import Tick
from laggard.rebalance.groups import Listing
from laggard.sources.snapshot import Snapshot, pack, unpack
from laggard.stream.advance import Batch, Poll, advance
from laggard.tables import schemas
from laggard.tables.arrow import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKED = "kind string, rows bigint, data binary"
COUNTS = "counts"  # the one kind that is no table: count rows as JSON
_SCHEMA = pa.schema([("kind", pa.string()), ("rows", pa.int64()), ("data", pa.binary())])
_ALWAYS = ("partition_status", "group_status")  # empty means empty: the write must happen

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def advance_frame(
    partition_status: DataFrame, group_status: DataFrame, decoded: DataFrame, snapshot: Snapshot, tick: Tick
) -> DataFrame:
    """One packed table per task and Delta table (`PACKED`)."""
    from pyspark.sql import functions as F

    sides = {"partition_row": partition_status, "group_row": group_status, "decoded_row": decoded}
    kinds = {name: F.struct("*") for name in sides}
    types = {name: side.select(kinds[name].alias(name)).schema[name].dataType for name, side in sides.items()}
    tagged = [
        side.select(
            "group", *((F.struct("*") if name == of else F.lit(None).cast(types[name])).alias(name) for name in sides)
        )
        for of, side in sides.items()
    ]
    together = tagged[0].unionByName(tagged[1]).unionByName(tagged[2])
    cores = decoded.sparkSession.sparkContext.defaultParallelism
    return together.repartition(cores, "group").mapInArrow(advance_stage(snapshot, tick), PACKED)


def advance_stage(snapshot: Snapshot, tick: Tick) -> Stage:
    """The function for `mapInArrow`: rows (group, partition_row, group_row, decoded_row), all of a group together."""
    packed = json.dumps(pack(snapshot))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered = list(batches)
        sides = _sides(gathered)
        poll = unpack(json.loads(packed))
        listing = Listing(
            {row["group"]: row for row in poll.groups.to_pylist()},
            {row["offsets_partition"]: row["coordinator"] for row in poll.offsets_partitions.to_pylist()},
            is_fresh=poll.groups.num_rows > 0,
        )
        decoded = sides["decoded_row"]
        records = sorted(
            _of_kind(decoded, "generation").to_pylist(), key=lambda row: (row["source_partition"], row["source_offset"])
        )
        batch = Batch(
            _of_kind(decoded, "commit"), records, [_rewind(row) for row in _of_kind(decoded, "rewind").to_pylist()]
        )
        tables = advance(sides["partition_row"], sides["group_row"], batch, Poll(poll.positions, listing), tick)
        tables["dead_letters"] = _dead_letters(_of_kind(decoded, "dead"), tick)
        for name, table in tables.items():
            if table.num_rows or name in _ALWAYS:
                yield _packed_row(name, table.num_rows, _to_bytes(table))
        counts = (
            _of_kind(decoded, "count")
            .select(["outcome", "record_type", "record_version", "reason", "records"])
            .to_pylist()
        )
        yield _packed_row(COUNTS, len(counts), json.dumps(counts).encode())

    return run


def open_packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows inside packed tables; for `mapInArrow` over rows of one kind."""
    for batch in batches:
        for data in batch["data"]:
            yield from pa.ipc.open_stream(data.as_buffer())


def table_rows(packed: DataFrame, table: schemas.Table) -> DataFrame:
    """The rows of one Delta table."""
    ddl = ", ".join(f"`{column.name}` {column.type}" for column in table.columns)
    rows = packed.where(packed["kind"] == table.name)
    return (rows if table.overwritten else rows.coalesce(1)).mapInArrow(open_packed, ddl)


def _sides(gathered: list[pa.RecordBatch]) -> dict[str, pa.Table]:
    from laggard.stream.decode import SCHEMA

    wanted = {
        "partition_row": arrow_schema(schemas.PARTITION_STATUS),
        "group_row": arrow_schema(schemas.GROUP_STATUS),
        "decoded_row": SCHEMA,
    }
    if not gathered:
        return {name: schema.empty_table() for name, schema in wanted.items()}
    table = pa.Table.from_batches(gathered)
    sides = {}
    for name, schema in wanted.items():
        column = table[name].filter(table[name].is_valid()).combine_chunks()
        struct = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        sides[name] = (
            pa.Table.from_arrays(struct.flatten(), names=[field.name for field in struct.type])
            .select(schema.names)
            .cast(schema)
        )
    return sides


def _of_kind(decoded: pa.Table, kind: str) -> pa.Table:
    import pyarrow.compute as pc

    return decoded.filter(pc.equal(decoded["kind"], kind))


def _rewind(row: dict[str, Any]) -> dict[str, Any]:
    names = ("group", "topic", "partition", "records", "source_partition", "source_offset", "record_timestamp")
    return {
        **{name: row[name] for name in names},
        "from_offset": row["first_committed_offset"],
        "to_offset": row["committed_offset"],
    }


def _dead_letters(rows: pa.Table, tick: Tick) -> pa.Table:
    schema = arrow_schema(schemas.DEAD_LETTERS)
    given = {"cluster": tick.cluster, "batch_id": tick.batch_id}
    found = [{**row, **given, "date": row["record_timestamp"].date()} for row in rows.to_pylist()]
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in found], schema=schema)


def _packed_row(kind: str, rows: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"kind": kind, "rows": rows, "data": data}], schema=_SCHEMA)


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
