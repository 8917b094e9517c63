"""The columnar path agrees with the pure decoder on every row, garbage included."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
import fuzz
import vectors
from laggard.wire import columnar
from laggard.wire.columnar import CommitColumns, decode_columns
from laggard.wire.decode import Outcome, decode, decode_key

Row = tuple[bytes | None, bytes | None]
TOPIC_ID = "MKXx1fIkQy2J9jXHhK8m1w"
KEY = encoder.commit_key("g", "t", 0)
TYPES = [pa.binary(), pa.large_binary()]
INT64 = (-(2**63), -1, 0, 1, 1_700_000_000_000, 2**63 - 1)
METADATA = ("", "m", "é", "x" * 126, "x" * 127, "x" * 128, "x" * 300)
LONG_METADATA = ("x" * 16_382, "x" * 16_383, "x" * 16_384, "x" * 32_767)


def columns_of(rows: Sequence[Row], kind: pa.DataType) -> CommitColumns:
    return decode_columns(
        pa.array([key for key, _ in rows], kind), pa.array([value for _, value in rows], kind)
    )


def assert_agree(columns: CommitColumns, rows: Sequence[Row]) -> None:
    """Compare every output column, outcome and error with what the pure decoder
    says of each row.
    """
    assert len(columns.key_index) == len(rows)
    assert columns.others.keys() == set(
        np.flatnonzero(~(columns.is_commit | columns.is_tombstone)).tolist()
    )
    for row, (key, value) in enumerate(rows):
        pure = decode(key, value)
        is_of_commit = pure.record_type in (0, 1)
        is_commit = is_of_commit and pure.outcome == "record"
        assert decode_key(key) == columns.keys[columns.key_index[row]]
        assert (is_commit, is_of_commit and pure.outcome == "tombstone") == (
            columns.is_commit[row],
            columns.is_tombstone[row],
        )
        if row in columns.others:
            assert pure == columns.others[row]
        if not is_commit:
            assert (columns.value_version[row], columns.topic_id(row)) == (-1, None)
            continue
        assert pure.value is not None
        assert (
            pure.value["offset"],
            pure.value["leader_epoch"],
            pure.value["commit_timestamp"],
            pure.value_version,
            pure.value["topic_id"],
        ) == (
            columns.offset[row],
            columns.leader_epoch[row],
            columns.commit_timestamp_ms[row],
            columns.value_version[row],
            columns.topic_id(row),
        )


def a_value(rng: random.Random, metadata: Sequence[str] = METADATA) -> bytes:
    commit: dict[str, Any] = {
        "offset": rng.choice(INT64),
        "leader_epoch": rng.choice((-(2**31), -1, 0, 2**31 - 1)),
        "metadata": rng.choice(metadata),
        "commit_timestamp": rng.choice(INT64),
        "expire_timestamp": rng.choice(INT64),
        "topic_id": rng.choice((None, TOPIC_ID, "A" * 22)),
    }
    unknown_tags = rng.choice(((), (), ((3, b"abc"),)))
    return encoder.commit_value(rng.randrange(5), commit, unknown_tags)


def damaged(rng: random.Random, value: bytes) -> bytes:
    position = rng.randrange(len(value))
    match rng.randrange(4):
        case 0:
            return value[:position]
        case 1:
            return value + rng.randbytes(rng.randrange(1, 20))
        case 2:
            return value[:position] + rng.randbytes(1) + value[position + 1 :]
    return rng.randbytes(rng.randrange(45))


def a_row(rng: random.Random) -> Row:
    key: bytes | None = encoder.commit_key(
        f"g{rng.randrange(3)}", rng.choice("ab"), 0, rng.randrange(2)
    )
    value: bytes | None = a_value(rng)
    kind = rng.random()
    if kind < 0.1:
        value = None
    elif kind < 0.5:
        value = damaged(rng, value or b"")
    if rng.random() < 0.15:
        key = rng.choice(
            (
                None,
                b"",
                b"\0",
                KEY + b"x",
                KEY[:-1],
                encoder.group_key("g"),
                b"\0\3\0\1g",
                b"\0\x19",
            )
        )
    if rng.random() < 0.03:
        other = rng.choice(vectors.RECORDS)
        key, value = other.key, other.value
    return key, value


@pytest.mark.parametrize("kind", TYPES)
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 4), st.integers(0, 4))
def test_mixed_and_sliced_batches_agree(
    kind: pa.DataType, seed: int, size: int, before: int, after: int
) -> None:
    rng = random.Random(seed)
    rows = [a_row(rng) for _ in range(before + size + after)]
    keys = pa.array([key for key, _ in rows], kind).slice(before, size)
    values = pa.array([value for _, value in rows], kind).slice(before, size)
    assert_agree(decode_columns(keys, values), rows[before : before + size])


def test_a_large_mixed_batch_agrees() -> None:
    rng = random.Random(20_240_601)
    rows = [a_row(rng) for _ in range(12_000)]
    assert_agree(columns_of(rows, pa.binary()), rows)


@pytest.mark.parametrize("kind", TYPES)
def test_damaged_records_of_every_type_agree(kind: pa.DataType) -> None:
    rows = list(itertools.islice(fuzz.mutants(11), 4_000))
    assert_agree(columns_of(rows, kind), rows)


@pytest.mark.parametrize("kind", TYPES)
def test_every_vector_agrees(kind: pa.DataType) -> None:
    rows = [(vector.key, vector.value) for vector in vectors.RECORDS]
    assert_agree(columns_of(rows, kind), rows)


def test_metadata_of_any_length_agrees() -> None:
    rng = random.Random(5)
    rows = [(KEY, a_value(rng, LONG_METADATA)) for _ in range(60)]
    assert_agree(columns_of(rows, pa.binary()), rows)


def test_every_cut_and_every_changed_byte_of_a_commit_agrees() -> None:
    commit = {
        "offset": 5,
        "leader_epoch": 1,
        "metadata": "md",
        "commit_timestamp": 9,
        "expire_timestamp": 7,
    }
    rows: list[Row] = []
    for version in range(5):
        for topic_id in (None, TOPIC_ID):
            value = encoder.commit_value(version, {**commit, "topic_id": topic_id})
            rows += [(KEY, value[:size]) for size in range(len(value) + 1)]
            for position in range(len(value)):
                for byte in (0, 1, 2, 3, 4, 0x10, 0x7F, 0x80, 0xFF):
                    rows.append((KEY, value[:position] + bytes([byte]) + value[position + 1 :]))
    assert_agree(columns_of(rows, pa.binary()), rows)


@pytest.mark.parametrize(
    "length_bytes", [b"\x80\x00", b"\x81\x00", b"\x83\x00", b"\x83\x80\x00", b"\x80\x80\x00"]
)
def test_overlong_metadata_lengths_agree(length_bytes: bytes) -> None:
    head = encoder.i16(4) + encoder.i64(5) + encoder.i32(1)
    rows = [(KEY, head + length_bytes + b"md"[:size] + encoder.i64(9) + b"\0") for size in range(3)]
    assert_agree(columns_of(rows, pa.binary()), rows)


def test_null_metadata_of_just_the_size_that_its_length_asks_for_agrees() -> None:
    by_version = {1: b"\xff\xff", 3: bytes(4) + b"\xff\xff", 4: bytes(4) + b"\0"}
    sizes = {1: 27, 3: 23, 4: 23}  # as if the metadata had a length of -1
    values = [
        encoder.i16(version) + encoder.i64(5) + middle for version, middle in by_version.items()
    ]
    rows = [(KEY, value.ljust(sizes[value[1]], b"\0")) for value in values]
    assert_agree(columns_of(rows, pa.binary()), rows)


def test_a_metadata_length_of_three_bytes_is_not_read_as_one_of_two() -> None:
    numbers = {"offset": 5, "leader_epoch": 1, "commit_timestamp": 256, "topic_id": None}
    whole = encoder.commit_value(4, {**numbers, "metadata": "x" * 16_383})
    # the last byte of the timestamp passes for an empty tag section
    rows = [(KEY, whole), (KEY, whole[:-1])]
    assert_agree(columns_of(rows, pa.binary()), rows)


@pytest.mark.parametrize("kind", TYPES)
def test_batches_of_nothing_but_nulls_and_empty_batches_agree(kind: pa.DataType) -> None:
    batches: list[list[Row]] = [
        [],
        [(None, None)] * 3,
        [(KEY, None)] * 3,
        [(None, b"")] * 3,
        [(KEY, b"")] * 3,
    ]
    for rows in batches:
        assert_agree(columns_of(rows, kind), rows)
    assert_agree(decode_columns(pa.nulls(2, kind), pa.nulls(2, kind)), [(None, None)] * 2)


def test_bytes_under_a_null_are_never_read() -> None:
    value = encoder.commit_value(
        3, {"offset": 5, "leader_epoch": 1, "metadata": "", "commit_timestamp": 9}
    )
    full = pa.array([value, value], pa.binary())
    validity = pa.py_buffer(b"\x02")  # the first row is null although its bytes are there
    values = pa.Array.from_buffers(pa.binary(), 2, [validity, *full.buffers()[1:]])
    assert_agree(
        decode_columns(pa.array([KEY, KEY], pa.binary()), values), [(KEY, None), (KEY, value)]
    )


def test_null_keys_share_one_entry_that_says_so() -> None:
    columns = columns_of([(None, b""), (KEY, None), (None, None)], pa.binary())
    assert columns.key_index[0] == columns.key_index[2] != columns.key_index[1]
    assert columns.keys[columns.key_index[0]].error == "null_key"


def test_columns_have_the_types_they_promise() -> None:
    columns = columns_of([(KEY, None)], pa.binary())
    promised = {
        "key_index": "int32",
        "is_commit": "bool",
        "is_tombstone": "bool",
        "offset": "int64",
        "leader_epoch": "int32",
        "commit_timestamp_ms": "int64",
        "value_version": "int16",
    }
    assert promised == {name: str(getattr(columns, name).dtype) for name in promised}


def test_arrays_of_another_type_or_length_are_refused() -> None:
    keys = pa.array([KEY], pa.binary())
    with pytest.raises(TypeError, match="expected binary or large_binary, not string"):
        decode_columns(keys, pa.array(["text"]))
    with pytest.raises(TypeError, match="expected binary or large_binary, not string"):
        decode_columns(pa.array(["text"]), keys)
    with pytest.raises(ValueError, match="1 keys, but 2 values"):
        decode_columns(keys, pa.array([b"", b""], pa.binary()))


def test_commits_as_brokers_write_them_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(key: Outcome, value: bytes | None) -> Outcome:
        raise AssertionError(key, value)

    monkeypatch.setattr(columnar, "join_value", refuse)
    numbers = dict.fromkeys(("offset", "leader_epoch", "commit_timestamp", "expire_timestamp"), 7)
    values = [
        encoder.commit_value(version, {**numbers, "metadata": metadata, "topic_id": topic_id})
        for version, metadata, topic_id in itertools.product(
            range(5), (*METADATA, "x" * 16_382), (None, TOPIC_ID)
        )
    ]
    columns = columns_of([(KEY, value) for value in values], pa.binary())
    assert columns.is_commit.all()


def test_a_key_of_a_damaged_record_may_be_long_and_is_not_kept() -> None:
    short, long = encoder.commit_key("g", "kept", 0), encoder.commit_key("g" * 30_000, "t", 0)
    columnar._known_key.cache_clear()
    for _ in range(2):
        columns = columns_of([(short, None), (long, None)], pa.binary())
    assert [key.group for key in columns.keys] == ["g", "g" * 30_000]
    known = columnar._known_key.cache_info()
    assert (known.currsize, known.hits) == (1, 1)
