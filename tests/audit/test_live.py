"""I10: offsets of coordinators beside those of the tables, in batches that are published while the
audit waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laggard.audit import live
from laggard.audit.reader import Reader
from laggard.audit.result import Tally
from laggard.tables.published import newest_batch
from tables.fixtures import NOW, Row, group_row, partition_row, write_batch

TICK = timedelta(seconds=10)
PLACE = ("g", "t", 0)
Asked = dict[tuple[str, str, int], "int | None"]


def check(
    root: Path,
    batches: Iterable[list[Row]],
    asked: Asked,
    monkeypatch: pytest.MonkeyPatch,
    begin: datetime = NOW,
    seconds: float = 1.0,
) -> Tally:
    """Publish the first of these batches, ask, and publish one more each time that the audit looks
    for one.
    """
    rest = enumerate(batches)

    def publish(_: Any = None) -> None:
        number, rows = next(rest, (0, None))
        if rows is not None:
            write_batch(
                root, 42 + number, begin + number * TICK, partitions=rows, groups=[group_row("g")]
            )

    publish()
    batch = newest_batch(str(root))
    assert batch is not None
    monkeypatch.setattr(live, "_ask", lambda *_: (asked, {}))
    # in this module alone: the sleep of other threads, as of Spark's client, must not publish
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=time.monotonic, sleep=publish))
    tally, brokers = Tally(), Any
    reader = Reader(str(root), batch, NOW - TICK, NOW + TICK)
    # a stand-in for brokers: its answers are the test's
    live.check_coordinators(reader, brokers, 1, seconds, tally)  # type: ignore[arg-type]
    return tally


def row(offset: int = 900, status: str = "ok", partition: int = 0, **values: Any) -> Row:
    source = {"commit_source_partition": 3, "commit_source_offset": offset}
    return partition_row("g", "t", partition, status, committed_offset=offset, **source, **values)


def test_an_offset_that_the_coordinator_does_not_hold_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = check(tmp_path, [[row()]] * 3, {PLACE: 950}, monkeypatch)
    [found] = tally.samples
    assert (found.expected, found.found, tally.checked) == (950, 900, 1)


def test_an_offset_that_was_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator gives others of the topic, so the asker may describe it."""
    rows = [row(), row(partition=1)]
    tally = check(tmp_path, [rows] * 3, {PLACE: 900}, monkeypatch)
    assert [(each.key["partition"], each.expected) for each in tally.samples] == [(1, None)]


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        ("stale", {PLACE: 950}),
        ("source_blocked", {PLACE: 950}),
        ("no_end_offset", {}),  # the asker may not describe the topic
        ("ok", {}),
        ("ok", {PLACE: None}),  # answered with an error
    ],
)
def test_offsets_that_are_not_known_on_both_sides_are_not_compared(
    status: str, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row(status=status), partition_row("g", "another", 0)]
    tally = check(tmp_path, [rows] * 3, {("g", "another", 0): 900, **asked}, monkeypatch)
    assert (tally.violations, tally.checked, tally.unchecked) == (0, 1, "")


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=400)])
def test_the_batch_that_polled_before_the_answers_is_passed_over(
    ahead: timedelta, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the clock of the job says."""
    begin = datetime.now(timezone.utc).replace(microsecond=0) + ahead
    batches = [[row(900)], [row(900)], [row(950)]]
    tally = check(tmp_path, batches, {PLACE: 950}, monkeypatch, begin)
    assert (tally.violations, tally.checked, tally.unchecked) == (0, 0, "")


def test_a_job_behind_the_clock_of_the_audit_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = datetime.now(timezone.utc) - timedelta(days=1)
    assert check(tmp_path, [[row()]] * 3, {PLACE: 900}, monkeypatch, begin).checked == 1


def test_a_job_that_publishes_one_batch_more_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = check(tmp_path, [[row()]] * 2, {PLACE: 950}, monkeypatch, seconds=0.2)
    assert "two batches" in tally.unchecked


def test_a_group_that_the_last_poll_did_not_ask_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the job polls the coordinators, it may not ask all groups at each tick."""
    rows = [row(partition=0, answered_at=NOW), row(partition=1, answered_at=NOW + 2 * TICK)]
    tally = check(tmp_path, [rows] * 3, {PLACE: 950, ("g", "t", 1): 900}, monkeypatch)
    assert (tally.violations, tally.checked) == (0, 1)
