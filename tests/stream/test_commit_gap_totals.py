"""The sums of a group's gaps between commits against the gaps themselves, one by one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.lag.commit_gaps import MAX_GAP_MS
from patience import examples
from stream.simulation import NOON, Simulation, commit, end

TOTALS = ("commit_gaps_total", "commit_gap_ms_total", "commit_gap_squares_total")


def sums(gaps: list[int]) -> tuple[int, int, int]:
    return len(gaps), sum(gaps), sum(gap * gap for gap in gaps)


def totals(job: Simulation, group: str = "g") -> tuple[int, ...]:
    return tuple(job.groups[group][name] for name in TOTALS)


@pytest.mark.examples
@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["g", "h"]), st.integers(0, 1), st.integers(-50, 9000)),
            max_size=5,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_sums_of_the_gaps_of_each_partition_add_up_over_ticks(
    ticks: list[list[tuple[str, int, int]]],
) -> None:
    job = Simulation()
    job.tick([end(9, partition=part) for part in range(2)])  # from here on all is read live
    last: dict[tuple[str, int], int] = {}
    gaps: dict[str, list[int]] = {}
    for number, steps in enumerate(ticks):
        records = []
        for group, part, step in steps:
            before = last.get((group, part))
            at = step if before is None else before + step
            if before is not None and step >= 0:
                gaps.setdefault(group, []).append(step)
            else:
                gaps.setdefault(group, [])
            last[group, part] = at
            records.append(
                commit(number, group=group, partition=part, at=NOON + timedelta(milliseconds=at))
            )
        job.tick([end(9, partition=part) for part in range(2)], records)
    assert {group: totals(job, group) for group in gaps} == {
        group: sums(found) for group, found in gaps.items()
    }


def test_a_stop_of_many_hours_and_a_tombstone_are_no_gaps() -> None:
    job = Simulation()
    job.tick([end(9)])
    times = (0, 1000, 1000 + MAX_GAP_MS, 2001 + 2 * MAX_GAP_MS)
    job.tick([end(9)], [commit(5, at=NOON + timedelta(milliseconds=at)) for at in times])
    assert totals(job) == sums([1000, MAX_GAP_MS])
    job.tick([end(9)], [commit(None), commit(6, at=NOON + timedelta(days=1))])
    assert totals(job) == sums([1000, MAX_GAP_MS])


def test_what_was_read_while_catching_up_tells_no_rhythm() -> None:
    job = Simulation()
    job.tick([end(9)], [commit(5, at=NOON), commit(5, at=NOON + timedelta(hours=1))], is_live=False)
    assert totals(job) == (0, 0, 0)


def test_the_history_of_groups_keeps_them_window_by_window() -> None:
    job = Simulation()
    for number in range(20):
        job.tick([end(9)], [commit(number, at=job.now + timedelta(seconds=10))])
    kept = [tuple(row[name] for name in TOTALS) for row in job.history["group_history"]]
    assert kept[-1] == sums([10_000] * kept[-1][0])
    assert [row[0] for row in kept] == sorted(row[0] for row in kept)
    assert kept[-1][0] >= 12
