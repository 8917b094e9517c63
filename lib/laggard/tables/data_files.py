"""Data files of the Delta tables, written and read with Arrow on the driver or executor.

This is the process that has the rows.

A file belongs to no table version until a commit names it (`tables/delta.py`); VACUUM deletes
those that none names.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from laggard.errors import DAMAGED, INTERNAL, LaggardError
from laggard.files import is_local, open_uri
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import Table

# never negative: the tables' CHECK, which the writer of a file has to keep
CHECKED = ("lag", "partition")
INDEXED_COLUMNS = 12  # of the append tables; the overwritten ones are read whole
_LONGEST_STATISTIC = 256
_GROUP_BYTES = 64_000_000  # in memory, of a row group of a merged file
_ROWS_AT_A_TIME = 200_000  # of a merge: about 100 MB of memory
_MERGED, _PARTIAL = "merged", "merging"  # how the names of whole and of partly written files begin
_INDEXABLE = (pa.types.is_integer, pa.types.is_string, pa.types.is_timestamp)


@dataclass(frozen=True, slots=True)
class DataFile:
    """A written file, as Delta's `add` action wants it; `path` is relative to the table."""

    path: str
    size: int
    partition_values: dict[str, str]
    modification_time: int
    stats: str

    def to_json(self) -> str:
        """Return it as JSON, to send it from an executor to the driver."""
        return json.dumps(asdict(self))


def write_files(
    table_path: str, table: Table, rows: pa.Table, label: str = "part"
) -> list[DataFile]:
    """Write rows (the table's Arrow schema) as zstd Parquet: one file, or one per date.

    A table by date has one file for each date.
    """
    check_rows(table, rows)
    if table.overwritten:
        return [_write(table_path, table, rows, {}, label)]
    files = []
    for date in pc.unique(rows["date"]).to_pylist():
        of_date = rows.filter(pc.equal(rows["date"], pa.scalar(date, pa.date32())))
        files.append(
            _write(
                table_path, table, of_date.drop_columns("date"), {"date": date.isoformat()}, label
            )
        )
    return files


def read_files(table: Table, uris: Iterable[str], *, is_whole: bool = False) -> pa.Table:
    """Return all rows of files; a column that an older file lacks is null.

    The partition column is null in all.

    If the files are to be whole, a column that is never null must be in them: KeyError.
    """
    schema = arrow_schema(table)
    required = {column.name for column in table.columns if not column.null} - {"date"}
    tables = [schema.empty_table()]
    for uri in uris:
        system, where = open_uri(uri)
        with system.open_input_file(where) as source:
            rows = pq.ParquetFile(source).read()
        if is_whole and (absent := required - set(rows.column_names)):
            raise KeyError(*absent)
        tables.append(_in_schema(rows, schema))
    return pa.concat_tables(tables)


def merge_files(
    table_path: str, schema: pa.Schema, paths: Iterable[str], values: dict[str, str]
) -> DataFile:
    """Write the rows of some files as one, with only a part of them in memory.

    The file has the table's Arrow schema.
    """
    schema = pa.schema([field for field in schema if field.name not in values])
    uris = [f"{table_path}/{source}" for source in paths]
    for uri in uris:
        _check_columns(uri, schema)
    path, stats, size = _new_path(table_path, values, _MERGED), [], 0
    system, target = open_uri(f"{table_path}/{path}")
    where = target
    if is_local(table_path):  # a bucket shows whole objects only
        where = _PARTIAL.join(target.rsplit(_MERGED, 1))
    try:
        with system.open_output_stream(where) as sink:
            with pq.ParquetWriter(sink, schema, compression="zstd", store_schema=False) as writer:
                for rows in _joined(_parts(uris, schema)):
                    writer.write_table(rows)
                    stats.append({"numRecords": rows.num_rows} | _bounds(rows))
            size = sink.tell()
        if where != target:
            system.move(where, target)
    except BaseException:
        with suppress(OSError):  # each retry would leave one
            system.delete_file(where)
        raise
    return DataFile(path, size, values, int(time.time() * 1000), json.dumps(_merged(stats)))


def remove_partial_files(table_path: str) -> None:
    """Remove files left by a process that was killed while it merged.

    A process still at it fails at its rename.
    """
    if is_local(table_path):
        for path in Path(table_path).glob(f"*/{_PARTIAL}-*"):
            path.unlink(missing_ok=True)


