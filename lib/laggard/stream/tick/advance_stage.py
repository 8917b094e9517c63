"""Execution of `advance` on every executor, with all rows of its groups, by `mapInArrow`.

A task reads the state of its shard of the groups from the status tables' files and writes files of
every table; only the files' names travel to the driver, which commits them. A small batch on few
groups is one task without a shuffle.
"""

from __future__ import annotations

import functools
import gc
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard import storage
from laggard.config.policy import Policies
from laggard.failures import carried
from laggard.lag.arrays import one_chunk
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.rebalance.groups import Listing
from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters
from laggard.sources.snapshot import Snapshot, pack, unpack
from laggard.stream.tick.admission import admit, forget
from laggard.stream.tick.advance import Poll, advance
from laggard.stream.tick.commit_times import CommitTimes, commit_times
from laggard.stream.tick.decode import decode_stage
from laggard.stream.tick.decoded import (
    DECODED,
    SCHEMA,
    groups_of,
    of_kind,
    polled_batch,
    read_batch,
)
from laggard.stream.tick.quarantine import Failed, Inputs, Quarantine, advance_apart, join
from laggard.stream.tick.quarantined_rows import hold, recovery_events, unseen_ends
from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import DataFile, check_rows, read_files, write_files
from laggard.tables.readers import table_uri
from laggard.tables.schema import schemas
from laggard.tables.schema.admin_source import hide_unknown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# a table and one of its new data files, or the summary of a task
RESULT = "kind string, data string"
SUMMARY = "summary"
STATUS_TABLES = ("partition_status", "group_status")  # the state
ROWS_PER_SHARD = 50_000  # state rows below which a second task costs more than it saves
_RESULT_SCHEMA = pa.schema([("kind", pa.string()), ("data", pa.string())])

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class State:
    """Location of the tables, the status files to start from, and the number of group shards.

    `rooms`: rows that a status table may get, in all shards together.
    """

    root: str
    files: Mapping[str, Sequence[str]]
    shards: int
    rooms: Mapping[str, int] = field(default_factory=dict)

    def own(self, shard: int) -> Callable[[pa.ChunkedArray], pa.Array]:
        """Return the function that gives True for names of a shard's groups."""
        return lambda groups: pa.array(shards_of(groups, self.shards) == shard)

    def read(self, table: schemas.Table, shard: int) -> pa.Table:
        """Return the rows of a shard's groups."""
        names = {uri: uri.rpartition("/")[2] for uri in self.files.get(table.name, ())}
        own = [
            uri for uri, name in names.items() if name.startswith(f"{_label(shard, self.shards)}-")
        ]
        cut_otherwise = [uri for uri, name in names.items() if f"-of-{self.shards}-" not in name]
        rest = read_files(table, cut_otherwise)
        return pa.concat_tables(
            [read_files(table, own), rest.filter(self.own(shard)(rest["group"]))]
        )

    def write(self, table: schemas.Table, rows: pa.Table, shard: int) -> Sequence[DataFile]:
        """Write rows of a shard's groups as files; none without a row.

        No table version names these files yet.
        """
        if not rows.num_rows:
            return ()
        return write_files(
            table_uri(self.root, table.name), table, rows, _label(shard, self.shards)
        )

    def room(self, table: schemas.Table, shard: int) -> int:
        """Return the number of rows that a shard may add to those that it has."""
        share, rest = divmod(self.rooms[table.name], self.shards)
        return share + (shard < rest)


def advance_frame(
    records: DataFrame,
    names: NameFilter,
    snapshot: Snapshot,
    tick: Tick,
    state: State,
    readers: int,
    policies: Policies | None = None,
    limits: RebalanceParameters = DEFAULTS,
) -> DataFrame:
    """Return `RESULT` rows for records, to be collected once.

    Record columns are partition, offset, timestamp, key and value.
    """
    decode = decode_stage(names, with_edges=tick.is_caught_up)
    advance = advance_stage(snapshot, tick, state, policies, names, limits)
    if readers == state.shards == 1:
        return records.coalesce(1).mapInArrow(
            carrying(lambda batches: advance(decode(batches))), RESULT
        )
    sharded = carrying(_with_shard(decode, state.shards))
    decoded = records.coalesce(readers).mapInArrow(sharded, f"{DECODED}, shard int")
    return (
        decoded.repartitionById(state.shards, "shard")
        .drop("shard")
        .mapInArrow(carrying(advance), RESULT)
    )


