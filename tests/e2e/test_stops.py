"""A signal to the job, to its process group or to its whole cgroup ends it in time, with its code, without a trace."""

import os
from pathlib import Path

import pytest

from e2e.stops import play

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e, pytest.mark.slow, pytest.mark.full]
RUNS = int(os.environ.get("LAGGARD_STOPS", "6"))  # 200 for a release


def test_a_signal_at_any_moment_ends_the_job_as_promised(tmp_path: Path) -> None:
    stops = play(RUNS, 2, tmp_path, seed=1, says=lambda *_, **__: None)
    assert [each for each in stops if not each.is_good] == []
    assert len(stops) == RUNS
