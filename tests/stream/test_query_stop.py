"""A query is ended between two batches, also when one begins in that very moment."""

import time
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from interrupting import is_ended_if_interrupted
from laggard.config import Config, load_config
from laggard.errors import INTERRUPTED, OK, LaggardError
from laggard.stream.evaluation.diagnose import DiagnoseQuery
from laggard.stream.job.query import Job
from laggard.stream.job.query_stop import QueryStop
from tables.fixtures import make_root

LIMIT = 20.0


class Query:
    """A query whose next batch begins while it is being stopped; like Spark it waits for that
    batch.
    """

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.refusals: list[LaggardError] = []
        self.has_ended = False

    def stop(self) -> None:
        def begin() -> None:
            try:
                self._batch()
            except LaggardError as error:
                self.refusals.append(error)

        thread = Thread(target=begin, daemon=True)
        thread.start()
        thread.join(LIMIT)
        self.has_ended = not thread.is_alive()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config(
        None, [f"job.tables={tmp_path / 'tables'}", "cluster.bootstrap_servers=['b:9092']"], {}
    )


@pytest.mark.parametrize("line", range(1, 25))
def test_a_second_signal_at_any_moment_of_the_first_does_not_hold_up_the_end(
    config: Config, line: int
) -> None:
    job = Job(config)
    assert is_ended_if_interrupted(partial(job.stop, OK), partial(job.stop, INTERRUPTED), line)
    assert job._stopping.is_set()
    assert job._exit_code in (OK, INTERRUPTED)


def test_a_batch_that_begins_while_the_diagnosis_is_ended_does_not_hold_up_the_end(
    config: Config,
) -> None:
    nothing: Any = None
    diagnosis = DiagnoseQuery(nothing, config, "c1")
    query: Any = Query(lambda: diagnosis._process(nothing, 0))
    diagnosis._query = query
    diagnosis.stop()
    assert query.has_ended
    assert len(query.refusals) == 1


def test_the_diagnosis_begins_no_window_once_the_job_is_being_stopped(config: Config) -> None:
    make_root(config.job.tables)
    nothing: Any = None
    stopping = Event()
    found = DiagnoseQuery(nothing, config, "c1", stopping)._diagnosis()
    assert not found._is_stopping()
    stopping.set()
    assert found._is_stopping()


def test_the_end_waits_for_the_batch_at_hand() -> None:
    stop, is_inside, may_end = QueryStop(), Event(), Event()
    said = []

    def batch() -> None:
        with stop.batch():
            is_inside.set()
            may_end.wait(LIMIT)
            said.append("batch ended")

    query: Any = Query(lambda: said.append("query ended"))
    running = Thread(target=batch, daemon=True)
    running.start()
    assert is_inside.wait(LIMIT)
    assert stop.has_batch
    ending = Thread(target=stop.end, args=(query,), daemon=True)
    ending.start()
    deadline = time.monotonic() + LIMIT
    while not stop._is_ending and time.monotonic() < deadline:  # from then on it waits
        time.sleep(0.01)
    assert said == []
    may_end.set()
    ending.join(LIMIT)
    assert said == ["batch ended", "query ended"]
    assert not stop.has_batch


def test_a_long_batch_is_broken_off_where_allowed_and_the_next_query_has_its_batches() -> None:
    stop = QueryStop()
    query: Any = Query(lambda: None)
    with stop.batch():
        stop.end(query, wait_seconds=0.0)
        assert query.has_ended
    with stop.batch():
        pass


def test_a_query_that_cannot_be_stopped_says_so() -> None:
    class Hanging:
        def stop(self) -> None:
            raise TimeoutError

    hanging: Any = Hanging()
    with pytest.raises(TimeoutError):
        QueryStop().end(hanging)
