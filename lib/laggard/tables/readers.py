"""Reading the Delta tables without Spark or a JVM, at a version or as they are now."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow.dataset import (
    Dataset,
    Expression,
    FileSystemDataset,
    ParquetReadOptions,
    field,
    get_partition_keys,
)
from pyarrow.fs import SubTreeFileSystem

from laggard.errors import DAMAGED, NOT_FOUND, LaggardError
from laggard.files import is_local, locate, open_uri
from laggard.storage import delta_options, of_store, without_answer
from laggard.tables.arrow import arrow_type
from laggard.tables.schema.schemas import TABLES

_FRAME = re.compile(r"\d+:")  # of a native backtrace
_LONGEST_CAUSE = 500


class TableMissing(LaggardError):  # noqa: N818 - a fact, and a reason of /-/ready
    """No Delta table at the place."""

    def __init__(self, uri: str, cause: str) -> None:
        super().__init__(
            f"no table at {uri}",
            cause=cause,
            fix="laggard run creates the tables; laggard config show tells where they are "
            "expected (job.tables)",
            exit_code=NOT_FOUND,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what.removeprefix("no table at "), self.cause))


class TableUnreadable(LaggardError):  # noqa: N818 - a fact, and a reason of /-/ready
    """The table is there and cannot be read at the version wanted."""

    def __init__(self, uri: str, cause: str) -> None:
        super().__init__(
            f"cannot read the table at {uri}",
            cause=cause,
            fix="check that this user may read the files; laggard doctor names what is damaged",
            exit_code=DAMAGED,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.what.removeprefix("cannot read the table at "), self.cause))


def table_uri(root: str, name: str) -> str:
    """Return the URI of a table of this root, in the form of delta-rs, Arrow and Spark."""
    return f"{locate(root).rstrip('/')}/{name}"


def open_table(root: str, name: str, version: int | None = None) -> DeltaTable:
    """Return the Delta table, at a version or as it is now."""
    uri = table_uri(root, name)
    with naming_errors(uri, version):
        if is_local(uri) and not Path(uri, "_delta_log").is_dir():
            is_file = Path(locate(root)).is_file()
            cause = f"{root} is a file" if is_file else "there is no _delta_log folder"
            raise TableMissing(uri, cause)
        return load_table(uri, version)


def load_table(uri: str, version: int | None = None) -> DeltaTable:
    """Open the table at a URI, for writers.

    Errors are the library's own, which `failures` gives a class.
    """
    return DeltaTable(uri, version=version, storage_options=delta_options(uri))


def has_table(root: str, name: str) -> bool:
    """Return True if there is a Delta table of this name."""
    uri = table_uri(root, name)
    with naming_errors(uri):
        return DeltaTable.is_deltatable(uri, delta_options(uri))


def read_table(
    root: str, name: str, version: int, columns: Sequence[str] | None = None
) -> pa.Table:
    """Return all rows of a table at a version; without `columns`, all declared columns."""
    wanted = list(columns or TABLES[name].names)
    return read_declared(open_table(root, name, version), root, name, wanted)


def read_declared(
    table: DeltaTable, root: str, name: str, columns: Sequence[str], files: str | None = None
) -> pa.Table:
    """Return rows with these columns; a nullable column missing in an older table is null.

    The table is that of an older job.
    """
    uri = table_uri(root, name)
    rows = read_known(table, uri, columns, files=files or "")
    declared = {
        column.name: arrow_type(column.type) for column in TABLES[name].columns if column.null
    }
    absent = [column for column in columns if column not in rows.column_names]
    if damaged := [column for column in absent if column not in declared]:
        raise TableUnreadable(
            uri, f"version {table.version()}: columns missing: {', '.join(damaged)}"
        )
    for column in absent:
        rows = rows.append_column(column, pa.nulls(rows.num_rows, declared[column]))
    return rows.select(list(columns))


def read_newest(root: str, name: str, version: int, columns: Sequence[str]) -> pa.Table:
    """Return rows of an append table's newest batch, without reading the older files."""
    table = open_table(root, name, version)
    with naming_errors(table_uri(root, name), version):
        bounds = batch_bounds(table)
        predicate = f"batch_id >= {bounds[0]}" if bounds else newest_date(table)
    wanted = [*columns, *({"batch_id"} - set(columns))]
    rows = read_declared(table, root, name, wanted, predicate)
    return rows.filter(pc.equal(rows["batch_id"], pc.max(rows["batch_id"]))).select(list(columns))


