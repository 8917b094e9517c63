"""Movement: worked examples of the assignors, and what holds for any two assignments."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.analytics.movement import (
    Held,
    Move,
    Movement,
    count_movement,
    count_returns,
    find_moves,
    is_divergent,
)
from laggard.rebalance.assignors import ASSIGNORS, TopicPartition
from rebalance.fact_rows import assigned, held, member, places

TEN = [f"C{number:02}" for number in range(10)]


def same(before: Held, after: Held) -> dict[str, str]:
    return {slot: slot for slot in before if slot in after}


def measure_movement(before: Held, after: Held) -> Movement | None:
    moves = find_moves(before, after, same(before, after))
    return None if moves is None else count_movement(len(moves), before, after, same(before, after))


def when_one_leaves(assignor: str, leaver: str) -> Movement:
    partitions = {"A": 50}
    before = assigned(assignor, TEN, partitions, {})
    after = assigned(assignor, [each for each in TEN if each != leaver], partitions, held(before))
    found = measure_movement(held(before), held(after))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("assignor", "leaver", "moved", "efficiency"),
    [
        ("range", "C00", 15, 0.33),
        ("range", "C09", 35, 0.14),
        ("roundrobin", "C09", 41, 0.12),
        ("sticky", "C09", 5, 1.0),
    ],
)
def test_one_of_ten_members_leaves(
    assignor: str, leaver: str, moved: int, efficiency: float
) -> None:
    found = when_one_leaves(assignor, leaver)
    assert (found.partitions, found.moved, found.necessary, found.avoidable) == (
        50,
        moved,
        5,
        moved - 5,
    )
    assert found.efficiency == pytest.approx(efficiency, abs=0.005)
    assert found.moved_ratio == moved / 50


BEFORE = {"C1": places("A0", "A1"), "C2": places("A2", "B0"), "C3": places("B1", "B2")}


def test_round_robin_moves_what_need_not_move() -> None:
    after = {"C1": places("A0", "A2", "B1"), "C2": places("A1", "B0", "B2")}
    found = measure_movement(BEFORE, after)
    assert found == Movement(6, 4, 2, 2, moved_ratio=4 / 6, efficiency=0.5)
    assert find_moves(BEFORE, after, same(BEFORE, after)) == (
        Move("A", 1, "C1", "C2"),
        Move("A", 2, "C2", "C1"),
        Move("B", 1, "C3", "C1"),
        Move("B", 2, "C3", "C2"),
    )


def test_sticky_moves_the_partitions_of_the_dead_member_only() -> None:
    after = {"C1": places("A0", "A1", "B1"), "C2": places("A2", "B0", "B2")}
    assert measure_movement(BEFORE, after) == Movement(
        6, 2, 2, 0, moved_ratio=2 / 6, efficiency=1.0
    )


def test_a_new_member_makes_the_surplus_of_the_others_necessary() -> None:
    before = {"C1": places("A0", "A1", "A2"), "C2": places("A3", "A4", "A5")}
    after = {"C1": places("A0", "A1"), "C2": places("A3", "A4"), "C3": places("A2", "A5")}
    found = measure_movement(before, after)
    assert found == Movement(6, 2, 2, 0, moved_ratio=2 / 6, efficiency=1.0)


def test_no_moves_have_no_efficiency() -> None:
    found = measure_movement(BEFORE, BEFORE)
    assert found == Movement(6, 0, 0, 0, moved_ratio=0.0, efficiency=None)


def test_a_group_that_becomes_empty_moves_nothing() -> None:
    found = measure_movement(BEFORE, {})
    assert found == Movement(0, 0, 0, 0, moved_ratio=None, efficiency=None)


def test_a_partition_of_a_deleted_topic_moves_nowhere() -> None:
    found = measure_movement({"C1": places("A0"), "C2": places("Z0")}, {"C1": places("A0")})
    assert found == Movement(1, 0, 0, 0, moved_ratio=0.0, efficiency=None)


def test_a_slot_under_another_name_is_the_same_slot() -> None:
    before = {"h#0": places("A0"), "h#1": places("A1")}
    moves = find_moves(before, {"h#0": places("A0", "A1")}, {"h#1": "h#0"})
    assert moves == (Move("A", 0, "h#0", "h#0"),)


def test_a_partition_with_two_owners_leaves_all_unknown() -> None:
    assert measure_movement({"C1": places("A0"), "C2": places("A0")}, BEFORE) is None
    after = {"C1": places("A0"), "C2": places("A0")}
    assert find_moves(BEFORE, after, same(BEFORE, after)) is None


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ((("A",), ("A",)), False),
        ((("A", "B"), ("B", "A")), False),
        ((("A",), ("A", "B")), True),
        ((("A",), None), None),
    ],
)
def test_subscriptions_that_differ_are_seen(
    topics: tuple[tuple[str, ...] | None, ...], expected: bool | None
) -> None:
    members = [member(str(number), topics=each) for number, each in enumerate(topics)]
    assert is_divergent(members) is expected


@st.composite
def assignments(draw: st.DrawFn) -> dict[str, tuple[TopicPartition, ...]]:
    slots = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    found: dict[str, list[TopicPartition]] = {slot: [] for slot in slots}
    for number in range(draw(st.integers(0, 12))):
        found[draw(st.sampled_from(slots))].append(("A", number))
    return {slot: tuple(given) for slot, given in found.items()}


@given(assignments(), assignments())
def test_moved_is_necessary_and_avoidable(
    before: dict[str, tuple[TopicPartition, ...]], after: dict[str, tuple[TopicPartition, ...]]
) -> None:
    found = measure_movement(before, after)
    assert found is not None
    assert 0 <= found.moved <= found.partitions
    assert found.moved == found.necessary + found.avoidable or found.moved < found.necessary
    for ratio in (found.moved_ratio, found.efficiency):
        assert ratio is None or 0 <= ratio <= 1


@given(assignments(), assignments())
def test_a_balanced_result_never_moves_less_than_necessary(
    before: dict[str, tuple[TopicPartition, ...]], after: dict[str, tuple[TopicPartition, ...]]
) -> None:
    """Partitions that only appear later can fill a member up, so the two sets are the same here."""
    same = [place for given in before.values() for place in given]
    levelled = {slot: tuple(same[turn :: len(after)]) for turn, slot in enumerate(sorted(after))}
    found = measure_movement(before, levelled)
    assert found is not None
    assert found.necessary <= found.moved


@given(
    st.sampled_from(sorted(ASSIGNORS)),
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(0, 14),
)
def test_sticky_assignors_move_just_what_is_necessary(
    assignor: str, first: int, then: int, partitions: int
) -> None:
    ids = TEN[: max(first, then)]
    before = assigned(assignor, ids[:first], {"A": partitions}, {})
    after = assigned(assignor, ids[:then], {"A": partitions}, held(before))
    if assignor == "cooperative-sticky":  # a second round hands out what was given up in the first
        after = assigned(assignor, ids[:then], {"A": partitions}, held(after))
    found = measure_movement(held(before), held(after))
    assert found is not None
    assert found.moved >= found.necessary
    if assignor in {"sticky", "cooperative-sticky", "uniform"}:
        assert found.avoidable == 0


@given(assignments(), assignments(), st.randoms(use_true_random=False))
def test_the_order_of_members_and_partitions_changes_nothing(
    before: dict[str, tuple[TopicPartition, ...]],
    after: dict[str, tuple[TopicPartition, ...]],
    chance: random.Random,
) -> None:
    def shuffle(
        given: dict[str, tuple[TopicPartition, ...]],
    ) -> dict[str, tuple[TopicPartition, ...]]:
        return {
            slot: tuple(chance.sample(given[slot], len(given[slot])))
            for slot in chance.sample([*given], len(given))
        }

    assert measure_movement(shuffle(before), shuffle(after)) == measure_movement(before, after)


def moves(*owners: str, partition: int = 0) -> list[Move]:
    return [Move("A", partition, *pair) for pair in pairwise(owners)]


@pytest.mark.parametrize(
    ("owners", "expected"), [("a", 0), ("ab", 0), ("aba", 1), ("abab", 2), ("abca", 0)]
)
def test_a_return_takes_a_partition_back_to_where_its_last_move_took_it_from(
    owners: str, expected: int
) -> None:
    assert count_returns(moves(*owners), {}) == expected


def test_returns_look_at_each_partition_alone() -> None:
    assert count_returns([*moves("a", "b"), *moves("b", "a", partition=1)], {}) == 0
