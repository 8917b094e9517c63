"""What must stop the job stops it and says so; what must not, does not."""

import sys
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaProducer

from e2e.kit import LISTING_SECONDS, START_LIMIT, Place, Run, at, commit_simply, now, wait_until
from encoder import commit_key, commit_value, group_key, i16
from laggard.demo.broker import Broker
from laggard.demo.node import free_ports
from patience import patient

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
]
WITHOUT_THE_SETTING = """
import sys
from laggard.cli.main import main
from laggard.stream.job import session
session.FIXED["spark.sql.streaming.kafka.useDeprecatedOffsetFetching"] = "false"
sys.exit(main(["run", "--config", sys.argv[1]]))
"""
COMMIT = {"offset": 31, "leader_epoch": 2, "metadata": "", "commit_timestamp": 1_700_000_000_000}


def write(broker: Broker, records: Iterable[tuple[int, bytes | None, bytes | None]]) -> None:
    """Partition, key and value of each, to the topic that stands in for the offsets topic."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for partition, key, value in records:
        producer.send("shadow", value, key, partition=partition)
    producer.flush(30)
    producer.close()


def test_a_source_that_resolves_no_partitions_fails_loudly_and_publishes_nothing(
    broker: Broker, tmp_path: Path
) -> None:
    # a commit makes the offsets topic, for which a job would wait
    commit_simply(broker.bootstrap_servers, "simple", {at("orders", 0): 1})
    place = Place(tmp_path / "blind", broker.bootstrap_servers)
    code, output, _ = place.exit_of(
        sys.executable, "-c", WITHOUT_THE_SETTING, str(place.config), limit=START_LIMIT
    )

    assert code == 70, output[-6000:]
    assert "source_resolved_wrong_partitions" in output
    assert place.rows("batches") == []


def test_a_broker_that_is_away_at_start_is_waited_for_and_named(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    place = Place(tmp_path / "away", address)
    run = Run(place)
    try:
        wait_until(
            lambda: "broker_unreachable" in place.tail(),
            START_LIMIT,
            "the wait for a broker",
            place.tail,
        )
        assert run.process.poll() is None, place.tail()
        code, seconds = run.stop()
    finally:
        run.kill()

    assert code == 0, place.tail()
    assert seconds < patient(15)
    assert address in place.tail()


def test_garbage_in_the_offsets_topic_becomes_dead_letters_and_the_job_goes_on(
    broker: Broker, tmp_path: Path
) -> None:
    good = commit_value(3, COMMIT)
    garbage = [
        (0, None, b"no key"),
        (1, b"\x00", b"short key"),
        (2, commit_key("g", "orders", 0), good[:7]),
        (2, commit_key("g", "orders", 1)[:-2], good),
        (1, group_key("g"), i16(3) + b"\xff\xff"),
    ]
    unknown = [
        (0, i16(99) + b"whatever", b"value"),
        (0, commit_key("g", "orders", 3), i16(77) + good[2:]),
    ]
    commits = [
        (0, commit_key("good", "orders", 0), good),
        (0, commit_key("good", "nowhere", 0), good),
    ]
    gone = [(1, commit_key("gone", "orders", 0), good), (1, commit_key("gone", "orders", 0), None)]
    write(broker, [*garbage, *unknown, *commits, *gone])
    place = Place(tmp_path / "shadow", broker.bootstrap_servers, {"offsets_topic": "shadow"})
    run = Run(place)
    try:
        first = run.wait_for(lambda batch: batch.kind == "tick", "first tick over garbage")
        write(
            broker,
            [
                *garbage,
                (0, commit_key("good", "orders", 0), commit_value(3, {**COMMIT, "offset": 33})),
            ],
        )
        moment = now()
        # by then the poll has looked for topics again, and one that is not there is missing
        third = run.tick_after(moment + timedelta(seconds=LISTING_SECONDS))
        code, _ = run.stop()
    finally:
        run.kill()

    log = place.tail()
    assert code == 0, log
    rows = [row for row in place.rows("batches") if row["kind"] != "gap"]
    assert all(
        row["records"] == row["decoded"] + row["tombstones"] + row["unknown"] + row["dead"]
        for row in rows
    ), log
    before = {
        name: sum(row[name] for row in rows if row["batch_id"] <= first.batch_id)
        for name in ("dead", "unknown")
    }
    assert before == {"dead": 5, "unknown": 2}, log
    after = place.view(third)
    total = {
        name: sum(row[name] for row in rows)
        for name in ("records", "decoded", "tombstones", "unknown", "dead")
    }
    assert total == {"records": 17, "decoded": 4, "tombstones": 1, "unknown": 2, "dead": 10}, log
    letters = place.rows("dead_letters")
    assert (
        len({(row["source_partition"], row["source_offset"]) for row in letters})
        == len(letters)
        == 10
    )
    assert sum(after.batch["dead_letters_total"].values()) == 10
    unknown_types = {
        (each["record_type"], each["records"]) for each in after.batch["unknown_records_total"]
    }
    assert unknown_types == {(1, 1), (99, 1)}
    partitions = after.partitions
    assert set(partitions) == {("good", "orders", 0), ("good", "nowhere", 0)}, log
    assert partitions["good", "orders", 0]["committed_offset"] == 33
    nowhere = partitions["good", "nowhere", 0]
    assert (nowhere["status"], nowhere["lag"], nowhere["log_end_offset"]) == (
        "topic_missing",
        None,
        None,
    )
    assert after.groups["good"]["lag"] is None
