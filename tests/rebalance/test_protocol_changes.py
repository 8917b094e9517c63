"""A group that changes its protocol on line is one group: no deletion, no phantom (KIP-848,
offsets-topic records).
"""

from __future__ import annotations

from rebalance.lives import CHANGING_LIFE, CLASSIC, CREATE, DOWNGRADE, READER, UPGRADE, UPGRADED
from rebalance.modern import CONSUMER, ENDS, SHARE, folded, rows_of, timed
from stream.simulation import Simulation, commit, generation, group_tombstone


def kinds(job: Simulation) -> list[tuple[object, ...]]:
    return [
        (row["generation_kind"], row["kind"], row["generation"])
        for row in rows_of(job, "generations")
    ]


def test_an_upgrade_in_one_batch_is_one_group_that_goes_on() -> None:
    job = folded(UPGRADED)
    row = job.groups["g"]
    assert job.events() == ["group_created"]
    assert (row["group_type"], row["group_state"], row["members"], row["generation"]) == (
        "consumer",
        "Stable",
        2,
        None,
    )
    assert kinds(job)[2:] == [
        ("classic", "tombstone", None),
        ("epoch", "upgrade", 1),
        ("epoch", "epoch", 2),
    ]


def test_an_upgrade_during_a_rebalance_begins_with_the_unrecorded_generation() -> None:
    held = {"t": [0, 1]}
    upgrade = [
        group_tombstone(),
        CONSUMER.member("m1", classic_member_metadata=CLASSIC),
        CONSUMER.epoch(9),
        CONSUMER.target("m1", held),
        CONSUMER.target_epoch(9),
        CONSUMER.current("m1", 9, held),
    ]
    job = folded(timed([generation(8, READER), *upgrade]))
    assert kinds(job)[1:] == [("classic", "tombstone", None), ("epoch", "upgrade", 9)]


def test_a_tombstone_alone_shows_the_group_as_before() -> None:
    job = folded([generation(1, READER), commit(5)], UPGRADE[:1])
    row = job.groups["g"]
    assert (row["group_type"], row["members"], row["topics"], row["is_held"]) == (
        "classic",
        1,
        ["t"],
        True,
    )


def test_a_member_of_the_old_protocol_says_so_and_counts_no_rebalance() -> None:
    job = folded(UPGRADED[:8])
    row = rows_of(job, "group_members")[-1]
    assert (row["classic_protocols"], row["session_timeout_ms"], row["member_state"]) == (
        ["range"],
        45_000,
        "Stable",
    )
    upgrade = rows_of(job, "generations")[-1]
    assert (upgrade["kind"], upgrade["joined"], upgrade["left"]) == ("upgrade", [], [])
    assert job.groups["g"]["generations_total"] == 1


def test_a_downgrade_goes_on_from_the_epoch() -> None:
    job = folded([*UPGRADED, *DOWNGRADE])
    row = job.groups["g"]
    assert job.events() == ["group_created"]
    assert (row["group_type"], row["generation"], row["group_epoch"], row["assignment_epoch"]) == (
        "classic",
        3,
        None,
        None,
    )
    assert kinds(job)[-3:] == [
        ("epoch", "tombstone", None),
        ("classic", "downgrade", 2),
        ("classic", "sync", 3),
    ]


def test_an_empty_group_recreated_under_another_protocol_is_no_upgrade() -> None:
    job = folded([generation(1, READER), generation(2), group_tombstone(), *CREATE])
    assert kinds(job)[-1] == ("epoch", "epoch", 1)
    assert rows_of(job, "generations")[-1]["joined"] == ["a"]
    assert job.events() == ["group_created"]


def test_a_group_whose_numbers_do_not_go_on_is_another_one() -> None:
    row = rows_of(folded([generation(4, READER), group_tombstone(), *CREATE]), "generations")[-1]
    assert (row["kind"], row["joined"], row["left"]) == ("epoch", ["a"], [])


def test_a_group_deleted_in_the_end_is_reported_once() -> None:
    job = folded(CHANGING_LIFE, [])
    assert (job.groups, job.events()) == ({}, ["group_created", "group_deleted"])


def test_tombstones_of_another_kind_do_not_touch_a_group() -> None:
    stray = [*SHARE.deleted(["x"], extra=[15]), *CONSUMER.deleted(["m1"], extra=[4])]
    job = folded([generation(1, READER)], stray)
    job.tick(ENDS)
    row = job.groups["g"]
    assert (row["group_type"], row["members"], row["is_held"]) == ("classic", 1, False)
    assert len(kinds(job)) == 1


def test_tombstones_of_a_share_member_do_not_touch_a_consumer_of_the_same_id() -> None:
    job = folded(CREATE, SHARE.gone("a"))
    job.tick(ENDS)
    assert (job.groups["g"]["members"], job.groups["g"]["group_state"]) == (1, "Stable")


def test_a_classic_tombstone_does_not_touch_a_consumer_group() -> None:
    job = folded(CREATE, [group_tombstone()])
    job.tick(ENDS)
    assert (job.groups["g"]["group_type"], job.groups["g"]["members"]) == ("consumer", 1)


def test_the_last_kind_counts_where_the_tombstone_was_compacted_away() -> None:
    job = folded([generation(4, READER)], CREATE)
    row = job.groups["g"]
    assert (row["group_type"], row["generation"], row["group_epoch"], row["members"]) == (
        "consumer",
        None,
        1,
        1,
    )
    job.tick(ENDS, [generation(9, READER)])
    assert (job.groups["g"]["group_type"], job.groups["g"]["group_epoch"]) == ("classic", None)
