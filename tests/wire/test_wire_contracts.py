"""Contracts of the single readers, and the field that an error names."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
from laggard.wire import primitives
from laggard.wire.decode import Outcome, decode
from laggard.wire.errors import WireError
from laggard.wire.primitives import Reader
from laggard.wire.structs import Field, struct_reader, tags_of

UUID = bytes(range(1, 17))
LENGTHS = (0, 1, 126, 127, 128, 16_383, 16_384, 32_767)
KEY = encoder.commit_key("g", "t", 0)
GROUP_KEY = encoder.group_key("g")
COMMIT = {
    "offset": 5,
    "leader_epoch": 1,
    "metadata": "",
    "commit_timestamp": 9,
    "expire_timestamp": -1,
    "topic_id": None,
}
HEAD = encoder.i16(4) + encoder.i64(5) + encoder.i32(1)
MEMBER = {
    "member_id": "m",
    "group_instance_id": None,
    "client_id": "c",
    "client_host": "/h",
    "rebalance_timeout": 1,
    "session_timeout": 1,
    "subscription": b"s",
    "assignment": b"",
}
GROUP = {
    "protocol_type": "consumer",
    "generation": 1,
    "protocol": "range",
    "leader": "m",
    "current_state_timestamp": 1,
    "members": [MEMBER, MEMBER],
}

EXAMPLES: list[tuple[Reader[Any], bytes, Any]] = [
    (primitives.read_int8, b"\x80", -128),
    (primitives.read_int16, b"\xff\xfe", -2),
    (primitives.read_int32, b"\x7f\xff\xff\xff", 2**31 - 1),
    (primitives.read_int64, b"\x80" + bytes(7), -(2**63)),
    (primitives.read_uint16, b"\xff\xfe", 65_534),
    (primitives.read_uuid, UUID, "AQIDBAUGBwgJCgsMDQ4PEA"),
    (primitives.read_nonzero_uuid, bytes(16), None),
    (primitives.read_uvarint, b"\xff\xff\xff\xff\x0f", 2**32 - 1),
    (primitives.read_uvarint, b"\x83\x80\x80\x80\x00", 3),
    (primitives.read_string, encoder.string("é😀"), "é😀"),
    (primitives.read_nullable_string, encoder.string(None), None),
    (primitives.read_compact_string, encoder.string("é😀", compact=True), "é😀"),
    (primitives.read_compact_nullable_string, encoder.string(None, compact=True), None),
    (primitives.read_lossy_string, encoder.i16(3) + b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    (primitives.read_compact_lossy_string, b"\x03\xc3(", "\ufffd("),
    (primitives.read_bytes, encoder.blob(b"ab"), b"ab"),
    (primitives.read_nullable_bytes, encoder.blob(None), None),
    (primitives.read_compact_bytes, encoder.blob(b"ab", compact=True), b"ab"),
    (primitives.read_compact_bytes, encoder.blob(b"", compact=True), b""),
    (
        primitives.array_of(primitives.read_int32),
        encoder.array([encoder.i32(7), encoder.i32(8)]),
        [7, 8],
    ),
    (
        primitives.compact_array_of(primitives.read_int8),
        encoder.array([b"\1", b"\2"], compact=True),
        [1, 2],
    ),
    (primitives.array_of(primitives.read_int16), encoder.array([encoder.i16(-1)]), [-1]),
    (
        primitives.compact_array_of(primitives.read_int32),
        encoder.array([encoder.i32(-1)], compact=True),
        [-1],
    ),
    (primitives.nullable_array_of(primitives.read_int32), encoder.i32(-1), None),
    (primitives.compact_nullable_array_of(primitives.read_int32), b"\0", None),
    (primitives.compact_nullable_array_of(primitives.read_int32), b"\1", []),
    (primitives.nullable(primitives.read_int16), b"\xff", None),
    (primitives.nullable(primitives.read_int16), b"\1\0\5", 5),
    (primitives.tagged_nullable(primitives.read_int16), b"\0", None),
    (primitives.tagged_nullable(primitives.read_int16), b"\x81\0\0\5", 5),
    (tags_of({1: primitives.read_int8}), encoder.tag_section([(0, b"abc"), (1, b"\5")]), {1: 5}),
]

FAULTS: list[tuple[Reader[Any], bytes, str]] = [
    (primitives.read_uvarint, b"\xff\xff\xff\xff\x10", "bad_varint"),
    (primitives.read_uvarint, b"\x80\x80\x80\x80\x80\x00", "bad_varint"),
    (primitives.read_string, b"\xff\xff", "null_not_allowed"),
    (primitives.read_compact_string, b"\x00", "null_not_allowed"),
    (primitives.read_nullable_string, b"\xff\xfe", "bad_length"),
    (primitives.read_compact_string, encoder.uvarint(32_769), "bad_length"),
    (primitives.read_compact_nullable_string, b"\xff\xff\xff\xff\x0f", "bad_length"),
    (primitives.read_string, b"\x00\x01\xff", "bad_utf8"),
    (primitives.read_compact_string, b"\x04\xed\xa0\x80", "bad_utf8"),
    (primitives.read_bytes, b"\xff\xff\xff\xff", "null_not_allowed"),
    (primitives.read_nullable_bytes, b"\xff\xff\xff\xfe", "bad_length"),
    (primitives.read_bytes, b"\x7f\xff\xff\xff", "truncated"),
    (primitives.read_compact_bytes, b"\xff\xff\xff\xff\x0f", "truncated"),
    (primitives.array_of(primitives.read_int8), b"\xff\xff\xff\xff", "null_not_allowed"),
    (primitives.array_of(primitives.read_int8), b"\xff\xff\xff\xfe", "bad_length"),
    (primitives.compact_array_of(primitives.read_int8), b"\x00", "null_not_allowed"),
    (primitives.array_of(primitives.read_int32), encoder.i32(2) + bytes(7), "truncated"),
    (primitives.nullable_array_of(primitives.read_int8), b"\xff\xff\xff\xfe", "bad_length"),
    (primitives.nullable(primitives.read_int8), b"\0\0", "bad_marker"),
    (primitives.nullable(primitives.read_int8), b"\2\0", "bad_marker"),
    (primitives.tagged_nullable(primitives.read_int8), b"\2\0", "bad_marker"),
    (primitives.tagged_nullable(primitives.read_int8), b"\xff\xff\xff\xff\x0f", "bad_marker"),
    (tags_of({}), b"\x02\x01\x00\x01\x00", "bad_tag"),
    (tags_of({}), b"\x02\x01\x00\x00\x00", "bad_tag"),
    (tags_of({0: primitives.read_int16}), b"\x01\x00\x03\x00\x00\x00", "bad_tag"),
    (tags_of({0: primitives.read_int16}), b"\x01\x00\x01\x00\x00", "bad_tag"),
    (tags_of({0: primitives.read_string}), b"\x01\x00\x02\xff\xff", "null_not_allowed"),
    (tags_of({}), b"\x01\x00\xff\xff\xff\xff\x0f", "truncated"),
]


@pytest.mark.parametrize(("reader", "encoded", "value"), EXAMPLES)
def test_a_reader_gives_value_and_size_wherever_it_starts(
    reader: Reader[Any], encoded: bytes, value: object
) -> None:
    assert (value, len(encoded)) == reader(b"before" + encoded + b"after", 6)


@pytest.mark.parametrize(("reader", "encoded", "value"), EXAMPLES)
def test_a_reader_cut_at_any_byte_is_truncated(
    reader: Reader[Any], encoded: bytes, value: object
) -> None:
    assert reader(encoded, 0)[0] == value
    for size in range(len(encoded)):
        with pytest.raises(WireError) as caught:
            reader(encoded[:size], 0)
        assert caught.value.kind == "truncated"


@pytest.mark.parametrize(("reader", "encoded", "kind"), FAULTS)
def test_a_fault_has_its_own_kind(reader: Reader[Any], encoded: bytes, kind: str) -> None:
    with pytest.raises(WireError) as caught:
        reader(encoded, 0)
    assert caught.value.kind == kind


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length_up_to_the_limit_survives_both_string_encodings(length: int) -> None:
    text = "x" * length
    for reader, compact in (
        (primitives.read_string, False),
        (primitives.read_compact_string, True),
    ):
        encoded = encoder.string(text, compact=compact)
        assert (text, len(encoded)) == reader(encoded + b"next", 0)


def test_a_count_of_two_billion_fails_before_anything_is_read() -> None:
    def read_item(buffer: bytes, offset: int) -> tuple[int, int]:
        raise AssertionError(buffer, offset)

    for reader, count in (
        (primitives.array_of(read_item), encoder.i32(2**31 - 1)),
        (primitives.compact_array_of(read_item), encoder.uvarint(2**32 - 1)),
    ):
        with pytest.raises(WireError) as caught:
            reader(count + b"four", 0)
        assert caught.value.kind == "truncated"


def test_an_absent_list_is_empty_and_shared_with_no_other_struct() -> None:
    reader = struct_reader(
        (Field("configs", primitives.read_int8, default=(), tag=0),), 0, is_flexible=True
    )
    first, _ = reader(b"\0", 0)
    first["configs"].append("changed")
    assert reader(b"\0", 0)[0] == {"configs": []}


def test_a_fault_inside_a_tag_names_the_tagged_field() -> None:
    reader = struct_reader((Field("epoch", primitives.read_int16, tag=0),), 0, is_flexible=True)
    with pytest.raises(WireError) as caught:
        reader(b"\x01\x00\x01\x05", 0)
    assert (caught.value.kind, caught.value.field) == ("bad_tag", "epoch")


def cut_in_second_member(version: int) -> bytes:
    return encoder.group_value(version, GROUP)[: -1 if version == 3 else -3]


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        (None, b"", ("null_key", None)),
        (b"\0", None, ("truncated", "record_type")),
        (b"\0\x19", None, ("unknown_record_type", "record_type")),
        (b"\0\1\0\1", None, ("truncated", "group")),
        (b"\0\1\0\1g\xff\xff", None, ("null_not_allowed", "topic")),
        (KEY[:-1], None, ("truncated", "partition")),
        (KEY + b"\0", b"", ("trailing_bytes", None)),
        (KEY, b"\0", ("truncated", "value_version")),
        (KEY, b"\0\5", ("unknown_value_version", "value_version")),
        (KEY, b"\0\4" + bytes(7), ("truncated", "offset")),
        (KEY, HEAD + b"\0", ("null_not_allowed", "metadata")),
        (KEY, HEAD + b"\1" + bytes(7), ("truncated", "commit_timestamp")),
        (KEY, HEAD + b"\1" + bytes(8) + b"\1\0\17" + bytes(15), ("bad_tag", "topic_id")),
        (GROUP_KEY, cut_in_second_member(3), ("truncated", "members.assignment")),
        (GROUP_KEY, cut_in_second_member(4), ("truncated", "members.assignment")),
    ],
)
def test_an_error_names_the_field_that_failed(
    key: bytes | None, value: bytes | None, fault: tuple[str, str]
) -> None:
    outcome = decode(key, value)
    assert fault == (outcome.error, outcome.field)


def test_a_fault_in_the_key_comes_before_one_in_the_value() -> None:
    assert decode(KEY[:-1], b"\0\x09").error == "truncated"
    assert decode(b"\0\1\xff\xfe", b"").error == "bad_length"


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("record_type", [0, 1])
def test_a_legacy_key_takes_every_value_version(version: int, record_type: int) -> None:
    outcome = decode(
        encoder.commit_key("g", "t", 0, record_type), encoder.commit_value(version, COMMIT)
    )
    assert ("record", record_type, version) == (
        outcome.outcome,
        outcome.record_type,
        outcome.value_version,
    )


def total(key: bytes | None, value: bytes | None) -> Outcome:
    """Decode, and check what holds for every outcome."""
    outcome = decode(key, value)
    assert (outcome.error is not None) == (outcome.outcome in ("unsupported", "malformed"))
    assert (outcome.value is not None) == (outcome.outcome == "record")
    assert outcome.outcome != "tombstone" or value is None
    return outcome


def mutated(draw: st.DrawFn, encoded: bytes) -> bytes:
    position = draw(st.integers(0, len(encoded) - 1))
    return encoded[:position] + draw(st.binary(max_size=2)) + encoded[position + 1 :]


@st.composite
def damaged(
    draw: st.DrawFn, make: Callable[[int, dict[str, Any]], bytes], fields: dict[str, Any]
) -> bytes:
    return mutated(draw, make(draw(st.integers(0, 4)), fields))


@settings(max_examples=400, deadline=None)
@given(
    st.none() | st.binary(max_size=40) | st.just(KEY) | st.just(GROUP_KEY),
    st.none()
    | st.binary(max_size=60)
    | damaged(
        encoder.commit_value, COMMIT | {"topic_id": "AQIDBAUGBwgJCgsMDQ4PEA", "metadata": "é"}
    )
    | damaged(encoder.group_value, GROUP),
)
def test_any_bytes_have_exactly_one_outcome(key: bytes | None, value: bytes | None) -> None:
    assert total(key, value).outcome in ("record", "tombstone", "unsupported", "malformed")
