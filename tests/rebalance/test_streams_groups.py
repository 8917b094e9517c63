"""Streams groups: readiness of the topology, tasks as partitions, and what cannot
be known of them.
"""

from __future__ import annotations

import pytest

from rebalance.lives import STREAMS_LIFE, topology
from rebalance.modern import ENDS, STREAMS, folded, rows_of, states
from stream.simulation import Record

K = STREAMS


def group(validated: int = -1, source: Record | None = None) -> list[Record]:
    return [
        K.member("a"),
        source or topology(),
        K.epoch(1, validated_topology_epoch=validated),
        K.target_epoch(1),
        K.current("a", 1, {"0": [0, 1]}),
    ]


def test_a_streams_group_goes_through_the_same_states() -> None:
    seen = states(K, STREAMS_LIFE)
    assert seen[2] == "Assigning"
    assert seen[5] == "Stable"
    assert seen[12] == "Reconciling"
    assert seen[14] == "Stable"
    assert seen[-1] == "Empty"


@pytest.mark.parametrize(
    ("validated", "expected"), [(0, "Stable"), (3, "NotReady"), (-1, "Stable")]
)
def test_a_topology_is_not_ready_only_if_the_broker_says_which_one_is(
    validated: int, expected: str
) -> None:
    assert folded(group(validated)).groups["g"]["group_state"] == expected


def test_a_topology_that_was_never_validated_is_not_ready_where_the_broker_would_say_so() -> None:
    # brokers write them since they validate
    configs = [{"key": "num.standby.replicas", "value": "0"}]
    job = folded([*group(), K.epoch(1, last_assignment_configs=configs)])
    assert job.groups["g"]["group_state"] == "NotReady"
    job.tick(
        ENDS,
        [
            K.epoch(2, last_assignment_configs=configs, validated_topology_epoch=0),
            K.target_epoch(2),
        ],
    )
    assert job.groups["g"]["group_state"] == "Reconciling"


def test_a_new_topology_is_not_ready_until_it_is_validated() -> None:
    job = folded([*group(0), topology(1)])
    assert job.groups["g"]["group_state"] == "NotReady"
    job.tick(ENDS, [K.epoch(1, validated_topology_epoch=1)])
    assert job.groups["g"]["group_state"] == "Stable"
    job.tick(ENDS, [K.current("a", 1, {"0": [0, 1]})])
    # the same epoch written again
    assert [row["generation"] for row in rows_of(job, "generations")] == [1]


def test_an_empty_group_is_empty_whatever_its_topology() -> None:
    assert (
        folded([topology(5), K.epoch(1, validated_topology_epoch=0)]).groups["g"]["group_state"]
        == "Empty"
    )


def test_a_task_is_a_partition_of_every_topic_that_has_so_many() -> None:
    job = folded(group(source=topology(topics=("t", "u"))))
    (row,) = rows_of(job, "group_members")
    assert [(each["topic"], each["partition"]) for each in row["assigned"]] == [
        ("t", 0),
        ("u", 0),
        ("t", 1),
    ]
    assert (row["topics"], row["status"], job.groups["g"]["topics"]) == (
        ["t", "u"],
        "ok",
        ["t", "u"],
    )


@pytest.mark.parametrize(
    "source",
    [topology(topics=("t", "not polled")), topology(topics=(), regex=("t.*",))],
    ids=["unseen", "expression"],
)
def test_a_task_of_topics_that_are_not_known_stays_without_a_topic(source: Record) -> None:
    job = folded(group(source=source))
    (row,) = rows_of(job, "group_members")
    assert [(each["topic"], each["partition"]) for each in row["assigned"]] == [
        (None, 0),
        (None, 1),
    ]
    assert row["status"] == "partial"
    assert rows_of(job, "generations")[0]["partitions_assigned"] is None


def test_an_expression_leaves_the_topics_of_the_group_unknown() -> None:
    assert folded(group(source=topology(regex=("t.*",)))).groups["g"]["topics"] is None


def test_members_say_their_state_in_tasks() -> None:
    job = folded(STREAMS_LIFE[:13], [K.epoch(3)])
    found = {
        row["member_id"]: row for row in rows_of(job, "group_members") if row["generation"] == 2
    }
    assert found["a"]["member_state"] == "UnrevokedTasks"
    assert found["b"]["member_state"] == "UnreleasedTasks"
    assert found["a"]["pending_revocation"] == [{"topic": "t", "partition": 1}]


def test_a_deleted_streams_group_is_gone() -> None:
    job = folded(STREAMS_LIFE, [])
    assert (job.groups, job.events()) == ({}, ["group_created", "group_deleted"])
