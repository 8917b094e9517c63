"""Slopes against brute force, the test against its textbook numbers, and what partitions have in
common.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations
from math import erfc, isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.statistics import fit
from laggard.diagnosis.signals.trend import in_step, slopes

PARAMETERS = Parameters()
MINUTES: Floats = np.arange(0.0, 3600.0, 60.0)
SERIES = st.lists(st.integers(-5, 5) | st.just(nan), min_size=2, max_size=12)


def lower_median(values: list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]


def brute_force(seconds: list[float], values: list[float]) -> tuple[float, float]:
    """Slope and p by their definitions."""
    points = [(at, value) for at, value in zip(seconds, values, strict=True) if not isnan(value)]
    n, pairs = len(points), list(combinations(points, 2))
    rises = [later[1] - earlier[1] for earlier, later in pairs]
    score = sum((rise > 0) - (rise < 0) for rise in rises)
    known = [value for _, value in points]
    sizes = [known.count(each) for each in set(known)]
    variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in sizes)) / 18
    z = (abs(score) - 1) / sqrt(variance) if score else 0.0
    return lower_median(
        [rise / (b[0] - a[0]) for rise, (a, b) in zip(rises, pairs, strict=True)]
    ), erfc(z / sqrt(2))


@given(st.lists(SERIES, min_size=1, max_size=4))
def test_every_series_is_fitted_by_the_definitions_alone_or_beside_others(
    rows: list[list[float]],
) -> None:
    width = max(len(row) for row in rows)
    values = np.array([[nan] * (width - len(row)) + row for row in rows])
    seconds = np.cumsum(np.arange(1.0, width + 1))  # not evenly spaced
    found = fit(seconds, values, 2)
    alone = slopes(seconds, values, replace(PARAMETERS, trend_min_points=2))
    for i, row in enumerate(values.tolist()):
        assert found.points[i] == sum(not isnan(value) for value in row)
        if found.points[i] < 2:
            assert np.isnan(
                [found.slope[i], found.low[i], found.high[i], found.p[i], found.span[i], alone[i]]
            ).all()
            continue
        slope, p = brute_force(seconds.tolist(), row)
        assert (found.slope[i], found.p[i]) == pytest.approx((slope, p))
        assert alone[i] == found.slope[i]
        assert found.low[i] <= found.slope[i] <= found.high[i]


@pytest.mark.parametrize(("points", "p"), [(4, 0.089), (5, 0.027), (6, 0.0085)])
def test_a_strictly_monotone_series_takes_six_points_to_pass_one_percent(
    points: int, p: float
) -> None:
    found = fit(
        MINUTES[:points], np.array([np.arange(points) ** 2.0, -(np.arange(points) ** 3.0)]), 2
    ).p
    assert found == pytest.approx([p, p], abs=0.0006)


def test_the_interval_of_a_slope_follows_sens_ranks() -> None:
    # ten points have 45 pairs; 1.96 √125 = 21.9, so the ranks are (45 - 21.9) / 2 = 11.5 and (45 +
    # 21.9) / 2 + 1 = 34.5
    values = np.random.default_rng(1).normal(size=10)
    ordered = sorted(
        (b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values.tolist()), 2)
    )
    found = fit(np.arange(10.0), values[None], 6)
    assert (found.low[0], found.slope[0], found.high[0]) == pytest.approx(
        (ordered[10], ordered[22], ordered[34])
    )


def test_the_interval_holds_the_true_slope_in_95_percent_of_the_cases() -> None:
    noise = np.random.default_rng(2).normal(size=(2000, 20))
    found = fit(np.arange(20.0), noise + 0.3 * np.arange(20), 6)
    assert 0.94 <= np.mean((found.low <= 0.3) & (found.high >= 0.3)) <= 0.975


def test_partitions_below_six_points_have_no_slope() -> None:
    values = np.full((2, 60), nan)
    values[0, ::12], values[1, ::10] = 1.0, np.arange(6.0)
    assert slopes(MINUTES, values, PARAMETERS) == pytest.approx([nan, 1 / 600], nan_ok=True)
    assert slopes(MINUTES, np.empty((0, 60)), PARAMETERS).shape == (0,)


def test_more_partitions_than_are_fitted_at_a_time_are_all_fitted() -> None:
    rates = np.arange(200.0)
    values = rates[:, None] * MINUTES
    assert slopes(MINUTES, values, PARAMETERS) == pytest.approx(rates)
    assert fit(MINUTES, values, 6).slope == pytest.approx(rates)


def test_slopes_of_fifty_partitions_over_an_hour_cost_little() -> None:
    values = np.random.default_rng(3).normal(size=(50, 60))
    costs = []
    for _ in range(9):
        began = time.process_time()
        slopes(MINUTES, values, PARAMETERS)
        costs.append(time.process_time() - began)
    assert min(costs) < 0.005


def test_one_point_has_no_slope_whatever_the_parameter() -> None:
    assert np.isnan(fit(MINUTES[:1], np.ones((1, 1)), 1).p).all()
    assert np.isnan(
        slopes(MINUTES[:1], np.ones((1, 1)), replace(PARAMETERS, trend_min_points=1))
    ).all()


# in step


@pytest.mark.parametrize(
    ("growth", "arrival", "found"),
    [
        ([10, 20, 30, 40], [100, 200, 300, 400], (True, 0.0)),
        ([10, 20, 35, 60], [100] * 4, (True, 0.25)),  # nearest ranks: the 1st and the 3rd of four
        ([10, 20, 36, 60], [100] * 4, (False, 0.26)),
        ([0] * 11 + [90], [100] * 12, (True, 0.0)),
        ([0, 0, 90, nan], [100, 100, 100, 100], (False, 0.9)),
        ([0, 0, 90, 90], [100, 100, 0, nan], (True, 0.0)),
        ([10, nan], [100, 100], (None, nan)),
        ([10, 20], [0, 100], (None, nan)),
        ([], [], (None, nan)),
    ],
)
def test_partitions_are_in_step_when_growth_over_arrivals_is_alike(
    growth: list[float], arrival: list[float], found: tuple[bool | None, float]
) -> None:
    is_in_step, spread = in_step(np.array(growth, float), np.array(arrival, float), PARAMETERS)
    assert is_in_step is found[0]
    assert spread == pytest.approx(found[1], nan_ok=True)
