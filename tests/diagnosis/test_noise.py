"""What noise alone makes of each method: false growth on flat lag, false concentration on random
lag.

Two-point velocity, least squares and outlier tests are what others use; they are here to be
measured, not to be used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.significance import persist, raw_shape
from laggard.diagnosis.signals.statistics import fit
from laggard.diagnosis.signals.trend import TrendState, trends_of

PARAMETERS = Parameters()
RUNS = 1000
ARRIVAL = 1000.0
THRESHOLD = PARAMETERS.trend_effect * ARRIVAL


@dataclass(frozen=True)
class Runs:
    """Lag of a reader that keeps up, [runs, polls], as polls and as commits show it."""

    seconds: Floats  # [polls] of the poll, the end of its window
    lag: Floats  # at the poll
    envelope: Floats  # lowest at a commit of the window, NaN without a commit
    interval: float

    def named(self, name: str) -> float:
        """Share of the runs whose trend has the name."""
        rates = np.full(RUNS, ARRIVAL), np.full(RUNS, self.interval)
        before = [TrendState()] * RUNS
        evaluated = trends_of(
            self.seconds, self.envelope, self.lag, *rates, 10.0, before, PARAMETERS
        )
        return sum(trend.name == name for trend, _ in evaluated) / RUNS

    def two_point(self) -> float:
        """Share of the runs that grow by their two newest polls; the next two methods likewise."""
        return float(
            np.mean(
                (self.lag[:, -1] - self.lag[:, -2]) / (self.seconds[-1] - self.seconds[-2])
                > THRESHOLD
            )
        )

    def least_squares(self) -> float:
        centred = self.seconds - self.seconds.mean()
        return float(np.mean(self.lag @ centred / (centred @ centred) > THRESHOLD))

    def theil_sen_on_polls(self) -> float:
        return float(np.mean(fit(self.seconds, self.lag, 2).slope > THRESHOLD))


def simulate(interval: float, *, growth: float = 0.0, polls: int = 20, every: float = 30.0) -> Runs:
    """Commits at a random phase, gaps a twentieth and 1.25 s longer or shorter, of what was read
    0.3 s before.
    """
    generator = np.random.default_rng(round(interval + 1000 * growth + polls))
    many = int((polls * every + 3 * interval) / (0.7 * interval)) + 2
    gaps = interval * generator.uniform(0.95, 1.05, (RUNS, many)) + generator.uniform(
        -1.25, 1.25, (RUNS, many)
    )
    commits = np.cumsum(gaps, axis=1) - interval * generator.uniform(1.4, 2.4, (RUNS, 1))
    at_commit = ARRIVAL * (
        generator.exponential(0.3, commits.shape) + growth * np.maximum(commits, 0)
    )
    seconds: Floats = every * np.arange(1.0, polls + 1) - generator.uniform(0, every / 10)
    lag, envelope = np.empty((RUNS, polls)), np.full((RUNS, polls), np.inf)
    for run in range(RUNS):
        newest = np.searchsorted(commits[run], seconds, side="right") - 1
        lag[run] = at_commit[run, newest] + ARRIVAL * (seconds - commits[run, newest])
        window = np.searchsorted(seconds, commits[run])
        inside = (commits[run] > seconds[0] - every) & (window < polls)
        np.minimum.at(envelope[run], window[inside], at_commit[run, inside])
    return Runs(seconds, lag, np.where(np.isinf(envelope), np.nan, envelope), interval)


def with_spike(runs: Runs) -> Runs:
    """The newest two polls, and the commits between, see the pause of a rebalance of one to five
    minutes.
    """
    pause = np.random.default_rng(1).uniform(60, 300, (RUNS, 1)) * ARRIVAL
    lag, envelope = runs.lag.copy(), runs.envelope.copy()
    lag[:, -2:] += pause
    envelope[:, -2:] += pause
    return Runs(runs.seconds, lag, envelope, runs.interval)


@pytest.mark.parametrize(
    ("interval", "two_point", "least_squares", "theil_sen"),
    [
        (5, (0.15, 0.27), (0, 0.01), (0, 0.01)),
        (60, (0.45, 0.55), (0, 0.05), (0, 0.03)),
        (600, (0.90, 0.99), (0.30, 0.45), (0.65, 0.85)),
    ],
)
def test_what_polls_see_of_a_flat_lag_looks_like_growth_and_its_envelope_does_not(
    interval: float,
    two_point: tuple[float, float],
    least_squares: tuple[float, float],
    theil_sen: tuple[float, float],
) -> None:
    runs = simulate(interval)
    assert two_point[0] <= runs.two_point() <= two_point[1]
    assert least_squares[0] <= runs.least_squares() <= least_squares[1]
    assert theil_sen[0] <= runs.theil_sen_on_polls() <= theil_sen[1]
    assert runs.named("growing") <= 0.003
    assert runs.named("draining") <= 0.003
    assert runs.named("abstain") == (interval == 600)  # one commit in ten minutes says nothing


def test_a_rebalance_just_now_is_growth_to_least_squares_and_not_to_theil_sen() -> None:
    runs = with_spike(simulate(5))
    assert runs.least_squares() >= 0.99
    assert runs.theil_sen_on_polls() == 0
    assert runs.named("growing") <= 0.003


def test_a_sawtooth_of_ten_minutes_is_flat_over_an_hour() -> None:
    runs = simulate(600, polls=60, every=60.0)
    assert runs.two_point() >= 0.85
    assert runs.named("growing") <= 0.003
    assert runs.named("draining") <= 0.003
    assert runs.named("abstain") <= 0.1  # an hour holds six commits, sometimes five


@pytest.mark.parametrize("interval", [5, 60])
def test_growth_by_eight_percent_of_arrivals_is_seen_in_ten_minutes(interval: float) -> None:
    assert simulate(interval, growth=0.08).named("growing") >= 0.99


def test_growth_under_a_sawtooth_of_ten_minutes_is_seen_in_an_hour() -> None:
    runs = simulate(600, growth=0.08, polls=60, every=60.0)
    assert runs.named("growing") + runs.named("abstain") >= 0.99
    assert runs.named("growing") >= 0.9


# concentration


@pytest.mark.parametrize(
    ("partitions", "windows", "one_window", "lasting"),
    [
        (3, 10_000, (0.29, 0.35), 0.006),
        (12, 10_000, (0.18, 0.24), 0.0006),
        (50, 5000, (0.003, 0.02), 0),
    ],
)
def test_random_lag_is_often_concentrated_for_a_window_and_hardly_ever_for_three(
    partitions: int, windows: int, one_window: tuple[float, float], lasting: float
) -> None:
    lags = np.random.default_rng(partitions).exponential(1000, (windows, partitions))
    numbers = np.arange(partitions)
    raws = [raw_shape(row, numbers, is_material=True, parameters=PARAMETERS) for row in lags]

    def share(partitions_total: int) -> float:
        ends = range(5, windows)
        return (
            sum(
                persist(raws[i - 5 : i], partitions_total, PARAMETERS) == "concentrated"
                for i in ends
            )
            / windows
        )

    assert (
        one_window[0] <= sum(raw.raw == "concentrated" for raw in raws) / windows <= one_window[1]
    )
    assert share(12) <= lasting
    assert share(4) <= 0.0005  # five windows, which is why up to four partitions take as many


@pytest.mark.parametrize(("deviations", "most"), [(2, 5), (3, 10)])
def test_an_outlier_test_cannot_fire_where_partitions_are_few(deviations: float, most: int) -> None:
    def largest(n: int) -> float:
        one_hot = np.zeros(n)
        one_hot[0] = 1e6  # nothing lies further out than one of n
        return float((one_hot[0] - one_hot.mean()) / one_hot.std())

    assert largest(most) == pytest.approx(np.sqrt(most - 1))
    assert largest(most) <= deviations
    lags = np.random.default_rng(2).pareto(0.5, (10_000, most))
    centred = lags - lags.mean(axis=1, keepdims=True)
    assert (centred <= deviations * lags.std(axis=1, keepdims=True) * (1 + 1e-12)).all()
    assert (
        raw_shape(
            np.eye(most)[0] * 1e6, np.arange(most), is_material=True, parameters=PARAMETERS
        ).raw
        == "concentrated"
    )


def test_an_outlier_test_fires_on_nearly_every_window_of_a_hundred_random_partitions() -> None:
    lags = np.random.default_rng(3).exponential(1000, (1000, 100))
    fires = (lags > lags.mean(axis=1, keepdims=True) + 2 * lags.std(axis=1, keepdims=True)).any(
        axis=1
    )
    shapes = [
        raw_shape(row, np.arange(100), is_material=True, parameters=PARAMETERS).raw for row in lags
    ]
    assert fires.mean() >= 0.98
    assert shapes.count("concentrated") <= 2


def test_a_fast_topic_with_commits_every_five_seconds_shows_lag_and_no_growth() -> None:
    # 10 000 records/s: up to 50 000 records of lag in perfect health, and some more by the jitter
    # of commits
    scale = 10_000 / ARRIVAL
    runs = simulate(5)
    assert 45_000 <= scale * np.quantile(runs.lag, 0.95) <= 55_000
    rates = np.full(RUNS, 10_000.0), np.full(RUNS, 5.0)
    series = scale * runs.envelope, scale * runs.lag
    evaluated = trends_of(runs.seconds, *series, *rates, 10.0, [TrendState()] * RUNS, PARAMETERS)
    assert {trend.name for trend, _ in evaluated} <= {"flat", "sawtooth"}
