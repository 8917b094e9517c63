"""The only group of a cluster is deleted: windows close on, and what was open of it ends."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cli.evaluated_run import MINUTE, OPTIONS, batch_of, evaluate, hot, record
from diagnosis.fluid import NOON, Row
from laggard.stream.evaluation.reading import find_closed
from laggard.stream.evaluation.replay import memory_before, replay
from tables.fixtures import batch_row, write_rows

WINDOWS = 20  # the partition is hot from the 10th on


def deleted(window: int) -> Row:
    begin = NOON + window * MINUTE
    return {
        "date": begin.date(), "cluster": "prod", "group": "fraud", "event_id": "e", "status": "ok",
        "batch_id": batch_of(begin), "event_at": begin + timedelta(seconds=25),
        "kind": "group_deleted",
    }  # fmt: skip


def test_a_window_is_closed_by_the_ticks_that_are_reported_and_by_no_later_one(
    tmp_path: Path,
) -> None:
    """Rows of a later tick are not in the versions that are read: evaluated by those, its groups
    would be left out.
    """
    write_rows(tmp_path, "group_history", [])
    ticks = [(number, NOON + number * timedelta(seconds=25)) for number in range(12)]
    write_rows(
        tmp_path, "batches", [batch_row(number, {}, polled_at) for number, polled_at in ticks]
    )
    begin, until = (round(at.timestamp() * 1000) for at in (NOON, ticks[5][1]))
    found = find_closed(str(tmp_path), {}, begin, until, 60, until_ms=until)
    assert [(window.begin_ms - begin, window.batch_id) for window in found] == [(60_000, 5)]
    later = find_closed(str(tmp_path), {}, begin, until, 60, until_ms=until + 75_000)
    assert [(window.begin_ms - begin, window.batch_id) for window in later] == [
        (60_000, 5),
        (120_000, 8),
    ]


@pytest.mark.full
def test_findings_of_a_group_that_is_gone_end_though_it_was_the_only_one(tmp_path: Path) -> None:
    record(tmp_path, [hot(WINDOWS)], [deleted(WINDOWS)])
    begins = [NOON + window * MINUTE for window in range(WINDOWS - 1, WINDOWS + 4)]
    ticks = [(batch_of(begin) - 1, begin + timedelta(seconds=55)) for begin in begins]
    ticks += [(batch_of(begin), begin + timedelta(seconds=65)) for begin in begins[1:]]
    write_rows(
        tmp_path, "batches", [batch_row(number, {}, polled_at) for number, polled_at in ticks]
    )
    evaluate(tmp_path, WINDOWS - 12, WINDOWS + 10)

    stored = DeltaTable(str(tmp_path / "findings")).to_pyarrow_table().to_pylist()
    until = [
        (row["code"], row["event"], row["close_reason"])
        for row in sorted(stored, key=lambda each: each["at"])
    ]
    assert ("HOT_PARTITION_ARRIVAL", "opened", None) in until
    assert ("GROUP_DELETED", "opened", None) in until
    opened, closed = (
        {code for code, event, _ in until if event == kind} for kind in ("opened", "closed")
    )
    assert opened == closed
    assert ("HOT_PARTITION_ARRIVAL", "closed", "retired") in until

    first, last = (
        round((NOON + window * MINUTE).timestamp() * 1000) for window in (WINDOWS - 2, WINDOWS + 10)
    )
    steps = list(replay(str(tmp_path), first, last, memory_before(str(tmp_path), first), OPTIONS))
    again = [(row["code"], row["event"], row["at"]) for step in steps for row in step.findings]
    since = NOON + (WINDOWS - 1) * MINUTE
    assert sorted(again) == sorted(
        (row["code"], row["event"], row["at"]) for row in stored if row["at"] >= since
    )
