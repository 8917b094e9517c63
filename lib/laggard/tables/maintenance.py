"""Keeping the tables small: OPTIMIZE, retention by date partition, VACUUM. Runs in the writer's process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from deltalake import DeltaTable, WriterProperties

from laggard.tables.readers import table_uri
from laggard.tables.schemas import TABLES

if TYPE_CHECKING:
    from laggard.config import Config

log = logging.getLogger("laggard.maintenance")
_WINDOWS = ("lag_windows", "group_history", "topic_windows")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long rows are kept, and removed files after them."""

    windows_days: int
    history_days: int
    dead_letters_days: int
    batches_days: int
    status_files_hours: int
    vacuum_hours: int

    @classmethod
    def from_config(cls, config: Config) -> Retention:
        """The `[retention]` and `[maintenance]` sections."""
        kept = config.retention
        return cls(
            kept.windows_days, kept.history_days, kept.dead_letters_days, kept.batches_days,
            kept.status_files_hours, config.maintenance.vacuum_hours,
        )  # fmt: skip

    def days(self, table: str) -> int:
        """Days that a table's rows are kept."""
        if table in _WINDOWS:
            return self.windows_days
        return {"dead_letters": self.dead_letters_days, "batches": self.batches_days}.get(table, self.history_days)


def maintain(root: str, retention: Retention, now: datetime, *, optimize: bool = True) -> None:
    """Compact small files, drop date partitions past their retention, and delete files that nobody may still read."""
    for name, table in TABLES.items():
        if table.overwritten:
            continue
        delta = DeltaTable(table_uri(root, name))
        oldest = (now - timedelta(days=retention.days(name))).date().isoformat()
        dates = sorted(str(part["date"]) for part in delta.partitions())
        if dates and dates[0] < oldest:
            delta.delete(f"date < '{oldest}'")
        recent = [date for date in dates if date >= (now - timedelta(days=1)).date().isoformat()]
        if optimize and recent:
            compact(delta, recent)
        # full: also what a task left that failed before its commit
        delta.vacuum(retention.vacuum_hours, dry_run=False, enforce_retention_duration=False, full=True)
        log.info("maintained %s: rows before %s dropped", name, oldest)
    vacuum_status(root, retention)


def compact(delta: DeltaTable, dates: Sequence[str]) -> None:
    """One file in place of many for each of the dates."""
    delta.optimize.compact([("date", "in", list(dates))], writer_properties=WriterProperties(compression="ZSTD"))


def vacuum_status(root: str, retention: Retention) -> None:
    """Delete the overwritten tables' old files; each tick leaves some."""
    for name, table in TABLES.items():
        if table.overwritten:
            delta = DeltaTable(table_uri(root, name))
            delta.vacuum(retention.status_files_hours, dry_run=False, enforce_retention_duration=False, full=True)


class Schedule:
    """When the job cares for its tables: the status tables hourly, everything once a day at an hour (UTC)."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._retention = Retention.from_config(config)
        self._vacuumed_at: datetime | None = None
        self._maintained_on: date | None = None

    def run_due(self, now: datetime) -> None:
        """Do what is due at this tick's time; a failure costs no tick and is tried again the next time."""
        care, root = self._config.maintenance, self._config.job.tables
        self._vacuumed_at = self._vacuumed_at or now
        try:
            if care.enabled and now.hour == care.hour_utc and self._maintained_on != now.date():
                self._maintained_on = now.date()
                maintain(root, self._retention, now, optimize=care.optimize)
            elif now - self._vacuumed_at >= timedelta(hours=self._retention.status_files_hours):
                self._vacuumed_at = now
                vacuum_status(root, self._retention)
        except Exception as error:  # noqa: BLE001 - small files are a nuisance, a lost tick is a loss
            log.warning("maintenance failed, the tables are as they were: %s", str(error).splitlines()[0])
