"""The job is stopped for three windows, and its clock is set: it goes on, no window is doubled, no
time goes back.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from e2e.kit import TICK, WINDOW, Place, Row, Run, Traffic, at, commit_simply, unique
from e2e.test_first_run import check_windows
from laggard.demo.broker import Broker
from laggard.stream.job.jvm import descendants
from set_clock import Clock

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
    pytest.mark.release,
]
GROUP = "timed"
HOUR, MINUTE = 3600, 60  # seconds
# of a busy machine the tick after one may be late by a window more, and the gap has that reason
STOPS = 3


def was_set(row: Row, seconds: int) -> bool:
    """True if the clock was so far ahead of the machine's at the poll of a row of `batches`."""
    booted_at = row["clock"]["wall"].timestamp() - row["clock"]["boot_ms"] / 1000
    return (
        abs(booted_at + time.clock_gettime(time.CLOCK_BOOTTIME) - time.time() - seconds)
        < MINUTE / 3
    )


@contextmanager
def running(broker: Broker, folder: Path, clock: Clock | None = None) -> Iterator[Run]:
    """A job that has closed some windows of a group that commits all the time."""
    place = at("payments", 0)
    commit_simply(broker.bootstrap_servers, GROUP, {place: 1})
    traffic = Traffic(broker.bootstrap_servers, GROUP, [place], first=1)
    job = Place(folder / "job", broker.bootstrap_servers)
    # Spark looks for lost executors each minute, mostly after the next heartbeat of one that is not
    # lost
    config = job.config.read_text().replace(
        "[job.spark]", '[job.spark]\n"spark.network.timeoutInterval" = "1s"'
    )
    job.config.write_text(config)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (clock.environment if clock else {}).items():
            patch.setenv(name, value)
        run = Run(job)
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
    return sorted(
        (row for row in place.rows("batches") if row["kind"] == "gap"),
        key=lambda row: row["batch_id"],
    )


def newest_evaluated(place: Place) -> datetime:
    return max(row["window_start"] for row in place.rows("group_windows"))


def ticks(place: Place) -> list[Row]:
    return sorted(
        (row for row in place.rows("batches") if row["kind"] != "gap"),
        key=lambda row: row["batch_id"],
    )


def length(gap: Row) -> timedelta:
    found: timedelta = gap["gap_to"] - gap["gap_from"]
    return found


def wall(row: Row) -> datetime:
    """The clock at a poll; `polled_at` is the time of its rows."""
    found: datetime = row["clock"]["wall"]
    return found


def check(place: Place) -> None:
    """Every window is there once or a gap row covers it, and no time goes back."""
    check_windows(place.rows("lag_windows"), gaps(place), place.tail())
    unique(place.rows("group_history"), "group", "window_start")
    unique(place.rows("group_windows"), "group", "topic", "window_start")
    unique(place.rows("topic_windows"), "topic", "partition", "window_start")
    times = [row["polled_at"] for row in ticks(place)]
    assert times == sorted(times), place.tail()
    assert [
        row
        for row in ticks(place)
        if not row["polled_at"] <= row["started_at"] <= row["published_at"]
    ] == []
    place.audit()


def family(run: Run) -> list[int]:
    return [run.process.pid, *descendants(run.process.pid)]


@contextmanager
def all_stopped(run: Run) -> Iterator[None]:
    """Stop the job's process and all below it, then let them go on."""
    stopped: list[int] = []
    try:
        # one may be started meanwhile
        while new := [each for each in family(run) if each not in stopped]:
            stopped += new
            send(signal.SIGSTOP, new)
        yield
    finally:
        send(signal.SIGCONT, stopped)


def send(number: signal.Signals, processes: list[int]) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, number)


def stop_for_three_windows(run: Run) -> list[Row]:
    """The gap rows since then."""
    place = run.place
    before = place.view().batch
    run.wait_for(lambda batch: batch.batch_id > before["batch_id"], "a fresh tick")
    with all_stopped(run):
        last = place.view().batch
        time.sleep(3 * WINDOW + TICK)  # the fault itself
    run.wait_for(lambda batch: batch.batch_id > last["batch_id"] + 2, "ticks after it")
    return [gap for gap in gaps(place) if gap["batch_id"] > last["batch_id"]]


def test_a_job_that_was_stopped_for_three_windows_goes_on_and_says_so(
    broker: Broker, tmp_path: Path
) -> None:
    with running(broker, tmp_path) as run:
        place = run.place
        for _ in range(STOPS):
            stop = [gap for gap in stop_for_three_windows(run) if gap["gap_reason"] == "clock"]
            if stop:
                break
        await_windows(run, 2)
        ended = run.stop()
    assert len(stop) == 1, f"{stop}\n{place.tail()}"
    assert length(stop[0]) > timedelta(seconds=3 * WINDOW), stop
    check(place)
    assert ended[0] == 0, place.tail()


def test_a_clock_that_is_set_forward_and_back_stops_nothing(broker: Broker, tmp_path: Path) -> None:
    clock = Clock(tmp_path)
    with running(broker, tmp_path, clock) as run:
        place = run.place

        def step(seconds: int) -> tuple[Row, Row, list[Row]]:
            """Set the clock; the first tick after it, one some ticks later, and the clock's gap
            rows since.
            """
            before, what = (
                place.view().batch["batch_id"],
                f"ticks with the clock set by {seconds} s",
            )
            clock.set(seconds)
            seen = run.wait_for(lambda batch: was_set(dict(batch.values), seconds), what)
            later = run.wait_for(lambda batch: batch.batch_id > seen.batch_id + 2, what)
            assert place.view(later).partitions[GROUP, "payments", 0]["status"] == "ok", (
                place.tail()
            )
            first = next(
                row for row in ticks(place) if row["batch_id"] > before and was_set(row, seconds)
            )
            found = [
                gap for gap in gaps(place) if first["batch_id"] <= gap["batch_id"] <= later.batch_id
            ]
            return first, dict(later.values), [gap for gap in found if gap["gap_reason"] == "clock"]

        first, _, found = step(HOUR)
        assert first["polled_at"] == wall(first)
        assert abs(max(map(length, found)) - timedelta(seconds=HOUR)) < timedelta(seconds=MINUTE), (
            found
        )
        await_windows(run, 2)

        first, later, [gap] = step(0)
        assert (gap["gap_from"], gap["gap_to"]) == (wall(first), first["polled_at"])
        assert later["polled_at"] == first["polled_at"] > wall(later) > wall(first)

        first, _, _ = step(HOUR)
        assert first["polled_at"] == wall(first)
        await_windows(run, 2)

        first, _, [gap] = step(HOUR - MINUTE)
        assert (gap["gap_from"], gap["gap_to"]) == (wall(first), first["polled_at"])
        run.wait_for(
            lambda batch: batch.polled_at == batch.clock_at,
            "the time at which the clock was set back",
        )
        await_windows(run, 2)
        end = first["polled_at"]
        run.wait_for(lambda _: newest_evaluated(place) > end, "the diagnosis of later windows")
        ended = run.stop()
    check(place)
    ages = [
        row["time_lag_seconds"] for row in windows(place) if row["time_lag_seconds"] is not None
    ]
    assert max(ages, default=0) < HOUR / 2
    assert ended[0] == 0, place.tail()
    log = place.log.read_text()
    assert [each for each in ("Traceback", "Removing executor", " ERROR ") if each in log] == [], (
        place.tail()
    )
