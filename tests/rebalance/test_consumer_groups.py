"""Consumer groups of KIP-848: the state by the broker's rule, and the row of the group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from laggard.rebalance.groups import Listing
from rebalance.lives import CREATE, JOIN
from rebalance.modern import CONSUMER as C
from rebalance.modern import ENDS, UNREVOKED, folded, members, states
from stream.simulation import Record


def test_the_state_follows_the_brokers_rule() -> None:
    # member, epoch, then the two halves of the target assignment, then the members one by one
    seen = states(C, [*CREATE, *JOIN])
    assert seen[1] == "Assigning"
    assert seen[3:5] == ["Reconciling", "Stable"]
    assert seen[6] == "Assigning"
    assert seen[9:] == ["Reconciling"] * 4 + ["Stable"]


def test_a_member_that_left_for_a_short_time_leaves_the_group_reconciling() -> None:
    assert states(C, [*CREATE, C.current("a", -2, {"t": [0, 1]})])[-1] == "Reconciling"


def test_a_member_without_a_current_assignment_is_not_there_yet() -> None:
    job = folded([C.member("a"), C.epoch(1), C.target_epoch(1)])
    assert (job.groups["g"]["group_state"], job.groups["g"]["idle_members"]) == ("Reconciling", 1)


def test_a_group_shows_its_members_epochs_and_topics() -> None:
    job = folded([*CREATE, C.member("b", ["u"], instance_id="one"), C.epoch(2)])
    row = job.groups["g"]
    assert (row["group_type"], row["protocol_type"], row["rebalance_mode"]) == (
        "consumer",
        "consumer",
        "incremental",
    )
    assert (row["group_epoch"], row["assignment_epoch"], row["generation"]) == (2, 1, None)
    assert (row["members"], row["static_members"], row["idle_members"]) == (2, 1, 1)
    assert (row["topics"], row["state_source"]) == (["t", "u"], "record")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ((None,), None),
        (("range", None), "range"),
        (("range", "uniform"), None),
        (("a", "b", "b"), "b"),
    ],
)
def test_the_assignor_is_the_one_that_most_members_ask_for(
    wanted: tuple[str | None, ...], expected: str
) -> None:
    job = folded(
        [
            *(C.member(str(number), server_assignor=each) for number, each in enumerate(wanted)),
            C.epoch(1),
        ]
    )
    assert job.groups["g"]["assignor"] == expected


def test_the_brokers_word_counts_before_the_records() -> None:
    reported = {
        "g": {"group_state": "Reconciling", "group_type": "Consumer", "protocol_type": "consumer"}
    }
    job = folded()
    job.tick(ENDS, CREATE, listing=Listing(reported, {}, is_fresh=True))
    assert (job.groups["g"]["group_state"], job.groups["g"]["state_source"]) == (
        "Reconciling",
        "admin",
    )
    job.tick(ENDS, JOIN[:2])
    assert (job.groups["g"]["group_state"], job.groups["g"]["state_source"]) == (
        "Assigning",
        "record",
    )


def test_subscribed_partitions_without_a_commit_are_rows() -> None:
    assert [(row["partition"], row["status"]) for row in folded(CREATE).rows] == [
        (0, "no_commit"),
        (1, "no_commit"),
    ]


def test_compaction_may_leave_the_assignment_of_a_member_before_its_metadata() -> None:
    job = folded([C.epoch(2), C.target_epoch(2), C.current("a", 2, {"t": [0]})])
    assert (job.groups["g"]["members"], job.groups["g"]["topics"]) == (1, None)
    job.tick(ENDS, [C.member("a")])
    job.tick(ENDS)
    assert (job.groups["g"]["group_state"], job.groups["g"]["topics"]) == ("Stable", ["t"])


def test_a_state_byte_that_is_not_known_is_never_stable() -> None:
    job = folded([*CREATE[:4], C.current("a", 1, state=127)])
    assert job.groups["g"]["group_state"] == "Reconciling"
    job.tick(ENDS, [C.epoch(2)])
    assert members(job, 1)["a"]["member_state"] == "Unknown"


def test_a_member_with_something_to_revoke_keeps_the_group_reconciling_at_its_epoch() -> None:
    job = folded([*CREATE[:4], C.current("a", 1, {"t": [0]}, state=UNREVOKED, pending={"t": [1]})])
    assert job.groups["g"]["group_state"] == "Reconciling"


def test_records_of_two_groups_do_not_mix() -> None:
    other = replace(C, group="h")
    mixed: list[Record] = [
        C.member("a"),
        other.member("a"),
        other.member("b"),
        C.epoch(1),
        other.epoch(7),
    ]
    job = folded(mixed)
    assert {name: (row["members"], row["group_epoch"]) for name, row in job.groups.items()} == {
        "g": (1, 1),
        "h": (2, 7),
    }
