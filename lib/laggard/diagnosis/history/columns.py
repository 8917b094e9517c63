"""Columns of Arrow tables as numpy arrays: text as numbers, keys as places, rows of a condition."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Rows = TypeVar("Rows", bound=pa.Table | pa.RecordBatch)


def kept(rows: Rows, condition: pa.Array | pa.ChunkedArray) -> Rows:
    """The rows that meet a condition; nothing is copied where they are next to each other, as those of a time are."""
    is_kept = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    count, first = int(np.count_nonzero(is_kept)), int(np.argmax(is_kept)) if len(is_kept) else 0
    is_run = bool(is_kept[first : first + count].all())
    found: Rows = rows.slice(first, count) if is_run else rows.filter(condition)
    return found


def milliseconds(column: pa.ChunkedArray) -> Ints:
    """Times since the epoch."""
    found: Ints = pc.cast(column, pa.int64()).to_numpy() // 1000
    return found


def coded(column: pa.Array | pa.ChunkedArray) -> tuple[Ints, list[Any]]:
    """Text, or other values, as places in a list of the distinct ones, -1 where there is none; None is no text."""
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
    """As `to_pylist`, several times as fast where values repeat: each is made once."""
    if not len(column):
        return []  # Arrow makes no empty dictionary of times
    codes, values = coded(column)
    places = np.empty(len(values) + 1, object)
    places[:-1] = values  # the last one is None, of -1
    found: list[Any] = places[codes].tolist()
    return found


def places_of(column: pa.ChunkedArray) -> dict[str, Ints]:
    """The rows of each text, in order."""
    codes, texts = coded(column)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(texts) + 1))
    return {text: order[low:high] for text, low, high in zip(texts, bounds, bounds[1:], strict=False)}


def ranked(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """The distinct texts in order, and the place of each row's among them."""
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
    """As np.unique with the inverse, by hashes: rows are many more than keys."""
    encoded = pa.array(keys).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    places = np.empty(len(found), np.int64)
    places[order] = np.arange(len(found))
    return found[order], places[encoded.indices.to_numpy()]
