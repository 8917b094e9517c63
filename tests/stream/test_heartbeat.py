"""The heartbeat: what counts as life, what as none, and when the job ends itself."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from laggard.cli.main import main
from laggard.sources.clock import Reading
from laggard.stream.job.heartbeat import Heartbeat, check, idle_limit


class Clock:
    """Seconds of this process, moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Boot:
    """The machine's clocks, moved by hand: this one may have started a minute ago."""

    def __init__(self) -> None:
        self.boot_ms = self.awake_ms = 10_000_000

    def __call__(self) -> Reading:
        return Reading(0, "this boot", self.boot_ms, self.awake_ms)

    def run(self, seconds: int) -> None:
        self.boot_ms += 1000 * seconds
        self.awake_ms += 1000 * seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Boot:
    boot = Boot()
    monkeypatch.setattr("laggard.stream.job.heartbeat.read_clock", boot)
    return boot


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run" / "heartbeat.json"


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.usefixtures("machine")
def test_a_job_that_started_is_live_and_ready_once_a_batch_is_published(file: Path) -> None:
    heartbeat = Heartbeat(str(file), 120, 900)

    heartbeat.batch("starting")
    assert check(str(file), ready=False) == (True, "live: starting, 0 s ago, of at most 900 s")
    assert check(str(file), ready=True) == (
        False,
        "not ready, no batch was published yet: starting, 0 s ago, of at most 900 s",
    )

    heartbeat.published()
    assert check(str(file), ready=True) == (
        True,
        "ready: waiting for the next tick, 0 s ago, of at most 120 s",
    )


@pytest.mark.parametrize(("seconds", "is_live"), [(119, True), (121, False)])
def test_a_wait_for_the_next_tick_has_the_idle_limit(
    file: Path, machine: Boot, seconds: int, is_live: bool
) -> None:
    Heartbeat(str(file), 120, 900).published()
    machine.run(seconds)

    assert check(str(file), ready=False)[0] is is_live


def test_a_batch_of_catching_up_may_last_as_long_as_job_stuck_seconds(
    file: Path, machine: Boot
) -> None:
    Heartbeat(str(file), 120, 900).batch("batch 7")
    machine.run(600)

    assert check(str(file), ready=False) == (True, "live: batch 7, 600 s ago, of at most 900 s")


def test_a_machine_that_slept_has_not_aged_the_job(file: Path, machine: Boot) -> None:
    Heartbeat(str(file), 120, 900).published()
    machine.boot_ms += 600_000  # and was not awake meanwhile

    assert check(str(file), ready=False)[0]


def test_the_file_of_a_container_before_this_one_is_not_this_ones(file: Path) -> None:
    """Its job had the same process id: containers begin counting at 1."""
    Heartbeat(str(file), 120, 900).published()
    change(file, started_ticks=json.loads(file.read_text())["started_ticks"] - 1)

    assert check(str(file), ready=False) == (
        False,
        f"{file} is of process {os.getpid()}, which is no more",
    )


def test_the_file_of_a_process_that_ended_is_no_life(file: Path) -> None:
    code = (
        f"from laggard.stream.job.heartbeat import Heartbeat; Heartbeat({str(file)!r}, 120, "
        "900).published()"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)

    is_live, why = check(str(file), ready=False)

    assert not is_live
    assert why.endswith("which is no more")


@pytest.mark.parametrize(
    "values",
    [{"boot_id": "another"}, {"boot_ms": 1e14, "awake_ms": 1e14}, {"awake_ms": 1e14}],
    ids=["another boot", "from the future", "awake in the future"],
)
def test_a_clock_of_another_boot_is_no_life(file: Path, values: dict[str, Any]) -> None:
    Heartbeat(str(file), 120, 900).published()
    change(file, **values)

    assert check(str(file), ready=False) == (False, f"{file} is from another start of the machine")


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", '"x"', "{}", '{"boot_ms": NaN}', "1" * 5000, "[" * 5000),
        *(
            f'{{"{name}": {value}}}'
            for name in ("boot_ms", "pid")
            for value in ('"soon"', "true", "-1", "1e400")
        ),
    ],
)
def test_a_file_that_is_no_heartbeat_is_no_life_and_no_crash(file: Path, text: str) -> None:
    Heartbeat(str(file), 120, 900).published()
    good = json.loads(file.read_text())
    if text.startswith('{"'):
        text = json.dumps(good | json.loads(text))
    file.write_text(text)

    is_live, why = check(str(file), ready=False)

    assert not is_live
    assert "no heartbeat" in why
    assert "\n" not in why


