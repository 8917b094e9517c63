"""Maintenance runs beside the ticks, when it is due by what is recorded, and goes on after whatever
stopped it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from laggard.config import Config
from laggard.config.sections import Job
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.readers import table_uri
from laggard.tables.schema import schemas
from laggard.tables.upkeep import compaction, maintenance, schedule
from laggard.tables.upkeep.maintenance import Retention, read_done, write_done
from laggard.tables.upkeep.schedule import Schedule
from tables.fixtures import NOW, make_root

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
AT_THREE = NOW.replace(hour=3)
HOURLY = [name for name in schemas.TABLES if name in schemas.EACH_TICK]
LIMIT_SECONDS = 120.0
RETENTION = Retention(30, 30, 30, 30, status_files_hours=1, vacuum_hours=168)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Tables that were all maintained at three in the morning, in a folder with an odd name."""
    root = str(tmp_path / "tables of é #1")
    make_root(root)
    write_done(root, dict.fromkeys(schemas.TABLES, AT_THREE))
    return root


@pytest.fixture
def schedules(root: str) -> Iterator[list[Schedule]]:
    made: list[Schedule] = []
    yield made
    for each in made:
        each.close()


@pytest.fixture
def new(root: str, schedules: list[Schedule]) -> type:
    class Started(Schedule):
        """As in a process that has just started."""

        def __init__(self) -> None:
            super().__init__(Config(job=Job(tables=root)))
            schedules.append(self)

    return Started


def due(of: Schedule, now: datetime) -> list[str]:
    return of._due(now)


def run(of: Schedule, now: datetime) -> None:
    """Ticks until what is due is done."""
    end = time.monotonic() + LIMIT_SECONDS
    while not of.run_due(now):
        assert of._child is not None
        assert time.monotonic() < end
        time.sleep(0.02)


def event(writer: Writer, batch_id: int, at: datetime) -> None:
    row = {"date": at.date(), "group": "g", "event_at": at, "batch_id": batch_id}
    writer.write(schemas.GROUP_EVENTS, to_arrow(schemas.GROUP_EVENTS, [row]), batch_id)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (AT_THREE + 0.9 * HOUR, []),
        (AT_THREE + HOUR + timedelta(seconds=1), HOURLY),  # hourly
        (AT_THREE + DAY - timedelta(seconds=1), HOURLY),
        (AT_THREE + DAY + timedelta(seconds=1), list(schemas.TABLES)),  # daily
        (AT_THREE + DAY + 9 * HOUR, list(schemas.TABLES)),  # the job was down at that hour
        (AT_THREE - 0.5 * HOUR, []),  # the clock was set back by a little
        (AT_THREE - 30 * HOUR, list(schemas.TABLES)),  # or by more: what is recorded means nothing
    ],
)
def test_what_is_due_is_decided_by_what_is_recorded(
    new: type, now: datetime, expected: list[str]
) -> None:
    assert due(new(), now) == expected


def test_new_tables_are_due_from_their_first_tick_on(root: str, new: type) -> None:
    Path(root, "_laggard", "maintained.json").unlink()
    assert due(new(), NOW) == []
    assert due(new(), NOW + 2 * HOUR) == HOURLY


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", '{"batches": 3}', '{"batches": "yesterday"}']
)
def test_a_damaged_record_is_as_none(root: str, new: type, content: str) -> None:
    Path(root, "_laggard", "maintained.json").write_text(content)
    assert due(new(), NOW) == []
    assert set(read_done(root)) == set(schemas.TABLES)


def test_status_tables_are_cleaned_hourly_by_processes_that_live_for_minutes(
    root: str, new: type
) -> None:
    cleaned = []
    for minutes in range(0, 150, 10):
        started, now = new(), AT_THREE + timedelta(minutes=minutes)
        if due(started, now):
            run(started, now)
            cleaned.append(minutes)
        assert due(new(), now) == []  # nor does the next one maintain again
    assert cleaned == [70, 140]


