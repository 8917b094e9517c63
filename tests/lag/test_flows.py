"""The sums that a group carries per topic: they only grow, whatever becomes of the partitions."""

from __future__ import annotations

from typing import Any

from stream.simulation import ID_B, Simulation, commit, end

Row = dict[str, Any]


def live() -> Simulation:
    job = Simulation()
    job.tick()
    return job


def sums(job: Simulation, group: str = "g") -> dict[str, Row]:
    return {each["topic"]: each for each in job.groups[group]["topic_counters"]}


def test_a_new_group_begins_at_zero() -> None:
    job = live()
    job.tick([end(10)], [commit(4)])
    row = sums(job)["t"]
    assert {value for name, value in row.items() if name != "topic"} == {0}


def test_what_arrives_and_what_is_committed_adds_up_over_partitions_and_ticks() -> None:
    job = live()
    job.tick([end(10), end(10, partition=1)], [commit(4), commit(4, partition=1)])
    job.tick(
        [end(15), end(12, partition=1)], [commit(9), commit(5, partition=1), commit(5, partition=1)]
    )
    job.tick([end(16), end(12, partition=1)])
    row = sums(job)["t"]
    assert (row["produced"], row["consumed"], row["commits"], row["noop_commits"]) == (8, 6, 3, 1)


def test_a_rewind_counts_its_records_and_takes_back_nothing() -> None:
    job = live()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)], [commit(20)])  # at the border of two batches
    job.tick([end(100)], [commit(30), commit(10), commit(40)])  # and inside one
    row = sums(job)["t"]
    assert (row["rewinds"], row["rewound_records"], row["consumed"]) == (2, 50, 40)


def test_sums_outlive_the_partition() -> None:
    job = live()
    job.tick([end(10), end(10, topic="u")], [commit(1), commit(1, topic="u")])
    job.tick([end(20), end(20, topic="u")], [commit(8), commit(9, topic="u")])
    job.tick([end(20), end(20, topic="u")], [commit(None, topic="u")])
    assert (sums(job)["u"]["consumed"], sums(job)["u"]["produced"]) == (8, 10)


def test_records_that_retention_took_unread_are_lost_once() -> None:
    job = live()
    job.tick([end(100, start=0)], [commit(10)])
    job.tick([end(100, start=30)])
    job.tick([end(100, start=30)])
    assert sums(job)["t"]["lost"] == 20


def test_a_commit_ahead_of_the_poll_is_counted_each_tick() -> None:
    job = live()
    job.tick([end(10)], [commit(12)])
    job.tick([end(10)])
    job.tick([end(10)])
    assert sums(job)["t"]["ahead"] == 2


def test_nothing_flows_across_a_recreation_or_out_of_the_past() -> None:
    job = Simulation()
    job.tick([end(500)], [commit(100)], is_live=False)
    job.tick([end(600)], [commit(200)])
    assert sums(job)["t"]["produced"] == sums(job)["t"]["consumed"] == 0
    job.tick([end(900, topic_id=ID_B)], [commit(300, topic_id=ID_B)])
    assert sums(job)["t"]["produced"] == sums(job)["t"]["consumed"] == 0


def test_groups_keep_their_own_sums() -> None:
    job = live()
    job.tick([end(10)], [commit(1, group="b"), commit(1, group="a")])
    job.tick([end(10)], [commit(3, group="b"), commit(4, group="a"), commit(1, group="new")])
    assert [sums(job, name)["t"]["consumed"] for name in ("a", "b", "new")] == [3, 2, 0]
