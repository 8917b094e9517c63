"""Read rows of the tables as one batch published them, each table opened once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from itertools import pairwise

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.dataset import field as column

from laggard.audit.known_gaps import Span
from laggard.tables.arrow import arrow_type
from laggard.tables.published import Batch
from laggard.tables.readers import (
    Scan,
    TableMissing,
    open_table,
    read_declared,
    scan_known,
    table_uri,
)
from laggard.tables.schema.schemas import BATCHES, Table

ROWS = 50_000  # of windows at a time
MINUTES = 24 * 60
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Reader:
    """Rows of the tables as one batch published them, between two moments."""

    root: str
    batch: Batch
    begin: datetime
    end: datetime
    _opened: dict[tuple[str, int | None], DeltaTable | None] = field(
        default_factory=dict, init=False, compare=False
    )

    def lacks(self, table: Table) -> bool:
        """Return True if a table is missing although the batch names a version of it."""
        return self._open(table) is None and table.name in self.batch.table_versions

    def rows(
        self, table: Table, columns: Sequence[str], begin: datetime, end: datetime
    ) -> pa.Table:
        """Return rows from `begin` to before `end`; none if the table is missing."""
        scan = self.scan(table, columns, (max(begin, self.begin), min(end, self.end)))
        if scan is None:
            return _empty(table, columns)
        rows = pa.Table.from_batches(scan.to_batches(), scan.schema)
        for name in {*columns} - {*rows.column_names}:  # a column that an older job did not write
            rows = rows.append_column(name, pa.nulls(rows.num_rows, _type(table, name)))
        return rows.select(list(columns))

    def scan(self, table: Table, columns: Sequence[str], span: Span | None) -> Scan | None:
        """Return the rows in batches; None if the table is missing.

        Columns that an older job did not write are left out.

        `span`: two moments; without it all rows, also those whose time is outside the calendar.
        """
        if (delta := self._open(table)) is None:
            return None
        if span is None:
            return scan_known(delta, table_uri(self.root, table.name), columns)
        at, (begin, end) = column(table.time_column), span
        last = (end - timedelta(microseconds=1)).date()
        files = f"date >= '{begin.date()}' AND date <= '{last}'"
        condition = (at >= pa.scalar(begin)) & (at < pa.scalar(end))
        return scan_known(delta, table_uri(self.root, table.name), columns, condition, files)

    def counts(self, table: Table) -> dict[str, int]:
        """Return the number of rows by date, from file statistics.

        An overwritten table has one empty date.
        """
        delta = self._open(table)
        actions = pa.table(delta.get_add_actions(flatten=True)) if delta else pa.table({})
        if not actions.num_rows:
            return {}
        dates: Iterable[str] = [""] * actions.num_rows
        if not table.overwritten:
            dates = map(str, actions["partition.date"].to_pylist())
        counts: Counter[str] = Counter()
        for day, rows in zip(dates, actions["num_records"].to_pylist(), strict=True):
            counts[day] += rows or 0
        return counts

    def spans(self, table: Table) -> list[Span]:
        """Return the range's days that have rows, in parts of about `ROWS` rows.

        A part keeps a window whole.

        All rows of a window have the same time, so none is cut.
        """
        spans = []
        for name, rows in sorted(self.counts(table).items()):
            day = datetime.combine(date.fromisoformat(name), time(), timezone.utc)
            parts = min(-(-rows // ROWS) or 1, MINUTES)
            edges = [day + DAY * part / parts for part in range(parts + 1)]
            spans += [
                span for span in pairwise(edges) if span[1] > self.begin and span[0] < self.end
            ]
        return spans

    def whole(self, table: Table, columns: Sequence[str], version: int | None = None) -> pa.Table:
        """Return all rows of any time, at this batch's version or a given one.

        There are none if the table is missing.
        """
        delta = self._open(table, version)
        if delta:
            return read_declared(delta, self.root, table.name, columns)
        return _empty(table, columns)

    def _open(self, table: Table, version: int | None = None) -> DeltaTable | None:
        if version is None:
            version = self.batch.table_versions.get(table.name)
            if table is BATCHES:
                version = self.batch.version
        key = table.name, version
        if key not in self._opened:  # in a bucket, opening takes longer than reading
            try:
                self._opened[key] = open_table(self.root, *key)
            except TableMissing:
                self._opened[key] = None
        return self._opened[key]


def _empty(table: Table, columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array([], _type(table, name)) for name in columns})


def _type(table: Table, name: str) -> pa.DataType:
    return arrow_type(next(declared.type for declared in table.columns if declared.name == name))