def test_a_missing_file_a_folder_and_a_pipe_are_no_life(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", ".", "pipe"):
        assert not check(str(tmp_path / name), ready=False)[0]


def test_a_file_that_cannot_be_written_does_not_end_the_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    heartbeat = Heartbeat(str(tmp_path / "file" / "below.json"), 120, 900)

    heartbeat.batch("one")
    heartbeat.batch("two")

    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "the heartbeat was not written"
    ]


def run_for(heartbeat: Heartbeat, clock: Clock, seconds: int) -> str:
    """What is stuck after so many seconds in which the process ran and looked every second."""
    for _ in range(seconds):
        clock.now += 1
        if what := heartbeat.stuck():
            return what
    return ""


def test_a_batch_that_lasts_longer_than_the_limit_is_stuck() -> None:
    clock = Clock()
    heartbeat = Heartbeat("", 120, 900, clock)
    heartbeat.batch("batch 7")

    assert run_for(heartbeat, clock, 900) == ""
    assert run_for(heartbeat, clock, 1) == "batch 7 for 901 s"


def test_a_beat_begins_the_count_again() -> None:
    clock = Clock()
    heartbeat = Heartbeat("", 120, 900, clock)
    heartbeat.batch("batch 7")
    run_for(heartbeat, clock, 800)
    heartbeat.published()

    assert run_for(heartbeat, clock, 900) == ""


def test_a_process_that_was_stopped_for_hours_is_not_stuck() -> None:
    clock = Clock()
    heartbeat = Heartbeat("", 120, 900, clock)
    heartbeat.batch("batch 7")
    clock.now += 36_000

    assert run_for(heartbeat, clock, 800) == ""


def test_work_without_a_limit_is_never_stuck() -> None:
    clock = Clock()
    heartbeat = Heartbeat("", 120, 900, clock)
    heartbeat.unlimited("the diagnosis")

    assert run_for(heartbeat, clock, 10_000) == ""


def test_a_job_that_is_stuck_ends_with_75_and_says_with_what() -> None:
    """In a process of its own, as the end of a job kills everything below its process."""
    code = """
import sys, threading
from laggard.cli.verbs.run import run_in_thread
from laggard.config import Config
from laggard.stream.job.query import Job
job = Job(Config())
job._heartbeat._stuck_seconds = 0.5
job._heartbeat.batch("batch 7")
sys.exit(run_in_thread(job, threading.Event().wait))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False
    )

    assert done.returncode == 75, done.stderr
    assert "stuck: batch 7 for " in done.stderr


def test_the_idle_limit_leaves_time_for_silent_brokers_and_long_ticks() -> None:
    assert [idle_limit(10, 10), idle_limit(300, 10), idle_limit(10, 300)] == [120, 1800, 1200]


def test_the_command_answers_by_its_exit_code_and_one_line(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAGGARD_JOB__HEARTBEAT_FILE", str(file))
    assert main(["run", "--check", "live"]) == 1
    Heartbeat(str(file), 120, 900).published()
    assert main(["run", "--check", "ready"]) == 0

    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("no heartbeat: ")
    assert second.startswith("ready: waiting for the next tick, ")


def test_the_command_says_what_is_missing_when_no_file_is_configured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "--check", "live"]) == 78
    assert "job.heartbeat_file is empty" in capsys.readouterr().err


def test_the_command_needs_neither_spark_nor_arrow(file: Path) -> None:
    """A probe asks every few seconds."""
    code = (
        "import sys; from laggard.cli.main import main; code = main(['run', '--check', 'live']);"
        "print(code, {'pyspark', 'pyarrow', 'kafka'} & {name.partition('.')[0] for name in "
        "sys.modules})"
    )
    environment = os.environ | {"LAGGARD_JOB__HEARTBEAT_FILE": str(file)}
    start = time.process_time()
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines()[1] == "1 set()", done.stderr
    assert time.process_time() - start < 1
