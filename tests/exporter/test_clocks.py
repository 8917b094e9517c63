"""Clocks that disagree: the exporter's own and the job's, and a job whose clock was set back."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from exporter.harness import POLLED, Clock, Exporter, series
from tables.fixtures import CLUSTER, NOW, partition_row, write_batch

TICK = timedelta(seconds=10)


def publish(root: Path, number: int, at: datetime = NOW, **values: Any) -> None:
    """Batch `number`, polled `number` ticks after `at`."""
    polled_at = at + number * TICK
    row = {"started_at": polled_at, "published_at": polled_at + timedelta(seconds=2), **values}
    write_batch(root, number, polled_at, partitions=[partition_row("g", "t", 0)], **row)


def run(root: Path, apart: float, batches: int = 3) -> Exporter:
    """An exporter whose clock is so many seconds before the job's, after it saw some batches
    arrive.
    """
    exporter = Exporter(root, Clock(POLLED))
    for number in range(batches):
        publish(root, number)
        exporter.clock.now = POLLED + 10 * number + 4 + apart
        exporter.refresh()
    return exporter


def reason(exporter: Exporter) -> str:
    return exporter.publisher.published.roots[0].reason_at(exporter.clock())


@pytest.mark.parametrize(
    ("apart", "expected"),
    [(0, ""), (30, ""), (-30, ""), (600, "clock"), (-600, "clock"), (75, ""), (100, "clock")],
)
def test_data_is_served_by_a_clock_that_is_nearly_that_of_the_job(
    tmp_path: Path, apart: float, expected: str
) -> None:
    exporter = run(tmp_path, apart)
    assert reason(exporter) == expected
    found = exporter.samples()
    assert (series("partition_lag_records", group="g", topic="t", partition=0) in found) == (
        not expected
    )
    assert found[series("clock_offset_seconds")] == pytest.approx(apart + 2)
    assert found[series("not_ready", laggard_not_ready=expected or "none")] == 1


def test_a_job_that_ended_is_stale_and_no_matter_of_clocks(tmp_path: Path) -> None:
    exporter = run(tmp_path, 0)
    exporter.clock.now += 600
    exporter.refresher.steady = lambda: 600.0
    exporter.refresh()
    assert reason(exporter) == "stale"


def test_a_batch_from_before_the_start_says_nothing_of_clocks(tmp_path: Path) -> None:
    exporter = run(tmp_path, 600, batches=1)
    assert reason(exporter) == "stale"
    assert series("clock_offset_seconds") not in exporter.samples()


def test_live_values_are_served_while_time_is_held(tmp_path: Path) -> None:
    """The job's clock was set back by an hour: rows stay at the time before, and the poll is of
    now.
    """
    exporter = Exporter(tmp_path, Clock(POLLED - 3600 + 4))
    wall = {"wall": NOW - timedelta(hours=1), "boot_id": "b", "boot_ms": 1, "awake_ms": 1}
    publish(tmp_path, 0, clock=wall)
    exporter.refresh()
    assert reason(exporter) == ""
    found = exporter.samples()
    assert found[series("partition_lag_records", group="g", topic="t", partition=0)] == 100
    assert found[series("clock_held_seconds")] == 3600
    assert found[series("data_timestamp_seconds")] == POLLED - 3600
    assert exporter.publisher.published.roots[0].cluster == CLUSTER


def test_a_clock_that_is_not_set_back_holds_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, 0).samples()[series("clock_held_seconds")] == 0
