"""Two jobs on one bucket, one of them suspended now and then: no row is lost or doubled. See
tests/e2e/race.py.
"""

import os
from pathlib import Path

import pytest

from e2e.race import run_race

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.e2e,
    pytest.mark.full,
    pytest.mark.release,
]
SECONDS = float(os.environ.get("LAGGARD_RACE_SECONDS", "30"))  # 300 for a release


def test_two_jobs_on_one_bucket_lose_and_double_no_row(tmp_path: Path) -> None:
    lines: list[str] = []
    outcome = run_race(tmp_path, SECONDS, seed=1, says=lines.append)
    assert outcome.problems == [], lines
    assert outcome.takeovers
