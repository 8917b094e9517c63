"""A declared service level, from the policy to the counts of late records, with the product as
users run it.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from e2e.kit import Place, Row, Run, Traffic, at, commit_simply
from laggard.demo.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.e2e, pytest.mark.full]

SLO = 8
POLICY = f"""
[[policy]]
match = "*ing"
slo_time_lag_seconds = {SLO}
[[policy]]
match = "sleeping"
slo_time_lag_seconds = 0
"""


@pytest.fixture
def servers() -> Iterator[str]:
    with Broker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics([NewTopic("orders", 1, 1)])
        admin.close()
        yield broker.bootstrap_servers


def test_a_group_that_reads_is_in_time_and_one_that_stopped_is_late(
    servers: str, tmp_path: Path
) -> None:
    place = Place(tmp_path / "job", servers)
    with place.config.open("a") as config:
        config.write(POLICY)
    orders = at("orders", 0)
    traffic = Traffic(servers, "reading", [orders], first=0)
    run = Run(place)
    try:
        commit_simply(servers, "stopping", {orders: 0})
        run.wait_for(
            lambda batch: batch.kind == "tick" and "stopping" in place.view(batch).groups,
            "first tick",
        )
        traffic.start()
        for _ in range(5):  # a commit interval, and then no more
            commit_simply(servers, "stopping", {orders: 0})
            commit_simply(servers, "sleeping", {orders: 0})
            time.sleep(1)
        batch = run.wait_for(
            lambda batch: len(_counted(place.view(batch).windows, "stopping")) >= 2,
            "counted windows",
        )
        windows = place.view(batch).windows
        reading, stopping = _counted(windows, "reading"), _counted(windows, "stopping")
        assert all(row["late_records"] == 0 for row in reading)
        assert sum(row["matured_records"] for row in reading) > 0
        assert all(row["late_records"] == row["matured_records"] for row in stopping)
        assert all(row["matured_records"] is None for row in windows if row["group"] == "sleeping")
        both = {row["window_start"]: row["matured_records"] for row in reading}
        assert all(
            both.get(row["window_start"], row["matured_records"]) == row["matured_records"]
            for row in stopping
        )
        ticks = sorted(
            (row for row in place.rows("batches") if row["kind"] == "tick"),
            key=lambda row: row["batch_id"],
        )
        assert ticks[-1]["poll_seconds_total"]["list_offsets"] > 0
        assert sum(ticks[-1]["source_commits_total"].values()) > 10
        assert {*ticks[-1]["source_coordinator"].values()} == {1}
        assert ticks[-1]["source_log_start_offset"].keys() == ticks[-1]["source_to"].keys()
        skews = [
            row["clock_skew_seconds"] for row in ticks if row["clock_skew_seconds"] is not None
        ]
        assert skews
        assert max(map(abs, skews)) < 1  # the broker has the clock of this machine
        topic = place.view(batch).rows("topic_windows")[-1]
        assert (topic["config_known"], topic["cleanup_policy"]) == (True, "delete")
        assert batch.values["offsets_retention_minutes"] == 10_080
    finally:
        traffic.pause()
        run.kill()


def _counted(windows: list[Row], group: str) -> list[Row]:
    """Windows in which records matured and their lateness is known."""
    return [
        row
        for row in windows
        if row["group"] == group and row["matured_records"] and row["late_records"] is not None
    ]
