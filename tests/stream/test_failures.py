"""What a run does when Spark fails for a reason that passes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laggard import errors
from laggard.config.load import load_config
from laggard.errors import LaggardError
from laggard.stream.query import SLOW_STARTS, Job

BUSY = "[STREAM_FAILED] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"


class Attempts(Job):
    """A run of which the first attempts fail with what Spark said; everything before and after is left out."""

    def __init__(self, failures: list[str], path: Path) -> None:
        super().__init__(load_config(str(path), [], {}), once=True)
        self._stopping.wait = lambda timeout=None: False  # no waiting
        self.failures, self.number = failures, 0

    def _has_backlog(self, batches: Any) -> bool:
        return False

    def _run_query(self, *arguments: object) -> None:
        self.number += 1
        if self.failures:
            raise RuntimeError(self.failures.pop(0))

    def attempt(self) -> None:
        spark: Any = SimpleNamespace(dataSource=SimpleNamespace(register=lambda source: None))
        batches: Any = SimpleNamespace(published=0)
        nothing: Any = None
        self._run_queries(spark, nothing, batches, nothing)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "laggard.toml"
    path.write_text(f'[job]\ntables = "{tmp_path}/tables"\ncheckpoint = "{tmp_path}/checkpoint"\n')
    return path


def test_one_run_begins_again_when_the_machine_was_too_busy_to_start_a_worker(config: Path) -> None:
    run = Attempts([BUSY], config)
    run.attempt()
    assert run.number == 2


def test_a_machine_that_stays_too_busy_is_named_with_the_exit_code_of_what_passes(config: Path) -> None:
    run = Attempts([BUSY] * (SLOW_STARTS + 1), config)
    with pytest.raises(LaggardError, match="did not start within") as failure:
        run.attempt()
    assert (run.number, failure.value.exit_code) == (SLOW_STARTS + 1, errors.TEMPORARY)


def test_one_run_ends_at_any_other_failure(config: Path) -> None:
    run = Attempts(["out of disk"], config)
    with pytest.raises(RuntimeError, match="out of disk"):
        run.attempt()
    assert run.number == 1
