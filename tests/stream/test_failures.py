"""What a run does when its query fails: which failures it survives, and what it says of them."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from laggard import errors
from laggard.config.load import load_config
from laggard.errors import LaggardError
from laggard.sources.readiness import OffsetsTopic
from laggard.stream.evaluation.diagnose import DiagnoseQuery
from laggard.stream.job import query
from laggard.stream.job.query import Job
from laggard.stream.job.starting import INTERNAL_TRIES
from laggard.stream.tick.offsets_topic_events import RebuildError
from tables.fixtures import make_root


class PySparkError(Exception):
    """An exception as Spark raises it."""


PySparkError.__module__ = "pyspark.errors.exceptions.captured"
BUSY = PySparkError(
    "[STREAM_FAILED] terminated with exception: Python worker failed to connect back. SQLSTATE: "
    "XXKST"
)
TOPIC = OffsetsTopic("cluster", "topic id", 2)


def session_with_jvm(exit_code: int | None) -> Any:
    """A session on which every call fails; its JVM runs, or ended with this code."""
    process = SimpleNamespace(poll=lambda: exit_code, wait=lambda seconds: exit_code)
    return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))


class Attempts(Job):
    """A run of which the first attempts fail; everything before and after is left out."""

    def __init__(self, failures: list[Exception], path: Path, *, once: bool) -> None:
        super().__init__(load_config(str(path), [], {}), once=once)
        self._stopping.wait = lambda timeout=None: False  # no waiting
        self.failures, self.number = failures, 0
        self.jvm_code: int | None = None

    def _has_backlog(self, batches: Any) -> bool:
        return False

    def _run_query(self, *arguments: object) -> None:
        self.number += 1
        if self.failures:
            raise self.failures.pop(0)
        self.stop()

    def attempt(self) -> None:
        spark = session_with_jvm(self.jvm_code)
        spark.dataSource = SimpleNamespace(register=lambda source: None)
        batches: Any = SimpleNamespace(published=0)
        nothing: Any = None
        self._run_queries(spark, TOPIC, batches, nothing, nothing)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(query, "look_up", lambda cluster: None)
    path = tmp_path / "laggard.toml"
    path.write_text(f'[job]\ntables = "{tmp_path}/tables"\ncheckpoint = "{tmp_path}/checkpoint"\n')
    return path


@pytest.mark.parametrize("once", [True, False])
def test_a_machine_that_is_too_busy_to_start_a_worker_delays_a_run_and_does_not_end_it(
    config: Path, once: bool
) -> None:
    run = Attempts([BUSY] * 30, config, once=once)
    run.attempt()
    assert run.number == 31


def test_a_single_run_ends_at_any_other_failure_with_its_class(config: Path) -> None:
    run = Attempts([OSError(28, "No space left on device")], config, once=True)
    with pytest.raises(LaggardError, match="disk is full") as failure:
        run.attempt()
    assert (run.number, failure.value.exit_code) == (1, errors.TEMPORARY)


def test_a_bug_in_a_batch_ends_the_job_after_a_few_tries_with_one_traceback(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Attempts([TypeError("int + None") for _ in range(99)], config, once=False)
    with (
        caplog.at_level(logging.INFO),
        pytest.raises(LaggardError, match="internal error: TypeError") as failure,
    ):
        run.attempt()
    assert (run.number, failure.value.exit_code) == (INTERNAL_TRIES + 1, errors.INTERNAL)
    assert len([each for each in caplog.records if each.exc_info]) == 1
    assert (
        len([each for each in caplog.records if "query stopped" in each.message]) == INTERNAL_TRIES
    )
    assert failure.value.is_logged  # the command line does not print it once more


def test_a_failure_after_the_stop_is_none(config: Path) -> None:
    run = Attempts([TypeError("cut off")], config, once=False)
    run.stop()
    run.attempt()
    assert run.number == 0


def test_a_topic_that_is_another_one_at_the_next_try_ends_this_checkpoint(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "look_up", lambda cluster: OffsetsTopic("cluster", "recreated", 2))
    run = Attempts([BUSY], config, once=False)
    with pytest.raises(RebuildError):
        run.attempt()


# py4j raises the first for a call that begins after the JVM's end, the others for one that is under
# way
@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "refused"), Py4JNetworkError("empty"), Py4JError("call")]
)
def test_a_jvm_that_is_gone_ends_the_job_at_once_with_a_name(
    config: Path, error: Exception
) -> None:
    run = Attempts([error], config, once=False)
    run.jvm_code = -9
    with pytest.raises(LaggardError, match="JVM ended") as failure:
        run.attempt()
    assert failure.value.exit_code == errors.TEMPORARY
    assert "signal 9" in failure.value.cause


def test_the_diagnosis_never_stops_the_job_whatever_fails_in_it(
    config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_config(str(config), [], {})
    make_root(loaded.job.tables)
    nothing = session_with_jvm(None)
    diagnosis = DiagnoseQuery(nothing, loaded, "c1")
    for _ in range(5):
        diagnosis.keep_running()
        diagnosis._not_before = 0.0
    diagnosis.stop()
    stops = [each for each in caplog.records if "the diagnosis stopped" in each.message]
    assert len(stops) == 5
    assert "AttributeError" in stops[0].message
    assert len([each for each in caplog.records if each.exc_info]) == 1

    log = Path(loaded.job.tables, "finding_state", "_delta_log", "00000000000000000000.json")
    log.write_text("garbled")
    damaged = DiagnoseQuery(nothing, loaded, "c1")
    damaged.keep_running()
    assert "finding_state" in caplog.records[-1].message + caplog.records[-2].message


def test_the_diagnosis_names_a_jvm_that_ended_in_its_call_without_a_traceback(
    config: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loaded = load_config(str(config), [], {})
    make_root(loaded.job.tables)
    diagnosis = DiagnoseQuery(session_with_jvm(-9), loaded, "c1")

    def fail() -> None:
        raise Py4JError("An error occurred while calling o88.readStream")

    monkeypatch.setattr(diagnosis, "_start", fail)
    diagnosis.keep_running()
    assert "Spark's JVM ended" in caplog.text
    assert "Traceback" not in caplog.text
