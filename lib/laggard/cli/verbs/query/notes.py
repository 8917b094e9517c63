"""Notes beside an answer: near names, time without observation, reasons for an empty result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

import pyarrow as pa

from laggard.answers.history import gaps_between
from laggard.answers.text.words import count, known, listed, moment
from laggard.cli.verbs.query.range import Range, named, tables_behind
from laggard.cli.verbs.query.views import read_views
from laggard.errors import NOT_FOUND, USAGE, LaggardError
from laggard.tables.odd_rows import holdable
from laggard.tables.published import Batch
from laggard.tables.readers import open_table, read_known, table_uri
from laggard.tables.schema.schemas import TABLES

_NO_TABLE = re.compile(r"table '(?:\w+\.)*(\w+)' not found")
_NO_COLUMN = re.compile(r"No field named (?:\"?\w+\"?\.)?\"?([^\".\s]+)")
_GROUP = re.compile(r"\"?\bgroup\"?\s*=\s*'((?:[^']|'')*)'", re.IGNORECASE)
_SHOWN_GAPS = 3


def columns_of() -> dict[str, tuple[str, ...]]:
    """Return the column names of every table and view."""
    views = {view.name: tuple(name for name, _ in view.columns) for view in read_views().values()}
    return {name: table.names for name, table in TABLES.items()} | views


def name_error(cause: str, sql: str) -> LaggardError | None:
    """Return the error about a missing table or column, with near names.

    Return None for any other error.
    """
    known = columns_of()
    if match := _NO_TABLE.search(cause):
        near = get_close_matches(match[1].lower(), known, 3, 0.5)
        return LaggardError(
            f'no table "{match[1]}"',
            cause="near names: " + ", ".join(near) if near else "no name is near it",
            fix='laggard query "show tables"',
            exit_code=NOT_FOUND,
        )
    match = _NO_COLUMN.search(cause)
    return _no_column(match[1], named(sql, known), known) if match else None


def _no_column(
    column: str, asked: Sequence[str], known: Mapping[str, Sequence[str]]
) -> LaggardError:
    near = get_close_matches(
        column.lower(), {name for table in asked for name in known[table]}, 3, 0.5
    )
    elsewhere = [table for table, names in known.items() if column.lower() in names]
    said = [f"near names: {', '.join(near)}"] if near else []
    said += [f"it is a column of {listed(elsewhere)}"] if elsewhere else []
    return LaggardError(
        f'no column "{column}"' + (f" in {listed(asked)}" if asked else ""),
        cause="; ".join(said) or "no name is near it",
        fix=f'laggard query "describe {(asked or ["group_status"])[0]}"',
        exit_code=USAGE,
    )


def gap_notes(root: str, batch: Batch, asked: Range) -> list[str]:
    """Return a sentence about the times in a range without observation.

    The list is empty if there are no such times.
    """
    gaps = gaps_between(root, batch, asked.begin, asked.end)
    if not gaps:
        return []
    shown = "; ".join(
        f"{moment(row['gap_from'])} to {moment(row['gap_to'])} ({known(row['gap_reason'])})"
        for row in gaps[:3]
    )
    more = f" and {len(gaps) - _SHOWN_GAPS} more" if len(gaps) > _SHOWN_GAPS else ""
    return [
        (
            f"{count(len(gaps), 'gap')} without observation in this range: {shown}{more}; no "
            "answer covers them"
        )
    ]


def groups_named(sql: str, values: Mapping[str, str]) -> list[str]:
    """Return the groups that a query compares with or has as a parameter."""
    return (
        [values["group"]]
        if "group" in values
        else [name.replace("''", "'") for name in _GROUP.findall(sql)]
    )


def known_groups(root: str, batch: Batch) -> set[str]:
    """Return the groups that have a row now."""
    table = open_table(root, "group_status", batch.table_versions.get("group_status"))
    rows = read_known(table, table_uri(root, "group_status"), ["group"])
    return set(holdable(rows)["group"].to_pylist())


def missing_group(name: str, known: Iterable[str]) -> LaggardError:
    """Return the error for a group that no table has."""
    near = get_close_matches(name, known, 3, 0.5)
    return LaggardError(
        f'no group "{name}"',
        cause="near names: " + ", ".join(near)
        if near
        else "it has no row now, nor in the range asked for",
        fix="laggard status",
        exit_code=NOT_FOUND,
    )


def empty_notes(
    root: str, batch: Batch, sql: str, asked: Range, groups: Sequence[str]
) -> list[str]:
    """Give the reasons for an answer without rows, as far as the tables show them."""
    known = known_groups(root, batch) if groups else set()
    notes = [str(missing_group(name, known).what) for name in groups if name not in known]
    history = [name for name in tables_behind(sql) if TABLES[name].time_column]
    for name in history:
        notes += _date_notes(root, name, asked)
    if asked.begin is not None and asked.begin > batch.polled_at:
        notes.append(f"the range begins after the newest tick, of {moment(batch.polled_at)}")
    return notes or ["no row meets the conditions"]


def _date_notes(root: str, name: str, asked: Range) -> Iterator[str]:
    """Say that a table has no rows in the range."""
    dates = sorted(str(partition["date"]) for partition in open_table(root, name).partitions())
    if not dates:
        yield f"{name} has no rows yet"
    elif asked.end is not None and str(asked.end.date()) < dates[0]:
        yield (
            f"the range ends before the first row of {name}, of {dates[0]}: older ones are not kept"
        )
    elif asked.begin is not None and str(asked.begin.date()) > dates[-1]:
        yield f"the range begins after the newest row of {name}, of {dates[-1]}"


def tables_shown() -> pa.Table:
    """Return the answer of `show tables`."""
    rows = [
        {"name": name, "kind": "table", "rows": table.comment} for name, table in TABLES.items()
    ]
    rows += [
        {"name": view.name, "kind": "view", "rows": view.title} for view in read_views().values()
    ]
    return pa.Table.from_pylist(rows)


def described(name: str) -> pa.Table:
    """Return the answer of `describe`: every column with its type and meaning."""
    if name in TABLES:
        rows = [
            {
                "column": column.name,
                "type": column.type,
                "meaning": column.comment,
                "null": column.null,
            }
            for column in TABLES[name].columns
        ]
        return pa.Table.from_pylist(rows)
    if name in read_views():
        return pa.Table.from_pylist(
            [{"column": column, "meaning": text} for column, text in read_views()[name].columns]
        )
    error = name_error(f"table '{name}' not found", "")
    raise error or LaggardError(f'no table "{name}"', exit_code=NOT_FOUND)
