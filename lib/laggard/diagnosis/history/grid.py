"""Columns of Arrow tables as numpy arrays, and rows by partition and window.

The layout is computed once for all windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.history.frames import Floats, Names

Ints = npt.NDArray[np.int64]
Piece = TypeVar("Piece", bound=pa.Table | pa.RecordBatch)


def kept(rows: Piece, condition: pa.Array | pa.ChunkedArray) -> Piece:
    """Return the rows that meet a condition, without a copy if they are adjacent.

    Rows of a time range are adjacent.
    """
    is_kept = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    count, first = int(np.count_nonzero(is_kept)), int(np.argmax(is_kept)) if len(is_kept) else 0
    is_run = bool(is_kept[first : first + count].all())
    found: Piece = rows.slice(first, count) if is_run else rows.filter(condition)
    return found


def milliseconds(column: pa.ChunkedArray) -> Ints:
    """Return times in ms since the epoch."""
    found: Ints = pc.cast(column, pa.int64()).to_numpy() // 1000
    return found


def coded(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """Return values as indices into a list of the distinct values, -1 if null.

    None in the list is undecodable text.
    """
    whole = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.unify_dictionaries().combine_chunks()
    return pc.fill_null(whole.indices, -1).to_numpy().astype(np.int64), _values(whole.dictionary)


def _values(found: pa.Array) -> list[Any]:
    try:
        return list(found.to_pylist())
    except UnicodeDecodeError:  # one odd row must not cost the others
        return [_text(value) for value in found]


def _text(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return None


def listed(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return the values as `to_pylist` does, several times as fast if values repeat.

    Each distinct value is made once.
    """
    if not len(column):
        return []  # Arrow makes no empty dictionary of times
    codes, values = coded(column)
    places = np.empty(len(values) + 1, object)
    places[:-1] = values  # the last one is None, of -1
    found: list[Any] = places[codes].tolist()
    return found


def places_of(column: pa.ChunkedArray) -> dict[str, Ints]:
    """Return the row numbers of each text, in order."""
    codes, texts = coded(column)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(texts) + 1))
    return {
        text: order[low:high] for text, low, high in zip(texts, bounds, bounds[1:], strict=False)
    }


