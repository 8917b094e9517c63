"""Making the Delta tables and writing to them so that a re-run changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from laggard.tables.schemas import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECKED = ("lag", "partition")  # never negative
_PROPERTIES = {
    # reader version 1: every engine can read the tables
    "delta.minReaderVersion": "1",
    "delta.minWriterVersion": "3",
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
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


def create_tables(spark: SparkSession, root: str) -> None:
    """Create every table that is not there, with types, comments, constraint and reader version 1."""
    with ThreadPoolExecutor(max_workers=4) as pool:  # each is seconds of waiting on a cold JVM
        list(pool.map(lambda table: _create(spark, root, table), TABLES.values()))


def _create(spark: SparkSession, root: str, table: Table) -> None:
    from delta.tables import DeltaTable

    path = path_of(root, table.name)
    if DeltaTable.isDeltaTable(spark, path):
        return
    builder = DeltaTable.createIfNotExists(spark).location(path).comment(table.comment)
    for column in table.columns:
        comment = f"{column.comment}; null: {column.null}" if column.null else column.comment
        builder = builder.addColumn(column.name, column.type, comment=comment)
    if not table.overwritten:
        builder = builder.partitionedBy("date")
    for name, value in {**_PROPERTIES, **(_OVERWRITTEN if table.overwritten else _APPENDED)}.items():
        builder = builder.property(name, value)
    builder.execute()
    checked = [f"{name} >= 0" for name in CHECKED if name in table.names]
    if checked:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT not_negative CHECK ({' AND '.join(checked)})")


def missing_tables(spark: SparkSession, root: str) -> list[str]:
    """Tables that do not exist under this root."""
    from delta.tables import DeltaTable

    return [name for name in TABLES if not DeltaTable.isDeltaTable(spark, path_of(root, name))]


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
