"""A position in the offsets topic that falls is named, and neither stops a batch nor hides what
others brought.
"""

from typing import Any

import pytest

from laggard.lag.tick import Tick
from laggard.stream.job.source_positions import (
    RECORDS_PER_READER,
    count_readers,
    find_truncations,
    truncated_partitions,
)
from stream.simulation import NOON

TICK = Tick("c", 2, 2, 2, NOON, 60, True, False, False, True)

BEFORE = {0: 100, 1: 500_000, 2: 7}


@pytest.mark.parametrize(
    ("after", "readers"),
    [
        (BEFORE, 1),
        ({0: 0, 1: 0, 2: 0}, 1),  # recreated: the sum is below what it was
        ({0: 100, 1: 10, 2: 7}, 1),
        ({0: 100 + 2 * RECORDS_PER_READER, 1: 10, 2: 7}, 3),
        ({0: 100, 1: 500_000, 2: 7, 3: 9 * RECORDS_PER_READER}, 4),
    ],
)
def test_a_batch_has_a_reader_whatever_its_positions_are(
    after: dict[int, int], readers: int
) -> None:
    assert count_readers(BEFORE, after, cores=4) == readers


def test_each_position_that_fell_is_a_gap_and_new_partitions_are_none() -> None:
    after = {0: 90, 1: 500_001, 2: 0, 3: 0}
    last: dict[str, Any] = {"polled_at": NOON, "source_to": BEFORE}
    gaps = find_truncations(last, after, TICK)
    assert [(gap["gap_scope"], gap["gap_from_offset"], gap["gap_to_offset"]) for gap in gaps] == [
        ("offsets partition 0", 90, 100),
        ("offsets partition 2", 0, 7),
    ]
    assert {gap["gap_reason"] for gap in gaps} == {"log_truncated"}
    assert truncated_partitions(BEFORE, after) == (0, 2)
    assert find_truncations(None, after, TICK) == []
