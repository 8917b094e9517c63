"""A guarded process ends with its owner, however the owner ends; shown with the job that the
benchmarks start.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from demo.processes import comes_true, lives, members_of_group
from laggard.demo.guard import await_end, start_guarded
from laggard.demo.node import free_ports

BENCH = Path(__file__).parents[2] / "bench"
LIMIT_SECONDS = 90
# Nothing listens at the address, so the job waits for its cluster and starts no JVM.
OWNER = """
import sys, time
from pathlib import Path
from common import running_job, write_config
work = Path(sys.argv[1])
with running_job(work, write_config(work, sys.argv[2], cluster__request_timeout_seconds=1)) as job:
    print(job.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.full
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_job_ends_when_the_benchmark_that_started_it_is_killed(
    tmp_path: Path, sig: signal.Signals
) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path), f"127.0.0.1:{free_ports(1)[0]}"]
    paths = os.pathsep.join([os.environ["PYTHONPATH"], str(BENCH)])
    log = tmp_path / "job.log"
    with subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        job = int(owner.stdout.readline())
        try:
            assert comes_true(
                lambda: "waiting: " in log.read_text() or not lives(job), LIMIT_SECONDS
            )
            assert lives(job), log.read_text()
            assert len(members_of_group(job)) == 2  # and its watcher

            owner.send_signal(sig)
            assert comes_true(lambda: members_of_group(job) == [], LIMIT_SECONDS), members_of_group(
                job
            )
        finally:
            owner.kill()
            for process in members_of_group(job):
                os.kill(process, signal.SIGKILL)


def test_a_process_that_does_not_want_to_end_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    script = "trap '' TERM; sleep 60 & echo ready; while :; do wait; done"
    with (tmp_path / "log").open("wb") as log:
        process = start_guarded(["/bin/sh", "-c", script], log)
    assert comes_true(lambda: (tmp_path / "log").read_text() == "ready\n", LIMIT_SECONDS)
    assert len(members_of_group(process.pid)) == 3
    process.terminate()
    await_end(process, 0.5)

    assert process.returncode == -signal.SIGKILL
    assert comes_true(lambda: members_of_group(process.pid) == [], LIMIT_SECONDS)


def test_a_process_that_ends_by_itself_leaves_no_watcher(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        process = start_guarded(
            ["/bin/sh", "-c", "exit 3"], log, folder=tmp_path, remove_if_orphaned=tmp_path
        )
    await_end(process, LIMIT_SECONDS)

    assert process.returncode == 3
    assert comes_true(lambda: members_of_group(process.pid) == [], LIMIT_SECONDS)
    assert tmp_path.exists()
