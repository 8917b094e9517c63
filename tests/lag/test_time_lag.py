"""Age of the first unread record, against arithmetic: where the producer is a known function, so is
the age.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.lag.time_lag import (
    MAX_END_POINTS,
    Age,
    EndPoints,
    add_point,
    age_of_first_unread,
    drop_passed,
    read_end_points,
    thin,
    to_column,
)
from stream.simulation import ID_B, Simulation, commit, end

SECOND = 1_000_000


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


@dataclass
class Partition:
    """The history of one partition, poll by poll, and all its polls for an oracle."""

    points: EndPoints = field(default_factory=lambda: EndPoints(ints(0, 0), ints(), ints()))
    polls: list[tuple[int, int]] = field(default_factory=list)

    def poll(self, log_end: int, at_us: int, committed: int) -> Age:
        yes = np.ones(1, bool)
        self.polls.append((log_end, at_us))
        self.points = add_point(self.points, yes, ints(log_end), yes, at_us)
        self.points = thin(drop_passed(self.points, ints(committed), yes))
        return age_of_first_unread(self.points, ints(committed), at_us)


def naive_age(polls: list[tuple[int, int]], committed: int) -> tuple[float, bool]:
    """Age in seconds from every poll there was, and whether it is only a lower bound."""
    now = polls[-1][1]
    passed = [place for place, (log_end, _) in enumerate(polls) if log_end <= committed]
    if not passed:
        return (now - polls[0][1]) / SECOND, True
    (low, low_at), (high, high_at) = polls[passed[-1]], polls[passed[-1] + 1]
    return (now - (low_at + (committed - low) / (high - low) * (high_at - low_at))) / SECOND, False


@given(st.data(), st.integers(1, 50))
def test_a_linear_producer_is_answered_within_one_poll_gap(
    data: st.DataObject, per_second: int
) -> None:
    partition, committed, at = Partition(), 0, 0
    for _ in range(data.draw(st.integers(2, 25))):
        gap = data.draw(st.integers(1, 30))
        at += gap
        log_end = per_second * at
        committed = data.draw(st.integers(committed, log_end - 1))
        age = partition.poll(log_end, at * SECOND, committed)
        truth = at - committed / per_second
        if age.is_censored[0]:
            assert age.seconds[0] <= truth + 1e-6
        else:
            assert abs(age.seconds[0] - truth) <= age.error_seconds[0] + 1e-6
            assert age.error_seconds[0] <= 30


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=31
    )
)
def test_what_is_kept_answers_like_all_polls_together(steps: list[tuple[int, int, int]]) -> None:
    partition, committed, log_end, at = Partition(), 10, 10, 0
    for seconds, produced, consumed in steps:
        at, log_end = at + seconds * SECOND, log_end + produced
        committed = min(committed + consumed, log_end)
        age = partition.poll(log_end, at, committed)
        if committed < log_end:
            seconds_ago, is_censored = naive_age(partition.polls, committed)
            assert age.is_censored[0] == is_censored
            assert age.seconds[0] == pytest.approx(seconds_ago, abs=1e-5)


def test_after_a_quiet_hour_a_new_record_is_young() -> None:
    partition = Partition()
    for poll in range(360):
        partition.poll(1000, poll * 10 * SECOND, 1000)
    age = partition.poll(1010, 3600 * SECOND, 1000)
    assert (age.seconds[0], age.error_seconds[0], age.is_censored[0]) == (10, 10, False)


def test_a_record_from_before_a_quiet_hour_is_old() -> None:
    partition = Partition()
    partition.poll(1000, 0, 990)
    partition.poll(1010, 10 * SECOND, 990)
    for poll in range(2, 361):
        age = partition.poll(1010, poll * 10 * SECOND, 1000)
    assert (age.seconds[0], age.is_censored[0]) == (3600, False)


def test_a_flat_stretch_keeps_its_two_ends_only() -> None:
    partition = Partition()
    for poll in range(20):
        partition.poll(100, poll * SECOND, 0)
    assert partition.points.times.tolist() == [0, 19 * SECOND]


def test_what_was_there_before_the_first_poll_has_a_lower_bound() -> None:
    partition = Partition()
    partition.poll(1000, 0, 10)
    age = partition.poll(1010, 10 * SECOND, 10)
    assert (age.seconds[0], age.is_censored[0]) == (10, True)
    assert np.isnan(age.error_seconds[0])


@given(st.integers(33, 400), st.integers(0, 9))
def test_thinning_keeps_at_most_32_with_the_first_and_last_and_an_error_of_7_percent(
    polls: int, committed: int
) -> None:
    partition = Partition()
    for poll in range(1, polls + 1):
        age = partition.poll(poll * 10, poll * 10 * SECOND, 10 + committed)
    times = partition.points.times
    assert len(times) <= MAX_END_POINTS
    assert (times[0], times[-1]) == (10 * SECOND, polls * 10 * SECOND)
    truth = polls * 10 - (10 + committed)
    # production is even, so interpolation is exact in any gap
    assert abs(age.seconds[0] - truth) < 1e-3
    assert age.error_seconds[0] <= max(10, 0.07 * truth)


def test_the_error_stays_small_when_a_stuck_group_catches_up() -> None:
    partition = Partition()
    for poll in range(1, 500):
        partition.poll(poll * 10, poll * 10 * SECOND, 10)
    age = partition.poll(5000, 5000 * SECOND, 4700)
    assert age.seconds[0] == pytest.approx(300, abs=float(age.error_seconds[0]))


def test_a_log_that_became_shorter_forgets_what_it_was() -> None:
    partition = Partition()
    partition.poll(1000, 0, 10)
    partition.poll(20, 10 * SECOND, 10)
    assert partition.points.log_ends.tolist() == [20]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 2 * 10**15)), max_size=4),
        max_size=5,
    )
)
def test_end_points_survive_the_column_they_are_stored_in(
    rows: list[list[tuple[int, int]]],
) -> None:
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    flat = [pair for row in rows for pair in row]
    given_points = EndPoints(
        starts, ints(*(log_end for log_end, _ in flat)), ints(*(at for _, at in flat))
    )
    read = read_end_points(to_column(given_points))
    assert read.starts.tolist() == starts.tolist()
    assert list(zip(read.log_ends.tolist(), read.times.tolist(), strict=True)) == flat


def test_a_status_row_names_method_and_error() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(100)])
    caught_up = {name: value for name, value in job.row.items() if name.startswith("time_lag")}
    job.tick([end(200)])
    behind = {name: value for name, value in job.row.items() if name.startswith("time_lag")}
    names = ("time_lag_seconds", "time_lag_method", "time_lag_error_seconds", "time_lag_censored")
    assert caught_up == dict(zip(names, (0, "caught_up", 0, False), strict=True))
    assert behind == dict(zip(names, (10, "history", 10, False), strict=True))


def test_a_censored_row_has_no_error_bound() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(200)])
    assert (
        job.row["time_lag_seconds"],
        job.row["time_lag_error_seconds"],
        job.row["time_lag_censored"],
    ) == (
        10,
        None,
        True,
    )


def test_another_topic_of_the_same_name_starts_a_history_of_its_own() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)])
    job.tick([end(100)])
    job.tick([end(7, topic_id=ID_B)])
    job.tick([end(9, topic_id=ID_B)], [commit(4)])
    assert [point["log_end_offset"] for point in job.row["end_points"]] == [9]


def test_a_log_end_that_was_not_polled_makes_no_record_younger() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(100)])
    job.tick([end(None, error="LEADER_NOT_AVAILABLE")], seconds=600, is_live=False)
    job.tick([end(710)])
    # one record a second since the first tick: the first unread one is 610 s old
    row = job.row
    assert abs(row["time_lag_seconds"] - 610) <= row["time_lag_error_seconds"]
