"""Making the Delta tables and writing to them so that a re-run changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable

from laggard.tables.arrow import arrow_schema
from laggard.tables.schemas import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKED = ("lag", "partition")  # never negative
_PROPERTIES = {
    # nothing that would need more than reader version 1: every engine can read the tables
    "delta.enableDeletionVectors": "false",
    "delta.checkpointInterval": "100",
}
_OVERWRITTEN = {
    "delta.dataSkippingNumIndexedCols": "0",  # read whole each tick: statistics would cost more than they save
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.logRetentionDuration": "interval 2 days",
}
_APPENDED = {"delta.logRetentionDuration": "interval 7 days", "delta.dataSkippingNumIndexedCols": "12"}


def path_of(root: str, table: str) -> str:
    """Where a table of this root lives."""
    return f"{root.rstrip('/')}/{table}"


def create_tables(root: str) -> None:
    """Create every table that is not there, with types, comments, constraint and reader version 1.

    By delta-rs, before Spark starts: 20 ms a table where a cold JVM needs two seconds. From then on only Spark writes.
    """
    for table in TABLES.values():
        path = path_of(root, table.name)
        if DeltaTable.is_deltatable(path):
            continue
        created = DeltaTable.create(
            path,
            schema=_commented(table),
            description=table.comment,
            partition_by=None if table.overwritten else ["date"],
            configuration={**_PROPERTIES, **(_OVERWRITTEN if table.overwritten else _APPENDED)},
        )
        # to Spark's Delta a check that is unknown is a check that failed
        checked = [f"({name} IS NULL OR {name} >= 0)" for name in CHECKED if name in table.names]
        if checked:
            created.alter.add_constraint({"not_negative": " AND ".join(checked)})


def _commented(table: Table) -> pa.Schema:
    """The Arrow schema with each column's comment, which ends up in Delta."""
    comments = {
        column.name: f"{column.comment}; null: {column.null}" if column.null else column.comment
        for column in table.columns
    }
    return pa.schema([field.with_metadata({"comment": comments[field.name]}) for field in arrow_schema(table)])


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes of one checkpoint: Delta skips a write whose batch it has already recorded for this app id."""

    spark: SparkSession
    root: str
    checkpoint_id: str

    def write(self, table: Table, rows: DataFrame, batch_id: int) -> int:
        """Append or overwrite, once per batch; gives the table's version after it."""
        path = path_of(self.root, table.name)
        (
            rows.write.format("delta")
            .mode("overwrite" if table.overwritten else "append")
            .option("txnAppId", f"laggard/{self.checkpoint_id}/{table.name}")
            .option("txnVersion", str(batch_id))
            .save(path)
        )
        return self.version(table.name)

    def read(self, table: str, version: int | None = None) -> DataFrame:
        """The table, at a version or as it is."""
        reader = self.spark.read.format("delta")
        if version is not None and version != self.version(table):  # the newest needs no time travel, which is slower
            reader = reader.option("versionAsOf", str(version))
        return reader.load(path_of(self.root, table))

    def version(self, table: str) -> int:
        """The newest version; this JVM is the only writer, so what it knows is true."""
        log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]  # noqa: SLF001
        path = path_of(self.root, table)
        return int(log.forTable(self.spark._jsparkSession, path).unsafeVolatileSnapshot().version())  # noqa: SLF001
