"""The rows of a past moment: those of the newest window that had ended by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Expression, field

from laggard.answers.reading import Row, read_dates
from laggard.answers.text.words import moment
from laggard.errors import NOT_FOUND, LaggardError
from laggard.exporter.options import PolicyOf, Selection
from laggard.exporter.snapshot import GROUP_COLUMNS, Read, Snapshot, make_snapshot
from laggard.exporter.totals import PARTITION_COLUMNS, TOPIC_COLUMNS
from laggard.tables.arrow import to_arrow
from laggard.tables.odd_rows import Skipped
from laggard.tables.published import Batch
from laggard.tables.readers import open_table, read_known, table_uri
from laggard.tables.schema.schemas import (
    GROUP_HISTORY,
    GROUP_STATUS,
    LAG_WINDOWS,
    PARTITION_STATUS,
    TOPIC_WINDOWS,
)

_BACK = timedelta(days=1)
_TIME = pa.timestamp("us", tz="UTC")
_COLUMNS = tuple(name for name in GROUP_HISTORY.names if name not in {"date", "cluster"})


def group_then(root: str, batch: Batch, at: datetime, only: Expression | None) -> list[Row]:
    """Return rows of `group_history` of the last 24 hours up to a moment, newest first.

    The windows of these rows ended in those hours.
    """
    ended = (field("window_end") <= pa.scalar(at, _TIME)) & (
        field("window_end") > pa.scalar(at - _BACK, _TIME)
    )
    dates = {str(day.date()) for day in (at - _BACK, at)}
    rows = read_dates(
        root, batch, GROUP_HISTORY.name, _COLUMNS, dates, ended if only is None else ended & only
    )
    if only is None and not rows:
        raise _nothing_before(at)
    return sorted(rows, key=lambda row: row["window_end"], reverse=True)


def window_end_then(root: str, batch: Batch, at: datetime) -> datetime:
    """Return the end of the newest window that had ended by a moment."""
    ended = (field("window_end") <= pa.scalar(at, _TIME)) & (
        field("window_end") > pa.scalar(at - _BACK, _TIME)
    )
    name = GROUP_HISTORY.name
    files = f"date >= '{(at - _BACK).date()}' AND date <= '{at.date()}'"
    table = open_table(root, name, batch.table_versions.get(name))
    newest: datetime | None = pc.max(
        read_known(table, table_uri(root, name), ["window_end"], ended, files)["window_end"]
    ).as_py()
    if newest is None:
        raise _nothing_before(at)
    return newest


def snapshot_then(
    root: str, batch: Batch, at: datetime, skipped: Skipped, policy: PolicyOf
) -> Snapshot:
    """Return all groups at the end of the newest window that had ended by a moment.

    What only the live tables have is unknown in it.
    """
    end = window_end_then(root, batch, at)
    dates = {str(day.date()) for day in (end - _BACK, end)}
    only = field("window_end") == pa.scalar(end, _TIME)
    names = [name for name in GROUP_COLUMNS if name in GROUP_HISTORY.names]
    groups = read_dates(root, batch, GROUP_HISTORY.name, ["batch_id", *names], dates, only)
    names = [name for name in PARTITION_COLUMNS if name in LAG_WINDOWS.names]
    partitions = read_dates(root, batch, LAG_WINDOWS.name, names, dates, only)
    worst: dict[str, float] = {}
    for row in partitions:
        name, seconds = row["group"], row["time_lag_seconds"]
        if seconds is not None:
            worst[name] = max(worst.get(name, 0.0), seconds)
    for row in groups:
        row["max_time_lag_seconds"] = worst.get(row["group"])
    newest = max(row["batch_id"] for row in groups)
    then = {**batch.values, "batch_id": newest, "polled_at": end, "clock": None}
    read = Read(
        to_arrow(PARTITION_STATUS, partitions).select(PARTITION_COLUMNS),
        to_arrow(GROUP_STATUS, groups).select(GROUP_COLUMNS),
        to_arrow(TOPIC_WINDOWS, []).select(TOPIC_COLUMNS),
    )
    selection = Selection(partition_top_k=1)
    return make_snapshot(replace(batch, values=then), read, selection, skipped, policy)


def _nothing_before(at: datetime) -> LaggardError:
    return LaggardError(
        f"nothing is recorded of the 24 hours before {moment(at)}",
        cause="no row of group_history ends in them",
        fix='laggard query "select min(window_start), max(window_end) from group_history"',
        exit_code=NOT_FOUND,
    )


def partitions_then(root: str, batch: Batch, group: Row, columns: Sequence[str]) -> list[Row]:
    """Return the rows of `lag_windows` of the same window, with the columns of partition_status."""
    start = group["window_start"]
    only = (field("group") == group["group"]) & (field("window_start") == pa.scalar(start, _TIME))
    return read_dates(root, batch, LAG_WINDOWS.name, columns, {str(start.date())}, only)


def group_of_then(row: Row, partitions: Sequence[Row], columns: Sequence[str]) -> Row:
    """Return a row of `group_history` as a row of group_status.

    Its time lag is the largest of the partitions.
    """
    seconds = [
        partition["time_lag_seconds"]
        for partition in partitions
        if partition["time_lag_seconds"] is not None
    ]
    return {name: row.get(name) for name in columns} | {
        "max_time_lag_seconds": max(seconds, default=None)
    }
