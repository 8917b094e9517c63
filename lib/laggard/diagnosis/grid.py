"""Rows of a table by partition and window as arrays, laid out once for all windows that are judged by them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.columns import Ints, coded, distinct, milliseconds, ranked
from laggard.diagnosis.frames import Floats, Names

_NO_ROW = np.iinfo(np.int64).max  # published later than any batch
_Number = TypeVar("_Number", np.float64, np.int32)


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
        # a window after the other, as rows come; what a part has is turned round when it is cut out
        size, cells = (len(windows), len(self._partitions)), at * len(self._partitions) + series
        self._batches = np.full(size, _NO_ROW)
        self._batches.ravel()[cells] = rows["batch_id"].to_numpy()
        known = set(rows.column_names)
        self._numbers, self._names = list(numbers), list(names)
        self._values = np.full((len(numbers), *size), np.nan)
        for whole, name in zip(self._values, numbers.values(), strict=True):
            if name in known:
                _lay_out(rows[name], whole.ravel(), cells)
        self._codes = np.zeros((len(names), *size), np.int32)
        self._texts = [np.array([""], object)] * len(names)
        for number, name in enumerate(names.values()):
            if name in known:
                codes, texts = coded(rows[name])
                self._codes[number].ravel()[cells] = codes + 1
                self._texts[number] = np.array(["", *texts], object)

    @property
    def leaders(self) -> Iterable[str]:
        """What keys begin with, in order."""
        return self._parts.keys()

    def parts(self, leader: str, first: int, last: int, batch_id: int) -> Iterator[Part]:
        """Keys with a row in the windows numbered `first` to before `last`, by what was published up to a batch."""
        for key, low, high in self._parts.get(leader, ()):
            batches = self._batches[first:last, low:high].T
            is_known = batches <= batch_id
            has_row = is_known.any(axis=1)
            if not has_row.any():
                continue
            values, codes = (_turned(whole[:, first:last, low:high]) for whole in (self._values, self._codes))
            is_later = (batches != _NO_ROW) & ~is_known
            if is_later.any():
                values[:, is_later], codes[:, is_later] = np.nan, 0
            if not has_row.all():
                values, codes = (each.compress(has_row, axis=1) for each in (values, codes))
            yield Part(
                key,
                self._partitions[low:high][has_row],
                is_known[has_row],
                dict(zip(self._numbers, values, strict=True)),
                {name: texts[own] for name, texts, own in zip(self._names, self._texts, codes, strict=True)},
            )


def _series(
    rows: pa.Table, keys: Sequence[str]
) -> tuple[dict[str, list[tuple[tuple[str, ...], int, int]]], Ints, Ints]:
    """Keys in order with begin and end of their series, the partition of each series, the series of each row."""
    if not rows.num_rows:
        return {}, np.empty(0, np.int64), np.empty(0, np.int64)
    texts, ranks = zip(*(ranked(rows[name]) for name in keys), strict=True)
    partitions = rows["partition"].to_numpy().astype(np.int64)
    sizes = (*(len(each) for each in texts), int(partitions.max()) + 1)
    found, series = distinct(np.ravel_multi_index((*ranks, partitions), sizes))
    numbers = found // sizes[-1]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]).tolist()
    parts: dict[str, list[tuple[tuple[str, ...], int, int]]] = {}
    for low, high in zip(starts, [*starts[1:], len(found)], strict=True):
        codes = np.unravel_index(found[low], sizes)[:-1]
        key = tuple(text[code] for text, code in zip(texts, codes, strict=True))
        parts.setdefault(key[0], []).append((key, low, high))
    return parts, found % sizes[-1], series


def _lay_out(column: pa.ChunkedArray, flat: Floats, cells: Ints) -> None:
    """A column into its cells; chunk by chunk, as memory that was in use is the cheapest."""
    begin = 0
    for chunk in column.chunks:
        flat[cells[begin : begin + len(chunk)]] = pc.cast(chunk, pa.float64()).to_numpy(zero_copy_only=False)
        begin += len(chunk)


def _turned(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """A copy of [numbers, windows, partitions] as [numbers, partitions, windows]."""
    return values.transpose(0, 2, 1).copy()