def _joined(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Join parts to row groups.

    Of a group for each small file the footers would be larger than the rows.
    """
    held: list[pa.Table] = []
    size = 0
    for part in parts:
        if held and size + part.nbytes > _GROUP_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield pa.concat_tables(held)


def _check_columns(uri: str, schema: pa.Schema) -> None:
    system, where = open_uri(uri)
    with system.open_input_file(where) as source:
        unknown = set(pq.read_schema(source).names) - set(schema.names)
    if unknown:
        raise LaggardError(
            f"{uri} has columns that its table has not",
            cause=f"{', '.join(sorted(unknown))}: laggard writes none that it has not added to the "
            "table before",
            fix="none needed: the file stays as it is, and other dates are compacted",
            exit_code=DAMAGED,
        )


def _parts(uris: Iterable[str], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of files, part by part; a column that one lacks is null."""
    for uri in uris:
        system, where = open_uri(uri)
        with system.open_input_file(where) as source:
            for batch in pq.ParquetFile(source).iter_batches(_ROWS_AT_A_TIME, use_threads=False):
                yield _in_schema(pa.Table.from_batches([batch]), schema)


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    known = set(rows.column_names)
    columns = []
    for field in schema:
        if field.name in known:
            columns.append(rows[field.name].cast(field.type))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.table(columns, schema=schema)


def _new_path(table_path: str, values: dict[str, str], label: str) -> str:
    """Return the path in the table of a new file, whose folder exists."""
    # dates: nothing to encode
    folder = "/".join(f"{name}={value}" for name, value in values.items())
    if folder and is_local(table_path):
        system, where = open_uri(f"{table_path}/{folder}")
        system.create_dir(where, recursive=True)
    return f"{folder}/{label}-{uuid.uuid4()}.parquet".lstrip("/")


def _write(
    table_path: str, table: Table, rows: pa.Table, values: dict[str, str], label: str
) -> DataFile:
    path = _new_path(table_path, values, label)
    system, where = open_uri(f"{table_path}/{path}")
    with system.open_output_stream(where) as sink:
        pq.write_table(rows, sink, compression="zstd", store_schema=False)
        size = sink.tell()
    stats = {"numRecords": rows.num_rows}
    if not table.overwritten:
        stats |= _bounds(rows)
    return DataFile(path, size, values, int(time.time() * 1000), json.dumps(stats))


def check_rows(table: Table, rows: pa.Table) -> None:
    """Raise where a row breaks the table's CHECK, which Delta leaves to the writer of a file."""
    for name in CHECKED:
        lowest = None
        if name in table.names:
            lowest = pc.min(rows[name]).as_py()
        if lowest is not None and lowest < 0:
            raise LaggardError(
                f"a row for {table.name} has {name} = {lowest}, which is impossible",
                cause="an error in laggard",
                fix="report it with the job's log; nothing of this batch is published",
                exit_code=INTERNAL,
            )


def _bounds(rows: pa.Table) -> dict[str, Any]:
    """Return the smallest and largest values, by which readers skip files (Delta statistics).

    The Delta protocol has these per file.
    """
    stats: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in rows.column_names[:INDEXED_COLUMNS]:
        column = rows[name]
        if not any(is_type(column.type) for is_type in _INDEXABLE):
            continue
        stats["nullCount"][name] = column.null_count
        bounds = pc.min_max(column).as_py()
        if (
            bounds["min"] is None
            or len(str(bounds["max"])) + len(str(bounds["min"])) > _LONGEST_STATISTIC
        ):
            continue
        stats["minValues"][name] = _statistic(bounds["min"], add_us=0)
        # a bound may be too large, never too small
        stats["maxValues"][name] = _statistic(bounds["max"], add_us=999)
    return stats


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the statistics of a file's parts; a bound that a part leaves out is unknown."""
    stats: dict[str, Any] = {"numRecords": sum(part["numRecords"] for part in parts)}
    stats |= {"minValues": {}, "maxValues": {}, "nullCount": Counter()}
    for part in parts:
        stats["nullCount"].update(part["nullCount"])
    for name in stats["nullCount"]:
        with_values = [part for part in parts if part["nullCount"][name] < part["numRecords"]]
        for kind, choose in (("minValues", min), ("maxValues", max)):
            bounds = [part[kind].get(name) for part in with_values]
            if bounds and None not in bounds:
                stats[kind][name] = choose(bounds)
    return stats


def _statistic(value: Any, add_us: int) -> Any:
    if not isinstance(value, datetime):
        return value
    value += timedelta(microseconds=add_us)
    return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
