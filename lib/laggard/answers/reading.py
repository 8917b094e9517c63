"""Read the newest published batch, and rows of its tables by condition."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.dataset import Expression, field

from laggard.errors import NOT_FOUND, TEMPORARY, LaggardError, hint
from laggard.escape import escape_label, printable, printable_lines
from laggard.tables.odd_rows import Skipped, made_of, sound_rows
from laggard.tables.published import BACKFILL, Batch, newest_batch
from laggard.tables.readers import TableUnreadable, dates_of, open_table, read_known, table_uri
from laggard.tables.schema.schemas import TABLES

Row = dict[str, Any]
T = TypeVar("T")


class Source(Protocol):
    """Tables of one cluster, as one batch names them."""

    @property
    def root(self) -> str: ...

    @property
    def batch(self) -> Batch: ...


def any_batch(root: str) -> Batch:
    """Read the newest batch, also one of the job that is still catching up."""
    batch = newest_batch(root)
    if batch is None:
        raise LaggardError(
            "nothing is published yet",
            cause=f"{root}/batches has no tick",
            fix="laggard run",
            exit_code=TEMPORARY,
        )
    return batch


def published_batch(root: str) -> Batch:
    """Return the newest batch that may be shown."""
    batch = any_batch(root)
    if batch.kind == BACKFILL:
        raise LaggardError(
            "the job is still catching up",
            cause=f"batch {batch.batch_id} is a backfill",
            fix="try again later",
            exit_code=TEMPORARY,
        )
    return batch


def refuse_empty(glob: str, groups: Sequence[object], names: Iterable[str] = ()) -> None:
    """Raise an error if no group matches a glob.

    The error suggests the nearest of the names, which may have been meant.
    """
    if glob != "*" and not groups:
        cause = hint(glob, map(escape_label, names)).removeprefix("; ")
        raise LaggardError(
            f'no group matches "{printable(glob)}"',
            cause=cause,
            fix="laggard status",
            exit_code=NOT_FOUND,
        )


def is_asked(row: Row, glob: str) -> bool:
    """Return True if a row is of a matching group.

    A row of the cluster also counts if all groups are requested.
    """
    return glob == "*" or (row["group"] is not None and fnmatchcase(row["group"], glob))


def read_where(
    root: str, batch: Batch, name: str, columns: Sequence[str], condition: Expression | None = None
) -> list[Row]:
    """Return rows of an overwritten table that meet a condition.

    A column that an older job did not write is null.
    """
    return _rows(_open(root, batch, name), table_uri(root, name), name, columns, condition)


def read_newest_of(
    root: str,
    batch: Batch,
    name: str,
    columns: Sequence[str],
    group: str,
    is_enough: Callable[[list[Row]], bool],
    until: datetime | None = None,
) -> list[Row]:
    """Return enough rows of a group from an append table, by date backwards.

    Reading starts at the newest date or at `until`, and stops when there are enough rows.
    """
    table = _open(root, batch, name)
    quoted = group.replace("'", "''")
    condition, last = field("group") == group, "9999"
    if until is not None:
        condition &= field(TABLES[name].time_column) <= pa.scalar(
            until, pa.timestamp("us", tz="UTC")
        )
        last = str(until.date())
    rows: list[Row] = []
    dates = [date for date in reversed(dates_of(table)) if date <= last]
    for newest, oldest in _spans(dates):
        files = f"date >= '{oldest}' AND date <= '{newest}' AND \"group\" = '{quoted}'"
        rows += _rows(table, table_uri(root, name), name, columns, condition, files)
        if is_enough(rows):
            break
    return rows


def read_dates(
    root: str,
    batch: Batch,
    name: str,
    columns: Sequence[str],
    dates: set[str],
    condition: Expression,
) -> list[Row]:
    """Return rows of some dates of an append table."""
    if not dates:
        return []
    files = "date IN (" + ", ".join(f"'{date}'" for date in sorted(dates)) + ")"
    return _rows(_open(root, batch, name), table_uri(root, name), name, columns, condition, files)


def _spans(dates: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the newest and oldest date of pieces that double in size.

    So a long idle group takes few reads.
    """
    start, size = 0, 1
    while start < len(dates):
        piece = dates[start : start + size]
        yield piece[0], piece[-1]
        start, size = start + size, 2 * size


def _open(root: str, batch: Batch, name: str) -> DeltaTable:
    version = batch.table_versions.get(name)
    if version is None:
        raise TableUnreadable(
            table_uri(root, name), f"batch {batch.batch_id} names no version of it"
        )
    return open_table(root, name, version)


def _rows(
    table: DeltaTable,
    uri: str,
    name: str,
    columns: Sequence[str],
    condition: Expression | None,
    files: str = "",
) -> list[Row]:
    return shown_rows(read_known(table, uri, columns, condition, files), name, columns)


def shown_rows(rows: pa.Table, name: str, columns: Sequence[str]) -> list[Row]:
    """Return rows as dicts; odd rows are left out and named.

    A column that an older job did not write is null.
    """
    skipped = Skipped()
    shown = [dict.fromkeys(columns) | row for row in sound_rows(rows, name, skipped)]
    warn_of(skipped)
    return shown


def made_lines(rows: Sequence[Row], name: str, make: Callable[[Row], T]) -> list[T]:
    """Make an object of each row of a table.

    A row that cannot be converted is left out and named.
    """
    skipped = Skipped()
    lines = made_of(rows, name, make, skipped)
    warn_of(skipped)
    return lines


def warn_of(skipped: Skipped) -> None:
    """Print a line to standard error for each kind of rows that cannot be shown."""
    for sentence in skipped.sentences().values():
        print(f"laggard: {printable_lines(sentence)}", file=sys.stderr)
