"""Names of the topics of a KIP-848 group: ids that resolve or do not, and expressions."""

from __future__ import annotations

from rebalance.lives import CREATE
from rebalance.modern import CONSUMER as C
from rebalance.modern import ENDS, epochs, folded, held, members
from stream.simulation import Simulation, commit, end


def test_a_topic_id_that_is_unknown_leaves_the_topic_unknown_and_the_partition_there() -> None:
    nowhere = "n" * 21 + "A"
    job = folded([*CREATE[:4], C.current("a", 1, {"t": [0], nowhere: [3]})])
    row = members(job, 1)["a"]
    assert row["assigned"] == held(("t", 0), (None, 3))
    assert row["status"] == "partial"
    assert epochs(job, "status", "partitions_assigned", "partitions_unassigned") == [
        ("partial", 2, None)
    ]


def test_a_topic_id_is_known_from_rows_of_before_when_the_poll_fails() -> None:
    job = Simulation()
    job.tick(ENDS, [commit(1, group="other"), commit(1, group="other", partition=1)])
    job.tick([], [*CREATE])
    assert members(job, 1)["a"]["assigned"] == held(("t", 0), ("t", 1))


def test_old_brokers_write_the_names_of_topics_themselves() -> None:
    gone = "n" * 21 + "A"
    topic = {"topic_id": gone, "topic_name": "old", "num_partitions": 1, "partition_metadata": []}
    job = folded([*CREATE[:4], C.of_group(4, {"topics": [topic]}), C.current("a", 1, {gone: [0]})])
    assert members(job, 1)["a"]["assigned"] == held(("old", 0))


def test_an_expression_is_not_known_until_it_is_resolved() -> None:
    joined = [C.member("a", [], subscribed_topic_regex="[tu]"), C.epoch(1)]
    job = folded(joined)
    assert job.groups["g"]["topics"] is None
    job.tick(
        ENDS,
        [C.regex("[tu]", ["u", "t"]), C.epoch(2), C.target_epoch(2), C.current("a", 2, {"t": [0]})],
    )
    assert job.groups["g"]["topics"] == ["t", "u"]
    row = members(job, 2)["a"]
    assert (row["regex"], row["topics"], row["status"]) == ("[tu]", ["t", "u"], "ok")
    job.tick(ENDS, [C.member("a", ["t"]), C.regex("[tu]", None), C.epoch(3)])
    assert job.groups["g"]["topics"] == ["t"]


def test_partitions_of_a_topic_that_is_gone_do_not_lack_an_owner() -> None:
    gone = end(None, topic="u", topic_id="u" * 21 + "A", error="UNKNOWN_TOPIC_OR_PARTITION")
    joined = [C.member("a", ["t", "u"]), C.epoch(1), C.target("a", {"t": [0]}), C.target_epoch(1)]
    job = folded([*joined, C.current("a", 1, {"t": [0]})], ends=[end(10), gone])
    assert epochs(job, "partitions_assigned", "partitions_unassigned") == [(1, None)]
