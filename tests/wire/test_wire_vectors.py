"""The decoder gives what Kafka's own classes gave for the same bytes."""

import json
from typing import Any

import pytest

import vectors
from laggard.wire.consumer_protocol import decode_assignment, decode_subscription
from laggard.wire.coordinator import coordinator_partition, java_hash
from laggard.wire.decode import decode, decode_key, decode_value, to_json, with_hex

BLOB_DECODERS = {"subscription": decode_subscription, "assignment": decode_assignment}


def by_name(case: Any) -> str:
    return str(case["name"] if isinstance(case, dict) else case.name)


@pytest.mark.parametrize("vector", vectors.DECODED, ids=by_name)
def test_a_record_decodes_to_exactly_what_the_vector_expects(vector: vectors.Vector) -> None:
    printed = json.loads(json.dumps(to_json(decode(vector.key, vector.value))))
    assert vector.expect == printed


@pytest.mark.parametrize("vector", vectors.RECORDS, ids=by_name)
def test_record_type_and_value_version_are_given_whenever_they_are_readable(vector: vectors.Vector) -> None:
    outcome = decode(vector.key, vector.value)
    assert (vector.record_type, vector.value_version) == (outcome.record_type, outcome.value_version)


@pytest.mark.parametrize("vector", vectors.LATER, ids=by_name)
def test_record_types_without_a_table_yet_are_unsupported(vector: vectors.Vector) -> None:
    assert to_json(decode(vector.key, vector.value)) == {"outcome": "unsupported", "error": "unknown_record_type"}


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


@pytest.mark.parametrize("case", vectors.VECTORS["coordinator_partition"], ids=lambda case: f"{case['group']!r}")
def test_a_group_is_on_the_partition_that_a_broker_chooses(case: dict[str, Any]) -> None:
    assert case["hash"] == java_hash(case["group"])
    assert case["expect"] == coordinator_partition(case["group"], case["partitions"])


def test_the_vectors_are_all_here() -> None:
    assert {section: len(cases) for section, cases in vectors.VECTORS.items()} == {
        "records": 175,
        "consumer_protocol": 29,
        "coordinator_partition": 24,
    }
