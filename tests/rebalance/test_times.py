"""Times of rebalances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.analytics.times import (
    Start,
    find_start,
    is_straggling,
    length_seconds,
    longest_rebalance_timeout,
    lower_median,
    sync_seconds,
    union_seconds,
    was_waited_for,
)
from laggard.rebalance.facts import Generation
from rebalance.fact_rows import PARAMETERS, START, at, epoch, generation, member

TWO = [member("1", "A0"), member("2", "A1")]


def test_the_start_is_the_middle_of_the_last_commits_of_those_who_stay() -> None:
    found = find_start(
        generation(2, 400, TWO, sync=2), TWO, at(0), [at(390), at(391), at(393)], PARAMETERS
    )
    assert found == Start(low=at(98), high=at(398), est=at(391))
    assert found.join_seconds == 7


def test_the_start_is_not_before_the_end_of_the_rebalance_before() -> None:
    assert find_start(generation(2, 400, TWO), TWO, at(200), [], PARAMETERS).low == at(200)


def test_an_empty_group_waits_for_more_members_first() -> None:
    assert find_start(generation(2, 400, TWO), [], None, [], PARAMETERS).low == at(399 - 300 - 3)


def test_rounds_that_left_no_record_may_have_lasted_for_any_time() -> None:
    reported = generation(5, 400, TWO, generation_gap=3)
    assert find_start(reported, TWO, at(20), [at(50), at(51)], PARAMETERS) == Start(
        at(20), at(399), at(50)
    )


def test_a_new_group_starts_with_its_first_record() -> None:
    assert find_start(generation(1, 400, TWO), [], at(393), [], PARAMETERS).est == at(393)


@pytest.mark.parametrize(("timeout_ms", "expected"), [(300_000, 396), (2_000, 397)])
def test_a_member_that_comes_to_nobody_waits_for_others(timeout_ms: int, expected: float) -> None:
    back = [member("1", "A0", rebalance_timeout_ms=timeout_ms)]
    assert find_start(generation(3, 400, back), [], at(0), [], PARAMETERS).est == at(expected)


@pytest.mark.parametrize("commits", [[], [50.0], [50.0, 399.5]])
def test_commits_of_before_the_bounds_leave_the_latest_start(commits: list[float]) -> None:
    found = find_start(
        generation(2, 400, TWO), TWO, at(60), [at(each) for each in commits], PARAMETERS
    )
    assert found.est == found.high == at(399)


def test_without_a_state_timestamp_no_start_is_known() -> None:
    assert (
        find_start(generation(2, 400, TWO, sync=None), TWO, at(0), [at(390)], PARAMETERS) == Start()
    )


def test_a_state_timestamp_of_before_the_previous_record_is_not_believed() -> None:
    assert find_start(generation(2, 400, TWO), TWO, at(399.5), [], PARAMETERS) == Start()


def test_an_epoch_starts_with_its_record() -> None:
    assert find_start(epoch(2, 50, TWO), TWO, at(0), [at(40)], PARAMETERS) == Start(
        at(50), at(50), at(50)
    )


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (generation(2, 400, TWO, sync=2.5), 2.5),
        (generation(2, 400, TWO, sync=None), None),
        (generation(2, 400, TWO, sync=-1), None),
        (generation(2, 400, []), None),
        (epoch(2, 400, TWO), None),
    ],
)
def test_the_sync_phase_ends_with_the_record(reported: Generation, expected: float | None) -> None:
    assert sync_seconds(reported) == expected


def test_before_version_1_the_session_timeout_is_the_rebalance_timeout() -> None:
    assert longest_rebalance_timeout([member("1", rebalance_timeout_ms=None)]) == 45
    assert (
        longest_rebalance_timeout([member("1", rebalance_timeout_ms=None, session_timeout_ms=None)])
        is None
    )


@pytest.mark.parametrize(
    ("join", "timeout", "gap", "expected"),
    [
        (300, 300, 5, True),
        (271, 300, 5, True),
        (269, 300, 5, False),
        (331, 300, 5, False),
        (10, 10, 8, False),  # a heartbeat and a batch, however short the timeout
        (12, 12, 8, True),
        (None, 300, 5, False),
        (300, None, 5, False),
    ],
)
def test_a_join_as_long_as_the_timeout_waited_in_vain(
    join: float | None, timeout: float | None, gap: float, expected: bool
) -> None:
    assert is_straggling(join, timeout, gap, PARAMETERS) is expected


@pytest.mark.parametrize(
    ("join", "silent", "expected"),
    [
        (105, 120, True),  # it polled for the last time 15 s before the others began to join
        (105, 130, True),  # and had committed a while before that
        (105, 107, False),  # it left before its interval was over: not by itself
        (105, 138, False),
        (59, 120, False),  # most of its long batch was before the rebalance
        (None, 120, False),
        (105, None, False),  # its commits are not known
    ],
)
def test_a_member_that_leaves_by_its_poll_interval_was_waited_for(
    join: float | None, silent: float | None, expected: bool
) -> None:
    assert was_waited_for(join, silent, 120, 5, PARAMETERS) is expected


@given(st.lists(st.integers(0, 100), min_size=1))
def test_the_lower_median_is_one_of_the_values(seconds: list[int]) -> None:
    found = lower_median([at(each) for each in seconds])
    below = [each for each in seconds if at(each) < (found or START)]
    assert found in {at(each) for each in seconds}
    assert len(below) <= (len(seconds) - 1) // 2


@given(st.lists(st.tuples(st.integers(-20, 120), st.integers(0, 40)), max_size=8))
def test_the_union_of_intervals_is_the_seconds_that_one_of_them_covers(
    spans: list[tuple[int, int]],
) -> None:
    covered = {second for begin, length in spans for second in range(begin, begin + length)} & set(
        range(100)
    )
    intervals = [(at(begin), at(begin + length)) for begin, length in spans]
    assert union_seconds(intervals, at(0), at(100)) == len(covered)


def test_a_length_is_not_known_where_the_end_is_before_the_begin() -> None:
    assert [length_seconds(at(end), at(3)) for end in (5, 3, 2)] == [2, 0, None]
    assert (length_seconds(None, at(3)), length_seconds(at(3), None)) == (None, None)
