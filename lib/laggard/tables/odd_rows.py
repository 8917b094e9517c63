"""Set aside and count rows that cannot be shown.

An odd row costs only its own series, line or page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.tables.schema.schemas import (
    FINDINGS,
    GROUP_WINDOWS,
    LAG_WINDOWS,
    PARTITION_STATUS,
    TABLES,
)

SIFTED = ("partition_status", "group_status", "topic_windows", "group_windows", "findings")
# a name or the partition is null, negative or no text: it cannot be said whose row this is
KEY = "key"
VALUE = "value"  # not a number, out of its range, outside the calendar, or no text
DUPLICATE = "duplicate"  # its key has come before
ERROR = "error"  # making its series raised
REASONS = (KEY, VALUE, DUPLICATE, ERROR)
MAX_RECORDS = 2**53  # beyond, a sample is no longer exact, and sums of int64 may wrap
_PARTITIONS = (PARTITION_STATUS.name, LAG_WINDOWS.name)
_ANY_INTEGER = ("committed_offset",)  # a client may commit any
# where a number may be infinite: a lag that never drains
_EVALUATED = (GROUP_WINDOWS.name, FINDINGS.name)
# years 1 to 9999, in microseconds since 1970
_CALENDAR = (-62_135_596_800_000_000, 253_402_300_799_999_999)

Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Number of rows set apart, by table and reason, and the fault of the first."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, table: str, reason: str, count: int, example: str) -> None:
        """Count rows of a table."""
        if count:
            self.counts[table, reason] += count
            self.examples.setdefault((table, reason), example)

    def sentences(self) -> dict[tuple[str, str], str]:
        """Return a sentence by table and reason on rows set apart.

        It has their number, the reason and the first row.
        """
        texts: dict[tuple[str, str], str] = {}
        for (table, reason), count in self.counts.items():
            rows, example = "row" if count == 1 else "rows", self.examples[table, reason]
            texts[table, reason] = (
                f"{count} {rows} of {table} skipped ({reason}), the first {example}"
            )
        return texts


def find_odd(count: int, check: Callable[[int, int], object]) -> list[int]:
    """Return the positions for which `check(begin, end)` raises.

    A range that raises is halved until each is alone.
    """
    odd, ranges = [], [(0, count)] if count else []
    while ranges:
        begin, end = ranges.pop()
        try:
            check(begin, end)
        except Exception:  # noqa: BLE001 - whatever it is, it must cost no other row
            middle = (begin + end) // 2
            if middle == begin:
                odd.append(begin)
            else:
                ranges += [(begin, middle), (middle, end)]
    return sorted(odd)


def error_of(check: Callable[[], object]) -> str:
    """Return the class and message of the error that a call raises; empty without one."""
    try:
        check()
    except Exception as error:  # noqa: BLE001 - as in `find_odd`
        return f"{type(error).__name__}: {error}"
    return ""


def sift_columns(rows: pa.Table, table: str, key: Sequence[str], skipped: Skipped) -> pa.Table:
    """Drop rows without a usable key; other odd rows keep only the key.

    Sums with them are partial.
    """
    is_keyless = _any(rows, [*(pc.is_null(rows[name]) for name in key), *_odd_columns(rows, key)])
    rows = rows.filter(pc.invert(is_keyless))
    skipped.add(table, KEY, _count(is_keyless), f"without a usable {', '.join(key)}")
    others = [name for name in rows.column_names if name not in key]
    is_odd = _any(rows, [*_odd_columns(rows, others), *_contradictions(rows)])
    if _count(is_odd):
        odd = rows.filter(is_odd)
        skipped.add(table, VALUE, len(odd), f"of {_described(odd, key)}")
        for name in others:
            nulled = pc.if_else(is_odd, pa.scalar(None, rows[name].type), rows[name])
            rows = rows.set_column(rows.column_names.index(name), name, nulled)
    return rows


def plain_rows(
    rows: pa.Table, table: str, key: Sequence[str], skipped: Skipped, *, unique: Sequence[str] = ()
) -> list[Row]:
    """Return rows as dicts, without rows that lack a part of their key or repeat.

    Rows that no dict can hold are left out too.
    """
    odd = find_odd(len(rows), lambda begin, end: _as_dicts(rows, begin, end))
    if odd:
        skipped.add(table, VALUE, len(odd), error_of(lambda: _as_dicts(rows, odd[0], odd[0] + 1)))
        rows = rows.take(np.setdiff1d(np.arange(len(rows)), odd))
    plain, seen = [], set()
    for row in _as_dicts(rows, 0, len(rows)):
        name = tuple(map(row.get, unique))
        if None in map(row.get, key):
            skipped.add(table, KEY, 1, f"without a usable {', '.join(key)}")
        elif unique and name in seen:
            skipped.add(table, DUPLICATE, 1, f"of {' '.join(map(repr, name))}")
        else:
            seen.add(name)
            plain.append(row)
    return plain


def sound_rows(
    rows: pa.Table, table: str, skipped: Skipped, *, unique: Sequence[str] = ()
) -> list[Row]:
    """Return rows of a table as dicts, without rows that lack a key part or hold invalid values.

    Of an odd partition the key stays, with null in all other columns: what is summed over it is
    unknown.
    """
    columns, names = TABLES[table].columns, {*TABLES[table].key}.intersection(rows.column_names)
    key = [column.name for column in columns if column.name in names and not column.null]
    if table in _PARTITIONS:
        return plain_rows(
            sift_columns(rows, table, key, skipped), table, key, skipped, unique=unique
        )
    is_odd = _any(rows, _odd_columns(rows, _not_integers(rows), may_be_endless=table in _EVALUATED))
    if _count(is_odd):
        odd = rows.filter(is_odd)
        named = [name for name in dict.fromkeys(("group", *key)) if name in rows.column_names]
        skipped.add(table, VALUE, len(odd), f"of {_described(odd, named)}")
    return plain_rows(rows.filter(pc.invert(is_odd)), table, key, skipped, unique=unique)


def holdable(rows: pa.Table) -> pa.Table:
    """Return the rows whose texts and times Python can hold, and whose doubles are numbers."""
    is_odd = _any(rows, _odd_columns(rows, _not_integers(rows)))
    if not _count(is_odd):
        return rows
    return rows.filter(pc.invert(is_odd))


def _not_integers(rows: pa.Table) -> list[str]:
    """Return the columns that are no integers: an integer is never too large to be shown."""
    return [column.name for column in rows.schema if not pa.types.is_integer(column.type)]


def made_of(rows: Sequence[Row], table: str, make: Callable[[Row], T], skipped: Skipped) -> list[T]:
    """Convert each row; a row that cannot be converted costs no other."""
    odd = set(find_odd(len(rows), lambda begin, end: list(map(make, rows[begin:end]))))
    for index in sorted(odd):
        error = error_of(partial(make, rows[index]))
        skipped.add(table, ERROR, 1, f"of group {rows[index].get('group')!r}: {error}")
    return [make(row) for index, row in enumerate(rows) if index not in odd]


def _as_dicts(rows: pa.Table, begin: int, end: int) -> list[Row]:
    return list(rows.slice(begin, end - begin).to_pylist(maps_as_pydicts="strict"))


def _odd_columns(
    rows: pa.Table, names: Sequence[str], *, may_be_endless: bool = False
) -> list[Any]:
    """Return masks of the invalid values of each column; null is not invalid."""
    masks: list[Any] = []
    for name in names:
        masks += _odd_values(name, rows[name], may_be_endless=may_be_endless)
    return [pc.fill_null(mask, fill_value=False) for mask in masks]


def _contradictions(rows: pa.Table) -> list[Any]:
    """Return a mask of rows whose lag contradicts the status.

    The lag is known although the status is not ok, or unknown although it is.
    """
    if not {"lag", "status"} <= set(rows.column_names):
        return []
    return [
        pc.xor(
            pc.is_valid(rows["lag"]), pc.fill_null(pc.equal(rows["status"], "ok"), fill_value=False)
        )
    ]


def _odd_values(name: str, values: pa.ChunkedArray, *, may_be_endless: bool) -> list[Any]:
    if pa.types.is_floating(values.type):
        if may_be_endless:
            return [pc.is_nan(values)]
        return [pc.invert(pc.is_finite(values)), _outside(values, -MAX_RECORDS, MAX_RECORDS)]
    if pa.types.is_integer(values.type) and name not in _ANY_INTEGER:
        return [_outside(pc.cast(values, pa.int64()), 0, MAX_RECORDS)]
    if pa.types.is_timestamp(values.type):
        return [_outside(pc.cast(values, pa.int64()), *_CALENDAR)]
    if pa.types.is_string(values.type):
        odd = find_odd(
            len(values), lambda begin, end: values.slice(begin, end - begin).validate(full=True)
        )
        if odd:
            return [pa.array(np.isin(np.arange(len(values)), odd))]
    return []


def _outside(values: Any, least: int, most: int) -> Any:
    return pc.or_(pc.less(values, least), pc.greater(values, most))


def _any(rows: pa.Table, masks: Sequence[Any]) -> Any:
    is_any = pa.chunked_array([pa.array(np.zeros(len(rows), dtype=bool))])
    for mask in masks:
        is_any = pc.or_(is_any, mask)
    return is_any


def _count(mask: Any) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _described(rows: pa.Table, key: Sequence[str]) -> str:
    """Return the first row's key as text; values Python cannot hold are as Arrow prints them."""
    return ", ".join(f"{name} {_shown(rows[name][0])}" for name in key)


def _shown(value: pa.Scalar) -> str:
    try:
        return repr(value.as_py())
    except (OverflowError, ValueError):
        if pa.types.is_timestamp(value.type):
            return str(pc.cast(value, pa.int64()))
        return repr(value.as_buffer().to_pybytes())
