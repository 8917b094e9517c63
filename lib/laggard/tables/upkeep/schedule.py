"""Decide when the job maintains its tables: hourly with a commit every tick, all once a day.

It runs beside the ticks.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING

from laggard import storage
from laggard.tables.schema.schemas import EACH_TICK, TABLES
from laggard.tables.upkeep.maintenance import Outcome, Retention, maintain, read_done, write_done

if TYPE_CHECKING:
    from laggard.config import Config

log = logging.getLogger("laggard.maintenance")
RETRY_SECONDS = 600.0
MAX_SECONDS = 6 * 3600.0
_HOUR_UTC = 3  # from which the daily work is due
_CLOCK_SLACK = timedelta(hours=1)  # a time further ahead was written before the clock was set back
_NICENESS = 10
_CHILD = "from laggard.tables.upkeep.schedule import run_child; run_child()"


class Schedule:
    """Starts a process for tables that are due and notes its results; a tick never waits for it.

    A process of its own: compacting a large day takes minutes and whole cores, and at a stop it can
    be killed at any moment, as each of its commits is whole. The job's lock covers it.
    """

    def __init__(self, config: Config) -> None:
        self._root = config.job.tables
        self._is_enabled = config.maintenance.enabled
        self._retention = Retention.of(config.retention)
        self._done: dict[str, datetime] = {}
        self._child: subprocess.Popen[str] | None = None
        # a file, as a pipe that is not read while the child runs would block it
        self._said_by_child: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` does
        self._started_at = 0.0
        self._not_before = 0.0
        self._failing: set[str] = set()

    def run_due(self, now: datetime) -> bool:
        """Start maintenance due at this tick's time; return True if some has ended.

        Tables then have new versions.
        """
        if self._child is not None:
            if time.monotonic() - self._started_at > MAX_SECONDS:
                self._child.kill()
            return self._child.poll() is not None and self._take_in(self._child)
        if time.monotonic() >= self._not_before:
            try:
                if names := self._due(now):
                    self._start(names, now)
            # small files are a nuisance, a lost tick is a loss
            except Exception as error:  # noqa: BLE001
                self._fail("start", str(error))
        return False

    def finish(self, stopping: threading.Event) -> None:
        """Wait for what was started, unless stopped: a job that runs once has no later tick."""
        while self._child is not None and not stopping.wait(0.1):
            if self._child.poll() is not None:
                self._take_in(self._child)

    def close(self) -> None:
        """End what runs; the rest is due at the next start."""
        self._said_by_child.close()
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def _due(self, now: datetime) -> list[str]:
        self._done = self._done or read_done(self._root)
        if not self._done:  # new tables, or those of a release that recorded nothing
            self._done = dict.fromkeys(TABLES, now)
            write_done(self._root, self._done)
        hour = now.replace(hour=_HOUR_UTC, minute=0, second=0, microsecond=0)
        last_hour = hour if hour <= now else hour - timedelta(days=1)
        hours_ago = now - timedelta(hours=self._retention.status_files_hours)
        due = []
        for name, table in TABLES.items():
            earliest = hours_ago if name in EACH_TICK else last_hour
            is_done = earliest <= self._done.get(name, now) <= now + _CLOCK_SLACK
            if (table.overwritten or self._is_enabled) and not is_done:
                due.append(name)
        return due

    def _start(self, names: Sequence[str], now: datetime) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=self._said_by_child,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # Ctrl-C is for the job
        )
        self._started_at = time.monotonic()
        request = {
            "root": self._root, "retention": asdict(self._retention), "now": now.isoformat(),
            "names": list(names), "storage": asdict(storage.settings()),
        }  # fmt: skip
        assert self._child.stdin is not None  # noqa: S101 - for the type checker
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()  # and stays open: its end is ours

    def _take_in(self, child: subprocess.Popen[str]) -> bool:
        child.communicate()
        self._child, self._done = None, {}
        self._said_by_child.seek(0)
        lines = self._said_by_child.read().splitlines()
        self._said_by_child.seek(0)
        self._said_by_child.truncate()
        outcomes = [Outcome(**json.loads(line)) for line in lines if line.startswith("{")]
        self._failing -= {outcome.table for outcome in outcomes if not outcome.error}
        for outcome in outcomes:
            if outcome.error:
                self._fail(outcome.table, outcome.error)
        self._failing.discard("the tables")
        if child.returncode:
            last = lines[-1] if lines else ""
            self._fail("the tables", f"its process ended with {child.returncode}: {last}")
        done = sum(not outcome.error for outcome in outcomes)
        log.info("maintained %d tables in %.1f s", done, time.monotonic() - self._started_at)
        return True

    def _fail(self, subject: str, error: str) -> None:
        """Log it once until it succeeds again, and try again in ten minutes."""
        self._not_before = time.monotonic() + RETRY_SECONDS
        if subject not in self._failing:
            log.warning(
                "maintenance of %s failed and is tried again every 10 minutes: %s", subject, error
            )
        self._failing.add(subject)


def run_child() -> None:
    """Read a request from standard input and write an outcome per table to standard output.

    It ends with the parent.
    """
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(OSError):
        os.nice(_NICENESS)
        # where memory runs out, it goes and not the job
        Path("/proc/self/oom_score_adj").write_text("1000")
    storage.use(storage.Settings(**request["storage"]))
    retention, now = Retention(**request["retention"]), datetime.fromisoformat(request["now"])
    for outcome in maintain(request["root"], retention, now, request["names"]):
        sys.stdout.write(json.dumps(asdict(outcome)) + "\n")
    sys.stdout.flush()
    os._exit(0)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)
