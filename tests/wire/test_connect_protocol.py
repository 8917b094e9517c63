"""What Connect workers say and get, and what a group record shows of members of any
protocol type.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
import vectors
from laggard.wire.decode import decode
from laggard.wire.member_blobs import decode_member, decode_worker_assignment, decode_worker_state

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=8)
HELD = st.lists(
    st.fixed_dictionaries({"connector": TEXT, "tasks": st.lists(I32, max_size=4)}), max_size=3
)
STATE = st.fixed_dictionaries(
    {
        "version": st.integers(0, 3),
        "worker_url": TEXT,
        "config_offset": I64,
        "allocation": st.none() | st.binary(max_size=9),
    }
)
ASSIGNMENT = st.fixed_dictionaries(
    {
        "version": st.integers(0, 3),
        "error_code": st.integers(-(2**15), 2**15 - 1),
        "leader": TEXT,
        "leader_url": TEXT,
        "config_offset": I64,
        "assigned": HELD,
        "revoked": HELD,
        "scheduled_delay_ms": I32,
    }
)
GOT = {
    "version": 2,
    "error_code": 0,
    "leader": "w-1",
    "leader_url": "http://10.0.0.9:8083/",
    "config_offset": 17,
    "assigned": [{"connector": "sink", "tasks": [-1, 0, 1]}],
    "revoked": [{"connector": "source", "tasks": [3]}],
    "scheduled_delay_ms": 300_000,
}
REST = {"revoked": [], "scheduled_delay_ms": 0}


@settings(max_examples=100, deadline=None)
@given(STATE, st.binary(max_size=3))
def test_what_a_worker_says_reads_back(state: dict[str, Any], left_over: bytes) -> None:
    absent = {"allocation": None} if state["version"] < 1 else {}
    assert {**state, **absent, "partial": False} == decode_worker_state(
        encoder.worker_state(state) + left_over
    )


@settings(max_examples=100, deadline=None)
@given(ASSIGNMENT, st.binary(max_size=3))
def test_what_a_worker_gets_reads_back(got: dict[str, Any], left_over: bytes) -> None:
    absent = REST if got["version"] < 1 else {}
    assert {**got, **absent, "partial": False} == decode_worker_assignment(
        encoder.worker_assignment(got) + left_over
    )


def test_null_lists_are_empty() -> None:
    blob = encoder.worker_assignment({**GOT, "assigned": None, "revoked": None})
    assert decode_worker_assignment(blob) == {
        **GOT,
        "assigned": [],
        "revoked": [],
        "partial": False,
    }


def test_a_cut_inside_the_first_version_is_an_error_and_one_after_it_is_not() -> None:
    whole = encoder.worker_assignment(GOT)
    prefix = len(encoder.worker_assignment({**GOT, "version": 0}))
    for size in range(1, prefix):
        assert decode_worker_assignment(whole[:size]) == {"error": "truncated"}
    for size in range(prefix, len(whole)):
        assert decode_worker_assignment(whole[:size]) == {**GOT, **REST, "partial": True}


def test_zero_bytes_assign_nothing() -> None:
    nothing = decode_worker_assignment(b"")
    assert nothing.keys() == decode_worker_assignment(encoder.worker_assignment(GOT)).keys()
    assert (nothing["assigned"], nothing["leader"]) == ([], None)


@pytest.mark.parametrize("decode_blob", [decode_worker_state, decode_worker_assignment])
def test_a_negative_version_is_its_own_error(decode_blob: Any) -> None:
    assert decode_blob(b"\xff\xff" + bytes(20)) == {"error": "bad_version"}


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["consumer", "connect", "sr", ""]),
    st.binary(max_size=40),
    st.binary(max_size=40),
)
def test_any_bytes_of_a_member_give_fields_or_an_error_or_a_length(
    kind: str, asked: bytes, got: bytes
) -> None:
    blobs = decode_member(kind, {"subscription": asked, "assignment": got})
    if kind in ("sr", ""):
        assert blobs == ({"bytes": len(asked)}, {"bytes": len(got)})
    else:
        assert all(("error" in blob) != ("version" in blob) for blob in blobs)


def test_the_worker_of_a_group_record_is_shown() -> None:
    vector = next(
        each for each in vectors.RECORDS if each.name == "group_metadata_v3_connect_worker"
    )
    value = decode(vector.key, vector.value).value
    assert value is not None
    asked, got = decode_member(value["protocol_type"], value["members"][0])
    assert asked == {
        "version": 2,
        "worker_url": "http://10.0.0.9:8083/",
        "config_offset": 17,
        "allocation": b"",
        "partial": False,
    }
    assert got["assigned"] == []
