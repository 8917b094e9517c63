"""Ping-pong, avoidable moves, assignors, subscriptions, members behind, coordinators."""

from __future__ import annotations

from diagnosis.rebalance_rows import Life, at, pods
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.assignment import find_avoidable, find_ping_pong
from laggard.diagnosis.rules.cluster import find_correlated
from laggard.diagnosis.signals.rebalances import (
    assignor_changes,
    find_behind,
    without_common_assignor,
)

A, B = pods(1, 2)


def swap(times: list[float]) -> Life:
    """Partition 1 goes from A to B and back, one way each time."""
    life = Life().generation(10, A, B, assigned={A: [0, 1], B: [2]})
    for number, second in enumerate(times):
        life.generation(
            second, A, B, assigned={A: [0], B: [1, 2]} if number % 2 == 0 else {A: [0, 1], B: [2]}
        )
    return life


def test_ping_pong_counts_moves_that_undo_the_last_move_of_a_partition() -> None:
    found = find_ping_pong(swap([2000, 2300, 2600, 2900]).membership())
    assert (found.moves, found.returns, found.rebalances, found.partitions) == (
        4,
        3,
        3,
        (("orders", 1),),
    )
    assert found.index == 3 / 4


def test_moves_of_half_an_hour_ago_only_tell_where_a_partition_came_from() -> None:
    found = find_ping_pong(swap([1000, 1801]).membership())
    assert (found.moves, found.returns) == (1, 1)


def test_a_partition_that_goes_on_to_a_third_member_does_not_return() -> None:
    c = pods(3)[0]
    life = Life().generation(2000, A, B, c, assigned={A: [0], B: [], c: []})
    life.generation(2300, A, B, c, assigned={A: [], B: [0], c: []})
    life.generation(2600, A, B, c, assigned={A: [], B: [], c: [0]})
    assert (find_ping_pong(life.membership()).moves, find_ping_pong(life.membership()).returns) == (
        2,
        0,
    )


def test_a_member_that_keeps_its_id_moved_nothing_though_its_slot_has_another_number() -> None:
    life = Life().generation(2000, "app/h#0", "app/h#1", assigned={"app/h#0": [0], "app/h#1": [1]})
    renamed = {"app/h#0": {"member_id": "app/h#1-1"}}
    life.generation(2300, "app/h#0", assigned={"app/h#0": [0, 1]}, of_member=renamed)
    assert find_ping_pong(life.membership()).moves == 1  # partition 0, of the member that left


def test_the_share_of_avoidable_moves_is_over_the_newest_five_rebalances() -> None:
    life = Life().generation(10, A, B, of_row={"moved": 50, "avoidable": 50})
    life.generation(20, A, B, of_row={"moved": 90, "avoidable": 90})
    for number in range(5):
        life.generation(1000 + number, A, B, of_row={"moved": 4, "avoidable": number % 2})
    found = find_avoidable(life.frame())
    assert (found.rebalances, found.moved, found.avoidable, found.share) == (5, 20, 2, 0.1)


def test_assignors_that_change_within_the_hour_are_reported_with_both_names() -> None:
    life = (
        Life()
        .generation(-100, A)
        .generation(-10, A, assignor="sticky")
        .generation(10, A)
        .generation(20, A, assignor=None)
    )
    life.generation(30, A)
    assert assignor_changes(life.frame()) == [(at(10), "sticky", "range")]


def test_classic_members_of_a_modern_group_need_one_assignor_in_common() -> None:
    rows = [
        {"slot": "a", "classic_protocols": ["range", "sticky"]},
        {"slot": "b", "classic_protocols": ["sticky"]},
    ]
    assert without_common_assignor(rows) == []
    rows.append({"slot": "c", "classic_protocols": ["roundrobin"]})
    assert without_common_assignor([*rows, {"slot": "d", "classic_protocols": None}]) == rows
    assert without_common_assignor([{"slot": "d", "classic_protocols": None}]) == []


def test_subscriptions_differ_since_the_first_record_in_which_they_do() -> None:
    other = {B: {"topics": ["payments"]}}
    life = (
        Life()
        .generation(10, A, B, of_member=other)
        .generation(100, A, B)
        .generation(200, A, B, of_member=other)
    )
    assert life.generation(
        300, A, B, of_member=other
    ).membership().subscriptions_differ_since == at(200)
    assert life.generation(400, A, B).membership().subscriptions_differ_since is None


def behind(lasted: float, state: str, **fact: object) -> list[tuple[str, float, int]]:
    life = Life(kind="epoch", timeout=60).generation(100, "a", "b")
    pending = {
        "member_state": state,
        "pending_revocation": [{"topic": "orders", "partition": 1}] * 2,
    }
    life.generation(3000, "a", "b", "c", start=3000, stable_at=None, of_member={"b": pending})
    life.generation(3000 + lasted, "a", "c", start=3000 + lasted)
    membership = life.membership(**fact)
    found = find_behind(membership.frame, membership.rosters, 1800.0)
    return [(each.slot, each.seconds, each.pending) for each in found]


def test_a_member_that_did_not_revoke_until_it_was_evicted_was_behind() -> None:
    assert behind(60, "UnrevokedPartitions") == [("b", 60.0, 2)]
    assert behind(53, "UnrevokedPartitions") == []


def test_a_member_that_waits_for_others_is_not_to_blame() -> None:
    assert behind(60, "UnreleasedPartitions") == []


def test_while_the_epoch_lasts_only_the_group_is_known_to_be_behind() -> None:
    waits = {"group_state": "Reconciling", "group_type": "consumer"}
    assert behind(5, "Stable", **waits, rebalancing_since=at(3539)) == [("", 61.0, 0)]
    assert behind(5, "Stable", **waits, rebalancing_since=at(3541)) == []


def correlated(hit: dict[str, float], groups: int = 6, others: int = 10) -> list[tuple[int, int]]:
    coordinators = {f"g{number}": 1 for number in range(groups)} | {
        f"o{number}": 2 for number in range(others)
    }
    rows = [
        {"group": group, "coordinator": broker, "led_before": [], "rebalanced_at": []}
        for group, broker in coordinators.items()
    ]
    rows = [
        row | {"rebalanced_at": [at(hit[row["group"]])]} if row["group"] in hit else row
        for row in rows
    ]
    return [(each.broker, len(each.groups)) for each in find_correlated(rows, Parameters())]


def test_half_of_a_brokers_groups_within_a_minute_are_correlated() -> None:
    assert correlated({"g0": 0, "g1": 30, "g2": 60}) == [(1, 3)]
    assert correlated({"g0": 0, "g1": 30, "g2": 61}) == []
    assert correlated({"g0": 0, "g1": 30, "g2": 60}, groups=7) == []


def test_two_groups_are_too_few_and_a_mass_deploy_hits_other_brokers_too() -> None:
    assert correlated({"g0": 0, "g1": 1}, groups=2) == []
    assert correlated({"g0": 0, "g1": 30, "g2": 60, "o0": 10}) == [(1, 3)]
    assert correlated({"g0": 0, "g1": 30, "g2": 60, "o0": 10, "o1": 20}) == []
