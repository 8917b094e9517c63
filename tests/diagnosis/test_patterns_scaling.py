"""Scale events, elasticity, cold starts, idle replicas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from diagnosis.rebalance_rows import BEGIN, NOW, WINDOWS, Life, at, pods, series
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.change_effects import (
    elasticity,
    find_cold_start,
    idle_replica_hours,
    scale_row,
)
from laggard.diagnosis.signals.deploys import alternations

LIMITS = Parameters()
FEW, MANY = pods(1, 2, 3), pods(1, 2, 3, 4, 5, 6)


def sizes(life: Life) -> list[tuple[int, int]]:
    return [(each.before, each.after) for each in life.membership().scale_events]


def test_members_that_start_one_after_the_other_are_one_scale_out() -> None:
    life = (
        Life()
        .generation(10, *FEW)
        .generation(1000, *MANY[:4])
        .generation(1030, *MANY[:5])
        .generation(1060, *MANY)
    )
    (found,) = life.membership().scale_events
    assert (found.at, found.before, found.after, found.joined) == (at(1060), 3, 6, MANY[3:])


def test_swings_alternate() -> None:
    life = Life().generation(10, *FEW)
    for index in range(5):
        life.generation(600 + 300 * index, *(FEW if index % 2 else MANY))
    found = life.membership().scale_events
    assert len(alternations(found, at(NOW))) == 5
    assert len(alternations(found, at(NOW + 700))) == 4


def test_two_steps_one_way_end_the_alternation() -> None:
    life = (
        Life()
        .generation(10, *FEW)
        .generation(600, *MANY[:4])
        .generation(1200, *MANY)
        .generation(1800, *FEW)
    )
    assert len(alternations(life.membership().scale_events, at(NOW))) == 2


def test_a_member_that_is_back_within_ten_minutes_is_no_scaling() -> None:
    life = Life().generation(10, *FEW).generation(1000, *FEW[:2]).generation(1480, *FEW)
    assert sizes(life) == []
    life = Life().generation(10, *FEW).generation(1000, *FEW[:2]).generation(1601, *FEW)
    assert sizes(life) == [(3, 2), (2, 3)]


@pytest.mark.parametrize(
    ("between", "after", "seconds", "expected"),
    [
        (FEW[:2], (*FEW[:2], *pods(9)), 60, []),  # a pod that is started on another host
        (FEW[:2], (*FEW[:2], *pods(9)), 200, [(3, 2), (2, 3)]),
        (FEW[:2], (*FEW[:2], "other/10.0.0.9#0"), 60, [(3, 2), (2, 3)]),
        (MANY[:4], MANY[1:4], 60, []),  # the new one is started first
        (MANY[:4], FEW, 60, [(3, 4), (4, 3)]),
        (FEW[:1], (*FEW[:1], *pods(8, 9)), 60, [(3, 1), (1, 3)]),  # a swing, however fast
    ],
)
def test_a_change_that_is_undone_at_once_is_a_restart(
    between: tuple[str, ...],
    after: tuple[str, ...],
    seconds: float,
    expected: list[tuple[int, int]],
) -> None:
    assert (
        sizes(
            Life()
            .generation(10, *FEW)
            .generation(1000, *between)
            .generation(1000 + seconds, *after)
        )
        == expected
    )


def test_evictions_are_no_scaling() -> None:
    life = Life().generation(10, *FEW)
    life.generation(1000, FEW[0], of_row={"cause_posterior": {"poll_timeout": 0.9}}).generation(
        1100, *FEW
    )
    assert sizes(life) == []


def test_a_deploy_is_no_scaling() -> None:
    now, life = list(pods(1, 2, 3, 4)), Life().generation(10, *pods(1, 2, 3, 4))
    for index in range(4):
        life.generation(1000 + 40 * index, *[each for each in now if each != now[index]])
        now[index] = pods(50 + index)[0]
        life.generation(1020 + 40 * index, *now)
    assert sizes(life) == []


def scaled(after: float, lag_min: float = 1000.0) -> float:
    """Elasticity of 4 → 8 members at window 30; two partitions consume 500
    records/s each before.
    """
    life = Life().generation(-7000, *pods(1, 2, 3, 4)).generation(1800, *pods(*range(1, 9)))
    consume = np.where(np.arange(WINDOWS) < 30, 500.0, after)
    signals = life.signals(topics=[series(consume=consume, lag_min=lag_min)])
    (event,) = signals.membership.scale_events
    return elasticity(signals, event).value


def test_elasticity_is_the_growth_of_consumption_over_that_of_members() -> None:
    assert scaled(1000) == pytest.approx(1.0)
    assert scaled(500 * math.sqrt(2)) == pytest.approx(0.5)
    assert scaled(500) == 0.0


def test_elasticity_is_unknown_where_there_was_too_little_to_read() -> None:
    assert math.isnan(scaled(1000, lag_min=100.0))


def test_the_row_of_a_scale_event_leaves_open_what_is_not_known() -> None:
    life = Life().generation(-7000, *FEW).generation(1800, *MANY)
    (event,) = life.membership().scale_events
    assert scale_row(life.signals(topics=[series()]), event) == {
        "cluster": "c", "group": "g", "event_at": at(1800), "members_before": 3, "members_after": 6,
        "consume_rate_before": None, "consume_rate_after": None, "elasticity": None,
    }  # fmt: skip
    known = scale_row(life.signals(topics=[series(consume=500.0, lag_min=1000.0)]), event)
    assert (known["consume_rate_before"], known["consume_rate_after"], known["elasticity"]) == (
        1000.0,
        1000.0,
        0.0,
    )


def test_windows_of_a_rebalance_and_after_are_not_busy() -> None:
    life = Life().generation(-7000, *FEW).generation(1800, *MANY)
    consume = np.where(np.isin(np.arange(WINDOWS), [30, 31]), 9e9, 500.0)
    signals = life.signals(topics=[series(consume=consume, lag_min=1000.0)])
    (event,) = signals.membership.scale_events
    assert elasticity(signals, event).after == 1000.0


def asleep(rate: float = 20.0, *, caught: bool = False) -> Any:
    """12 partitions at 20/s without members from 1200 s to 2400 s; then drained, or not."""
    life = Life().generation(10, *FEW).generation(1200).generation(2400, *FEW)
    ends = 60.0 * np.arange(1, WINDOWS + 1)
    end = rate * ends
    committed = np.where(
        ends <= 1200, end, np.where(ends <= 2400, rate * 1200, end - (0 if caught else 20_000))
    )
    topic = series(
        partitions=12,
        floor=201,
        end=end,
        committed=committed,
        lag=end - committed,
        produced=60 * rate,
        trend="draining",
    )
    return life.signals(topics=[topic])


def test_a_cold_start_waited_from_the_first_arrival_without_members() -> None:
    found = find_cold_start(asleep(), 600)
    assert found is not None
    assert (found.waited_seconds, found.backlog_records, found.is_caught_up) == (
        1200.0,
        288_000.0,
        False,
    )
    assert (found.catch_up_seconds, found.returned_at) == (1200.0, at(2400))


def test_a_cold_start_is_over_when_lag_is_down_to_the_rhythm_of_commits() -> None:
    found = find_cold_start(asleep(caught=True), 600)
    assert found is not None
    assert (found.is_caught_up, found.catch_up_seconds) == (True, 60.0)


def test_a_short_time_without_members_is_a_restart() -> None:
    assert find_cold_start(asleep(), 1201) is None


def test_replica_hours_of_a_day_and_those_without_work() -> None:
    rows = [
        {
            "window_start": BEGIN + number * (at(60) - at(0)),
            "window_end": BEGIN + (number + 1) * (at(60) - at(0)),
            "members": 2,
            "consumed": 10 if number < 90 else 0,
            "lag_known": 0,
        }
        for number in range(1440)
    ]
    signals = Life().generation(10, *pods(1, 2)).signals(baseline=lambda: {"orders": rows})
    assert idle_replica_hours(signals) == (pytest.approx(48), pytest.approx(45), 90 / 1440)
    assert math.isnan(idle_replica_hours(Life().signals())[0])
