"""Making the Delta tables and writing to them so that a re-run changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from operator import attrgetter

import pyarrow as pa
from deltalake import DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction

from laggard.files import locate
from laggard.storage import delta_options
from laggard.tables.arrow import arrow_schema
from laggard.tables.data_files import CHECKED, INDEXED_COLUMNS, DataFile, write_files
from laggard.tables.lease import Lease, fenced, signed
from laggard.tables.readers import load_table, table_uri
from laggard.tables.schema.schemas import EACH_TICK, TABLES, Table

_PROPERTIES = {
    # nothing that would need more than reader version 1: every engine can read the tables
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "100",
    # a commit that did it could remove the version that readers are at, which only
    # tables/upkeep/maintenance.py knows
    "delta.enableExpiredLogCleanup": "false",
    "delta.logRetentionDuration": "interval 2 days",
}
# every commit lists the log and goes through the files: 10 µs an entry, 7 µs a file, 0.5 µs a
# removed one
_EACH_TICK = {
    "delta.logRetentionDuration": "interval 6 hours",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}
_OVERWRITTEN = {
    # read whole each tick: statistics would cost more than they save
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}
_APPENDED = {"delta.dataSkippingNumIndexedCols": str(INDEXED_COLUMNS)}


def create_tables(
    root: str, tables: Iterable[Table] = tuple(TABLES.values()), lease: Lease | None = None
) -> None:
    """Create the missing tables, with types, comments, constraint and reader version 1.

    A table of an older version gets the columns that it lacks; its rows have nothing in them. By
    delta-rs, before Spark starts: 20 ms a table where a cold JVM needs two seconds.
    """
    for table in tables:
        path = table_uri(root, table.name)
        if DeltaTable.is_deltatable(path, delta_options(path)):
            delta = load_table(path)
            _add_columns(delta, table, lease)
            _set_properties(delta, table, lease)
            continue
        if lease is not None:
            lease.check()
        created = DeltaTable.create(
            path,
            storage_options=delta_options(path),
            schema=_commented(table),
            description=table.comment,
            partition_by=None if table.overwritten else ["date"],
            configuration=_properties(table),
            commit_properties=signed(lease),
        )
        # to Spark's Delta a check that is unknown is a check that failed
        checked = [f"({name} IS NULL OR {name} >= 0)" for name in CHECKED if name in table.names]
        if checked:
            with fenced(created, lease):
                created.alter.add_constraint(
                    {"not_negative": " AND ".join(checked)}, commit_properties=signed(lease)
                )


def _add_columns(delta: DeltaTable, table: Table, lease: Lease | None) -> None:
    known = set(map(attrgetter("name"), delta.schema().fields))
    declared = Schema.from_arrow(_commented(table)).fields
    missing = [field for field in declared if field.name not in known]
    if missing:
        with fenced(delta, lease):
            delta.alter.add_columns(missing, commit_properties=signed(lease))


def _properties(table: Table) -> dict[str, str]:
    properties = _PROPERTIES
    if table.name in EACH_TICK:
        properties = properties | _EACH_TICK
    return properties | (_OVERWRITTEN if table.overwritten else _APPENDED)


def _set_properties(delta: DeltaTable, table: Table, lease: Lease | None) -> None:
    known = delta.metadata().configuration
    changed = {
        name: value for name, value in _properties(table).items() if known.get(name) != value
    }
    if changed:
        with fenced(delta, lease):
            delta.alter.set_table_properties(changed, commit_properties=signed(lease))


def _commented(table: Table) -> pa.Schema:
    """Return the Arrow schema with each column's comment, which Delta stores."""
    fields = []
    for column, field in zip(table.columns, arrow_schema(table), strict=True):
        comment = column.comment
        if column.null:
            comment += f"; null: {column.null}"
        fields.append(field.with_metadata({"comment": comment}))
    return pa.schema(fields)


class Writer:
    """Commits of one checkpoint; a batch already recorded for this app id is not committed again.

    By delta-rs in the driver: 5 ms a commit where Spark's takes 350 (docs/decisions/0001).
    """

    def __init__(self, root: str, checkpoint_id: str, lease: Lease | None = None) -> None:
        self.root = locate(root)
        self._checkpoint_id = checkpoint_id
        self._lease = lease
        self._tables: dict[str, DeltaTable] = {}
        self._options = delta_options(self.root)

    def write(self, table: Table, rows: pa.Table, batch_id: int) -> int:
        """Write rows that the driver holds and commit them; gives the table's version after it."""
        return self.commit(
            table, write_files(table_uri(self.root, table.name), table, rows), batch_id
        )

    def commit(self, table: Table, files: Sequence[DataFile], batch_id: int) -> int:
        """Append files, or replace the rows with them, once per batch; return the version.

        It is the table's version after the commit.
        """
        delta = self._newest(table.name)
        if self._recorded(table.name) < batch_id:
            with fenced(delta, self._lease):
                partition_by = None if table.overwritten else ["date"]
                delta.create_write_transaction(
                    [AddAction(**asdict(file), data_change=True) for file in files],
                    mode="overwrite" if table.overwritten else "append",
                    schema=delta.schema(),
                    partition_by=partition_by,
                    commit_properties=signed(
                        self._lease, Transaction(self._app_id(table.name), batch_id)
                    ),
                )
        return self.version(table.name)

    def has_written(self, batch_id: int) -> bool:
        """Return True if some table has rows of this or a later batch, published or not."""
        # the diagnosis numbers its commits by itself
        of_job = (name for name, table in TABLES.items() if not table.is_of_diagnosis)
        return any(self._recorded(name) >= batch_id for name in of_job)

    def _recorded(self, table: str) -> int:
        """Return the newest batch of this checkpoint that a table has; -1 without any."""
        recorded = self._newest(table).transaction_version(self._app_id(table))
        if recorded is None:
            return -1
        return int(recorded)

    def _app_id(self, table: str) -> str:
        return f"laggard/{self._checkpoint_id}/{table}"

    def version(self, table: str) -> int:
        """Return the newest version of a table."""
        return int(self._newest(table).version())

    def rows(self, table: str, version: int | None = None) -> int:
        """Return a table's row count at a version, or the newest, from file statistics."""
        if version is None:
            return int(self._newest(table).count())
        return int(self._at(table, version).count())

    def file_uris(self, table: str, version: int) -> list[str]:
        """Return the URIs of the data files of a table's version."""
        named, uri = self._at(table, version), table_uri(self.root, table)
        # not delta-rs' own URIs, which are encoded even where they are local paths
        return [f"{uri}/{path}" for path in pa.table(named.get_add_actions())["path"].to_pylist()]

    def _at(self, table: str, version: int) -> DeltaTable:
        newest = self._newest(table)
        if newest.version() == version:
            return newest
        return load_table(table_uri(self.root, table), version)

    def _newest(self, table: str) -> DeltaTable:
        if (options := delta_options(self.root)) != self._options:  # the access keys were replaced
            self._options, self._tables = options, {}
        delta = self._tables.get(table) or load_table(table_uri(self.root, table))
        self._tables[table] = delta
        delta.update_incremental()  # maintenance commits too
        return delta