def ranked(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """Return the distinct texts in order, and the index of each row's text among them."""
    codes, texts = coded(column)
    if None in texts:  # perhaps of rows that are not among these
        if any(texts[code] is None for code in np.unique(codes).tolist()):
            raise ValueError("bytes that are no text")
        texts = [text or "" for text in texts]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    places = np.empty(len(texts), np.int64)
    places[order] = np.arange(len(texts))
    return [texts[code] for code in order], places[codes]


def distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Return unique keys and the inverse as np.unique does, by hashes.

    There are many more rows than keys.
    """
    encoded = pa.array(keys).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    places = np.empty(len(found), np.int64)
    places[order] = np.arange(len(found))
    return found[order], places[encoded.indices.to_numpy()]


_NO_ROW = np.iinfo(np.int64).max  # published later than any batch


class Rows(Protocol):
    """A table, or rows read in pieces that are never in memory as a whole.

    The order is the same each time.
    """

    column_names: Sequence[str]
    schema: pa.Schema

    def select(self, columns: Sequence[str]) -> Rows: ...

    def to_batches(self) -> Iterable[pa.RecordBatch]: ...


IsOwn: TypeAlias = Callable[[pa.Array], npt.NDArray[np.bool_]]  # of each that a key may begin with


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of a key in a span of windows; arrays are [partitions, windows]."""

    key: tuple[str, ...]
    partitions: Ints  # those with a row in one of the windows, ascending
    is_known: npt.NDArray[np.bool_]  # whether there is a row
    numbers: dict[str, Floats]  # NaN unknown
    names: dict[str, Names]  # "" unknown


class Grid:
    """All partitions of all keys, such as group and topic; a part is cut out for each window.

    `windows` are begins in ms, evenly spaced; `numbers` and `names` columns by the names of the
    arrays.
    """

    def __init__(
        self,
        rows: Rows,
        keys: Sequence[str],
        numbers: Mapping[str, str],
        names: Mapping[str, str],
        windows: Ints,
        is_own: IsOwn | None = None,
    ) -> None:
        table, own = _placed(
            rows.select([*keys, "partition", "window_start", "batch_id"]), keys[0], is_own
        )
        self._parts, self._partitions, series = _series(table, keys)
        step = windows[1] - windows[0] if len(windows) > 1 else 1
        at = (milliseconds(table["window_start"]) - windows[0]) // step
        at[(at < 0) | (at >= len(windows))] = len(windows)  # where nobody looks
        # a window after the other, as rows come; what a part has is turned round when it is cut out
        size, cells = (len(windows) + 1, len(self._partitions)), at * len(self._partitions) + series
        self._batches = np.full(size, _NO_ROW)
        self._batches.ravel()[cells] = table["batch_id"].to_numpy()
        self._numbers, self._names = list(numbers), list(names)
        self._values, self._codes = (
            np.full((len(numbers), *size), np.nan),
            np.zeros((len(names), *size), np.int32),
        )
        self._fill(rows, cells, own, numbers, names)

    def _fill(
        self,
        rows: Rows,
        cells: Ints,
        own: npt.NDArray[np.bool_],
        numbers: Mapping[str, str],
        names: Mapping[str, str],
    ) -> None:
        """Put the values of one's own rows, a batch at a time, into their cells."""
        places: list[dict[str, int]] = [{"": 0} for _ in names]
        known, begin, done = set(rows.column_names), 0, 0
        wanted = [name for name in (*numbers.values(), *names.values()) if name in known]
        for batch in rows.select(wanted).to_batches():
            chosen = np.flatnonzero(own[begin : begin + batch.num_rows])
            begin, last = begin + batch.num_rows, done + len(chosen)
            to, done = cells[done:last], last
            for whole, name in zip(self._values, numbers.values(), strict=True):
                if name in known:
                    whole.ravel()[to] = batch[name].to_numpy(zero_copy_only=False)[chosen]
            for whole, name, of_text in zip(self._codes, names.values(), places, strict=True):
                if name in known:
                    codes, texts = coded(batch[name])
                    numbered = np.array(
                        [*(of_text.setdefault(text or "", len(of_text)) for text in texts), 0],
                        np.int32,
                    )
                    whole.ravel()[to] = numbered[codes[chosen]]  # -1 is the last one
        self._texts = [np.array([*each], object) for each in places]

    @property
    def leaders(self) -> Iterable[str]:
        """Return the first part of the keys, in order."""
        return self._parts.keys()

    def parts(self, leader: str, first: int, last: int, batch_id: int) -> Iterator[Part]:
        """Yield a part per key with a row in the windows `first` to `last` - 1.

        Rows are those published up to a batch.
        """
        for key, low, high in self._parts.get(leader, ()):
            batches = self._batches[first:last, low:high].T
            is_known = batches <= batch_id
            has_row = is_known.any(axis=1)
            if not has_row.any():
                continue
            # copies, and not [numbers, windows, partitions] but [numbers, partitions, windows]
            values = self._values[:, first:last, low:high].transpose(0, 2, 1).copy()
            codes = self._codes[:, first:last, low:high].transpose(0, 2, 1).copy()
            is_later = (batches != _NO_ROW) & ~is_known
            if is_later.any():
                values[:, is_later], codes[:, is_later] = np.nan, 0
            if not has_row.all():
                values, codes = (each.compress(has_row, axis=1) for each in (values, codes))
            numbers = dict(zip(self._numbers, values, strict=True))
            names = {
                name: texts[own]
                for name, texts, own in zip(self._names, self._texts, codes, strict=True)
            }
            yield Part(key, self._partitions[low:high][has_row], is_known[has_row], numbers, names)


def _placed(
    rows: Rows, leader: str, is_own: IsOwn | None
) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """Return the own rows, and a mask of them among all rows.

    The other rows are never in memory all at once.
    """
    pieces, flags, known = [], [np.empty(0, np.bool_)], dict[str, bool]()
    for batch in rows.to_batches():
        if is_own is None:
            is_mine = np.ones(batch.num_rows, np.bool_)
        else:
            codes, texts = coded(batch[leader])
            fresh = [text for text in texts if text not in known]
            known.update(zip(fresh, is_own(pa.array(fresh, pa.string())).tolist(), strict=True))
            is_mine = np.array([known[text] for text in texts], np.bool_)[codes]
        is_mine &= _is_keyed(batch)
        flags.append(is_mine)
        pieces.append(kept(batch, pa.array(is_mine)))
    return pa.Table.from_batches(pieces, rows.schema), np.concatenate(flags)


def _is_keyed(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that have all of their key."""
    found = np.ones(batch.num_rows, np.bool_)
    for column in batch.columns:
        if column.null_count:
            found &= pc.is_valid(column).to_numpy(zero_copy_only=False)
    return found


def _series(
    rows: pa.Table, keys: Sequence[str]
) -> tuple[dict[str, list[tuple[tuple[str, ...], int, int]]], Ints, Ints]:
    """Return keys with begin and end of their series, and partition and row indices of series.

    The keys are in order; the indices are each series' partition, and each row's series.
    """
    if not rows.num_rows:
        return {}, np.empty(0, np.int64), np.empty(0, np.int64)
    texts, ranks = zip(*(ranked(rows[name]) for name in keys), strict=True)
    partitions = rows["partition"].to_numpy().astype(np.int64)
    numbered, places = distinct(partitions)
    sizes = (*(len(each) for each in texts), len(numbered))
    found, series = distinct(np.ravel_multi_index((*ranks, places), sizes))
    numbers = found // sizes[-1]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]).tolist()
    parts: dict[str, list[tuple[tuple[str, ...], int, int]]] = {}
    for low, high in zip(starts, [*starts[1:], len(found)], strict=True):
        codes = np.unravel_index(found[low], sizes)[:-1]
        key = tuple(text[code] for text, code in zip(texts, codes, strict=True))
        parts.setdefault(key[0], []).append((key, low, high))
    return parts, numbered[found % sizes[-1]], series
