"""An offsets topic that was deleted and made again, or grew: the job goes on by
itself and says so.
"""

import sys
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from e2e.kit import START_LIMIT, Place, wait_until
from encoder import commit_key, commit_value
from laggard.demo.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.full]
FIELDS = {"leader_epoch": 0, "metadata": "", "commit_timestamp": 1_700_000_000_000}


def make_topic(broker: Broker, commits: dict[str, int]) -> None:
    """The topic that stands in for the offsets topic, with one commit of each group."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    if "recreated" in admin.list_topics():
        admin.delete_topics(["recreated"])
        wait_until(lambda: "recreated" not in admin.list_topics(), 30, "the topic is deleted")
    admin.create_topics([NewTopic("recreated", 2, 1)])
    admin.close()
    write_commits(broker, commits)


def write_commits(broker: Broker, commits: dict[str, int], partition: int = 0) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for group, offset in commits.items():
        value = commit_value(3, {"offset": offset, **FIELDS})
        producer.send("recreated", value, commit_key(group, "orders", 0), partition=partition).get(
            30
        )
    producer.close()


def test_the_job_starts_again_and_keeps_the_history(broker: Broker, tmp_path: Path) -> None:
    place = Place(tmp_path / "job", broker.bootstrap_servers, {"offsets_topic": "recreated"})
    once = [sys.executable, "-m", "laggard", "run", "--once", "--config", str(place.config)]
    make_topic(broker, {"old": 7, "both": 9})
    code, output, _ = place.exit_of(*once, limit=START_LIMIT)
    assert code == 0, output
    before = place.view().batch

    make_topic(broker, {"both": 2, "new": 3})
    code, output, _ = place.exit_of(*once, limit=START_LIMIT)

    assert code == 0, output
    assert "starting with a new checkpoint" in output
    after = place.view()
    assert {(group, row["committed_offset"]) for (group, *_), row in after.partitions.items()} == {
        ("both", 2),
        ("new", 3),
    }
    assert after.batch["batch_id"] > before["batch_id"]
    assert after.batch["poll_id"] > before["poll_id"]
    assert after.batch["batches_total"] > before["batches_total"]
    gaps = {row["gap_reason"] for row in place.rows("batches") if row["kind"] == "gap"}
    assert "offsets_topic_recreated" in gaps
    (event,) = changes(place)
    assert event["topic_id_from"] != event["topic_id_to"]
    aside = place.checkpoint.with_name(f"{place.checkpoint.name}.{before['checkpoint_id']}")
    assert (aside / "offsets").is_dir()
    place.audit()


def changes(place: Place) -> list[dict[str, str]]:
    rows = place.rows("group_events")
    return [dict(row["detail"]) for row in rows if row["kind"] == "offsets_topic_changed"]


def test_a_topic_that_grew_is_read_whole(broker: Broker, tmp_path: Path) -> None:
    place = Place(tmp_path / "job", broker.bootstrap_servers, {"offsets_topic": "recreated"})
    once = [sys.executable, "-m", "laggard", "run", "--once", "--config", str(place.config)]
    make_topic(broker, {"old": 7})
    code, output, _ = place.exit_of(*once, limit=START_LIMIT)
    assert code == 0, output

    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_partitions({"recreated": NewPartitions(4)})
    admin.close()
    write_commits(broker, {"new": 3}, partition=3)
    code, output, _ = place.exit_of(*once, limit=START_LIMIT)

    assert code == 0, output
    after = place.view()
    assert {group: row["committed_offset"] for (group, *_), row in after.partitions.items()} == {
        "old": 7,
        "new": 3,
    }
    assert changes(place) == [{"partitions_from": "2", "partitions_to": "4"}]
