"""Losses to come: of records by retention, of offsets of a group that is away."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from diagnosis.groups import END_MS, WINDOWS, signals_of, topic_signals
from laggard.diagnosis.rules.loss import offsets_expiry_forecast
from laggard.diagnosis.signals.forecast import losses, start_speeds
from laggard.diagnosis.signals.group import Signals

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
RETAINED = {"config_known": True, "retention_seconds": 600.0, "cleanup_policy": "delete"}


def away(seconds: float, observed_minutes: float | None, arrival: float = 100.0) -> Signals:
    """A group without members for so long, and the offsets retention that a broker reported."""
    since = datetime.fromtimestamp(END_MS / 1000, timezone.utc) - timedelta(seconds=seconds)
    topic = topic_signals([50_000.0], slots=[""], arrival=arrival)
    signals = signals_of(topic, state="Empty", member_count=0, fact={"empty_since": since})
    return replace(
        signals, frame=replace(signals.frame, offsets_retention_minutes=observed_minutes)
    )


@pytest.mark.parametrize(
    ("away_seconds", "observed_minutes", "left_seconds", "severity", "basis"),
    [
        (10 * MINUTE, 60.0, 50 * MINUTE, "page", "as the brokers say"),
        (2 * DAY, 4 * 1440.0, 2 * DAY, "warn", "as the brokers say"),
        (6.5 * DAY, None, 0.5 * DAY, "page", "assumed"),  # of seven days
        # due, and the broker has not swept yet
        (65 * MINUTE, 60.0, 0.0, "page", "as the brokers say"),
    ],
)
def test_offsets_expire_when_the_broker_says_so_and_else_after_a_week(
    away_seconds: float,
    observed_minutes: float | None,
    left_seconds: float,
    severity: str,
    basis: str,
) -> None:
    (found,) = offsets_expiry_forecast.check(away(away_seconds, observed_minutes))
    assert found.evidence["expiry_seconds"] == pytest.approx(left_seconds)
    assert (found.severity, found.evidence_text["offsets_retention"]) == (severity, basis)


@pytest.mark.parametrize(
    "signals",
    [
        away(10 * MINUTE, None),  # a week is left
        away(10 * MINUTE, 10_080.0),
        away(5 * DAY, 14 * 1440.0),  # the brokers keep them for longer than a week
        away(60 * MINUTE, 30.0),  # long due: what was reported is not what the broker does
        away(10 * MINUTE, 60.0, arrival=0.0),  # nothing to be missed
    ],
)
def test_offsets_that_stay_are_not_forecast_to_expire(signals: Signals) -> None:
    assert offsets_expiry_forecast.check(signals) == []


def moving(lag: float, *, stalled: bool = False) -> Signals:
    """A log whose start rose by 100 records/s while the group reads 20/s, which is all that
    arrives.
    """
    start = 100.0 * 60 * np.arange(WINDOWS)
    committed = np.full(WINDOWS, start[-1] + 60_000.0)
    history = {"start": start, "committed": committed, "time_lag": lag / 20.0}
    topic = topic_signals(
        [lag],
        arrival=20.0,
        floor=200.0,
        history=history,
        facts=RETAINED,
        stalled={0: "silent"} if stalled else {},
    )
    return signals_of(topic, capacity=600.0)


def test_retention_takes_nothing_from_a_reader_at_the_end_of_the_log() -> None:
    (found,) = losses(moving(lag=50.0)).values()
    assert found.seconds == np.inf


def test_a_stall_ends_in_loss_when_its_oldest_record_reaches_retention_or_the_log_start() -> None:
    (found,) = losses(moving(lag=3000.0, stalled=True)).values()
    # by time 600 s less 150 s at rest against arrivals of 20/s that are consumed as fast; by
    # offsets 60 000 / 80
    assert found.seconds == pytest.approx(60_000 / 80)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([100.0] * 30, 100.0),
        # the log was not full before: retention by size took nothing
        ([0.0] * 20 + [100.0] * 10, 100.0),
        ([100.0] * 25 + [400.0] * 5, 400.0),  # more arrives, and the start rises as fast
        # five jumps of a window each, and five windows more without one
        ([100.0] * 24 + [0.0] * 6, 50.0),
        ([0.0] * 28 + [100.0] * 2, 200.0 / 30),  # too few jumps: the mean
    ],
)
def test_the_speed_of_a_log_start_is_that_of_its_newest_jumps(
    rates: list[float], expected: float
) -> None:
    start = np.cumsum([0.0, *(60 * rate for rate in rates)])
    before = np.full(WINDOWS - len(start), np.nan)
    signals = signals_of(
        topic_signals([3000.0], history={"start": np.concatenate([before, start])})
    )
    (speed,), (mean,), _ = start_speeds(signals.topics[0].frame, 60)
    assert (speed, mean) == pytest.approx((expected, np.mean(rates)))
