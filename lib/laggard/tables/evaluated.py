"""Reading what the diagnosis wrote: its tables as they are now, by time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import Expression, field

from laggard.tables.readers import TableMissing, dates_of, open_table, read_known, table_uri
from laggard.tables.schema.schemas import FINDING_STATE, TABLES

_TIME = pa.timestamp("us", tz="UTC")


def newest_evaluated(root: str, before: datetime | None = None) -> datetime | None:
    """Return the start of the newest evaluated window before a time; None if there is none.

    The window began before that time.
    """
    try:
        table = open_table(root, FINDING_STATE.name)
    except TableMissing:
        return None
    condition = field("group") == ""  # the cluster has a row for every evaluated window
    if before is not None:
        condition &= field("window_start") < pa.scalar(before, _TIME)
    for date in reversed(dates_of(table)):
        if before is None or date <= str(before.date()):
            uri, files = table_uri(root, FINDING_STATE.name), f"date = '{date}'"
            newest: datetime | None = pc.max(
                read_known(table, uri, ("window_start",), condition, files)["window_start"]
            ).as_py()
            if newest is not None:
                return newest
    return None


def read_between(
    root: str,
    name: str,
    columns: Sequence[str],
    since: datetime,
    until: datetime,
    condition: Expression | None = None,
) -> pa.Table:
    """Return an append table's current rows by its time column, from `since` to `until`.

    There are none if the table is missing.
    """
    time = field(TABLES[name].time_column)
    wanted = (time >= pa.scalar(since, _TIME)) & (time <= pa.scalar(until, _TIME))
    try:
        table = open_table(root, name)
    except TableMissing:
        return pa.table({column: [] for column in columns})
    files = f"date >= '{since.date()}' AND date <= '{until.date()}'"
    if condition is not None:
        wanted &= condition
    return read_known(table, table_uri(root, name), columns, wanted, files)
