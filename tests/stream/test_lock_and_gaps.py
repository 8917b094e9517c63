"""Guards of a run: one writer per root, and gaps that are reported."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laggard.errors import REFUSED, LaggardError
from laggard.lag.tick import Tick
from laggard.sources.snapshot import OFFSETS_PARTITIONS, Snapshot
from laggard.stream.job.progress import Totals, find_gaps
from laggard.tables.lock import writer_lock
from stream.simulation import NOON


def test_a_second_writer_is_refused_and_learns_who_holds_the_lock(tmp_path: Path) -> None:
    with (
        writer_lock(str(tmp_path)),
        pytest.raises(LaggardError) as raised,
        writer_lock(f"file://{tmp_path}"),
    ):
        pass
    assert raised.value.exit_code == REFUSED
    assert f"process {os.getpid()}" in raised.value.cause


HOLD_AND_DIE = """
import os, sys
from laggard.tables.lock import writer_lock
with writer_lock(sys.argv[1]):
    os._exit(9)
"""


def test_a_lock_dies_with_its_holder(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HOLD_AND_DIE, str(tmp_path)], timeout=30, check=False
    )
    assert ended.returncode == 9
    with writer_lock(str(tmp_path)):
        assert (tmp_path / "_laggard" / "writer.lock").read_text() == str(os.getpid())


def test_a_root_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LaggardError, match="cannot write to the table root"),
        writer_lock(str(tmp_path / "file")),
    ):
        pass


def gaps(seconds: float, *, start: int = 0) -> list[dict[str, Any]]:
    last = {"polled_at": NOON, "source_to": {0: 10}}
    now = NOON + timedelta(seconds=seconds)
    parts = pa.Table.from_pylist(
        [{"offsets_partition": 0, "log_start_offset": start}], schema=OFFSETS_PARTITIONS
    )
    tick = Tick("c", 2, 2, 2, now, 60, True, False, False, True)
    return find_gaps(last, Snapshot(2, 0, offsets_partitions=parts), tick)


@pytest.mark.parametrize(("start", "expected"), [(10, []), (25, [("records_removed", 10, 25)])])
def test_records_removed_before_they_were_read_are_a_gap(
    start: int, expected: list[tuple[str, int, int]]
) -> None:
    found = [
        (gap["gap_reason"], gap["gap_from_offset"], gap["gap_to_offset"])
        for gap in gaps(10, start=start)
    ]
    assert found == expected


def test_totals_survive_their_row() -> None:
    totals = Totals()
    read = totals.add_records(
        [
            {
                "outcome": "record",
                "records": 5,
                "reason": None,
                "record_type": 1,
                "record_version": None,
            },
            {
                "outcome": "unsupported",
                "records": 2,
                "reason": None,
                "record_type": 99,
                "record_version": 0,
            },
            {
                "outcome": "malformed",
                "records": 1,
                "reason": "truncated",
                "record_type": 1,
                "record_version": None,
            },
        ]
    )
    assert read == {"decoded": 5, "tombstones": 0, "unknown": 2, "dead": 1, "records": 8}
    row = totals.finish({"poll": 0.5}, ["job_down"])
    assert Totals.from_row(row).columns() == row
