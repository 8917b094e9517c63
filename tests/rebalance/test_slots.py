"""Slots: which place of a group a member has, and what happened to the places between two
generations.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.facts import MemberFacts
from laggard.rebalance.slots import (
    SlotChanges,
    client_id_pattern,
    compare_slots,
    holdings,
    name_slots,
)
from rebalance.fact_rows import member


def changed(
    before: list[MemberFacts], now: list[MemberFacts], *, by_member_id: bool = False
) -> SlotChanges:
    return compare_slots(before, now, by_member_id=by_member_id)


def on_host(member_id: str, host: str = "/h", client_id: str = "app") -> MemberFacts:
    return member(member_id, client_host=host, client_id=client_id)


def test_a_slot_is_the_instance_else_client_and_host_with_a_number() -> None:
    members = [on_host("m2"), on_host("m1"), member("m3", group_instance_id="one")]
    assert name_slots(members, by_member_id=False) == {
        "m1": "app/h#0",
        "m2": "app/h#1",
        "m3": "one",
    }


def test_a_modern_member_without_instance_is_its_own_slot() -> None:
    members = [on_host("m1"), member("m3", group_instance_id="one")]
    assert name_slots(members, by_member_id=True) == {"m1": "m1", "m3": "one"}


def test_a_member_that_stays_keeps_its_slot_when_its_neighbour_on_the_host_goes() -> None:
    found = changed([on_host("m1"), on_host("m2")], [on_host("m2")])
    assert (found.left, found.joined, found.replaced) == (("app/h#0",), (), ())
    assert found.kept == {"app/h#1": "app/h#0"}


def test_a_restart_on_the_same_host_takes_the_slot_over() -> None:
    found = changed([on_host("m1")], [on_host("m2")])
    assert (found.left, found.joined) == ((), ())
    assert found.replaced == found.restarted == ("app/h#0",)
    assert found.kept == {"app/h#0": "app/h#0"}


def test_a_member_on_another_host_follows_one_of_the_same_program() -> None:
    found = changed([on_host("m1", "/a", "app-1")], [on_host("m2", "/b", "app-2")])
    assert (found.left, found.joined, found.replaced) == (
        ("app-1/a#0",),
        ("app-2/b#0",),
        ("app-1/a#0",),
    )
    assert found.kept == {}


def test_a_member_of_another_program_follows_nobody() -> None:
    found = changed([on_host("m1", "/a", "app")], [on_host("m2", "/b", "job")])
    assert found.replaced == ()


def test_a_static_member_is_the_same_on_another_host() -> None:
    before = [member("m1", group_instance_id="one", client_host="/a")]
    found = changed(before, [member("m2", group_instance_id="one", client_host="/b")])
    assert (found.left, found.joined, found.restarted) == ((), (), ("one",))


def test_a_modern_member_that_returns_is_a_new_slot() -> None:
    found = changed([on_host("m1")], [on_host("m2")], by_member_id=True)
    assert (found.left, found.joined, found.kept) == (("m1",), ("m2",), {})


def test_equal_rosters_have_no_changes() -> None:
    assert changed([on_host("m1")], [on_host("m1")]).is_equal


def test_holdings_are_unknown_with_one_assignment() -> None:
    members = [member("1", "A0"), member("2", assigned=None)]
    assert holdings(members, name_slots(members, by_member_id=False)) is None


@pytest.mark.parametrize(
    ("client_id", "expected"), [("app-12-b3", "app-#-b#"), ("app", "app"), (None, None)]
)
def test_a_client_id_pattern_leaves_the_numbers_out(
    client_id: str | None, expected: str | None
) -> None:
    assert client_id_pattern(member("1", client_id=client_id)) == expected


MEMBERS = st.lists(
    st.builds(
        lambda number, client, host, static: member(
            f"m{number}",
            client_id=f"app-{client}",
            client_host=f"/{host}",
            group_instance_id=f"i{number}" if static else None,
        ),
        st.integers(0, 12),
        st.integers(0, 2),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=8,
    unique_by=lambda each: each.member_id,
)


@given(MEMBERS, MEMBERS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_members_changes_nothing(
    before: list[MemberFacts], now: list[MemberFacts], by_member_id: bool, chance: random.Random
) -> None:
    expected = changed(before, now, by_member_id=by_member_id)
    shuffled = [chance.sample(members, len(members)) for members in (before, now)]
    assert changed(*shuffled, by_member_id=by_member_id) == expected


@given(MEMBERS, MEMBERS, st.booleans())
def test_every_slot_is_kept_or_left_and_every_new_one_kept_or_joined(
    before: list[MemberFacts], now: list[MemberFacts], by_member_id: bool
) -> None:
    found = changed(before, now, by_member_id=by_member_id)
    old, new = (set(name_slots(each, by_member_id=by_member_id).values()) for each in (before, now))
    assert sorted([*found.kept, *found.left]) == sorted(old)
    assert sorted([*found.kept.values(), *found.joined]) == sorted(new)
    assert set(found.restarted) <= set(found.replaced) <= old
