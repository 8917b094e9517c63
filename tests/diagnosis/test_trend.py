"""Trend: every way into and out of a name."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.group import Trend
from laggard.diagnosis.signals.trend import TrendState, trend_of, trends_of

PARAMETERS = Parameters()
MINUTES: Floats = np.arange(0.0, 3600.0, 60.0)
ARRIVAL = 100.0
NEW, UP, DOWN = TrendState(), TrendState("growing"), TrendState("draining")


def evaluated(
    envelope: Floats,
    before: TrendState = NEW,
    *,
    lag_max: float = 0.0,
    arrival: float = ARRIVAL,
    interval: float = 5.0,
    tick: float = 10.0,
) -> tuple[Trend, TrendState]:
    seconds = MINUTES[: len(envelope)]
    return trend_of(
        seconds, envelope, envelope + lag_max, arrival, interval, tick, before, PARAMETERS
    )


def line(rate: float, windows: int = 60) -> Floats:
    """A lag that changes by `rate` records/s."""
    return 1e6 + rate * MINUTES[:windows]


def test_growth_and_drain_are_named_with_their_numbers_from_the_short_range() -> None:
    trend, after = evaluated(line(10))
    assert (trend.name, trend.points, after) == ("growing", 11, UP)
    assert (trend.slope, trend.slope_low, trend.slope_high) == pytest.approx((10, 10, 10))
    assert trend.p < 0.001
    assert evaluated(line(-10))[0].name == "draining"
    assert evaluated(line(-10))[1] == DOWN


@pytest.mark.parametrize("points", range(6))
def test_fewer_than_six_points_abstain_and_are_not_called_flat(points: int) -> None:
    envelope = np.full(60, nan)
    envelope[60 - points :] = line(50)[:points]
    trend, after = evaluated(envelope)
    assert (trend.name, trend.points, after) == ("abstain", points, NEW)
    assert np.isnan([trend.slope, trend.slope_low, trend.slope_high, trend.p]).all()


def test_six_points_are_enough() -> None:
    envelope = np.full(60, nan)
    envelope[-6:] = line(10)[:6]
    assert evaluated(envelope)[0].name == "growing"
    assert evaluated(line(10, 6))[0].name == "growing"


def test_windows_of_five_minutes_have_a_trend_as_well() -> None:
    """Ten minutes are two of them, and two points are no line."""
    seconds = 5 * MINUTES
    for rate, expected in ((10.0, "growing"), (0.0, "flat"), (-10.0, "draining")):
        envelope = 1e6 + rate * seconds
        trend, _ = trend_of(seconds, envelope, envelope, ARRIVAL, 5.0, 50.0, NEW, PARAMETERS)
        assert (trend.name, trend.points, trend.slope) == (expected, 7, pytest.approx(rate))


def test_an_unknown_arrival_rate_abstains() -> None:
    assert evaluated(line(10), arrival=nan) == (Trend("abstain", 11), NEW)


def test_a_slope_below_five_percent_of_arrivals_is_flat() -> None:
    assert evaluated(line(5.1))[0].name == "growing"
    assert evaluated(line(4.9))[0].name == "flat"


def test_a_change_below_what_two_ticks_or_a_quarter_interval_bring_is_flat() -> None:
    # 6 % of arrivals for 600 s are 36 s of arrivals
    assert evaluated(line(6), tick=17.0)[0].name == "growing"
    assert evaluated(line(6), tick=19.0)[0].name == "flat"
    # 6 % for six intervals are 0.36 of an interval, always more than a quarter of one
    assert evaluated(line(6), interval=300.0)[0].name == "growing"


def test_a_change_of_five_records_is_flat_however_slow_the_topic() -> None:
    assert evaluated(line(4.9 / 600), arrival=0.001)[0].name == "flat"
    assert evaluated(line(5.1 / 600), arrival=0.001)[0].name == "growing"


def test_without_arrivals_a_backlog_can_still_drain() -> None:
    assert evaluated(line(-1), arrival=0.0)[0].name == "draining"
    assert evaluated(np.full(60, 7.0), arrival=0.0)[0].name == "flat"


def test_noise_without_direction_is_flat() -> None:
    noise = np.random.default_rng(4).normal(0, 500, 60)
    assert evaluated(noise)[0].name == "flat"


def test_the_short_range_holds_six_commit_intervals() -> None:
    envelope = np.full(60, nan)
    envelope[4::10] = line(10)[4::10]  # one commit in ten minutes: six in the hour
    assert evaluated(envelope, interval=600.0)[0].name == "growing"
    assert evaluated(envelope, interval=600.0)[0].points == 6
    assert evaluated(envelope, interval=60.0)[0].name == "abstain"


def hour(*parts: tuple[int, float]) -> Floats:
    """A lag that for some windows changes by a rate, then by the next."""
    rates = np.concatenate([np.full(windows, rate) for windows, rate in parts])
    return 1e6 + 60 * np.cumsum(rates)


def test_growth_against_a_long_drain_is_not_growth() -> None:
    assert evaluated(hour((49, -30), (11, 10)))[0].name == "flat"
    assert evaluated(hour((49, 30), (11, -10)))[0].name == "flat"


def test_a_burst_that_drains_is_draining_when_the_hour_before_was_quiet() -> None:
    assert evaluated(hour((44, 0), (5, 300), (11, -100)))[0].name == "draining"


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("windows", range(3, 9))
def test_lag_that_changed_once_has_no_trend(windows: int, sign: int) -> None:
    """As where commits are seen later from now on. Half below and half above would rank as a line
    does.
    """
    envelope = np.full(60, 1e6)
    envelope[-windows:] += sign * 30_000
    assert evaluated(envelope)[0].name == "flat"


@pytest.mark.parametrize("windows", range(4, 9))
def test_lag_that_changed_once_and_wavers_has_a_trend_by_chance_only(windows: int) -> None:
    """Two-sided 5 %, and what the height of the step is off by chance; with the step in it a
    quarter had one.
    """
    chance = np.random.default_rng(windows)
    step = np.where(np.arange(60) >= 60 - windows, 30_000.0, 0.0)
    grown = [
        evaluated(1e6 + step + chance.normal(0, 2000, 60))[0].name == "growing" for _ in range(400)
    ]
    assert sum(grown) <= 0.15 * len(grown)


def test_growth_that_has_just_begun_is_no_step_nor_is_growth_after_one() -> None:
    assert [evaluated(hour((60 - windows, 0), (windows, 10)))[0].name for windows in (5, 6, 7)] == [
        "flat",  # of eleven points six are equal: that may be chance
        "growing",
        "growing",
    ]
    after = hour((49, 0), (11, 10))
    after[-6:] += 30_000
    assert evaluated(after)[0].name == "growing"


def test_what_lies_before_a_break_is_left_to_the_caller_to_blank() -> None:
    envelope = hour((49, -30), (11, 10))
    envelope[:49] = nan
    assert evaluated(envelope)[0].name == "growing"


# sawtooth


def test_commits_that_swing_half_an_interval_around_a_flat_envelope_are_a_sawtooth() -> None:
    flat = np.full(60, 50.0)
    assert evaluated(flat, lag_max=15_000.0, interval=300.0)[0].name == "sawtooth"
    assert evaluated(flat, lag_max=14_999.0, interval=300.0)[0].name == "flat"
    assert evaluated(flat, lag_max=9.0, arrival=1.0)[0].name == "flat"
    assert evaluated(flat, lag_max=10.0, arrival=1.0)[0].name == "sawtooth"
    # no commit interval known
    assert evaluated(flat, lag_max=15_000.0, interval=nan)[0].name == "flat"


def test_growth_goes_before_a_sawtooth() -> None:
    assert evaluated(line(10), lag_max=1e9, interval=300.0)[0].name == "growing"


def test_the_swing_is_the_median_of_the_windows_with_both_numbers() -> None:
    # of the newest eleven windows four have no commit and four of the others swing: the lower
    # median of seven does
    lag_max = np.full(60, 0.0)
    lag_max[-4:] = 15_000.0
    envelope = np.zeros(60)
    envelope[-11:-7] = nan
    found = trend_of(MINUTES, envelope, lag_max, ARRIVAL, 100.0, 10.0, NEW, PARAMETERS)[0]
    assert (found.name, found.points) == ("sawtooth", 7)


# hysteresis


@pytest.mark.parametrize("sign", [1, -1])
def test_a_trend_lasts_while_half_of_what_it_took_to_enter_is_there(sign: int) -> None:
    before = UP if sign > 0 else DOWN
    for rate in (4.9, 2.6):
        assert evaluated(line(sign * rate))[0].name == "flat"
        assert evaluated(line(sign * rate), before) == (
            replace(evaluated(line(sign * rate))[0], name=before.name),
            before,
        )


def test_a_trend_is_left_after_two_windows_that_do_not_bear_it_out() -> None:
    trend, after = evaluated(line(2.4), UP)
    assert (trend.name, after) == ("growing", TrendState("growing", 1))
    trend, after = evaluated(line(2.4), after)
    assert (trend.name, after) == ("flat", NEW)


def test_one_window_that_bears_a_trend_out_restarts_the_count() -> None:
    assert evaluated(line(2.6), TrendState("growing", 1))[1] == UP


def test_a_trend_by_chance_is_left_too() -> None:
    noise = np.random.default_rng(5).normal(0, 5000, 60)
    noise[-11:] = [0, 9000, -3000, 8000, -5000, 9500, 1000, -2000, 9000, 0, 12_000]
    trend, after = evaluated(noise, UP)
    assert trend.slope > 0.025 * ARRIVAL
    assert trend.p > 0.05
    assert after == TrendState("growing", 1)


def test_a_turn_takes_two_windows_to_be_named() -> None:
    trend, after = evaluated(line(-10), UP)
    assert trend.name == "growing"
    assert trend.slope == pytest.approx(-10)
    assert evaluated(line(-10), after)[0].name == "draining"


def test_a_window_that_abstains_keeps_a_trend_and_two_forget_it() -> None:
    unknown = np.full(60, nan)
    trend, after = evaluated(unknown, UP)
    assert (trend.name, after) == ("abstain", TrendState("growing", 1))
    assert evaluated(line(2.6), after)[0].name == "growing"
    assert evaluated(unknown, after)[1] == NEW


# many at once


def test_series_are_evaluated_each_for_itself() -> None:
    generator = np.random.default_rng(6)
    rates = generator.choice([-40, -8, 0, 4, 8, 40], 150)
    envelope = 1e5 + rates[:, None] * MINUTES + generator.normal(0, 2000, (150, 60))
    envelope[generator.random((150, 60)) < generator.choice([0, 0.3, 0.9], 150)[:, None]] = nan
    lag_max = envelope + generator.exponential(20_000, (150, 60))
    arrival = generator.choice([nan, 0, 10, 100.0], 150)
    interval = generator.choice([nan, 5, 60, 300, 900.0], 150)
    before = [[NEW, UP, DOWN, TrendState("growing", 1)][i % 4] for i in range(150)]
    together = trends_of(MINUTES, envelope, lag_max, arrival, interval, 10.0, before, PARAMETERS)
    one_by_one = [
        trend_of(
            MINUTES, envelope[i], lag_max[i], arrival[i], interval[i], 10.0, before[i], PARAMETERS
        )
        for i in range(150)
    ]
    # as text NaN is equal to NaN
    assert [str(each) for each in together] == [str(each) for each in one_by_one]
    names = {trend.name for trend, _ in together}
    assert names == {"growing", "draining", "flat", "sawtooth", "abstain"}


def test_no_partitions_have_no_trends() -> None:
    nothing = np.empty((0, 60))
    assert (
        trends_of(MINUTES, nothing, nothing, np.empty(0), np.empty(0), 10.0, [], PARAMETERS) == []
    )


def test_nothing_is_infinite() -> None:
    trend, _ = evaluated(np.zeros(60), arrival=0.0)
    assert (trend.name, trend.slope, trend.p) == ("flat", 0.0, 1.0)
    assert inf not in (trend.slope_low, trend.slope_high)
