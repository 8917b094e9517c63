"""Whatever group records say, in whatever order: no batch fails, and the tables hold what their
columns allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import encoder
import layouts
import made_up
from patience import examples
from rebalance.modern import CONSUMER, ENDS, folded
from stream.simulation import Record, generation

GROUP_RECORDS = sorted(number for number in layouts.KEYS if number >= 2)
NAMES = {
    "group": st.just("g"),
    "group_id": st.just("g"),
    "member_id": st.sampled_from(["a", "b"]),
    "regular_expression": st.sampled_from(["x", "y"]),
}


@st.composite
def any_record(draw: st.DrawFn) -> Record:
    number = draw(st.sampled_from(GROUP_RECORDS))
    key = encoder.record_key(number, {name: draw(NAMES[name]) for name in layouts.KEYS[number]})
    if draw(st.integers(0, 3)) == 0:
        return Record(key, None)
    version = 3 if number == 2 else 0
    value: dict[str, Any] = draw(made_up.VALUES[number, version])
    return Record(key, encoder.record_value(number, version, value))


@pytest.mark.examples
@settings(max_examples=examples(60))
@given(st.lists(st.lists(any_record(), max_size=6), max_size=3))
def test_any_group_records_in_any_order_fail_no_batch(ticks: list[list[Record]]) -> None:
    job = folded(*ticks)
    job.tick(ENDS)
    assert job.groups.keys() <= {"g"}
    assert {row["status"] for row in job.history["group_members"]} <= {"ok", "partial"}
    kinds = {row["generation_kind"] for row in job.history["generations"]}
    assert kinds <= {"classic", "epoch"}


@pytest.mark.parametrize("make", [generation, CONSUMER.epoch], ids=["generation", "epoch"])
def test_a_distance_that_no_column_holds_fails_no_batch(make: Callable[[int], Record]) -> None:
    job = folded([make(-(2**31)), make(2**31 - 1)])
    assert [row["generation_gap"] for row in job.history["generations"]] == [None, None]