def batch_bounds(table: DeltaTable) -> list[int]:
    """Return the files' largest batch ids, newest first.

    It is empty when a file of the newest date has no statistics.
    """
    actions = pa.table(table.get_add_actions(flatten=True))
    if "max.batch_id" not in actions.column_names or not actions.num_rows:
        return []
    newest = actions.filter(pc.equal(actions["partition.date"], pc.max(actions["partition.date"])))
    if newest["max.batch_id"].null_count:
        return []
    bounds = pc.unique(actions["max.batch_id"]).drop_null()
    return list(bounds.take(pc.sort_indices(bounds, sort_keys=[("", "descending")])).to_pylist())


def newest_date(table: DeltaTable) -> str:
    """Return a predicate for the files of the newest date; empty for an empty table."""
    dates = dates_of(table)
    if not dates:
        return ""
    return f"date >= '{dates[-1]}'"


def dates_of(table: DeltaTable) -> list[str]:
    """Return the dates of an append table, in order."""
    with naming_errors(table.table_uri, table.version()):
        return sorted({str(partition["date"]) for partition in table.partitions()})


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of files, read again each time they are asked for."""

    table: DeltaTable
    uri: str
    dataset: Dataset
    column_names: Sequence[str]
    condition: Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(list(map(self.dataset.schema.field, self.column_names)))

    def select(self, columns: Sequence[str]) -> Scan:
        """Return a scan of the same rows with these columns."""
        return replace(self, column_names=columns)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches, in the same order each time.

        There is never room for all at once.
        """
        # what is read ahead is memory to be found first, and only from afar is it worth that
        ahead = {"batch_readahead": 2, "fragment_readahead": 1} if is_local(self.uri) else {}
        with naming_errors(self.uri, self.table.version()):
            scanner = self.dataset.scanner(
                columns=self.column_names, filter=self.condition, **ahead
            )
            yield from scanner.to_batches()


def scan_known(
    table: DeltaTable,
    uri: str,
    columns: Sequence[str],
    condition: Expression | None = None,
    files: str = "",
    repeating: Collection[str] = (),
) -> Scan:
    """Return a scan of the rows that meet a condition, with the columns the table has.

    `files` is what the files' statistics can decide, as SQL; columns of `repeating` text come as
    dictionaries, which is several times as fast.
    """
    with naming_errors(uri, table.version()):
        system, path = open_uri(uri)
        # Arrow's own file system: delta-rs' runs in Python, and Arrow's threads may still ask it
        # when Python ends
        native = SubTreeFileSystem(path, system)
        options = ParquetReadOptions(dictionary_columns=set(repeating))
        dataset = _with_known_bounds(
            table.to_pyarrow_dataset(
                filesystem=native,
                file_pruning_predicate=files or None,
                parquet_read_options=options,
            )
        )
        names = [name for name in columns if name in dataset.schema.names]
        return Scan(table, uri, dataset, names, condition)


def _with_known_bounds(dataset: FileSystemDataset) -> FileSystemDataset:
    """Return the same files, without their statistics if a bound is null.

    delta-rs gives null for a bound that it cannot hold: a time outside the calendar, bytes that are
    no text. Nothing compares with null, so Arrow would leave the file out, with the rows of all
    groups.
    """
    fragments = list(dataset.get_fragments())
    if not any("null[" in str(fragment.partition_expression) for fragment in fragments):
        return dataset
    files = []
    for fragment in fragments:
        date = get_partition_keys(fragment.partition_expression).get("date")
        files.append(
            fragment.format.make_fragment(
                fragment.path, fragment.filesystem, date and field("date") == date
            )
        )
    return FileSystemDataset(files, dataset.schema, dataset.format, dataset.filesystem)


def read_known(
    table: DeltaTable,
    uri: str,
    columns: Sequence[str],
    condition: Expression | None = None,
    files: str = "",
) -> pa.Table:
    """Return the rows of `scan_known` as a table."""
    rows = scan_known(table, uri, columns, condition, files)
    with naming_errors(uri, table.version()):
        return rows.dataset.to_table(columns=rows.column_names, filter=condition)


@contextmanager
def naming_errors(uri: str, version: int | None = None) -> Iterator[None]:
    """Raise library errors on a table read as TableMissing or TableUnreadable, with its place."""
    try:
        yield
    except (DeltaError, OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        # otherwise the log has lost that version
        if isinstance(error, TableNotFoundError) and version is None:
            raise TableMissing(uri, sentence_of(error)) from error
        if (failure := of_store(error)) is not None:
            raise failure from error
        at = "" if version is None else f"version {version}: "
        raise TableUnreadable(uri, at + sentence_of(error)) from error


def sentence_of(error: Exception) -> str:
    """Return the error's text in one line.

    delta-rs colours some texts and adds a native backtrace to others.
    """
    text = without_answer(str(error))
    return " ".join(takewhile(lambda word: not _FRAME.fullmatch(word), text.split()))[
        :_LONGEST_CAUSE
    ]
