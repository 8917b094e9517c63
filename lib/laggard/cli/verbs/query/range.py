"""The range of a query: the rows that it leaves of each table, and the default time range.

The default is the time that an answer without a range covers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from typing import Any

import pyarrow as pa

from laggard.cli.verbs.query.views import named_views
from laggard.tables.published import Batch
from laggard.tables.readers import TableMissing, open_table
from laggard.tables.schema.schemas import BATCHES, FINDINGS, TABLES, Table

_LENGTHS = {"hour_start": timedelta(hours=1)}  # of the times that stand for a while
# a finding is open until a row closes it, and ticks show their gaps themselves
_WHOLE = (FINDINGS.name, BATCHES.name)


@dataclass(frozen=True, slots=True)
class Range:
    """Time that a query asks about; None is an open end."""

    begin: datetime | None = None
    end: datetime | None = None


def named(sql: str, known: Iterable[str]) -> list[str]:
    """Return the known names that a query mentions."""
    words = set(re.findall(r"\w+", sql))
    return [name for name in known if name in words]


def tables_behind(sql: str) -> list[str]:
    """Return the tables that a query mentions, and those of the views that it mentions."""
    return named(" ".join([sql, *(view.sql for view in named_views(sql))]), TABLES)


def conditions(table: Table, asked: Range) -> list[str]:
    """Return SQL conditions for the rows of a range.

    They keep windows that begin in it, and events up to its end.
    """
    column = table.time_column
    # a finding that was opened before the range may be open in it
    begin = None if table.name == FINDINGS.name else asked.begin
    if not column or begin is asked.end is None:
        return []
    if table.name == BATCHES.name:
        return _of_ticks(column, begin, asked.end)
    until = "<" if column == "window_start" else "<="
    return [
        f'date {sign_of_date} {_date(end)} and "{column}" {sign} {_literal(end)}'
        for sign_of_date, sign, end in ((">=", ">=", begin), ("<=", until, asked.end))
        if end is not None
    ]


def _of_ticks(column: str, begin: datetime | None, end: datetime | None) -> list[str]:
    """Keep ticks of the range, and gaps that overlap it.

    A gap is found by the tick after it, often after the range.
    """
    kept = [f"{column} >= {_literal(begin)}"] if begin else []
    kept += [f"{column} <= {_literal(end)}"] if end else []
    met = [f"coalesce(gap_to, {column}) > {_literal(begin)}"] if begin else []
    met += [f"coalesce(gap_from, {column}) < {_literal(end)}"] if end else []
    rows = f"case when kind = 'gap' then {' and '.join(met)} else {' and '.join(kept)} end"
    return [f"date >= {_date(begin)}", rows] if begin else [rows]


def touched_range(root: str, batch: Batch, sql: str, rows: pa.Table) -> Range:
    """Return the time range of an answer.

    It is from its times, else from its dates, else that of the tables it reads.
    """
    history = [name for name in tables_behind(sql) if TABLES[name].time_column]
    if not history or not rows.num_rows or set(history) == {BATCHES.name}:
        return Range()
    for is_wanted in (_is_time, pa.types.is_date):
        if any(map(is_wanted, rows.schema.types)):
            known = _ends_of(rows, is_wanted)
            return Range(min(known), max(known)) if known else Range()
    days = _days(root, set(history).difference(_WHOLE))
    return Range(_midnight(min(days)), batch.polled_at) if days else Range()


def _ends_of(rows: pa.Table, is_wanted: Callable[[pa.DataType], bool]) -> list[datetime]:
    columns = zip(rows.column_names, rows.columns, strict=True)
    return [
        end for name, column in columns if is_wanted(column.type) for end in _ends(name, column)
    ]


def _ends(name: str, column: pa.ChunkedArray) -> list[datetime]:
    least, most = pa.compute.min(column).as_py(), pa.compute.max(column).as_py()
    if least is None:
        return []
    if pa.types.is_date(column.type):
        return [_midnight(least), _midnight(most) + timedelta(days=1)]
    return [least, most + _LENGTHS.get(name, timedelta())]


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz)


def _days(root: str, names: Iterable[str]) -> list[Any]:
    """List the days that the tables have rows of."""
    days: list[Any] = []
    for name in names:
        with suppress(TableMissing):  # an older job made none
            days += [
                datetime.fromisoformat(str(partition["date"])).date()
                for partition in open_table(root, name).partitions()
            ]
    return days


def _midnight(day: Any) -> datetime:
    return datetime.combine(day, time(), timezone.utc)


def _date(end: datetime) -> str:
    return f"cast('{end.date()}' as date)"


def _literal(end: datetime) -> str:
    return f"cast('{end.isoformat()}' as timestamp)"
