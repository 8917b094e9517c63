"""One batch, whole, while it is fresh: never a mixture, never old numbers, never none without a
reason.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from exporter.harness import POLLED, Clock, Exporter, names, samples, series
from laggard.exporter import refresh as refresh_module
from laggard.exporter.snapshot import Snapshot
from laggard.tables.freshness import max_age
from laggard.tables.published import Batch
from laggard.tables.readers import TableUnreadable
from tables.fixtures import (
    NOW,
    batch_row,
    group_row,
    partition_row,
    topic_row,
    write_batch,
    write_rows,
)

LAG = series("group_lag_records", group="g", topic="t")
DATA = ("laggard_group_", "laggard_partition_", "laggard_topic_")


def write_lag(root: Path, batch_id: int, lag: int, seconds: float = 0) -> dict[str, int]:
    """A batch in which group g has this lag."""
    return write_batch(
        root,
        batch_id,
        NOW + timedelta(seconds=seconds),
        partitions=[partition_row("g", "t", 0, committed_offset=1000 - lag)],
        groups=[group_row("g", generation=batch_id)],
        topics=[topic_row("t", 0)],
    )


def data_names(exporter: Exporter) -> set[str]:
    return {name for name in names(exporter.samples()) if name.startswith(DATA)}


def reason(exporter: Exporter) -> str:
    """The state of laggard_not_ready, which must agree with laggard_ready."""
    found = exporter.samples()
    (current,) = [
        dict(labels)["laggard_not_ready"]
        for (name, labels), on in found.items()
        if name == "laggard_not_ready" and on
    ]
    (ready,) = [value for (name, _), value in found.items() if name == "laggard_ready"]
    assert ready == (current == "none")
    return current


def test_the_exporter_follows_the_newest_batch(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    before = exporter.samples()[LAG]
    write_lag(tmp_path, 2, lag=6, seconds=10)
    exporter.refresh()
    assert (before, exporter.samples()[LAG]) == (5, 6)


def test_rows_above_the_version_that_the_batch_names_are_not_served(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    # not published yet
    write_rows(tmp_path, "partition_status", [partition_row("g", "t", 0, committed_offset=0)])
    write_rows(tmp_path, "group_status", [group_row("g", generation=99)])
    write_rows(
        tmp_path,
        "topic_windows",
        [topic_row("t", 0, batch_id=2, log_end_offset=7777, window_start=NOW)],
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = exporter.samples()
    assert found[LAG] == 5
    assert found[series("group_generation", group="g")] == 1
    assert found[series("topic_retained_records", topic="t")] == 1000


def test_a_gap_row_publishes_nothing(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    write_rows(tmp_path, "batches", [batch_row(2, {}, kind="gap", gap_seq=1, table_versions=None)])
    exporter = Exporter(tmp_path)
    exporter.refresh()
    assert exporter.samples()[LAG] == 5


@pytest.mark.parametrize(("age", "is_served"), [(90, True), (91, False), (-60, True), (-61, False)])
def test_data_disappears_at_its_age_limit_without_any_refresh_and_the_rest_stays(
    tmp_path: Path, age: int, is_served: bool
) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    exporter.refresh()  # the reader hangs from here on
    exporter.clock.now = POLLED + age
    assert bool(data_names(exporter)) == is_served
    assert reason(exporter) == ("none" if is_served else "stale")
    assert {"laggard_batch_id", "laggard_source_lag_records", "laggard_build_info"} <= names(
        exporter.samples()
    )


def test_a_batch_that_is_old_when_the_exporter_starts_is_not_served(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path, Clock(POLLED + 1000))
    exporter.refresh()
    assert data_names(exporter) == set()
    assert reason(exporter) == "stale"


def test_a_backfill_drops_the_data_of_the_batch_before(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    versions = {"partition_status": 0, "group_status": 0, "topic_windows": 0}
    write_rows(
        tmp_path, "batches", [batch_row(2, versions, NOW + timedelta(seconds=1), kind="backfill")]
    )
    exporter.refresh()
    assert data_names(exporter) == set()
    assert reason(exporter) == "catching_up"
    assert exporter.samples()[series("batch_id")] == 2


def test_no_tables_read_table_missing_and_an_empty_log_reads_starting(tmp_path: Path) -> None:
    exporter = Exporter(tmp_path)
    reasons = [exporter.refresh().roots[0].reason]
    write_rows(tmp_path, "batches", [])
    reasons.append(exporter.refresh().roots[0].reason)
    assert reasons == ["table_missing", "starting"]
    assert ("cluster", "configured") in {
        label for _, labels in exporter.samples() for label in labels
    }


def test_the_last_good_data_outlives_a_read_error_but_not_its_age(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    exporter.refresh()
    shutil.rmtree(tmp_path / "batches")
    exporter.refresh()
    assert exporter.samples()[LAG] == 5
    exporter.clock.now = POLLED + 91
    assert reason(exporter) == "table_missing"
    exporter.refresh()
    assert exporter.samples()[series("exporter_refresh_errors_total", reason="table_missing")] == 2


def test_a_missing_column_reads_table_unreadable(tmp_path: Path) -> None:
    versions = write_lag(tmp_path, 1, lag=5)
    shutil.rmtree(tmp_path / "group_status")
    shutil.copytree(tmp_path / "partition_status", tmp_path / "group_status")
    assert versions["group_status"] == 0
    exporter = Exporter(tmp_path)
    assert exporter.refresh().roots[0].reason == "table_unreadable"


def test_files_removed_under_the_reader_make_it_read_the_newer_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    load = refresh_module.load_snapshot

    def vacuumed(root: str, batch: Batch, *rest: Any) -> Snapshot:
        if batch.batch_id == 1:
            write_lag(tmp_path, 2, lag=6, seconds=10)
            raise TableUnreadable(root, "a file is gone")
        return load(root, batch, *rest)

    monkeypatch.setattr(refresh_module, "load_snapshot", vacuumed)
    exporter.refresh()
    assert exporter.samples()[LAG] == 6
    assert not +exporter.stats.refresh_errors


def test_a_fault_of_ours_is_counted_and_the_thread_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(refresh_module, "load_snapshot", lambda *_: 1 // 0)
        exporter.refresh()
    assert (reason(exporter), +exporter.stats.refresh_errors) == (
        "table_unreadable",
        {"internal": 1},
    )
    exporter.refresh()
    assert exporter.samples()[LAG] == 5


def test_a_published_value_never_changes_under_a_scrape(tmp_path: Path) -> None:
    write_lag(tmp_path, 1, lag=5)
    exporter = Exporter(tmp_path)
    held = exporter.refresh()
    write_lag(tmp_path, 2, lag=6, seconds=10)
    exporter.refresh()
    assert samples(held, exporter.clock())[LAG] == 5


def test_the_age_limit_is_three_ticks_but_at_least_ninety_seconds() -> None:
    assert [max_age(10), max_age(60), max_age(10, 20)] == [90, 180, 20]
