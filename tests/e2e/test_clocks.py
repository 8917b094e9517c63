"""The job is stopped for three windows and goes on: no window twice, no time back, and a gap row for what it missed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from e2e.kit import TICK, WINDOW, Place, Row, Run, Traffic, at, commit_simply
from e2e.test_first_run import check_windows
from laggard.demo.broker import Broker
from laggard.stream.jvm import descendants

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.full]
GROUP = "timed"


@contextmanager
def running(broker: Broker, folder: Path) -> Iterator[Run]:
    """A job that has closed some windows of a group that commits all the time."""
    place = at("payments", 0)
    commit_simply(broker.bootstrap_servers, GROUP, {place: 1})
    traffic = Traffic(broker.bootstrap_servers, GROUP, [place], first=1)
    run = Run(Place(folder / "job", broker.bootstrap_servers))
    try:
        traffic.start()
        await_windows(run, 2)
        yield run
    finally:
        traffic.pause()
        run.kill()


def windows(place: Place) -> list[Row]:
    return [row for row in place.rows("lag_windows") if row["group"] == GROUP]


def await_windows(run: Run, number: int) -> None:
    """So many more windows than there are now; one may have been open before."""
    enough = number + (len(windows(run.place)) if run.place.newest() else 0)
    run.wait_for(lambda _: len(windows(run.place)) >= enough, f"{number} more windows")


def gaps(place: Place) -> list[Row]:
    return sorted((row for row in place.rows("batches") if row["kind"] == "gap"), key=lambda row: row["batch_id"])


def check(place: Place) -> None:
    """Every window is there once or a gap row covers it, and no time goes back."""
    check_windows(place.rows("lag_windows"), gaps(place), place.tail())
    ticks = sorted((row for row in place.rows("batches") if row["kind"] != "gap"), key=lambda row: row["batch_id"])
    for name in ("polled_at", "started_at", "published_at"):
        times = [row[name] for row in ticks]
        assert times == sorted(times), f"{name}\n{place.tail()}"


def family(run: Run) -> list[int]:
    return [run.process.pid, *descendants(run.process.pid)]


@contextmanager
def all_stopped(run: Run) -> Iterator[None]:
    """Stop the job's process and all below it, then let them go on."""
    stopped: list[int] = []
    try:
        while new := [each for each in family(run) if each not in stopped]:  # one may be started meanwhile
            stopped += new
            send(signal.SIGSTOP, new)
        yield
    finally:
        send(signal.SIGCONT, stopped)


def send(number: signal.Signals, processes: list[int]) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


def test_a_job_that_was_stopped_for_three_windows_goes_on_and_says_so(broker: Broker, tmp_path: Path) -> None:
    with running(broker, tmp_path) as run:
        place = run.place
        before = place.view().batch
        run.wait_for(lambda batch: batch.batch_id > before["batch_id"], "a fresh tick")
        with all_stopped(run):
            last = place.view().batch
            time.sleep(3 * WINDOW + TICK)  # the fault itself
        run.wait_for(lambda batch: batch.batch_id > last["batch_id"] + 2, "ticks after it")
        await_windows(run, 2)
        ended = run.stop()
    stop = [gap for gap in gaps(place) if gap["batch_id"] > last["batch_id"] and gap["gap_reason"] == "clock"]
    assert len(stop) == 1, f"{stop}\n{place.tail()}"
    assert stop[0]["gap_to"] - stop[0]["gap_from"] > timedelta(seconds=3 * WINDOW), stop
    check(place)
    assert ended[0] == 0, place.tail()
