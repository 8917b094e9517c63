"""Commits of a whole batch at once: keys decoded once each, values read as columns of numbers.

A value is read here only where its version and length leave a single way to read it; every other
row goes to the pure decoder, so that the two agree by construction.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laggard.wire.decode import Outcome, decode_key, decode_value, join_value
from laggard.wire.schemas import COMMIT_TYPES, OFFSET_COMMIT

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FIRST_WITH_TOPIC_ID = 4
# v0 and v2 with empty metadata; so the first 18 bytes can be read before anything is checked
SHORTEST_COMMIT = 20
WORD_BYTES = 8
TOPIC_ID_TAG = 0x01_00_10  # one tag, number 0, 16 bytes

# version: where the int16 length of the metadata stands, and the size of everything but the
# metadata
FIXED_SIZES = {0: (10, 20), 1: (10, 28), 2: (10, 20), 3: (14, 24)}


@dataclass(frozen=True, slots=True, eq=False)
class CommitColumns:
    """Decoded batch: its distinct keys, a column per commit number, and other rows' outcomes."""

    keys: list[Outcome]  # per distinct key; null keys share one entry
    key_index: npt.NDArray[np.int32]
    is_commit: Flags
    is_tombstone: Flags
    offset: Ints  # this and the next two: only where is_commit
    leader_epoch: npt.NDArray[np.int32]
    commit_timestamp_ms: Ints
    value_version: npt.NDArray[np.int16]  # -1 where not is_commit
    others: dict[int, Outcome]
    values: pa.Array = field(repr=False)

    def topic_id(self, row: int) -> str | None:
        """Return the topic id that a commit carries; decoded when asked, since few rows are."""
        if not self.is_commit[row] or self.value_version[row] < FIRST_WITH_TOPIC_ID:
            return None
        commit = decode_value(OFFSET_COMMIT, self.values[row].as_py()).value or {}
        return commit.get("topic_id")


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The cells of one binary array where they lie, without a copy."""

    data: npt.NDArray[np.uint8]
    start: Ints
    size: Ints
    is_valid: Flags

    def word(self, position: Ints) -> Ints:
        """Read eight big-endian bytes at each position of the data."""
        words: npt.NDArray[np.uint64] = np.ndarray(
            (max(0, self.data.size - WORD_BYTES + 1),), dtype=">u8", buffer=self.data, strides=(1,)
        )
        return words[position].astype(np.int64)

    def cell(self, row: int) -> bytes | None:
        if not self.is_valid[row]:
            return None
        return self.data[self.start[row] : self.start[row] + self.size[row]].tobytes()


def _cells(array: pa.Array) -> _Cells:
    offset_types = {pa.binary(): np.int32, pa.large_binary(): np.int64}
    if array.type not in offset_types:
        raise TypeError(f"expected binary or large_binary, not {array.type}")
    if not len(array):  # an empty array may come without any buffer
        none = np.zeros(0, np.int64)
        return _Cells(np.zeros(0, np.uint8), none, none, none.astype(np.bool_))
    _, edges_buffer, data_buffer = array.buffers()
    offset_type = np.dtype(offset_types[array.type])
    edges = np.frombuffer(
        edges_buffer, offset_type, len(array) + 1, array.offset * offset_type.itemsize
    )
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    return _Cells(data, edges[:-1].astype(np.int64), np.diff(edges).astype(np.int64), is_valid)


# groups commit the same partitions tick after tick, in the same worker; it keeps some 50 MB of keys
# at most
LONGEST_KNOWN = 512  # bytes; names can have 32 kB, and so many of those would be gigabytes
_known_key = lru_cache(maxsize=131_072)(decode_key)


def _decode_any_key(key: bytes) -> Outcome:
    try:
        if len(key) <= LONGEST_KNOWN:
            return _known_key(key)
        return decode_key(key)
    # one record is never a reason to stop; it is counted as a dead letter
    except Exception:  # noqa: BLE001
        return Outcome("malformed", error="decoder_failed")


def _join_any_value(key: Outcome, value: bytes | None) -> Outcome:
    try:
        return join_value(key, value)
    except Exception:  # noqa: BLE001 - as above
        return Outcome("malformed", key.record_type, key=key.key, error="decoder_failed")


def _decode_keys(keys: pa.Array) -> tuple[list[Outcome], npt.NDArray[np.int32]]:
    encoded = keys.dictionary_encode()
    keys_in_order = encoded.dictionary.to_pylist()
    outcomes = [_decode_any_key(key) for key in keys_in_order]
    index = encoded.indices
    if index.null_count:
        index = index.fill_null(len(outcomes))
        outcomes.append(decode_key(None))
    return outcomes, index.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)


def _fixed_layout(cells: _Cells, rows: Ints, head: Ints, version: int) -> tuple[Flags, Ints]:
    # head: the eight bytes at 10, which hold the metadata length of every version up to 3
    metadata_at, other_bytes = FIXED_SIZES[version]
    length = (head >> (48 - 8 * (metadata_at - 10))).astype(np.int16).astype(np.int64)
    is_plain = (length >= 0) & (cells.size[rows] == other_bytes + length)
    return is_plain, metadata_at + 2 + length


def _flexible_layout(cells: _Cells, rows: Ints, head: Ints) -> tuple[Flags, Ints]:
    low, high = head >> 24 & 0xFF, head >> 16 & 0xFF  # the bytes at 14 and 15
    is_short = low < 0x80
    length = np.where(is_short, low, (low & 0x7F) | high << 7) - 1
    timestamp_at = 15 + ~is_short + length
    size = cells.size[rows]
    tags_at = timestamp_at + WORD_BYTES
    has_one_byte = size == tags_at + 1
    is_plain = (length >= 0) & (is_short | (high < 0x80)) & (has_one_byte | (size == tags_at + 19))
    # the last word of the row ends in the tag count if that is all there is; else the word at the
    # tags starts with them
    last_word = cells.word(
        cells.start[rows] + np.where(is_plain & ~has_one_byte, tags_at, size - WORD_BYTES)
    )
    is_known = np.where(has_one_byte, last_word & 0xFF == 0, last_word >> 40 == TOPIC_ID_TAG)
    return is_plain & is_known, timestamp_at


def _timestamps_at(cells: _Cells, rows: Ints, head: Ints, version: int) -> tuple[Flags, Ints]:
    if version in FIXED_SIZES:
        return _fixed_layout(cells, rows, head, version)
    return _flexible_layout(cells, rows, head)


def _fill(columns: CommitColumns, cells: _Cells, candidates: Ints) -> None:
    """Fill in the candidate rows whose value has exactly the size of version and metadata.

    The metadata length and the version ask for that size.
    """
    start = cells.start[candidates]
    versions = (cells.word(start) >> 48).astype(np.int16)
    for version in (*FIXED_SIZES, 4):
        of_version = np.flatnonzero(versions == version)
        if not of_version.size:
            continue
        rows = candidates[of_version]
        head = cells.word(cells.start[rows] + 10)
        is_plain, timestamp_at = _timestamps_at(cells, rows, head, version)
        if not is_plain.all():
            rows, head, timestamp_at = rows[is_plain], head[is_plain], timestamp_at[is_plain]
        row_start = cells.start[rows]
        columns.is_commit[rows] = True
        columns.value_version[rows] = version
        columns.offset[rows] = cells.word(row_start + 2)
        columns.commit_timestamp_ms[rows] = cells.word(row_start + timestamp_at)
        if version >= 3:
            columns.leader_epoch[rows] = head >> 32


def _fill_one(columns: CommitColumns, row: int, commit: dict[str, Any], version: int) -> None:
    columns.is_commit[row] = True
    columns.value_version[row] = version
    columns.offset[row] = commit["offset"]
    columns.leader_epoch[row] = commit["leader_epoch"]
    columns.commit_timestamp_ms[row] = commit["commit_timestamp"]


def decode_columns(keys: pa.Array, values: pa.Array) -> CommitColumns:
    """Decode a batch of records, given as two equal-length arrays of `binary` or `large_binary`."""
    if len(keys) != len(values):
        raise ValueError(f"{len(keys)} keys, but {len(values)} values")
    _cells(keys.slice(0, 0))  # refuse another type before it is read as bytes
    cells = _cells(values)
    outcomes, key_index = _decode_keys(keys)
    is_commit_key = np.array(
        [key.record_type in COMMIT_TYPES and key.outcome == "record" for key in outcomes], bool
    )
    has_commit_key = is_commit_key[key_index]
    rows = len(keys)
    columns = CommitColumns(
        keys=outcomes,
        key_index=key_index,
        is_commit=np.zeros(rows, bool),
        is_tombstone=has_commit_key & ~cells.is_valid,
        offset=np.zeros(rows, np.int64),
        leader_epoch=np.full(rows, -1, np.int32),
        commit_timestamp_ms=np.zeros(rows, np.int64),
        value_version=np.full(rows, -1, np.int16),
        others={},
        values=values,
    )
    _fill(
        columns,
        cells,
        np.flatnonzero(has_commit_key & cells.is_valid & (cells.size >= SHORTEST_COMMIT)),
    )
    for row in np.flatnonzero(~(columns.is_commit | columns.is_tombstone)).tolist():
        outcome = _join_any_value(outcomes[key_index[row]], cells.cell(row))
        is_commit = has_commit_key[row] and outcome.outcome == "record"
        if is_commit and outcome.value is not None and outcome.value_version is not None:
            _fill_one(columns, row, outcome.value, outcome.value_version)
        else:
            columns.others[row] = outcome
    return columns
