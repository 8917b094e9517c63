"""Rows of a table by partition and window as arrays, laid out once for all windows that are judged by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.columns import Ints, coded, distinct, milliseconds, ranked
from laggard.diagnosis.frames import Floats, Names

_NO_ROW = np.iinfo(np.int64).max  # published later than any batch
_Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Part:
    """What a key had in a span of windows; arrays are [partitions, windows]."""

    key: tuple[str, ...]
    partitions: Ints  # those with a row in one of the windows, ascending
    is_known: npt.NDArray[np.bool_]  # whether there is a row
    numbers: dict[str, Floats]  # NaN unknown
    names: dict[str, Names]  # "" unknown


class Grid:
    """All partitions of all keys, such as group and topic; a part is cut out for each window.

    `windows` are begins in ms, evenly spaced; `numbers` and `names` columns by the names of the arrays.
    """

    def __init__(
        self, rows: pa.Table, keys: Sequence[str], numbers: Mapping[str, str], names: Mapping[str, str], windows: Ints
    ) -> None:
        step = windows[1] - windows[0] if len(windows) > 1 else 1
        at = (milliseconds(rows["window_start"]) - windows[0]) // step
        is_within = (at >= 0) & (at < len(windows))
        if not is_within.all():
            rows, at = rows.filter(pa.array(is_within)), at[is_within]
        self._parts, self._partitions, series = _series(rows, keys)
        size, cells = (len(self._partitions), len(windows)), series * len(windows) + at
        self._batches = _laid_out(rows["batch_id"], size, cells, _NO_ROW)
        nan, known = np.full(size, np.nan), set(rows.column_names)
        self._numbers = {
            key: _laid_out(rows[name], size, cells, np.nan) if name in known else nan for key, name in numbers.items()
        }
        self._names = {
            key: _names(rows[name], size, cells)
            if name in known
            else (np.zeros(size, np.int32), np.array([""], object))
            for key, name in names.items()
        }

    def parts(self, first: int, last: int, batch_id: int) -> Iterator[Part]:
        """Keys with a row in the windows numbered `first` to before `last`, by what was published up to a batch."""
        for key, low, high in self._parts:
            span = slice(low, high), slice(first, last)
            batches = self._batches[span]
            is_known = batches <= batch_id
            has_row = is_known.any(axis=1)
            if not has_row.any():
                continue
            # nearly always every partition has a row, and none was published later
            rows = slice(None) if has_row.all() else has_row
            is_later = (batches != _NO_ROW) & ~is_known
            later = is_later[rows] if is_later.any() else None
            yield Part(
                key,
                self._partitions[low:high][rows],
                is_known[rows],
                {name: _without(whole[span][rows], later, np.nan) for name, whole in self._numbers.items()},
                {name: texts[_without(codes[span][rows], later, 0)] for name, (codes, texts) in self._names.items()},
            )


def _series(rows: pa.Table, keys: Sequence[str]) -> tuple[list[tuple[tuple[str, ...], int, int]], Ints, Ints]:
    """Each key in order with begin and end of its series, the partition of each series, the series of each row."""
    if not rows.num_rows:
        return [], np.empty(0, np.int64), np.empty(0, np.int64)
    texts, ranks = zip(*(ranked(rows[name]) for name in keys), strict=True)
    partitions = rows["partition"].to_numpy().astype(np.int64)
    sizes = (*(len(each) for each in texts), int(partitions.max()) + 1)
    found, series = distinct(np.ravel_multi_index((*ranks, partitions), sizes))
    numbers = found // sizes[-1]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]).tolist()
    parts = []
    for low, high in zip(starts, [*starts[1:], len(found)], strict=True):
        codes = np.unravel_index(found[low], sizes)[:-1]
        parts.append((tuple(text[code] for text, code in zip(texts, codes, strict=True)), low, high))
    return parts, found % sizes[-1], series


def _laid_out(column: pa.ChunkedArray, size: tuple[int, int], cells: Ints, empty: float) -> _Array:
    """A column of numbers as [series, windows]; chunk by chunk, as memory that was in use is the cheapest."""
    found = np.full(size, empty)
    flat, begin = found.ravel(), 0
    for chunk in column.chunks:
        values = chunk if isinstance(empty, int) else pc.cast(chunk, pa.float64())
        flat[cells[begin : begin + len(chunk)]] = values.to_numpy(zero_copy_only=False)
        begin += len(chunk)
    return found


def _names(column: pa.ChunkedArray, size: tuple[int, int], cells: Ints) -> tuple[npt.NDArray[np.int32], Names]:
    """A column of text as places [series, windows] among the distinct ones, the first of which is no text."""
    codes, texts = coded(column)
    found = np.zeros(size, np.int32)
    found.ravel()[cells] = codes + 1
    return found, np.array(["", *texts], object)


def _without(values: _Array, later: npt.NDArray[np.bool_] | None, empty: float) -> _Array:
    """A part's own values, in one piece of memory."""
    return np.ascontiguousarray(values) if later is None else np.where(later, empty, values)