def carrying(stage: Stage) -> Stage:
    """Wrap the function with the driver's storage settings; its failures keep their class.

    They keep it up to the driver.
    """
    chosen = storage.settings()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with carried():
            storage.use(chosen)
            yield from stage(batches)

    return run


def advance_stage(
    snapshot: Snapshot,
    tick: Tick,
    state: State,
    policies: Policies | None = None,
    names: NameFilter | None = None,
    limits: RebalanceParameters = DEFAULTS,
) -> Stage:
    """Return the `mapInArrow` function that advances all groups of a shard together.

    It does so by their decoded rows.
    """
    packed, names = json.dumps(pack(snapshot)), names or NameFilter()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_modules()
        decoded = pa.Table.from_batches(batches, schema=SCHEMA)
        shard = 0
        if state.shards > 1:
            shard = _task_number()
        snapshot = unpack(json.loads(packed))
        before = (
            state.read(schemas.PARTITION_STATUS, shard),
            state.read(schemas.GROUP_STATUS, shard),
        )
        if tick.polls_commits:
            batch = polled_batch(snapshot, before[0], names, tick, state.own(shard))
        else:
            batch = read_batch(decoded)
        inputs, corrections = Inputs(*before, batch), 0
        # else their own tombstones may be still to come
        if tick.is_caught_up and snapshot.ended_groups:
            inputs, corrections = forget(inputs, snapshot.ended_groups)
        ended = unseen_ends(before[1], inputs.group_status, tick)
        rooms = state.room(schemas.PARTITION_STATUS, shard), state.room(schemas.GROUP_STATUS, shard)
        inputs, shed = admit(inputs, *rooms)
        poll = Poll(snapshot.positions, _listing(snapshot), snapshot.probes)
        tables, failed = advance_groups(inputs, poll, tick, policies, limits)
        shed += _uncommitted(tables["group_status"])
        tables = join([tables, ended])
        tables["dead_letters"] = _dead_letters(of_kind(decoded, "dead_letter"), tick)
        for name, rows in tables.items():
            yield from (
                _result(name, file.to_json())
                for file in state.write(schemas.TABLES[name], rows, shard)
            )
        counts = {"shed_keys": shed, "corrections": corrections}
        yield _result(
            SUMMARY,
            json.dumps(_summary(decoded) | counts | {"quarantine": asdict(Quarantine.of(failed))}),
        )

    return run


def advance_groups(
    inputs: Inputs,
    poll: Poll,
    tick: Tick,
    policies: Policies | None,
    limits: RebalanceParameters = DEFAULTS,
) -> tuple[dict[str, pa.Table], Sequence[Failed]]:
    """Return writable rows per table after a tick, and the groups whose tick raised.

    These groups are held back, and named.
    """

    def run(part: Inputs) -> dict[str, pa.Table]:
        tables = advance(
            part.partition_status, part.group_status, part.batch, poll, tick, policies, limits
        )
        for name, rows in tables.items():
            check_rows(schemas.TABLES[name], rows)
        return tables

    settled = advance_apart(inputs, run)
    tables = settled.tables
    if settled.failed or settled.recovered:
        held = hold(inputs, settled.failed, poll.positions, tick)
        tables = join([tables, held, recovery_events(settled.recovered, tick)])
    return hide_unknown(tables) if tick.polls_commits else tables, settled.failed


@functools.cache
def spare_modules() -> None:
    """Exclude modules from garbage collection, as they live as long as the worker.

    Collection took a third of a big group's tick.
    """
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Advanced:
    """Results of a batch's tasks: data files by table, count rows, slowest decoding in seconds."""

    files: Mapping[str, Sequence[DataFile]]
    counts: Sequence[Mapping[str, Any]]
    decode_seconds: float
    quarantine: Quarantine
    commit_times: Mapping[int, CommitTimes]  # by offsets partition
    shed_keys: int  # new partitions that were refused
    corrections: int  # rows of groups that ended unseen


