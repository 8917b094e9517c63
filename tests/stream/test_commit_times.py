"""Commits by offsets partition, and the brokers' clock by the times they bear;
worked out by hand.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from laggard.sources.snapshot import Snapshot
from laggard.stream.tick.commit_times import CommitTimes, clock_skew, commit_times
from laggard.stream.tick.decoded import COLUMNS

# seconds since 1970; the poll before was 10 s earlier, and this one took half a second
POLLED = 1_000_000.0


def snapshot(boot_id: str = "b") -> Snapshot:
    return Snapshot(2, int(POLLED * 1000), boot_id, boot_ms=60_000, seconds=0.5)


def last(**values: Any) -> dict[str, Any]:
    row = {
        "kind": "tick",
        "source_to": {0: 10, 1: 5},
        "source_high_watermark": {0: 10, 1: 6},
        "clock": {"boot_id": "b", "boot_ms": 50_000},
    }
    return row | values


@pytest.mark.parametrize(
    ("stamps", "before", "expected"),
    [
        ({0: (-9.0, -1.0)}, last(), 0.0),  # between the polls: nothing to explain
        ({0: (-9.0, 3.5)}, last(), 3.0),  # 3 s after the end of the poll that saw it
        ({0: (-14.0, -12.0)}, last(), -4.0),  # 4 s before the poll that it came after
        ({0: (-14.0, 9.5)}, last(), 9.0),  # brokers that differ: the largest
        # had not been read to its end: it may be older than that poll
        ({1: (-14.0, -12.0)}, last(), 0.0),
        ({0: (-14.0, -12.0)}, last(kind="backfill"), 0.0),
        # unknown when that poll was
        ({0: (-14.0, -12.0)}, last(clock={"boot_id": "other", "boot_ms": 1}), 0.0),
        ({0: (-14.0, 1.5)}, None, 1.0),
        ({0: (None, None)}, last(), None),
        ({}, last(), None),
    ],
)
def test_the_skew_is_the_smallest_that_explains_the_stamps(
    stamps: dict[int, tuple[float | None, float | None]],
    before: dict[str, Any] | None,
    expected: float | None,
) -> None:
    found = {
        number: CommitTimes(1, *(None if each is None else POLLED + each for each in pair))
        for number, pair in stamps.items()
    }
    assert clock_skew(before, snapshot(), found, is_live=True) == expected


def test_a_batch_that_catches_up_says_nothing_of_a_clock_behind() -> None:
    found = {0: CommitTimes(1, POLLED - 90, POLLED - 90)}
    assert clock_skew(last(), snapshot(), found, is_live=False) == 0.0


def test_commits_are_counted_by_offsets_partition() -> None:
    stamp = pa.scalar(1_500_000, pa.timestamp("us", tz="UTC"))
    rows = pa.Table.from_pylist(
        [
            {"source_partition": 0, "commits": 2, "commit_timestamp": stamp.as_py()},
            {"source_partition": 0, "commits": 3, "commit_timestamp": None},
            {"source_partition": 4, "commits": 0, "commit_timestamp": None},
        ],
        schema=COLUMNS["commit"],
    )
    assert commit_times(rows) == [[0, 5, 1.5, 1.5], [4, 0, None, None]]
    assert CommitTimes(1, 2.0, 3.0) + CommitTimes(2, None, None) == CommitTimes(3, 2.0, 3.0)
    assert CommitTimes(1, 2.0, 3.0) + CommitTimes(2, 1.0, 2.5) == CommitTimes(3, 1.0, 3.0)
