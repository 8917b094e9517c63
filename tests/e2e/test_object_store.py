"""Tables in a bucket of a real S3 server: outage, other keys, another machine, second job; no row
doubled or lost.
"""

import itertools
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.bucket import ROOT, BucketPlace
from e2e.kit import (
    START_LIMIT,
    WINDOW,
    Exporter,
    Place,
    Row,
    Run,
    at,
    commit_simply,
    now,
    produce,
    wait_until,
)
from laggard import storage
from laggard.demo.broker import Broker
from laggard.tables.schema.schemas import TABLES
from laggard.tables.upkeep.maintenance import read_done, write_done
from patience import patient
from s3 import S3Server

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
]
LONG_AGO = datetime(2020, 1, 1, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    with Broker() as running:
        admin = KafkaAdminClient(bootstrap_servers=running.bootstrap_servers)
        admin.create_topics([NewTopic("orders", 2, 1)])
        admin.close()
        produce(running.bootstrap_servers, {at("orders", 0): 10, at("orders", 1): 5})
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    before = storage.settings()
    with S3Server(tmp_path / "s3") as running:
        storage.use(running.settings)
        yield running
    storage.use(before)


def place_of(folder: Path, broker: Broker, server: S3Server) -> BucketPlace:
    return BucketPlace.of(folder, broker.bootstrap_servers, server)


def published(place: Place) -> list[Row]:
    rows = sorted(
        (row for row in place.rows("batches") if row["kind"] != "gap"),
        key=lambda row: int(row["batch_id"]),
    )
    assert [row["batch_id"] for row in rows] == list(range(len(rows))), "a batch is doubled or lost"
    assert all(
        before["source_to"] == after["source_from"] for before, after in itertools.pairwise(rows)
    )
    return rows


def check_no_row_is_doubled(place: Place) -> None:
    for name in ("lag_windows", "group_windows", "group_history"):
        key = [*TABLES[name].key, "window_start"]
        found = [tuple(row[column] for column in key) for row in place.rows(name)]
        assert len(found) == len(set(found)), name


def lags(place: Place) -> dict[tuple[str, int], int]:
    rows = place.view().partitions
    return {
        (group, partition): row["lag"]
        for (group, _, partition), row in rows.items()
        if row["lag"] is not None
    }


def command(place: Place, *words: str) -> list[str]:
    return [sys.executable, "-m", "laggard", *words, "--config", str(place.config)]


def test_a_job_and_an_exporter_on_a_bucket(
    tmp_path: Path, own_broker: Broker, server: S3Server
) -> None:
    place = place_of(tmp_path / "one", own_broker, server)
    commit_simply(own_broker.bootstrap_servers, "billing", {at("orders", 0): 4, at("orders", 1): 5})
    run = Run(place)
    try:
        run.tick_after(now())
        found = lags(place)
        assert (found["billing", 0], found["billing", 1]) == (6, 0)
        check_readers(place)
        second = place_of(tmp_path / "second", own_broker, server)
        code, output, _ = second.exit_of()
        assert (
            code,
            "another process writes" in output,
            len(output.strip().splitlines()) <= 5,
        ) == (73, True, True)
        survive_outage(run, server)
        survive_other_keys(run, server)
        wait_until(lambda: place.rows("finding_state"), 60, "the rules in a bucket", place.tail)
    finally:
        run.kill()  # and its disk is gone with it
    wait_until(  # the JVM may write until it has heard that the job is gone
        lambda: shutil.rmtree(place.folder, ignore_errors=True) or not place.folder.exists(),
        20,
        "its disk is gone",
        str,
    )
    moved = place_of(tmp_path / "another machine", own_broker, server)
    before = published(moved)[-1]["batch_id"]
    commit_simply(own_broker.bootstrap_servers, "billing", {at("orders", 0): 9})
    write_done(ROOT, dict.fromkeys(TABLES, LONG_AGO))
    run = Run(moved)
    try:
        run.wait_for(lambda batch: batch.batch_id > before + WINDOW, "ticks on another machine")
        wait_until(lambda: LONG_AGO not in read_done(ROOT).values(), 60, "maintenance", moved.tail)
        assert run.stop()[0] == 0
    finally:
        run.kill()
    assert lags(moved)["billing", 0] == 1
    assert len({row["checkpoint_id"] for row in published(moved)}) == 2
    check_no_row_is_doubled(moved)
    assert {row["gap_reason"] for row in moved.rows("batches") if row["kind"] == "gap"} <= {
        "tick_late",
        "job_down",
    }


def check_readers(place: Place) -> None:
    exporter = Exporter(place)
    try:
        samples = exporter.scrape_when_ready()
    finally:
        exporter.kill()
    assert [
        value
        for key, value in samples["laggard_group_lag_records"].items()
        if ("group", "billing") in key
    ] == [6.0]
    code, output, _ = place.exit_of(*command(place, "doctor", "--all"))
    assert code in (0, 1), output
    assert f"{ROOT} can be read" in output


def survive_outage(run: Run, server: S3Server) -> None:
    """It is waited for; what nobody saw meanwhile is a gap."""
    before = published(run.place)[-1]["batch_id"]
    server.stop()
    time.sleep(3 * WINDOW / 2)  # the outage itself
    server.start()
    run.wait_for(lambda batch: batch.batch_id > before + 2, "ticks after the outage")


def survive_other_keys(run: Run, server: S3Server) -> None:
    """The file is replaced, and nobody starts anything again."""
    server.stop()
    server.keys = ("tester-2", "another-secret-of-the-tester")
    server.start()
    server.write_keys(server.keys)
    before = published(run.place)[-1]["batch_id"]
    run.wait_for(lambda batch: batch.batch_id > before + 2, "ticks with the other keys")


@pytest.mark.nightly
def test_one_that_was_suspended_is_refused_when_it_returns(
    tmp_path: Path, own_broker: Broker, server: S3Server
) -> None:
    commit_simply(own_broker.bootstrap_servers, "billing", {at("orders", 0): 4})
    runs = [Run(place_of(tmp_path / "job 0", own_broker, server))]
    try:
        runs[0].tick_after(now())
        for number in range(1, 4):
            sleeper, before = runs[-1], published(runs[-1].place)[-1]["batch_id"]
            sleeper.process.send_signal(signal.SIGSTOP)
            runs.append(Run(place_of(tmp_path / f"job {number}", own_broker, server)))
            runs[-1].wait_for(
                lambda batch, before=before: batch.batch_id > before + 2, "ticks of the next one"
            )
            sleeper.process.send_signal(signal.SIGCONT)
            assert sleeper.process.wait(patient(START_LIMIT)) == 73, sleeper.place.tail()
            assert "another process writes" in sleeper.place.log.read_text()
            runs[-1].tick_after(now())
            published(runs[-1].place)
    finally:
        for run in runs:
            run.process.send_signal(signal.SIGCONT)
            run.kill()
    check_no_row_is_doubled(runs[-1].place)


@pytest.mark.parametrize(
    ("change", "exit_code", "says"),
    [
        ({"job.tables": "s3://none/x"}, 78, "bucket does not exist"),
        ({"storage.region": "eu-west-9"}, 78, "region"),
        ({"storage.credentials_file": "/nowhere"}, 78, "credentials_file"),
        ({"storage.endpoint": "http://127.0.0.1:1"}, 75, "does not answer"),
        ({"job.checkpoint": "s3://lags/checkpoint"}, 78, "job.checkpoint"),
        ({"job.tables": "hdfs://host/x"}, 78, "HDFS"),
        ({"keys": "wrong"}, 77, "denied"),
    ],
)
def test_what_cannot_be_used_is_one_error_with_its_class(
    tmp_path: Path,
    own_broker: Broker,
    server: S3Server,
    change: dict[str, Any],
    exit_code: int,
    says: str,
) -> None:
    place = place_of(tmp_path / "job", own_broker, server)
    if "keys" in change:
        server.write_keys(("tester", "wrong"))
    sets = [
        word
        for key, value in change.items()
        if key != "keys"
        for word in ("--set", f'{key}="{value}"')
    ]
    for verb in ("run", "status"):
        code, output, seconds = place.exit_of(*command(place, verb, *sets))
        assert (code, says in output) == (exit_code, True), output
        assert seconds < 60
    assert not list((tmp_path / "s3" / "buckets" / "lags").iterdir()), "nothing is written"
