"""A signal to the job, to its process group or to its whole cgroup ends it in time, with its code,
without a trace.
"""

import os
import signal
from pathlib import Path

import pytest

from e2e.kit import Place, Run, at, commit_simply
from e2e.stops import run_stops
from laggard.demo.broker import Broker
from laggard.errors import TEMPORARY
from laggard.stream.job.jvm import descendants
from patience import patient

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
]
RUNS = int(os.environ.get("LAGGARD_STOPS", "3"))  # 200 for a release


def test_a_signal_at_any_moment_ends_the_job_as_promised(tmp_path: Path) -> None:
    stops = run_stops(RUNS, 2, tmp_path, seed=1, says=lambda *_, **__: None)
    assert [each for each in stops if not each.is_good] == []
    assert len(stops) == RUNS


def test_a_jvm_that_is_killed_ends_the_job_with_75_and_the_next_start_goes_on(
    broker: Broker, tmp_path: Path
) -> None:
    commit_simply(broker.bootstrap_servers, "g", {at("orders", 0): 0})
    place = Place(tmp_path / "job", broker.bootstrap_servers)
    run = Run(place)
    try:
        first = run.wait_for(lambda batch: batch.kind == "tick", "first tick")
        # one that it forks looks like it
        jvm = min(each for each in descendants(run.process.pid) if is_jvm(each))
        os.kill(jvm, signal.SIGKILL)
        assert run.process.wait(patient(60)) == TEMPORARY, place.tail()
        assert "Spark's JVM ended" in place.tail()
        assert "Traceback" not in place.tail()
        run = Run(place)
        run.wait_for(lambda batch: batch.batch_id > first.batch_id + 1, "ticks after the restart")
        assert run.stop()[0] == 0, place.tail()
    finally:
        run.kill()


def is_jvm(process: int) -> bool:
    try:
        return b"/java" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
    except OSError:  # it ended meanwhile
        return False
