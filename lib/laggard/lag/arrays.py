"""Null-aware column arithmetic: unknown in, unknown out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
TIMESTAMP = pa.timestamp("us", tz="UTC")
MAX_LONG = 2**63 - 1
# the end of the year 9998: later ones are damaged records, and the end of the calendar leaves no
# room to add to
MAX_TIMESTAMP_MS = 253_370_764_799_999


def when(condition: Any, value: Any, otherwise: Any) -> Any:
    """Return `value` where the condition is true, `otherwise` where it is false or unknown."""
    return pc.if_else(pc.fill_null(condition, False), value, otherwise)


def null(kind: pa.DataType) -> pa.Scalar:
    """Return an unknown value of a type."""
    return pa.scalar(None, kind)


def where(condition: Any, value: Any) -> Any:
    """Return `value` where the condition is true, unknown elsewhere."""
    return when(condition, value, null(value.type))


def both(*conditions: Any) -> Any:
    """Return True where all conditions are true, false or unknown elsewhere."""
    return reduce(pc.and_kleene, conditions)


def equal(left: Any, right: Any) -> Any:
    """Return True where both are known and equal, false elsewhere."""
    return pc.fill_null(pc.equal(left, right), False)


def differ(left: Any, right: Any) -> Any:
    """Return True where both are known and differ, false elsewhere."""
    return pc.fill_null(pc.not_equal(left, right), False)


def seconds_between(later: Any, earlier: Any) -> Any:
    """Return `later` - `earlier` in seconds, as double."""
    microseconds = pc.subtract(pc.cast(later, pa.int64()), pc.cast(earlier, pa.int64()))
    # a rounding beyond 2^53 does no harm
    return pc.divide(pc.cast(microseconds, pa.float64(), safe=False), 1e6)


def as_double(column: Any) -> Any:
    """Return the nearest double of each int64.

    Arrow's conversion refuses any number beyond 2^53, and clients commit such numbers.
    """
    return pc.cast(column, pa.float64(), safe=False)


def add_saturating(left: Any, right: Any) -> Any:
    """Return the sum of two non-negative int64 columns, at most 2^63 - 1."""
    total = pc.add(left, right)  # wraps around
    return when(pc.less(total, left), pa.scalar(MAX_LONG, pa.int64()), total)


def sum_saturating(values: Ints, starts: Ints) -> Ints:
    """Return sums of runs of non-negative numbers, each at most 2^63 - 1.

    A run goes from an index in `starts` to the next.
    """
    if not len(starts):
        return np.zeros(0, np.int64)
    totals = np.add.reduceat(values, starts)  # wraps around
    is_beyond = (np.add.reduceat(values.astype(np.float64), starts) >= MAX_LONG) | (totals < 0)
    sums: Ints = np.where(is_beyond, MAX_LONG, totals)
    return sums


def sum_groups(rows: pa.Table, keys: Sequence[str], names: Sequence[str]) -> pa.Table:
    """Return sums `<name>_sum` per key of non-negative int64 columns, each at most 2^63 - 1."""
    sums = rows.group_by(list(keys)).aggregate([(name, "sum") for name in names])  # wraps around
    for name in names:
        if (pc.max(rows[name]).as_py() or 0) <= MAX_LONG // max(rows.num_rows, 1):
            continue
        doubles = rows.select(keys).append_column(name, as_double(rows[name]))
        # groups in the same order
        nearest = doubles.group_by(list(keys)).aggregate([(name, "sum")])[f"{name}_sum"]
        index, wrapped = sums.schema.get_field_index(f"{name}_sum"), sums[f"{name}_sum"]
        is_beyond = pc.or_(pc.greater_equal(nearest, float(MAX_LONG)), pc.less(wrapped, 0))
        sums = sums.set_column(
            index, f"{name}_sum", when(is_beyond, pa.scalar(MAX_LONG, pa.int64()), wrapped)
        )
    return sums


def repeat(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column with the same value in all rows."""
    return pa.repeat(pa.scalar(value, kind), rows)


def key_codes(tables: Sequence[pa.Table], names: Sequence[str]) -> list[Ints]:
    """Return one number per row, equal across the tables exactly if all named columns are equal."""
    sizes = [table.num_rows for table in tables]
    codes = np.zeros(sum(sizes), np.int64)
    for name in names:
        column = pa.chunked_array(
            [chunk for table in tables for chunk in table[name].chunks],
            tables[0].schema.field(name).type,
        )
        encoded = column.combine_chunks().dictionary_encode()
        # null, as the topic of an assignment whose id nobody has named, is a value of its own
        indices = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy().astype(np.int64)
        codes = codes * (len(encoded.dictionary) + 1) + indices
    return np.split(codes, np.cumsum(sizes)[:-1])


def match(wanted: Ints, among: Ints) -> Ints:
    """Return the index of each wanted code in `among` (codes are unique); -1 if it is missing."""
    if not len(among):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(among, kind="stable")
    index = np.minimum(np.searchsorted(among[order], wanted), len(among) - 1)
    return np.where(among[order][index] == wanted, order[index], -1)


def take(table: pa.Table, places: Ints) -> pa.Table:
    """Return rows at the places; all columns unknown if the place is -1."""
    return table.take(pa.array(places, mask=places < 0))


def of_groups(rows: pa.Table, groups: Iterable[str]) -> pa.Table:
    """Return rows of these groups."""
    return rows.filter(pc.is_in(rows["group"], value_set=pa.array(list(groups), pa.string())))


def by_name(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns of a table by name."""
    return dict(zip(table.column_names, table.columns, strict=True))


def tuples(table: pa.Table, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Return the named columns of each row as a tuple."""
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def one_chunk(column: Any) -> pa.Array:
    """Return the column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.combine_chunks()


def to_numpy(column: Any) -> npt.NDArray[Any]:
    """Return a column, in one chunk or several, as a numpy array; a copy where it must be one."""
    if isinstance(column, pa.Array):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    return np.asarray(column.to_numpy())


def build(schema: pa.Schema, columns: dict[str, Any]) -> pa.Table:
    """Return a table of exactly this schema."""
    typed = []
    for column in schema:
        array = columns[column.name]
        if array.type != column.type:
            array = pc.cast(array, column.type)
        typed.append(array)
    return pa.table(typed, schema=schema)


def unless(condition: Any, value: Any) -> Any:
    """Return `value` where the condition is false, unknown elsewhere."""
    return where(pc.invert(condition), value)


def numbers(column: Any) -> tuple[Ints, Any]:
    """Return values with 0 for unknown ones, and a mask of the known ones."""
    return pc.fill_null(column, 0).to_numpy().astype(np.int64), flags(pc.is_valid(column))


def doubles(column: Any) -> Doubles:
    """Return values with NaN if unknown."""
    values: Doubles = (
        pc.fill_null(as_double(column), float("nan"))
        .to_numpy(zero_copy_only=False)
        .astype(np.float64)
    )
    return values


def to_moment(timestamp_ms: int | None) -> datetime | None:
    """Return a record's time from ms since 1970; None if no calendar knows that time."""
    if timestamp_ms is None or not 0 <= timestamp_ms <= MAX_TIMESTAMP_MS:
        return None
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=timestamp_ms)


def milliseconds(times: Any) -> Ints:
    """Return times in ms, -1 if unknown."""
    values: Ints = (
        pc.fill_null(pc.cast(times, pa.int64()), -1000).to_numpy().astype(np.int64) // 1000
    )
    return values


def flags(column: Any) -> Any:
    """Return booleans without nulls as a numpy array."""
    return to_numpy(column).astype(bool)
