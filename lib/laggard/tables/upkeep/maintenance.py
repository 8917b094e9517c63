"""Maintenance of the tables: compaction, retention by date, VACUUM and Delta log clean-up.

Retention is by date partition.

Each table is done for itself, and each new file of it is a commit, so that what is cut off goes on
from there.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from laggard import files
from laggard.errors import LaggardError
from laggard.tables.published import newest_batch
from laggard.tables.readers import (
    TableMissing,
    dates_of,
    naming_errors,
    open_table,
    sentence_of,
    table_uri,
)
from laggard.tables.schema.schemas import BATCHES, EACH_TICK, TABLES, Table
from laggard.tables.upkeep.compaction import CarryOut, carry_out_here, compact

if TYPE_CHECKING:
    from laggard.config.sections import Retention as Section

_WINDOWS = ("lag_windows", "group_history", "topic_windows")
_SLACK_SECONDS = 60.0  # of two clocks that agree, and of a coarse one


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention of rows, and of removed files after them."""

    windows_days: int
    history_days: int
    dead_letters_days: int = 14
    batches_days: int = 90
    status_files_hours: int = 1  # a reader of the live tables that takes longer fails
    vacuum_hours: int = 168

    @classmethod
    def of(cls, section: Section) -> Retention:
        """Return the retention that the section `[retention]` sets."""
        return cls(section.windows_days, section.history_days)

    def days(self, table: str) -> int:
        """Return the number of days that a table's rows are kept."""
        if table in _WINDOWS:
            return self.windows_days
        return {"dead_letters": self.dead_letters_days, "batches": self.batches_days}.get(
            table, self.history_days
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome for one table; `error` is empty when all was done."""

    table: str
    error: str = ""


def maintain(
    root: str,
    retention: Retention,
    now: datetime,
    names: Iterable[str] = tuple(TABLES),
    *,
    carry_out: CarryOut = carry_out_here,
) -> list[Outcome]:
    """Maintain table after table and record the time; a failing table stops none of the others."""
    done, outcomes = read_done(root), []
    write_done(root, done)
    behind = _hours_behind(root)
    for name in _behind_the_last(root, names):
        files.write_text(_begun_path(root), name)
        try:
            _maintain_table(root, TABLES[name], retention, now, behind, carry_out)
        except TableMissing:
            pass  # a job of an earlier release makes fewer
        except LaggardError as error:
            outcomes.append(Outcome(name, f"{error.what}: {error.cause}"))
            continue
        # small files are a nuisance, and the next table may be sound
        except Exception as error:  # noqa: BLE001
            outcomes.append(Outcome(name, sentence_of(error)))
            continue
        done[name] = now
        write_done(root, done)
        outcomes.append(Outcome(name))
    return outcomes


def _behind_the_last(root: str, names: Iterable[str]) -> list[str]:
    """Return the tables in turn, starting after the one begun last.

    A process may be killed at it each time.
    """
    order = list(TABLES)
    with suppress(OSError, ValueError):
        last = 1 + order.index(files.read_text(_begun_path(root)))
        order = order[last:] + order[:last]
    return sorted(names, key=order.index)


def _hours_behind(root: str) -> int:
    """Return the hours, rounded up, by which the storage's clock is behind this machine's.

    It is measured from a file just written.

    VACUUM subtracts the storage's times of files from the machine's: a file that a batch has just
    written, and that no version names yet, would be an old one where the clocks are apart, as on a
    file server or after the clock was set.
    """
    behind = time.time() - files.modified_at(_done_path(root)) - _SLACK_SECONDS
    return max(0, math.ceil(behind / 3600))


def _maintain_table(
    root: str,
    table: Table,
    retention: Retention,
    now: datetime,
    hours_behind: int,
    carry_out: CarryOut,
) -> None:
    named = _named_version(root, table)
    delta = open_table(root, table.name)
    with naming_errors(table_uri(root, table.name)):
        if not table.overwritten:
            oldest = (now - timedelta(days=retention.days(table.name))).date().isoformat()
            if min(dates_of(delta), default=oldest) < oldest:
                delta.delete(f"date < '{oldest}'")
        hours_kept = retention.status_files_hours if table.overwritten else retention.vacuum_hours
        delta.vacuum(
            hours_behind + hours_kept,
            dry_run=False,
            enforce_retention_duration=False,
            full=True,  # also what a task left that failed before its commit
            keep_versions=None if named is None else [named],
        )
        try:
            if not table.overwritten:
                # the day at hand waits for tomorrow, except where each tick adds a file: every
                # commit pays for each
                last = (now + timedelta(days=table.name in EACH_TICK)).date().isoformat()
                compact(
                    root,
                    table.name,
                    delta,
                    last,
                    carry_out,
                    max(1, retention.vacuum_hours) * 1800.0,
                )
        finally:  # a file that cannot be read stops nothing but itself
            _trim_log(root, delta, table, named)


def _named_version(root: str, table: Table) -> int | None:
    """Return the version that readers and the job start from, however old.

    It is None for a table that is read as it is now.

    It may be older than the newest: after a kill between two commits, or where a batch has no rows
    for the table.
    """
    if table.is_of_diagnosis or table is BATCHES:
        return None
    batch = newest_batch(root)
    if batch is None:
        return None
    return batch.table_versions.get(table.name)


def _trim_log(root: str, delta: DeltaTable, table: Table, named: int | None) -> None:
    """Remove expired entries of the Delta log, unless the version that is named is among them."""
    path = f"{table_uri(root, table.name)}/_delta_log/_last_checkpoint"
    if files.exists(path) and (
        named is None or json.loads(files.read_text(path))["version"] <= named
    ):
        delta.cleanup_metadata()


def read_done(root: str) -> dict[str, datetime]:
    """Return when each table was last maintained whole; none if that is not recorded."""
    try:
        content = json.loads(files.read_text(_done_path(root)))
        return {name: datetime.fromisoformat(text) for name, text in content.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_done(root: str, done: Mapping[str, datetime]) -> None:
    """Record it: a process that starts often must neither maintain each time nor never."""
    files.write_text(
        _done_path(root), json.dumps({name: at.isoformat() for name, at in done.items()}, indent=2)
    )


def _begun_path(root: str) -> str:
    return f"{table_uri(root, '_laggard')}/maintaining"


def _done_path(root: str) -> str:
    return f"{table_uri(root, '_laggard')}/maintained.json"