def gather(results: Iterable[Row]) -> Advanced:
    """Merge the tasks' rows of `RESULT`; status tables are there even without rows."""
    files: dict[str, list[DataFile]] = {name: [] for name in STATUS_TABLES}
    counts: list[Mapping[str, Any]] = []
    decode_seconds, quarantine = 0.0, Quarantine()
    times: dict[int, CommitTimes] = {}
    shed_keys = corrections = 0
    for kind, data in results:
        if kind == SUMMARY:
            summary = json.loads(data)
            counts += summary["counts"]
            decode_seconds = max(decode_seconds, summary["decode_seconds"])
            quarantine += Quarantine.from_plain(summary["quarantine"])
            shed_keys += summary["shed_keys"]
            corrections += summary["corrections"]
            for number, *values in summary["commit_times"]:
                times[number] = times.get(number, CommitTimes()) + CommitTimes(*values)
        else:
            files.setdefault(kind, []).append(DataFile(**json.loads(data)))
    return Advanced(files, counts, decode_seconds, quarantine, times, shed_keys, corrections)


def _listing(snapshot: Snapshot) -> Listing:
    coordinators = {
        row["offsets_partition"]: row["coordinator"]
        for row in snapshot.offsets_partitions.to_pylist()
    }
    return Listing(
        {row["group"]: row for row in snapshot.groups.to_pylist()},
        coordinators,
        is_fresh=snapshot.groups.num_rows > 0,
        unlisted=frozenset([None, *snapshot.unlisted_brokers]),
        errors={row["group"]: row["error"] for row in snapshot.answers.to_pylist()},
    )


def _with_shard(stage: Stage, shards: int) -> Stage:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in stage(batches):
            shard = pa.array(shards_of(groups_of(batch), shards), pa.int32())
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, shard], [*batch.schema.names, "shard"]
            )

    return run


def shards_of(
    groups: pa.Array | pa.ChunkedArray, shards: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return each group name's shard, by CRC-32, the same on every machine.

    Rows without a group go to shard 0.
    """
    encoded = pc.dictionary_encode(pc.fill_null(one_chunk(groups), ""))
    shard_of_name = [
        zlib.crc32(name.encode()) % shards if name else 0 for name in encoded.dictionary.to_pylist()
    ]
    numbers: np.ndarray[Any, np.dtype[np.int64]] = np.array(shard_of_name, np.int64)[
        encoded.indices.to_numpy()
    ]
    return numbers


def _label(shard: int, shards: int) -> str:
    return f"part-{shard}-of-{shards}"


def _task_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise RuntimeError("the advance stage runs inside a Spark task only")
    return context.partitionId()


def _summary(decoded: pa.Table) -> dict[str, Any]:
    """Record counts of the task, its commits by offsets partition, and how long decoding took."""
    spent_us = pc.max(of_kind(decoded, "timing")["spent_us"]).as_py() or 0
    return {
        "commit_times": commit_times(of_kind(decoded, "commit")),
        "counts": of_kind(decoded, "count").to_pylist(),
        "decode_seconds": spent_us / 1e6,
    }


def _uncommitted(groups: pa.Table) -> int:
    """Return the number of partitions without a commit that got no row in this tick."""
    named = pc.sum(pc.list_value_length(groups["refused"])).as_py() or 0
    return (pc.sum(groups["shed_keys"]).as_py() or 0) - named


def _dead_letters(rows: pa.Table, tick: Tick) -> pa.Table:
    given = {"cluster": tick.cluster, "batch_id": tick.batch_id}
    letters = [
        {**row, **given, "date": (row["record_timestamp"] or tick.now).date()}
        for row in rows.to_pylist()
        if not tick.is_written(row)
    ]
    return to_arrow(schemas.DEAD_LETTERS, letters)


def _result(kind: str, data: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"kind": kind, "data": data}], schema=_RESULT_SCHEMA)
