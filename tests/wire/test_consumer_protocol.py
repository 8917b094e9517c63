"""Subscriptions and assignments, against our encoder and against kafka-python's codec."""

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
from laggard.wire.member_blobs import decode_assignment, decode_subscription

# kafka-python loads its schemas with a deprecated call of importlib
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

I32 = st.integers(-(2**31), 2**31 - 1)
TOPIC = st.text(max_size=8)
USER_DATA = st.none() | st.binary(max_size=200)
TOPIC_PARTITIONS = st.lists(
    st.fixed_dictionaries({"topic": TOPIC, "partitions": st.lists(I32, max_size=4)}), max_size=3
)
SUBSCRIPTION = st.fixed_dictionaries(
    {
        "version": st.integers(0, 3),
        "topics": st.lists(TOPIC, max_size=3),
        "user_data": USER_DATA,
        "owned_partitions": TOPIC_PARTITIONS,
        "generation_id": I32,
        "rack_id": st.none() | st.text(max_size=5),
    }
)
ASSIGNMENT = st.fixed_dictionaries(
    {"version": st.integers(0, 3), "assigned_partitions": TOPIC_PARTITIONS, "user_data": USER_DATA}
)
REST = {"owned_partitions": [], "generation_id": -1, "rack_id": None}
FIELDS_SINCE = {"owned_partitions": 1, "generation_id": 2, "rack_id": 3}
COOPERATIVE = {
    "version": 3,
    "topics": ["orders"],
    "user_data": b"u",
    "owned_partitions": [{"topic": "orders", "partitions": [0, 1]}],
    "generation_id": 7,
    "rack_id": "r1",
}


def as_of(wanted: dict[str, Any]) -> dict[str, Any]:
    """Put the default wherever this version has no place for a field."""
    absent = {name: REST[name] for name, since in FIELDS_SINCE.items() if wanted["version"] < since}
    return {**wanted, **absent, "partial": False}


@settings(max_examples=120, deadline=None)
@given(SUBSCRIPTION, st.binary(max_size=3))
def test_a_subscription_reads_back_whatever_follows_it(
    wanted: dict[str, Any], left_over: bytes
) -> None:
    assert as_of(wanted) == decode_subscription(encoder.subscription(wanted) + left_over)


@settings(max_examples=120, deadline=None)
@given(ASSIGNMENT, st.binary(max_size=3))
def test_an_assignment_reads_back_whatever_follows_it(
    got: dict[str, Any], left_over: bytes
) -> None:
    assert got == decode_assignment(encoder.assignment(got) + left_over)


@settings(max_examples=80, deadline=None)
@given(SUBSCRIPTION)
def test_kafka_python_reads_and_writes_the_same_subscription(wanted: dict[str, Any]) -> None:
    fields = {name: value for name, value in wanted.items() if name != "version"}
    theirs = ConsumerProtocolSubscription(**fields).encode(version=wanted["version"])
    ours = decode_subscription(theirs)
    assert as_of(wanted) == ours
    read_by_them = ConsumerProtocolSubscription.decode(encoder.subscription(wanted)).to_dict(
        json=False
    )
    assert read_by_them == {name: ours[name] for name in read_by_them}


@settings(max_examples=80, deadline=None)
@given(ASSIGNMENT)
def test_kafka_python_reads_and_writes_the_same_assignment(got: dict[str, Any]) -> None:
    fields = {name: value for name, value in got.items() if name != "version"}
    assert got == decode_assignment(
        ConsumerProtocolAssignment(**fields).encode(version=got["version"])
    )
    assert fields == ConsumerProtocolAssignment.decode(encoder.assignment(got)).to_dict(json=False)


def test_a_cut_after_the_prefix_leaves_all_later_fields_at_their_defaults() -> None:
    whole = encoder.subscription(COOPERATIVE)
    prefix = len(encoder.subscription({**COOPERATIVE, "version": 0}))
    for size in range(prefix, len(whole)):
        assert decode_subscription(whole[:size]) == {**COOPERATIVE, **REST, "partial": True}


def test_a_cut_inside_the_prefix_is_an_error() -> None:
    prefix = len(encoder.subscription({**COOPERATIVE, "version": 0}))
    for size in range(prefix):
        assert decode_subscription(encoder.subscription(COOPERATIVE)[:size]) == {
            "error": "truncated"
        }


def test_a_cut_assignment_is_an_error_unless_nothing_is_left() -> None:
    whole = encoder.assignment(
        {"version": 1, "assigned_partitions": [{"topic": "t", "partitions": [4]}], "user_data": b""}
    )
    for size in range(1, len(whole)):
        assert decode_assignment(whole[:size]) == {"error": "truncated"}
    assert decode_assignment(b"") == {"version": None, "assigned_partitions": [], "user_data": None}


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
def test_a_negative_version_is_its_own_error(decode: Any) -> None:
    assert decode(b"\xff\xff" + bytes(20)) == {"error": "bad_version"}


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_give_fields_or_an_error(blob: bytes) -> None:
    for decoded in (decode_subscription(blob), decode_assignment(blob)):
        assert ("error" in decoded) != ("version" in decoded)


def test_two_subscriptions_never_share_their_default_list() -> None:
    blob = encoder.subscription({**COOPERATIVE, "version": 0})
    decode_subscription(blob)["owned_partitions"].append("changed")
    assert decode_subscription(blob)["owned_partitions"] == []
