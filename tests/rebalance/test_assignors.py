"""The assignor models against worked examples and their own promises."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.assignors import ASSIGNORS, Assignment, Member, TopicPartition, assign
from simulator.moves import Moves, count_moves


def readers(
    number: int, *topics: str, held: Mapping[str, Sequence[TopicPartition]] | None = None
) -> list[Member]:
    names = [f"C{index}" for index in range(1, number + 1)]
    return [
        Member(name, frozenset(topics), owned=tuple((held or {}).get(name, ())), generation=1)
        for name in names
    ]


def shown(found: Assignment) -> dict[str, list[str]]:
    return {
        member: sorted(f"{topic}{partition}" for topic, partition in held)
        for member, held in found.items()
    }


def sizes(found: Assignment) -> list[int]:
    return [len(held) for held in found.values()]


def moves_when_one_leaves(assignor: str, leaver: str, number: int, per_member: int) -> Moves:
    """A group forms, then one member goes."""
    partitions = {"A": number * per_member}
    members = readers(number, "A")
    before = assign(assignor, members, partitions)
    left = [
        Member(each.member_id, each.topics, owned=tuple(before[each.member_id]), generation=1)
        for each in members
        if each.member_id != leaver
    ]
    return count_moves(before, assign(assignor, left, partitions))


@pytest.mark.parametrize(
    ("topics", "assignor", "expected"),
    [
        ({"A": 6, "B": 6}, "range", [4, 4, 4]),
        ({"A": 7, "B": 7}, "range", [6, 4, 4]),
        ({"A": 7, "B": 7}, "roundrobin", [5, 5, 4]),
    ],
)
def test_range_gives_the_remainders_of_every_topic_to_the_first_members(
    topics: dict[str, int], assignor: str, expected: list[int]
) -> None:
    assert sizes(assign(assignor, readers(3, "A", "B"), topics)) == expected


def test_range_cuts_a_topic_into_contiguous_pieces() -> None:
    found = assign("range", readers(2, "A"), {"A": 6})
    assert shown(found) == {"C1": ["A0", "A1", "A2"], "C2": ["A3", "A4", "A5"]}


def test_round_robin_deals_all_topics_like_cards() -> None:
    found = assign("roundrobin", readers(2, "A", "B"), {"A": 3, "B": 3})
    assert shown(found) == {"C1": ["A0", "A2", "B1"], "C2": ["A1", "B0", "B2"]}


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [("range", [2, 2, 2, 2, 2, 2, 0, 0]), ("roundrobin", [2, 2, 2, 2, 1, 1, 1, 1])],
)
def test_only_range_leaves_members_idle_while_there_are_partitions_enough(
    assignor: str, expected: list[int]
) -> None:
    assert sizes(assign(assignor, readers(8, "A", "B"), {"A": 6, "B": 6})) == expected


@pytest.mark.parametrize(
    ("assignor", "expected", "moves"),
    [
        ("roundrobin", {"C1": ["A0", "A2", "B1"], "C2": ["A1", "B0", "B2"]}, Moves(4, 2)),
        ("sticky", {"C1": ["A0", "A1", "B1"], "C2": ["A2", "B0", "B2"]}, Moves(2, 2)),
        ("cooperative-sticky", {"C1": ["A0", "A1", "B1"], "C2": ["A2", "B0", "B2"]}, Moves(2, 2)),
        ("uniform", {"C1": ["A0", "A1", "B1"], "C2": ["A2", "B0", "B2"]}, Moves(2, 2)),
    ],
)
def test_after_a_death_a_sticky_assignor_moves_what_the_dead_held_and_nothing_else(
    assignor: str, expected: dict[str, list[str]], moves: Moves
) -> None:
    before = {"C1": [("A", 0), ("A", 1)], "C2": [("A", 2), ("B", 0)], "C3": [("B", 1), ("B", 2)]}
    found = assign(assignor, readers(2, "A", "B", held=before), {"A": 3, "B": 3})
    assert shown(found) == expected
    assert count_moves(before, found) == moves
    assert moves.avoidable == {"roundrobin": 2}.get(assignor, 0)


@pytest.mark.parametrize(
    ("assignor", "leaver", "moved"),
    [
        ("range", "C1", 15),
        ("range", "C9", 35),
        ("roundrobin", "C9", 41),
        ("sticky", "C9", 5),
        ("uniform", "C5", 5),
    ],
)
def test_of_ten_members_with_five_partitions_each_one_leaves(
    assignor: str, leaver: str, moved: int
) -> None:
    """C9 sorts last, as C10 comes right after C1."""
    assert moves_when_one_leaves(assignor, leaver, 10, 5) == Moves(moved, 5)


def test_static_members_come_first_whatever_their_member_id() -> None:
    members = [Member("a", frozenset("A")), Member("z", frozenset("A"), group_instance_id="one")]
    assert assign("range", members, {"A": 3}) == {"z": [("A", 0), ("A", 1)], "a": [("A", 2)]}


def test_of_two_claims_the_newer_generation_is_believed() -> None:
    held = (("A", 0), ("A", 1))
    members = [
        Member("a", frozenset("A"), owned=held, generation=3),
        Member("b", frozenset("A"), owned=held, generation=4),
    ]
    assert ("A", 0) in assign("sticky", members, {"A": 2})["b"]


def test_cooperative_takes_two_rounds_to_move_a_partition() -> None:
    held = {"C1": [("A", 0), ("A", 1)]}
    first = assign("cooperative-sticky", readers(2, "A", held=held), {"A": 2})
    assert shown(first) == {"C1": ["A0"], "C2": []}
    second = assign("cooperative-sticky", readers(2, "A", held=first), {"A": 2})
    assert shown(second) == {"C1": ["A0"], "C2": ["A1"]}


GROUP = st.tuples(
    st.dictionaries(st.sampled_from("ABC"), st.integers(0, 9), min_size=1),
    st.lists(st.frozensets(st.sampled_from("ABC"), min_size=1), min_size=1, max_size=6),
)


@given(GROUP, st.sampled_from(sorted(ASSIGNORS)))
def test_every_wanted_partition_goes_to_one_member_that_wants_it(
    group: tuple[dict[str, int], list[frozenset[str]]], assignor: str
) -> None:
    partitions, wishes = group
    members = [Member(f"C{index}", topics) for index, topics in enumerate(wishes)]
    found = assign(assignor, members, partitions)
    given_out = Counter(chain.from_iterable(found.values()))
    wanted = frozenset().union(*wishes)
    assert given_out == Counter(
        (topic, each)
        for topic in partitions
        if topic in wanted
        for each in range(partitions[topic])
    )
    assert all(topic in member.topics for member in members for topic, _ in found[member.member_id])


@given(
    st.dictionaries(st.sampled_from("ABC"), st.integers(0, 9), min_size=1),
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.sampled_from(["sticky", "uniform"]),
)
def test_sticky_is_balanced_and_moves_no_more_than_it_must(
    partitions: dict[str, int], counts: list[int], assignor: str
) -> None:
    """The group grows and shrinks; equal subscriptions."""
    before: Assignment = {}
    for generation, number in enumerate(counts):
        members = [
            Member(
                f"C{index}",
                frozenset("ABC"),
                owned=tuple(before.get(f"C{index}", ())),
                generation=generation,
            )
            for index in range(number)
        ]
        found = assign(assignor, members, partitions)
        assert max(sizes(found)) - min(sizes(found)) <= 1
        assert count_moves(before, found).avoidable == 0
        before = found
