"""What the job's own files or the offsets topic's log lose costs no record and no person: a
command, or nothing.
"""

import signal
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import START_LIMIT, Place, Row, Run, wait_until
from encoder import commit_key, commit_value
from laggard.demo.broker import Broker

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
]
FIELDS = {"leader_epoch": 0, "metadata": "", "commit_timestamp": 1_700_000_000_000}
PARTITIONS = 2


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    """One that may be killed."""
    with Broker() as running:
        yield running


def make_topic(broker: Broker, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    if name in admin.list_topics():
        admin.delete_topics([name])
        wait_until(lambda: name not in admin.list_topics(), 30, "the topic is deleted")
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])
    admin.close()


def commit(broker: Broker, topic: str, commits: dict[str, int]) -> None:
    """Write one commit of each group to partition 0, each a record batch of its own."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for group, offset in commits.items():
        value = commit_value(3, {"offset": offset, **FIELDS})
        producer.send(topic, value, commit_key(group, "orders", 0), partition=0).get(30)
    producer.close()


def offsets_of(place: Place) -> dict[str, int]:
    return {group: row["committed_offset"] for (group, *_), row in place.view().partitions.items()}


def published(place: Place) -> list[Row]:
    rows = [row for row in place.rows("batches") if row["kind"] != "gap"]
    return sorted(rows, key=lambda row: row["batch_id"])


def gap_reasons(place: Place) -> list[str]:
    return [row["gap_reason"] for row in place.rows("batches") if row["kind"] == "gap"]


def command(place: Place, *words: str) -> list[str]:
    return [sys.executable, "-m", "laggard", *words, "--config", str(place.config)]


def flip_newest_offsets(place: Place) -> Path:
    newest = max(
        (each for each in (place.checkpoint / "offsets").iterdir() if each.name.isdigit()),
        key=lambda p: int(p.name),
    )
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    return newest


def lose_identity(place: Place) -> Path:
    path = place.checkpoint.with_name(place.checkpoint.name + ".laggard.json")
    path.write_bytes(b"")
    return path


@pytest.mark.parametrize("harm", [flip_newest_offsets, lose_identity])
def test_the_command_that_a_damaged_checkpoint_names_goes_on_where_it_was(
    own_broker: Broker, tmp_path: Path, harm: Callable[[Place], Path]
) -> None:
    place = Place(tmp_path / "job", own_broker.bootstrap_servers, {"offsets_topic": "repaired"})
    make_topic(own_broker, "repaired")
    commit(own_broker, "repaired", {"silent": 7, "steady": 9})
    code, output, _ = place.exit_of(*command(place, "run", "--once"), limit=START_LIMIT)
    assert code == 0, output
    before = published(place)[-1]
    commit(own_broker, "repaired", {"steady": 10, "new": 1})
    damaged = harm(place)

    code, output, _ = place.exit_of(*command(place, "run", "--once"), limit=START_LIMIT)
    assert code == 74, output
    assert str(damaged) in output
    assert "fix: laggard doctor --repair" in output
    assert "Traceback" not in output
    code, output, _ = place.exit_of(*command(place, "doctor", "--repair", "--yes"))
    assert code == 0, output
    code, output, _ = place.exit_of(*command(place, "run", "--once"), limit=START_LIMIT)
    assert code == 0, output

    rows = published(place)
    assert [row["batch_id"] for row in rows] == list(range(len(rows)))
    first = rows[before["batch_id"] + 1]
    assert first["source_from"] == before["source_to"]
    assert first["checkpoint_id"] != before["checkpoint_id"]
    assert sum(row["decoded"] for row in rows) == 4
    assert offsets_of(place) == {"silent": 7, "steady": 10, "new": 1}
    assert "records_removed" not in gap_reasons(place)
    place.audit()
    assert place.exit_of(*command(place, "doctor", "--repair"))[0] == 0


@pytest.mark.nightly
def test_a_topic_recreated_under_the_running_job_is_followed(
    own_broker: Broker, tmp_path: Path
) -> None:
    place = Place(tmp_path / "job", own_broker.bootstrap_servers, {"offsets_topic": "remade"})
    make_topic(own_broker, "remade")
    commit(own_broker, "remade", {"old": 7, "both": 9, "third": 1})
    run = Run(place)
    try:
        before = run.wait_for(lambda batch: batch.kind == "tick", "first tick")
        make_topic(own_broker, "remade")
        commit(own_broker, "remade", {"both": 2, "new": 3})
        run.wait_for(
            lambda batch: (
                batch.values["checkpoint_id"] != before.values["checkpoint_id"]
                and offsets_of(place) == {"both": 2, "new": 3}
            ),
            "the commits of the new topic",
        )
        code, _ = run.stop()
    finally:
        run.kill()
    assert code == 0, place.tail()
    assert "offsets_topic_recreated" in gap_reasons(place)


def truncate_log(broker: Broker, topic: str, batches: int) -> None:
    """Kill the broker and leave only so many record batches in partition 0, as an unclean election
    would.
    """
    broker.stop(sig=signal.SIGKILL)
    data = broker.work_dir / "node-1" / "data"
    log = data / f"{topic}-0" / "00000000000000000000.log"
    content, end = log.read_bytes(), 0
    for _ in range(batches):
        end += 12 + struct.unpack(">i", content[end + 8 : end + 12])[0]
    log.write_bytes(content[:end])
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)  # else the broker trusts them and not the log
    broker.start(1)


def test_a_log_truncated_below_what_was_read_is_named_and_read_again(
    own_broker: Broker, tmp_path: Path
) -> None:
    place = Place(tmp_path / "job", own_broker.bootstrap_servers, {"offsets_topic": "cut"})
    make_topic(own_broker, "cut")
    commit(own_broker, "cut", {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6})
    run = Run(place)
    try:
        before = run.wait_for(lambda batch: batch.kind == "tick", "first tick")
        assert before.values["source_to"] == {0: 6, 1: 0}
        truncate_log(own_broker, "cut", 2)
        # at offsets that were read before, of other records
        commit(own_broker, "cut", {"a": 11, "g": 7})
        run.wait_for(
            lambda batch: offsets_of(place).get("g") == 7,
            "the commits after the truncation",
            2 * START_LIMIT,
        )
        settled = run.wait_for(
            lambda batch: batch.kind == "tick" and batch.values["source_to"][0] == 4,
            "a tick after it",
        )
        code, _ = run.stop()
    finally:
        run.kill()
    assert code == 0, place.tail()
    assert "log_truncated" in gap_reasons(place)
    found = {key[0]: row["committed_offset"] for key, row in place.view(settled).partitions.items()}
    assert (found["a"], found["b"], found["g"]) == (11, 2, 7), place.tail()
