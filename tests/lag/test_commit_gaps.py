"""Gaps between commits against a list kept by hand, one commit after the other."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from laggard.lag.commit_gaps import GAPS, MAX_GAP_MS, MAX_GAPS, NewCommits, add_gaps

HOUR_MS = 3_600_000


def numbers(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def add(
    held: list[list[int] | None],
    batches: Sequence[tuple[int, int, int, int]],
    intervals: list[float | None] | None = None,
) -> tuple[list[list[int] | None], list[float | None]]:
    """Batches as (commits, first, last, the one before), a row each."""
    columns = NewCommits(*(numbers(values) for values in zip(*batches, strict=True)))
    lists, medians = add_gaps(
        pa.array(held, GAPS), pa.array(intervals or [None] * len(held), pa.float64()), columns
    )
    return lists.to_pylist(), medians.to_pylist()


def test_the_gap_to_the_last_batch_comes_before_those_inside() -> None:
    assert add([[7000]], [(3, 20_000, 24_000, 15_000)]) == ([[7000, 5000, 2000, 2000]], [2.0])


def test_fewer_than_three_gaps_tell_no_interval() -> None:
    assert add([None], [(3, 1000, 3000, -1)]) == ([[1000, 1000]], [None])


def test_a_row_without_commits_stays_as_it_is() -> None:
    assert add([[1, 2, 3], None], [(0, -1, -1, 500), (1, 900, 900, 400)], [0.002, None]) == (
        [[1, 2, 3], [500]],
        [0.002, None],
    )


def test_the_newest_twenty_stay() -> None:
    (found,), _ = add([list(range(1, 21))], [(2, 50_000, 50_500, 49_000)])
    assert found == [*range(3, 21), 1000, 500]


def test_more_commits_than_are_kept_fill_the_list() -> None:
    assert add([[9] * 5], [(101, 0, 100_000, -1)]) == ([[1000] * MAX_GAPS], [1.0])


def test_a_stop_of_many_hours_is_no_gap() -> None:
    assert add([[5]], [(1, 10 * HOUR_MS, 10 * HOUR_MS, 0)]) == ([[5]], [None])


def test_a_clock_that_went_back_gives_no_gap() -> None:
    assert add([[5]], [(2, 1000, 900, 2000)]) == ([[5]], [None])


@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 2 * MAX_GAP_MS), max_size=4), min_size=1, max_size=3),
        min_size=1,
        max_size=12,
    )
)
def test_batches_of_evenly_spaced_commits_give_the_newest_gaps(
    ticks: list[list[list[int]]],
) -> None:
    """Rows get batches of commits; within a batch the first number is repeated, so that the mean is
    exact.
    """
    rows = max(len(each) for each in ticks)
    held: list[list[int] | None] = [None] * rows
    medians: list[float | None] = [None] * rows
    times: list[int | None] = [None] * rows
    expected: list[list[int]] = [[] for _ in range(rows)]
    for tick in ticks:
        batches = []
        for row in range(rows):
            steps = tick[row] if row < len(tick) else []
            before = times[row]
            moments = []
            for step in ([steps[0]] + [steps[0]] * (len(steps) - 1)) if steps else []:
                now = (moments[-1] if moments else before or 0) + step
                if (moments or before is not None) and step <= MAX_GAP_MS:
                    expected[row].append(step)
                moments.append(now)
            first, last = (moments[0], moments[-1]) if moments else (-1, -1)
            batches.append((len(moments), first, last, -1 if before is None else before))
            times[row] = moments[-1] if moments else before
        held, medians = add(held, batches, medians)
    for row in range(rows):
        newest = expected[row][-MAX_GAPS:]
        assert (held[row] or []) == newest
        assert medians[row] == (median_low(newest) / 1000 if len(newest) >= 3 else None)
