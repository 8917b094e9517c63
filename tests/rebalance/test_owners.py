"""Who has which partition at the end of a window, in groups of every kind."""

from __future__ import annotations

import pyarrow as pa

from laggard.lag.arrays import key_codes
from rebalance.lives import CREATE, DOWNGRADE, JOIN, LEAVE, STREAMS_LIFE, UPGRADE, UPGRADED
from rebalance.modern import CONSUMER as C
from rebalance.modern import ENDS, folded
from stream.simulation import Record, Simulation, commit

COMMITS = [commit(5, partition=part) for part in range(2)]
Owners = list[tuple[str | None, int | None]]


def owners(job: Simulation) -> list[Owners]:
    """Per window the owner of each partition of t and its epoch."""
    found: dict[object, Owners] = {}
    rows = sorted(
        job.history["lag_windows"], key=lambda row: (row["window_start"], row["partition"])
    )
    for row in (row for row in rows if row["topic"] == "t"):
        found.setdefault(row["window_start"], []).append((row["owner"], row["generation"]))
    return list(found.values())


def lived(*minutes: list[Record]) -> Simulation:
    """A job that reads so many records each minute; the windows of all are closed."""
    job = folded(COMMITS)
    for records in (*minutes, []):
        job.tick(ENDS, records, seconds=60)
    return job


def test_members_of_a_consumer_group_have_what_they_got_so_far() -> None:
    job = lived(CREATE, JOIN[:6], JOIN[6:7], JOIN[7:], LEAVE)
    assert owners(job)[-5:] == [
        [("a", 1), ("a", 1)],
        [("a", 2), ("a", 2)],  # b waits for what a has not let go
        [("a", 2), (None, None)],
        [("a", 2), ("b", 2)],
        [("a", 3), ("a", 3)],
    ]


def test_a_member_of_a_modern_group_is_known_by_its_instance_or_its_own_id() -> None:
    static = C.member("b", instance_id="one")
    job = lived([*CREATE, static, *JOIN[1:]])
    rows = sorted(job.history["lag_windows"], key=lambda row: row["partition"])[-2:]
    assert [(row["owner"], row["slot"]) for row in rows] == [("a", "a"), ("b", "one")]
    slots = {row["member_id"]: row["slot"] for row in job.history["group_members"]}
    assert {row["owner"]: row["slot"] for row in rows} == slots


def test_a_group_that_changes_its_protocol_keeps_its_owners() -> None:
    job = lived([*UPGRADED[:2], *UPGRADE[:6]], UPGRADE[6:], DOWNGRADE)
    assert owners(job)[-3:-1] == [[("m1", 1), ("m1", 1)], [("m1", 2), ("b", 2)]]
    assert {owner for owner, _ in owners(job)[-1]} <= {"m1", None}  # b left with the protocol


def test_tasks_of_a_streams_group_are_partitions_of_its_topics() -> None:
    job = lived(STREAMS_LIFE[:6], STREAMS_LIFE[6:15])
    assert owners(job)[-2:] == [[("a", 1), ("a", 1)], [("a", 2), ("b", 2)]]


def test_a_topic_whose_id_nobody_has_named_owns_no_other_topics_partitions() -> None:
    unnamed = key_codes(
        [pa.table({"topic": ["t", "u"]}), pa.table({"topic": pa.array([None], pa.string())})],
        ["topic"],
    )
    assert unnamed[1][0] not in unnamed[0]
