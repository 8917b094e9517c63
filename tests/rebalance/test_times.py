"""Times of rebalances, and how often they happen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.rebalance.facts import Generation
from laggard.rebalance.movement import Move
from laggard.rebalance.rates import measure_rates, ping_pong, union_seconds
from laggard.rebalance.times import (
    Start,
    find_start,
    is_straggling,
    longest_rebalance_timeout,
    lower_median,
    sync_seconds,
    was_waited_for,
)
from rebalance.told import PARAMETERS, START, at, epoch, generation, member

TWO = [member("1", "A0"), member("2", "A1")]


def test_the_start_is_the_middle_of_the_last_commits_of_those_who_stay() -> None:
    found = find_start(generation(2, 400, TWO, sync=2), TWO, at(0), [at(390), at(391), at(393)], PARAMETERS)
    assert found == Start(low=at(98), high=at(398), est=at(391))
    assert (found.join_seconds, found.join_bounds_seconds) == (7, (0, 300))


def test_the_start_is_not_before_the_end_of_the_rebalance_before() -> None:
    assert find_start(generation(2, 400, TWO), TWO, at(200), [], PARAMETERS).low == at(200)


def test_an_empty_group_waits_for_more_members_first() -> None:
    assert find_start(generation(2, 400, TWO), [], None, [], PARAMETERS).low == at(399 - 300 - 3)


def test_rounds_that_left_no_record_may_have_lasted_for_any_time() -> None:
    told = generation(5, 400, TWO, generation_gap=3)
    assert find_start(told, TWO, at(20), [at(50), at(51)], PARAMETERS) == Start(at(20), at(399), at(50))


def test_a_new_group_starts_with_its_first_record() -> None:
    assert find_start(generation(1, 400, TWO), [], at(393), [], PARAMETERS).est == at(393)


@pytest.mark.parametrize(("timeout_ms", "expected"), [(300_000, 396), (2_000, 397)])
def test_a_member_that_comes_to_nobody_waits_for_others(timeout_ms: int, expected: float) -> None:
    back = [member("1", "A0", rebalance_timeout_ms=timeout_ms)]
    assert find_start(generation(3, 400, back), [], at(0), [], PARAMETERS).est == at(expected)


@pytest.mark.parametrize("commits", [[], [50.0], [50.0, 399.5]])
def test_commits_of_before_the_bounds_leave_the_latest_start(commits: list[float]) -> None:
    found = find_start(generation(2, 400, TWO), TWO, at(60), [at(each) for each in commits], PARAMETERS)
    assert found.est == found.high == at(399)


def test_without_a_state_timestamp_no_start_is_known() -> None:
    assert find_start(generation(2, 400, TWO, sync=None), TWO, at(0), [at(390)], PARAMETERS) == Start()


def test_a_state_timestamp_of_before_the_previous_record_is_not_believed() -> None:
    assert find_start(generation(2, 400, TWO), TWO, at(399.5), [], PARAMETERS) == Start()


def test_an_epoch_starts_with_its_record() -> None:
    assert find_start(epoch(2, 50, TWO), TWO, at(0), [at(40)], PARAMETERS) == Start(at(50), at(50), at(50))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (generation(2, 400, TWO, sync=2.5), 2.5),
        (generation(2, 400, TWO, sync=None), None),
        (generation(2, 400, TWO, sync=-1), None),
        (generation(2, 400, []), None),
        (epoch(2, 400, TWO), None),
    ],
)
def test_the_sync_phase_ends_with_the_record(told: Generation, expected: float | None) -> None:
    assert sync_seconds(told) == expected


def test_before_version_1_the_session_timeout_is_the_rebalance_timeout() -> None:
    assert longest_rebalance_timeout([member("1", rebalance_timeout_ms=None)]) == 45
    assert longest_rebalance_timeout([member("1", rebalance_timeout_ms=None, session_timeout_ms=None)]) is None


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


def lasting(begin: float, end: float, **fields: Any) -> dict[str, Any]:
    """A row of `rebalances`, as far as rates read it."""
    row: dict[str, Any] = {"started_est": at(begin), "ended_at": at(end), "live_read": True, "interrupted": 0}
    return row | {"joined": [], "left": ["a"], "leader": "1"} | fields


def recorded(seconds: float, kind: str = "sync", *, live_read: bool = True) -> dict[str, Any]:
    return {"record_timestamp": at(seconds), "kind": kind, "live_read": live_read}


def test_rates_of_an_hour() -> None:
    rebalances = [
        lasting(-30, 30),
        lasting(20, 60, joined=["b"], interrupted=3, leader="2"),
        lasting(600, 660),
    ]
    records = [recorded(30), recorded(50), recorded(60, "epoch"), recorded(660, "empty"), recorded(700, "tombstone")]
    found = measure_rates(rebalances, records, at(0), at(3600), mean_members=4)
    assert (found.rebalances, found.generations) == (3, 4)
    assert (found.rebalances_per_hour, found.generations_per_hour) == (3, 4)
    assert found.mtbr_seconds == 315
    assert found.time_in_rebalance_ratio == pytest.approx(120 / 3600)
    assert (found.churn, found.interrupted, found.distinct_leaders, found.ping_pong) == (0.5, 3, 2, None)


def test_a_rebalance_counts_for_the_range_it_ends_in_and_its_time_where_it_passes() -> None:
    rebalances = [lasting(50, 100), lasting(550, 700)]
    found = measure_rates(rebalances, [], at(100), at(600), mean_members=2)
    assert (found.rebalances, found.rebalances_per_hour) == (1, pytest.approx(7.2))
    assert found.time_in_rebalance_ratio == 0.1


def test_ranges_side_by_side_count_each_end_once() -> None:
    rows, records = [lasting(0, 60 * number) for number in range(1, 5)], [recorded(60 * n) for n in range(1, 5)]
    found = [
        measure_rates(rows, records, at(begin), at(begin + 60), mean_members=1) for begin in (0, 60, 120, 180, 240)
    ]
    assert [each.rebalances for each in found] == [each.generations for each in found] == [0, 1, 1, 1, 1]


def test_an_open_rebalance_counts_up_to_now() -> None:
    found = measure_rates([], [], at(0), at(600), mean_members=2, open_since=at(480))
    assert found.time_in_rebalance_ratio == 0.2


def test_what_a_row_leaves_open_stays_unknown() -> None:
    rebalances = [lasting(0, 30, joined=None, left=None, interrupted=None, started_est=None)]
    found = measure_rates(rebalances, [], at(0), at(600), mean_members=2)
    assert (found.churn, found.interrupted, found.time_in_rebalance_ratio, found.mtbr_seconds) == (None,) * 4
    assert found.rebalances == 1


@pytest.mark.parametrize(
    ("rows", "records"), [([lasting(0, 30, live_read=False)], []), ([], [recorded(30, live_read=False)])]
)
def test_nothing_is_counted_in_history_that_compaction_thinned_out(rows: list[Any], records: list[Any]) -> None:
    found = measure_rates([*rows, lasting(40, 60)], records, at(0), at(600), mean_members=2)
    counts = (found.rebalances, found.generations, found.rebalances_per_hour, found.generations_per_hour)
    assert (*counts, found.mtbr_seconds, found.churn, found.interrupted, found.distinct_leaders) == (None,) * 8


def test_no_members_have_no_churn() -> None:
    assert measure_rates([], [], at(0), at(600), mean_members=None).churn is None


def test_moves_of_the_range_tell_the_ping_pong() -> None:
    assert measure_rates([], [], at(0), at(600), mean_members=2, moves=moves(*"aba")).ping_pong == 0.5


def moves(*owners: str, partition: int = 0) -> list[Move]:
    return [Move("A", partition, *pair) for pair in pairwise(owners)]


@pytest.mark.parametrize(
    ("owners", "expected"),
    [("a", None), ("ab", 0.0), ("aba", 0.5), ("abab", 2 / 3), ("abca", 0.0)],
)
def test_ping_pong_is_the_share_of_moves_back(owners: str, expected: float | None) -> None:
    assert ping_pong(moves(*owners)) == expected


def test_ping_pong_looks_at_each_partition_alone() -> None:
    assert ping_pong([*moves("a", "b"), *moves("b", "a", partition=1)]) == 0.0


@given(st.lists(st.tuples(st.integers(-20, 120), st.integers(0, 40)), max_size=8))
def test_the_union_of_intervals_is_the_seconds_that_one_of_them_covers(spans: list[tuple[int, int]]) -> None:
    covered = {second for begin, length in spans for second in range(begin, begin + length)} & set(range(100))
    intervals = [(at(begin), at(begin + length)) for begin, length in spans]
    assert union_seconds(intervals, at(0), at(100)) == len(covered)
