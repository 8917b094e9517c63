"""Values that no sound row of a table has, by Arrow type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def odd_arrays(kind: pa.DataType) -> list[pa.Array]:
    """Arrays of one value each: null, out of range, outside the calendar, no number, no text, of
    another length.
    """
    values: list[Any] = [None]
    if pa.types.is_string(kind):
        names = [None, b"\xed\xa0\x80", b"\xff\xfe", b"", b"\x00\n'{}", b"x" * 40_000]
        return [pa.array([name], pa.binary()).view(kind) for name in names]
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - 1)
        values += [-1, 0, top - 1, -top, *([2**53 + 11] if kind.bit_width == 64 else [])]
    elif pa.types.is_floating(kind):
        values += [float("nan"), float("inf"), float("-inf"), -1.0, 1e308]
    elif pa.types.is_timestamp(kind):
        values += [2**62, -(2**62), 253_402_300_800_000_000, 0]
    elif pa.types.is_list(kind):
        inner = kind.value_type
        wrong = {} if not pa.types.is_struct(inner) else dict.fromkeys(inner.names)
        lists = [[wrong, wrong], [wrong]] if wrong else [[1], [1] * 100]
        values += [[], [None], *lists]
        values = [
            each for each in values if not (pa.types.is_string(inner) and each and each[0] == 1)
        ]
    elif pa.types.is_map(kind):
        values += [[], [("joined", None)], [("joined", 1), ("joined", 2)], [("\x00", 1)]]
        values = values if pa.types.is_integer(kind.item_type) else values[:2]
    return [pa.array([value], kind) for value in values]
