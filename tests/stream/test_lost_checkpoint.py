"""The checkpoint is a cache: lost at any moment, with or without rows of a batch that was cut off,
no row differs.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laggard.tables.delta import Writer
from laggard.tables.schema import schemas
from patience import examples
from stream.simulation import Row
from stream.test_whole_batch import ENDS, steady
from stream.whole_batch import WholeBatches

TICKS = 5
# of `batches`: what differs from run to run
TIMES = {
    "checkpoint_id",
    "started_at",
    "published_at",
    "durations_seconds",
    "stage_seconds_total",
    "clock",
}
TIMES |= {"table_versions"}


class CutOffError(Exception):
    """Stands in for a kill."""


def lose_checkpoint(job: WholeBatches) -> None:
    """As with the scratch disk of a container: all beside the tables is gone."""
    for place in job.folder.iterdir():
        if place.name != "tables":
            shutil.rmtree(place) if place.is_dir() else place.unlink()


def cut_off(job: WholeBatches, number: int, commits: int, *, is_first: bool) -> None:
    """A tick that ends before its `batches` row, after at most so many commits to other tables."""
    commit, done = Writer.commit, []

    def some(self: Writer, table: schemas.Table, *rest: Any) -> int:
        if table is schemas.BATCHES or len(done) >= commits:
            raise CutOffError
        done.append(table)
        return commit(self, table, *rest)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Writer, "commit", some)
        with pytest.raises(CutOffError):
            attempt(job, number, is_first=is_first)


def attempt(job: WholeBatches, number: int, *, is_first: bool) -> None:
    """A tick; at its second attempt its records are in the topic already, and its moment is the
    same.
    """
    if is_first:
        job.tick(ENDS, steady(job, number))
    else:
        job.tick(ENDS, [], seconds=0)


class Rows(dict[str, list[str]]):
    """Rows by table, as text; short where an example is printed."""

    def __repr__(self) -> str:
        return f"Rows of {len(self)} tables"


def rows_of(job: WholeBatches) -> Rows:
    def as_text(row: Row) -> str:
        return str({name: value for name, value in row.items() if name not in TIMES})

    names = [name for name, table in schemas.TABLES.items() if not table.is_of_diagnosis]
    return Rows({name: sorted(as_text(row) for row in job.rows(name)) for name in names})


def made(folder: Path, losses: dict[int, list[tuple[int | None, bool]]]) -> WholeBatches:
    """A job that is started again before some ticks, each time after so many commits of that tick
    (None: before it).

    The flag says whether the checkpoint is lost at the start, or kept as where a container starts
    again.
    """
    job = WholeBatches(folder / uuid4().hex)
    begin = job.now.replace(year=2026, month=1, day=1, hour=12, minute=0, second=0)
    job.now = begin
    for number in range(TICKS):
        is_first = True
        for commits, is_lost in losses.get(number, ()):
            if commits is not None:
                cut_off(job, number, commits, is_first=is_first)
                is_first = False
            if is_lost:
                lose_checkpoint(job)
            job.start()
        attempt(job, number, is_first=is_first)
    return job


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return rows_of(made(tmp_path_factory.mktemp("undisturbed"), {}))


@pytest.mark.examples
@settings(
    max_examples=examples(6),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    st.dictionaries(
        st.integers(0, TICKS - 1),
        st.lists(st.tuples(st.none() | st.integers(0, 9), st.booleans()), min_size=1, max_size=3),
        min_size=1,
        max_size=2,
    )
)
def test_a_checkpoint_that_is_lost_at_any_moment_changes_no_row(
    tmp_path: Path, undisturbed: Rows, losses: dict[int, list[tuple[int | None, bool]]]
) -> None:
    found = rows_of(made(tmp_path, losses))
    assert {name: len(rows) for name, rows in found.items()} == {
        name: len(rows) for name, rows in undisturbed.items()
    }
    assert found == undisturbed


def test_what_a_first_batch_left_before_it_was_published_is_removed(
    tmp_path: Path, undisturbed: Rows
) -> None:
    assert rows_of(made(tmp_path, {0: [(9, True)]})) == undisturbed


@pytest.mark.full
def test_a_container_that_starts_again_after_the_loss_does_not_leave_out_what_was_cut_off(
    tmp_path: Path, undisturbed: Rows
) -> None:
    assert rows_of(made(tmp_path, {2: [(None, True), (9, False), (4, False)]})) == undisturbed
