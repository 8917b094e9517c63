"""An offsets topic that was deleted and made again: the job begins anew on it by itself and says so."""

import sys
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import START_LIMIT, Place, wait_until
from encoder import commit_key, commit_value
from laggard.demo.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow]
FIELDS = {"leader_epoch": 0, "metadata": "", "commit_timestamp": 1_700_000_000_000}


def make_topic(broker: Broker, commits: dict[str, int]) -> None:
    """The topic that plays the offsets topic, with one commit of each group."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    if "recreated" in admin.list_topics():
        admin.delete_topics(["recreated"])
        wait_until(lambda: "recreated" not in admin.list_topics(), 30, "the topic is deleted")
    admin.create_topics([NewTopic("recreated", 2, 1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for group, offset in commits.items():
        value = commit_value(3, {"offset": offset, **FIELDS})
        producer.send("recreated", value, commit_key(group, "orders", 0), partition=0).get(30)
    producer.close()


def test_the_job_begins_anew_and_keeps_the_history(broker: Broker, tmp_path: Path) -> None:
    place = Place(tmp_path / "job", broker.bootstrap_servers, {"offsets_topic": "recreated"})
    once = [sys.executable, "-m", "laggard", "run", "--once", "--config", str(place.config)]
    make_topic(broker, {"old": 7, "both": 9})
    code, output, _ = place.exit_of(*once, limit=START_LIMIT)
    assert code == 0, output
    before = place.view().batch

    make_topic(broker, {"both": 2, "new": 3})
    code, output, _ = place.exit_of(*once, limit=START_LIMIT)

    assert code == 0, output
    assert "recreated: starting anew" in output
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
    assert (tmp_path / "job" / f"checkpoint.{before['checkpoint_id']}" / "offsets").is_dir()
