"""The decoder gives what Kafka's own classes gave for the same bytes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import encoder
import layouts
import vectors
from laggard.wire.coordinator import coordinator_partition, java_hash
from laggard.wire.decode import decode, decode_key, decode_value, to_json, with_hex
from laggard.wire.member_blobs import decode_assignment, decode_subscription

BLOB_DECODERS = {"subscription": decode_subscription, "assignment": decode_assignment}


def by_name(case: Any) -> str:
    return str(case["name"] if isinstance(case, dict) else case.name)


@pytest.mark.parametrize("vector", vectors.RECORDS, ids=by_name)
def test_a_record_decodes_to_exactly_what_the_vector_expects(vector: vectors.Vector) -> None:
    printed = json.loads(json.dumps(to_json(decode(vector.key, vector.value))))
    assert vector.expect == printed


@pytest.mark.parametrize("vector", vectors.RECORDS, ids=by_name)
def test_record_type_and_value_version_are_given_whenever_they_are_readable(
    vector: vectors.Vector,
) -> None:
    outcome = decode(vector.key, vector.value)
    assert (vector.record_type, vector.value_version) == (
        outcome.record_type,
        outcome.value_version,
    )


@pytest.mark.parametrize("vector", vectors.VALID, ids=by_name)
def test_key_and_value_decode_alone_as_they_do_together(vector: vectors.Vector) -> None:
    together = decode(vector.key, vector.value)
    assert vector.record_type is not None
    assert (together.key, together.value) == (
        decode_key(vector.key).key,
        decode_value(vector.record_type, vector.value).value,
    )


@pytest.mark.parametrize("vector", vectors.VALID, ids=by_name)
def test_a_key_cut_anywhere_is_malformed(vector: vectors.Vector) -> None:
    key = vector.key or b""
    for size in range(len(key)):
        cut = decode(key[:size], vector.value)
        assert (cut.outcome, cut.error, cut.key) == ("malformed", "truncated", None)


@pytest.mark.parametrize("vector", vectors.VALID, ids=by_name)
def test_a_value_cut_anywhere_is_malformed_and_keeps_its_key(vector: vectors.Vector) -> None:
    value = vector.value or b""
    key = decode_key(vector.key).key
    for size in range(len(value)):
        cut = decode(vector.key, value[:size])
        assert ("malformed", "truncated", None, key) == (cut.outcome, cut.error, cut.value, cut.key)


@pytest.mark.parametrize("vector", vectors.RECORDS, ids=by_name)
def test_any_cut_of_any_vector_has_one_outcome_and_a_reason_unless_it_is_a_whole_record(
    vector: vectors.Vector,
) -> None:
    whole = decode(vector.key, vector.value)
    may_be_whole = whole.error == "trailing_bytes"  # only there a shorter record can be a good one
    for key, value in cuts(vector):
        cut = decode(key, value)
        assert (cut.outcome in ("unsupported", "malformed")) == (cut.error is not None)
        assert cut.error is not None or may_be_whole
        assert (cut.value is not None) == (cut.outcome == "record")


def cuts(vector: vectors.Vector) -> Iterator[tuple[bytes | None, bytes | None]]:
    key, value = vector.key or b"", vector.value or b""
    yield from ((key[:size], vector.value) for size in range(len(key)))
    yield from ((vector.key, value[:size]) for size in range(len(value)))


@pytest.mark.parametrize("vector", vectors.VALID, ids=by_name)
@pytest.mark.parametrize("extra", [b"\0", b"\xff", bytes(16)])
def test_bytes_after_key_or_value_are_an_error(vector: vectors.Vector, extra: bytes) -> None:
    assert decode((vector.key or b"") + extra, vector.value).error == "trailing_bytes"
    if vector.value is not None:
        assert decode(vector.key, vector.value + extra).error == "trailing_bytes"


@pytest.mark.parametrize("vector", vectors.VECTORS["consumer_protocol"], ids=by_name)
def test_a_blob_decodes_to_exactly_what_the_vector_expects(vector: dict[str, Any]) -> None:
    decoded = BLOB_DECODERS[vector["kind"]](bytes.fromhex(vector["hex"]))
    assert vector["expect"] == json.loads(json.dumps(with_hex(decoded)))


@pytest.mark.parametrize(
    "case", vectors.VECTORS["coordinator_partition"], ids=lambda case: f"{case['group']!r}"
)
def test_a_group_is_on_the_partition_that_a_broker_chooses(case: dict[str, Any]) -> None:
    assert case["hash"] == java_hash(case["group"])
    assert case["expect"] == coordinator_partition(case["group"], case["partitions"])


def test_every_record_type_has_a_record_and_a_tombstone_among_the_vectors() -> None:
    outcomes = {(vector.record_type, vector.expect["outcome"]) for vector in vectors.VALID}
    assert {
        (number, outcome) for number in layouts.KEYS for outcome in ("record", "tombstone")
    } == outcomes


# the encoder writes the shortest varint, valid text, and no tags that it does not know
NOT_WRITTEN = {"unknown_tag_7_skipped", "overlong_varint_length", "metadata_invalid_utf8"}


@pytest.mark.parametrize("vector", vectors.VALID, ids=by_name)
def test_the_encoder_writes_the_bytes_of_the_vector(vector: vectors.Vector) -> None:
    decoded = decode(vector.key, vector.value)
    assert decoded.record_type is not None
    assert decoded.key is not None
    assert encoder.record_key(decoded.record_type, decoded.key) == vector.key
    if (
        decoded.value is None
        or decoded.value_version is None
        or vector.name.endswith(tuple(NOT_WRITTEN))
    ):
        return
    place = (decoded.record_type, decoded.value_version)
    assert vector.value in [
        encoder.record_value(*place, decoded.value, all_tags=written) for written in (False, True)
    ]


@pytest.mark.parametrize("number", [-32_768, -1, 9, 18, 25, 99, 32_767])
@pytest.mark.parametrize("value", [None, b"", b"\0", b"\0\0\0", b"\xff" * 40])
def test_an_unknown_record_type_is_unsupported_whatever_follows(
    number: int, value: bytes | None
) -> None:
    for rest in (b"", b"\0", encoder.string("g")):
        outcome = decode(encoder.i16(number) + rest, value)
        assert ("unsupported", "unknown_record_type", number) == (
            outcome.outcome,
            outcome.error,
            outcome.record_type,
        )


@pytest.mark.parametrize(
    "vector", [v for v in vectors.VALID if v.expect["outcome"] == "tombstone"], ids=by_name
)
def test_an_unknown_value_version_is_unsupported_and_keeps_the_key(vector: vectors.Vector) -> None:
    assert vector.record_type is not None
    known = {
        version for record_type, version in layouts.VALUES if record_type == vector.record_type
    }
    for version in {-32_768, -1, *range(10), 32_767} - known:
        outcome = decode(vector.key, encoder.i16(version) + bytes(30))
        assert (outcome.outcome, outcome.error) == ("unsupported", "unknown_value_version")
        assert (vector.record_type, version) == (outcome.record_type, outcome.value_version)
        assert vector.expect["key"] == outcome.key


@pytest.mark.parametrize("vector", vectors.RECORDS, ids=by_name)
def test_an_outcome_names_its_group_whenever_its_key_is_good(vector: vectors.Vector) -> None:
    key = vector.expect.get("key", {})
    assert key.get("group_id", key.get("group")) == decode(vector.key, vector.value).group


def test_the_vectors_are_all_here() -> None:
    assert {section: len(cases) for section, cases in vectors.VECTORS.items()} == {
        "records": 175,
        "consumer_protocol": 29,
        "coordinator_partition": 24,
    }