@pytest.mark.full
def test_commits_go_on_while_days_are_compacted(root: str, new: type) -> None:
    writer = Writer(root, "one")
    yesterday = AT_THREE - 6 * HOUR
    for number in range(40):
        event(writer, number, yesterday + timedelta(days=number % 2 - 1))
    started, now, number, end = new(), AT_THREE + DAY, 40, time.monotonic() + LIMIT_SECONDS
    while not started.run_due(now):
        # fewer than the tries of a compaction: no job commits as fast as this loop
        if number < 40 + compaction._TRIES // 2:
            event(writer, number, NOW if number % 2 else yesterday)
            number += 1
        time.sleep(0.02)
        assert time.monotonic() < end
    table = DeltaTable(table_uri(root, "group_events"))
    assert sorted(table.to_pyarrow_table()["batch_id"].to_pylist()) == list(range(number))
    assert [uri for uri in table.file_uris() if f"{yesterday - DAY:%Y-%m-%d}" in uri][1:] == []
    assert set(read_done(root).values()) == {now}
    assert not started.run_due(now)
    assert started._child is None


def test_a_table_that_fails_is_tried_again_and_logged_once(
    root: str, new: type, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "RETRY_SECONDS", 0.0)
    log = Path(root, "lag_windows", "_delta_log", "00000000000000000000.json")
    sound = log.read_text()
    log.write_text("{")
    started, now = new(), AT_THREE + DAY
    with caplog.at_level(logging.WARNING, "laggard.maintenance"):
        run(started, now)
        assert due(started, now) == ["lag_windows"]
        run(started, now)
        log.write_text(sound)
        run(started, now)
    assert due(started, now) == []
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "maintenance of lag_windows failed and is tried again every 10 minutes: cannot read the"
    )


def test_a_failure_waits_for_its_time(root: str, new: type) -> None:
    started = new()
    started._fail("batches", "no matter what")
    assert not started.run_due(AT_THREE + DAY)
    assert started._child is None


def test_a_process_that_is_killed_is_started_again(
    new: type, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "RETRY_SECONDS", 0.0)
    started, now = new(), AT_THREE + DAY
    started.run_due(now)
    started._child.kill()
    run(started, now)
    assert "its process ended with -9" in caplog.text
    run(started, now)
    assert due(started, now) == []


def test_a_job_that_runs_once_waits_for_it(new: type) -> None:
    started, now = new(), AT_THREE + DAY
    started.run_due(now)
    started.finish(threading.Event())
    assert due(new(), now) == []


def test_a_stop_ends_it_at_once(new: type) -> None:
    started = new()
    started.run_due(AT_THREE + DAY)
    child = started._child
    started.close()
    assert child.returncode == -signal.SIGKILL


def test_it_does_not_outlive_a_job_that_is_killed() -> None:
    code = (
        "import time, laggard.tables.upkeep.schedule as s;"
        " s.maintain = lambda *a, **b: time.sleep(600); s.run_child()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, env=environment)
    request = {
        "root": "/nowhere",
        "retention": asdict(RETENTION),
        "now": str(NOW),
        "names": [],
    }
    # the pipe ends as when the job dies
    child.communicate(json.dumps(request).encode() + b"\n", timeout=LIMIT_SECONDS)
    assert child.returncode == 1


def test_no_table_starves_behind_one_at_which_the_process_dies_each_time(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is killed for its memory."""
    maintain_table, begun = maintenance._maintain_table, []

    def dying(root: str, table: schemas.Table, *rest: object) -> None:
        begun.append(table.name)
        if table.name in ("lag_windows", "rebalances"):
            raise SystemExit
        maintain_table(root, table, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(maintenance, "_maintain_table", dying)
    now = AT_THREE + DAY
    for _ in range(3):
        left = [name for name, at in read_done(root).items() if at != now]
        with pytest.raises(SystemExit):
            maintenance.maintain(root, RETENTION, now, left)
    assert begun[:4] == ["partition_status", "group_status", "lag_windows", "group_history"]
    assert sorted(name for name, at in read_done(root).items() if at != now) == [
        "lag_windows",
        "rebalances",
    ]
