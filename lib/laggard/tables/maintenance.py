"""Keeping the tables small: OPTIMIZE, retention by date partition, VACUUM. Runs in the writer's process."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from laggard.tables.delta import path_of
from laggard.tables.schemas import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("laggard.maintenance")
_WINDOWS = ("lag_windows", "topic_windows")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rows are kept, and removed files after them."""

    windows_days: int
    history_days: int
    dead_letters_days: int
    batches_days: int
    status_files_hours: float
    vacuum_hours: float

    def days(self, table: str) -> int:
        """Days that a table's rows are kept."""
        if table in _WINDOWS:
            return self.windows_days
        return {"dead_letters": self.dead_letters_days, "batches": self.batches_days}.get(table, self.history_days)


def maintain(spark: SparkSession, root: str, retention: Retention, now: datetime, *, optimize: bool = True) -> None:
    """Compact small files, drop date partitions past their retention, and delete files that nobody may still read."""
    from delta.tables import DeltaTable

    for name, table in TABLES.items():
        delta = DeltaTable.forPath(spark, path_of(root, name))
        if table.overwritten:
            delta.vacuum(retention.status_files_hours)
            continue
        oldest = (now - timedelta(days=retention.days(name))).date()
        delta.delete(f"date < DATE'{oldest.isoformat()}'")
        if optimize:
            delta.optimize().where(f"date >= DATE'{(now - timedelta(days=1)).date().isoformat()}'").executeCompaction()
        delta.vacuum(retention.vacuum_hours)
        log.info("maintained %s: rows before %s dropped", name, oldest)


def vacuum_status(spark: SparkSession, root: str, retention: Retention) -> None:
    """Delete the overwritten tables' old files; each tick leaves some."""
    from delta.tables import DeltaTable

    for name, table in TABLES.items():
        if table.overwritten:
            DeltaTable.forPath(spark, path_of(root, name)).vacuum(retention.status_files_hours)
