"""Slots and what changed between two generations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.facts import Identity
from laggard.rebalance.slots import compare_slots, name_slots

MEMBER = st.builds(
    Identity,
    st.text("abc", min_size=1, max_size=3),
    st.none() | st.sampled_from(["one", "two"]),
    st.sampled_from(["app-1", "app-2", "other"]),
    st.sampled_from(["/h1", "/h2"]),
)
MEMBERS = st.lists(
    MEMBER,
    max_size=6,
    unique_by=(lambda member: member.member_id, lambda m: m.group_instance_id or m),
)


@given(MEMBERS, st.booleans())
def test_every_member_has_a_slot_of_its_own(members: list[Identity], by_member_id: bool) -> None:
    found = name_slots(members, by_member_id=by_member_id)
    assert found.keys() == {member.member_id for member in members}
    assert len(set(found.values())) == len(members)


@given(MEMBERS, st.booleans())
def test_nothing_changes_between_equal_generations(
    members: list[Identity], by_member_id: bool
) -> None:
    changes = compare_slots(members, members[::-1], by_member_id=by_member_id)
    assert (changes.joined, changes.left, changes.replaced) == ((), (), ())


@given(MEMBERS, MEMBERS, st.booleans())
def test_what_joined_one_way_left_the_other(
    before: list[Identity], now: list[Identity], by_member_id: bool
) -> None:
    there, back = (
        compare_slots(*pair, by_member_id=by_member_id) for pair in ((before, now), (now, before))
    )
    assert (there.joined, there.left) == (back.left, back.joined)
    assert set(there.replaced) <= set(name_slots(before, by_member_id=by_member_id).values())


def test_a_new_member_of_the_same_program_takes_over_once() -> None:
    old = [Identity("a", None, "app-1", "/h1"), Identity("b", None, "app-2", "/h1")]
    new = [Identity("c", None, "app-3", "/h2"), Identity("d", None, "other", "/h2")]
    changes = compare_slots(old, new, by_member_id=False)
    assert changes.replaced == ("app-1/h1#0",)
    assert changes.left == ("app-1/h1#0", "app-2/h1#0")
