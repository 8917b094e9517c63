"""The epochs of a KIP-848 group as rows of history: begin, end, members, and what
is not evaluated.
"""

from __future__ import annotations

from datetime import timedelta

from rebalance.lives import CONSUMER_LIFE, CREATE, JOIN, STATIC_LIFE
from rebalance.modern import CONSUMER as C
from rebalance.modern import ENDS, epochs, folded, held, members, rows_of, timed
from stream.simulation import NOON, Simulation, end


def test_each_epoch_is_a_row_from_its_begin_to_the_last_member() -> None:
    job = folded(CONSUMER_LIFE)
    names = (
        "kind",
        "generation",
        "generation_gap",
        "member_count",
        "assignment_epoch",
        "joined",
        "left",
    )
    assert epochs(job, *names) == [
        ("epoch", 1, None, 1, 1, None, None),
        ("epoch", 2, 1, 2, 2, ["b"], []),
        ("epoch", 3, 1, 1, 3, [], ["b"]),
        ("empty", 4, 1, 0, 3, [], ["a"]),
        ("tombstone", None, None, None, None, None, None),
    ]
    begin, assigned, stable = (NOON + timedelta(seconds=number) for number in (6, 9, 13))
    assert epochs(job, "record_timestamp", "assigned_at", "stable_at")[1] == (
        begin,
        assigned,
        stable,
    )
    assert {row["generation_kind"] for row in rows_of(job, "generations")} == {"epoch"}


def test_partitions_of_the_topics_are_counted_as_assigned_or_not() -> None:
    life = [C.member("a"), C.epoch(1), C.target_epoch(1), C.current("a", 1, {"t": [0]})]
    assert epochs(folded(life), "partitions_assigned", "partitions_unassigned") == [(1, 1)]
    assert epochs(folded(life, ends=[]), "partitions_assigned", "partitions_unassigned") == [
        (1, None)
    ]


def test_a_topic_seen_by_one_row_only_is_counted_by_the_poll() -> None:
    job = folded([*CREATE[:4], C.current("a", 1, {"t": [0, 1]})], ends=[*ENDS, end(5, partition=2)])
    assert epochs(job, "partitions_assigned", "partitions_unassigned") == [(2, 1)]


def test_an_epoch_that_is_superseded_has_no_end() -> None:
    job = folded([*CREATE, *JOIN[:7], C.member("c"), C.epoch(3)])
    assert epochs(job, "generation", "stable_at", "partitions_assigned")[-1] == (2, None, None)
    found = members(job, 2)
    assert {name: row["member_state"] for name, row in found.items()} == {
        "a": "UnrevokedPartitions",
        "b": "UnreleasedPartitions",
    }
    assert found["a"]["pending_revocation"] == held(("t", 1))
    assert (found["a"]["member_epoch"], found["a"]["previous_member_epoch"]) == (1, 0)


def test_a_member_that_leaves_in_the_middle_of_an_epoch_is_reported_with_it() -> None:
    job = folded([*CREATE, *JOIN[:7], *C.gone("b"), C.epoch(3)])
    assert members(job, 2).keys() == {"a", "b"}
    assert members(job, 2)["b"]["member_epoch"] == 2


def test_a_member_that_leaves_before_it_got_an_assignment_is_reported_with_its_epoch() -> None:
    # without the tombstone of an assignment, as it has none
    job = folded([*CREATE, C.member("b"), C.epoch(2), *C.gone("b")[2:], C.epoch(3)])
    row = members(job, 2)["b"]
    assert (row["assigned"], row["member_epoch"], row["member_state"], row["status"]) == (
        None,
        None,
        None,
        "ok",
    )


def test_a_member_at_the_epoch_before_does_not_end_the_new_one() -> None:
    job = folded([*CREATE, C.epoch(2), C.current("a", 1, {"t": [0, 1]})])
    assert epochs(job, "generation") == [(1,)]


def test_tombstones_of_a_slow_member_do_not_make_its_epoch_stable() -> None:
    job = folded([*CREATE, *JOIN[:7], C.current("b", 2, {"t": [1]}), *C.gone("a"), C.epoch(3)])
    assert epochs(job, "generation", "stable_at")[-1] == (2, None)


def test_a_static_member_that_returns_makes_no_epoch() -> None:
    job = folded(STATIC_LIFE[:13])
    assert job.events() == ["group_created", "static_replacement"]
    assert epochs(job, "generation", "static_count") == [(1, 1)]
    found = members(job, 1)
    assert found.keys() == {"a", "a2"}
    assert (
        found["a2"]["replaced_member_id"],
        found["a2"]["slot"],
        found["a2"]["member_epoch"],
    ) == ("a", "one", 1)
    assert job.groups["g"]["group_state"] == "Stable"


def test_a_static_member_that_returns_too_late_for_its_epoch_has_a_row_all_the_same() -> None:
    job = folded([*STATIC_LIFE[:12], C.epoch(2)])
    assert (members(job, 1)["a2"]["replaced_member_id"], members(job, 1)["a2"]["member_epoch"]) == (
        "a",
        0,
    )


def test_a_static_member_that_leaves_for_good_has_expired_and_is_no_replacement() -> None:
    job = folded(
        [*STATIC_LIFE[:5], *C.gone("a"), C.epoch(2), C.member("x", instance_id="one"), C.epoch(3)]
    )
    assert job.events() == ["group_created", "static_expired"]


def test_what_is_read_of_the_past_is_not_evaluated() -> None:
    job = Simulation()
    job.tick(ENDS, [*CREATE, *JOIN], is_live=False)
    names = (
        "generation_gap",
        "joined",
        "partitions_assigned",
        "partitions_unassigned",
        "live_read",
    )
    assert epochs(job, *names)[-1] == (None, None, 2, None, False)


def test_an_epoch_begun_in_the_past_stays_of_the_past() -> None:
    job = Simulation()
    records = timed([*CREATE, *JOIN])
    job.tick(ENDS, records[:8], is_live=False)
    job.tick(ENDS, records[8:])
    assert epochs(job, "generation", "live_read") == [(1, False), (2, False)]
