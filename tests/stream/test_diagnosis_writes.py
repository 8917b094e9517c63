"""A window whose rows could not all be written is evaluated again, and no finding is lost or
doubled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cli.evaluated_run import LocalSpark, hot, record
from cli.test_diagnose import OPTIONS
from diagnosis.fluid import NOON
from laggard.stream.evaluation.diagnose import Diagnosis
from laggard.stream.evaluation.reading import Window, find_closed
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import Table
from patience import some

WRITTEN = ("findings", "group_windows", "finding_state")
FIRST, WINDOWS = 10, 15


class DiskFull(Writer):
    """Refuses every write once so many were committed; None: refuses nothing."""

    def __init__(self, root: str) -> None:
        super().__init__(root, "c1")
        self.commits_left: int | None = None

    def write(self, table: Table, rows: pa.Table, batch_id: int) -> int:
        if self.commits_left == 0:
            raise OSError(28, "No space left on device")
        if self.commits_left is not None:
            self.commits_left -= 1
        return super().write(table, rows, batch_id)


def diagnosis(writer: Writer) -> Diagnosis:
    return Diagnosis(cast("Any", LocalSpark()), writer, OPTIONS)


def windows(root: Path) -> list[Window]:
    begin, end = (round(NOON.timestamp() * 1000) + number * 60_000 for number in (FIRST, WINDOWS))
    return find_closed(str(root), {}, begin, end, 60, until_ms=end + 120_000)


def rows_of(root: Path) -> dict[str, list[str]]:
    tables = {name: DeltaTable(str(root / name)).to_pyarrow_table() for name in WRITTEN}
    return {name: sorted(map(str, rows.to_pylist())) for name, rows in tables.items()}


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    root = tmp_path_factory.mktemp("unharmed")
    record(root, [hot(WINDOWS)])
    whole = diagnosis(DiskFull(str(root)))
    for window in windows(root):
        whole.evaluate(window, {})
    return rows_of(root)


@pytest.mark.examples
@pytest.mark.parametrize("commits", some([1, 0, 2]))
@pytest.mark.parametrize("restarts", [False, True])
def test_a_failed_write_costs_no_finding(
    tmp_path: Path, unharmed: dict[str, list[str]], commits: int, *, restarts: bool
) -> None:
    record(tmp_path, [hot(WINDOWS)])
    failures = 0
    writer = DiskFull(str(tmp_path))
    running = diagnosis(writer)
    for window in windows(tmp_path):
        writer.commits_left = commits
        try:
            running.evaluate(window, {})
        except OSError:
            failures += 1
            writer.commits_left = None
            if restarts:
                running = diagnosis(writer)
            running.evaluate(window, {})
    assert failures
    assert rows_of(tmp_path) == unharmed


def test_a_stop_ends_it_after_the_window_at_hand_and_the_others_follow(tmp_path: Path) -> None:
    record(tmp_path, [hot(WINDOWS)])
    now, closed = NOON.timestamp() + 60 * WINDOWS, WINDOWS

    def evaluated() -> int:
        windows = DeltaTable(str(tmp_path / "finding_state")).to_pyarrow_table()["window_start"]
        return len(windows.unique())

    writer = Writer(str(tmp_path), "c1")
    Diagnosis(cast("Any", LocalSpark()), writer, OPTIONS, lambda: evaluated() > 0).evaluate_closed(
        now, {}
    )
    assert evaluated() == 1
    Diagnosis(cast("Any", LocalSpark()), writer, OPTIONS).evaluate_closed(now, {})
    assert evaluated() == closed
