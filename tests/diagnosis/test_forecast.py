"""Forecasts: the specification's fixtures, arithmetic at every border, unknown in
and unknown out.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis.groups import signals_of, spread_over, topic_signals
from laggard.diagnosis.findings.windows import group_rows
from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals import forecast
from laggard.diagnosis.signals.group import TopicSignals

PARAMETERS = Parameters()
HOUR = 3600.0


def about(seconds: object) -> object:
    """Equal but for rounding; unknown equals unknown."""
    return pytest.approx(seconds, nan_ok=True, rel=1e-12)


def test_a_backlog_of_four_hours_that_takes_four_hours_is_read_at_twice_the_arrival_rate() -> None:
    lag, arrival, consume = 4 * HOUR * 1000, 1000.0, 2000.0
    assert forecast.drain_seconds(lag, arrival, consume, PARAMETERS) == 14_400
    assert forecast.catch_up_ratio(arrival, consume) == 2


@pytest.mark.parametrize(
    ("lag", "arrival", "consume", "seconds"),
    [
        (0, 100, 50, 0),
        (0, nan, nan, 0),  # nothing to drain, whatever the rates
        (600, 100, 103, 200),
        (600, 100, 102, inf),  # 2 % faster is not more
        (600, 100, 90, inf),
        (600, 0, 3, 200),
        (600, 0, 0, inf),
        (nan, 100, 200, nan),
        (600, nan, 200, nan),
        (600, 100, nan, nan),
    ],
)
def test_drain_at_todays_rates(lag: float, arrival: float, consume: float, seconds: float) -> None:
    assert forecast.drain_seconds(lag, arrival, consume, PARAMETERS) == about(seconds)


@pytest.mark.parametrize(
    ("consume", "stalled", "slots", "seconds"),
    [
        ((400, 400, 400), {}, ["m0", "m0", "m1"], 20.0),  # all alike
        ((400, 400, 160), {}, ["m0", "m0", "m1"], 100.0),  # m1 has 6000 left and gains 60 records/s
        ((400, 400, 90), {}, ["m0", "m0", "m1"], inf),  # m1 gains nothing
        # a member turns from one partition to the other
        ((700, 160, 400), {}, ["m0", "m0", "m1"], 20.0),
        # what is stalled is reported by its own rule
        ((400, 400, 0), {2: "silent"}, ["m0", "m0", "m1"], 18_000 / 500),
        ((400, 400, 160), {}, ["m0", "m0", ""], 18_000 / 660),  # who has it is not known
        ((400, 400, nan), {}, ["m0", "m0", "m1"], nan),
    ],
)
def test_a_topic_is_drained_when_its_slowest_member_is(
    consume: tuple[float, ...], stalled: dict[int, str], slots: list[str], seconds: float
) -> None:
    topic = topic_signals([6000.0] * 3, consume=consume, slots=slots, stalled=stalled)
    total = 18_000 / (sum(consume) - 300)
    expected = nan if isnan(total) else max(total, seconds)
    assert forecast.slowest_drain_seconds(topic, PARAMETERS) == about(expected)


def readers(
    read: Floats, interval: float, *, lag: float = 60_000.0, arrival: float = 30.0
) -> TopicSignals:
    """Partitions of one member, of which so many records are `read` in each second, [partitions,
    seconds].

    It commits every `interval` seconds, all partitions at once. `lag` is there at the end, by the
    newest commit.
    """
    done = np.concatenate([np.zeros((len(read), 1)), np.cumsum(read, axis=1)], axis=1)
    seconds = np.arange(done.shape[1])
    newest = (interval * np.floor(seconds / interval)).astype(int)
    committed = done[:, newest]
    moved_at = np.maximum.accumulate(
        np.where(np.diff(committed, axis=1, prepend=0.0) > 0, newest, 0), axis=1
    )
    ends = seconds[60::60]
    lag_now = lag + (done - committed)[:, -1]  # what was read since then is in it
    history = {
        "consumed": np.diff(committed[:, np.append(0, ends)], axis=1),
        "frozen": ends - moved_at[:, ends],
    }
    topic = topic_signals(
        lag_now.tolist(), arrival=arrival, interval=interval, windows=len(ends),
            slots=["m0"] * len(read),
        history=history,
    )  # fmt: skip
    return replace(topic, envelope=lag_now - arrival * (ends[-1] - newest[ends[-1]]))


@pytest.mark.parametrize("interval", [5, 20, 55, 90, 120, 180])
@pytest.mark.parametrize(
    ("before", "now"), [(0.0, 700.0), (0.0, 90.0), (100.0, 700.0), (700.0, 300.0)]
)
def test_a_drain_is_forecast_by_the_pace_since_it_changed(
    interval: int, before: float, now: float
) -> None:
    """As after a hang, a move to another owner, or a burst: a mean over some windows has both in
    it.
    """
    for second in range(0, 60, 7):
        # there are two whole gaps between commits since then
        changed = 3600 - 4 * max(60, interval) - second
        read = np.where(np.arange(3600) < changed, before, now)[None, :]
        topic = readers(read, interval)
        assert forecast.slowest_drain_seconds(topic, PARAMETERS) == pytest.approx(
            60_000 / (now - 30), rel=0.01
        )


@pytest.mark.parametrize("interval", [5, 20, 55, 90, 120, 180])
def test_the_first_commit_after_a_hang_is_no_sign_of_a_pace_that_nobody_has(interval: int) -> None:
    """What it says was read may have been read since the commit before it was due."""
    for second in range(0, 60, 7):
        read = np.where(np.arange(3600) < 3600 - interval - 20 - second, 0.0, 700.0)[None, :]
        (pace,) = forecast.paces(readers(read, interval), PARAMETERS)
        assert 0 < pace <= 700 * 1.01


def test_a_member_that_turns_from_one_partition_to_the_other_drains_both() -> None:
    turns = np.arange(3600) // 60 % 3 == 0
    read = np.array([np.where(turns, 700.0, 0.0), np.where(turns, 0.0, 700.0)])
    topic = readers(read, 5)
    assert forecast.slowest_drain_seconds(topic, PARAMETERS) == pytest.approx(
        120_000 / 640, rel=0.35
    )


def test_a_member_without_lag_that_counts_delays_no_drain() -> None:
    topic = topic_signals(
        [6000.0, 6000.0, 900.0], consume=(400, 400, 100), slots=["m0", "m1", "m2"]
    )
    assert forecast.slowest_drain_seconds(topic, PARAMETERS) == about(12_000 / 600)


@pytest.mark.parametrize(
    ("lag", "topic", "group", "seconds"),
    [
        (900.0, {}, {}, 0.0),  # what arrives between two commits: read as fast as it is written
        (900.0, {}, {"member_count": None}, 0.0),
        # no member reads it
        (900.0, {"history": {"consumed": 0.0}}, {"member_count": 0, "state": "Empty"}, inf),
        (
            1500.0,
            {"consume": 400.0, "history": {"consumed": 0.0}},
            {"member_count": 0},
            inf,
        ),  # its members did
        (1500.0, {"consume": 400.0}, {"member_count": 0}, 5.0),  # somebody reads it without joining
        (900.0, {"stalled": {0: "silent"}}, {}, inf),
        (900.0, {"trend": "growing"}, {}, inf),
        (1001.0, {}, {}, inf),  # above the floor
        (900.0, {"status": ["stale"]}, {}, nan),
    ],
)
def test_lag_below_the_floor_is_no_backlog_while_members_read_it(
    lag: float, topic: dict[str, object], group: dict[str, object], seconds: float
) -> None:
    signals = topic_signals([lag], slots=["m0"], **topic)  # type: ignore[arg-type]
    view = signals_of(signals, **group)
    assert forecast.topic_drain_seconds(view, view.topics[0]) == about(seconds)


@pytest.mark.parametrize(
    ("lags", "others", "group", "seconds"),
    [
        (300.0, "ok", {}, 0.0),
        (300.0, "no_commit", {}, 0.0),  # nobody has read there yet: another finding
        (300.0, "stale", {}, None),
        (300.0, "below_log_start", {}, None),
        (0.0, "stale", {"member_count": 0, "state": "Empty"}, None),
        (0.0, "ok", {"member_count": 0, "state": "Empty"}, 0.0),
        (3000.0, "stale", {}, inf),  # what is known never drains, whatever the others have
        # what is known drains, of the others nobody can say
        (3000.0, "stale", {"consume": 1500.0}, None),
        (3000.0, "ok", {"consume": 1500.0}, 2.142857142857143),
    ],
)
def test_a_topic_has_nothing_to_drain_only_if_all_its_partitions_are_known(
    lags: float, others: str, group: dict[str, object], seconds: float | None
) -> None:
    rates = {"consume": group.pop("consume")} if "consume" in group else {}
    topic = topic_signals(
        [lags] * 10, slots=spread_over(10, 2), status=["ok"] + [others] * 9, **rates
    )
    view = signals_of(topic, **group)  # type: ignore[arg-type]
    (row,) = group_rows(view)
    assert row["drain_seconds"] == seconds
    if seconds == 0 or seconds is None:
        assert row["drain_at_capacity_seconds"] in {seconds, None}
        assert {row["drain_low_seconds"], row["drain_high_seconds"]} <= {seconds, None}
    assert forecast.topic_drain_seconds(view, topic) == about(nan if seconds is None else seconds)


@pytest.mark.parametrize(
    ("slopes", "seconds"),
    [
        ((-30, -10), (20, 60)),
        ((-30, -2), (20, inf)),
        ((-30, 5), (20, inf)),
        ((5, 9), (inf, inf)),
        ((nan, nan), (nan, nan)),
    ],
)
def test_the_interval_of_a_drain_is_that_of_the_slope(
    slopes: tuple[float, float], seconds: tuple[float, float]
) -> None:
    assert forecast.drain_range(600, 100, *slopes, PARAMETERS) == about(seconds)


@pytest.mark.parametrize(
    ("lag", "arrival", "capacity", "members", "seconds"),
    [
        # 12 × 900 000 behind at 12 × 400/s: 25 min with 12 members
        (10_800_000, 4800, 1000, 12, 1500),
        (10_800_000, 4800, 1000, 6, 9000),  # and 150 min with 6
        (600, 100, 50, 2, inf),
        (600, 100, nan, 2, nan),  # unknown is not infinite
        (0, 100, nan, 2, nan),
        (0, 100, 50, 4, 0),
        (600, nan, 50, 4, nan),
        (600, 100, 50, nan, nan),
    ],
)
def test_drain_at_full_capacity(
    lag: float, arrival: float, capacity: float, members: float, seconds: float
) -> None:
    assert forecast.drain_at_capacity_seconds(lag, arrival, capacity, members) == about(seconds)


def test_a_catch_up_ratio_takes_arrivals() -> None:
    assert forecast.catch_up_ratio(100, 0) == 0
    assert isnan(forecast.catch_up_ratio(0, 5))
    assert isnan(forecast.catch_up_ratio(nan, 5))
    assert isnan(forecast.catch_up_ratio(5, nan))


def loss(**changed: float) -> float:
    """Six hours of retention, four of them behind; the log start does not move."""
    known = {
        "committed": 5000.0,
        "log_start": 1000.0,
        "log_start_speed": 0.0,
        "consume": 0.0,
        "retention_seconds": 6 * HOUR,
        "time_lag": 4 * HOUR,
        "arrival_at_read": 10.0,
    }
    return forecast.loss_seconds(**{**known, **changed})


def test_a_stalled_reader_loses_when_its_oldest_record_reaches_the_retention() -> None:
    assert loss() == 7200


def test_a_reader_at_half_the_arrival_rate_has_twice_the_time() -> None:
    assert loss(consume=5) == 14_400


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({"log_start_speed": 2}, 2000),  # 4000 records of headroom, before the 7200 s by time
        ({"log_start_speed": 0.1}, 7200),
        ({"log_start_speed": 7, "consume": 5}, 2000),
        ({"log_start_speed": 5, "consume": 5}, 14_400),  # as fast as the reader: never overtakes
        ({"consume": 10}, inf),
        ({"consume": 30}, inf),
        ({"arrival_at_read": 0}, inf),
        ({"retention_seconds": inf}, inf),
        ({"retention_seconds": inf, "log_start_speed": 2}, 2000),
        ({"time_lag": 7 * HOUR}, 0),  # past the retention: a record is lost with the next segment
        ({"committed": 900, "log_start_speed": 2}, 0),  # and here it is lost already
    ],
)
def test_loss_is_the_earlier_of_two_terms(changed: dict[str, float], seconds: float) -> None:
    assert loss(**changed) == seconds


@pytest.mark.parametrize(
    ("changed", "seconds"),
    [
        ({"log_start_speed": nan}, 7200),  # too few jumps of the log start: by time alone
        # no right to read the configuration
        ({"retention_seconds": nan, "log_start_speed": 2}, 2000),
        ({"time_lag": nan}, nan),  # "never" by one term is no answer while the other is unknown
        ({"log_start_speed": nan, "consume": 10}, nan),
        ({"arrival_at_read": nan}, nan),
        ({"consume": nan}, nan),
        ({"consume": nan, "arrival_at_read": 0}, nan),
        ({"committed": nan, "time_lag": nan}, nan),
    ],
)
def test_loss_is_unknown_when_neither_term_gives_a_time_and_one_cannot(
    changed: dict[str, float], seconds: float
) -> None:
    assert loss(**changed) == about(seconds)


@pytest.mark.parametrize(
    ("slo", "time_lag", "slope", "seconds"),
    [
        (60, 30, 0.1, 300),
        (60, 60, nan, 0),  # broken already
        (60, 90, -1, 0),
        (60, 30, 0, inf),
        (60, 30, -0.1, inf),
        (60, 30, nan, nan),  # no significant slope, no forecast
        (60, nan, 0.1, nan),
        (0, 30, 0.1, nan),  # no service level
    ],
)
def test_when_a_service_level_breaks(
    slo: float, time_lag: float, slope: float, seconds: float
) -> None:
    assert forecast.slo_breach_seconds(slo, time_lag, slope) == about(seconds)


def test_offsets_expire_a_retention_after_the_group_became_empty() -> None:
    day_ms = 86_400_000
    week = PARAMETERS.offsets_retention_minutes
    assert forecast.offsets_expiry_ms(1_700_000_000_000, week) == 1_700_000_000_000 + 7 * day_ms
    assert forecast.offsets_expiry_ms(1_700_000_000_000, 1440) == 1_700_000_000_000 + day_ms
    assert isnan(forecast.offsets_expiry_ms(nan, week))
    assert isnan(forecast.offsets_expiry_ms(1_700_000_000_000, nan))


@given(st.integers(1, 10**9), st.integers(0, 10**5), st.integers(0, 10**5))
def test_a_drain_ends_exactly_when_consumption_has_made_up_for_lag_and_arrivals(
    lag: float, arrival: float, consume: float
) -> None:
    seconds = forecast.drain_seconds(lag, arrival, consume, PARAMETERS)
    if seconds < inf:
        assert lag + arrival * seconds == pytest.approx(consume * seconds)
    else:
        assert consume <= 1.02 * arrival * (1 + 1e-12)
