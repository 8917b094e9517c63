"""Signals that remember: what a window takes from the windows before."""

from datetime import timedelta
from math import isnan

import numpy as np
import pytest

from diagnosis.groups import WINDOWS, signals_of, topic_signals
from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals import compute
from laggard.diagnosis.signals.trend import TrendState
from tables.fixtures import NOW

EVERY, RATE = 10, 200.0  # windows from commit to commit, records/s


@pytest.mark.parametrize(
    ("growth", "material", "shape"), [(10_000.0, True, "spread"), (0.0, False, "none")]
)
def test_a_backlog_that_grows_under_a_slow_rhythm_of_commits_has_a_shape(
    growth: float, material: bool, shape: str
) -> None:
    back = np.arange(WINDOWS)[::-1]  # windows ago
    at_commit = 1000.0 + growth * ((WINDOWS - 1 - back) // EVERY)
    since_commit = (EVERY - back % EVERY) % EVERY
    envelope = np.where(since_commit == 0, at_commit, np.nan)
    lag = at_commit + RATE * 60 * since_commit
    assert lag.max() < 2 * RATE * 600  # never above what the commit interval alone makes
    history = {"envelope": envelope, "lag": lag, "lag_max": lag}
    topic = topic_signals([0.0] * 4, arrival=RATE, interval=600.0, history=history)
    found, _ = compute.topic_signals(
        topic.frame, signals_of(topic).frame, TrendState("", 0), Parameters(), has_members=True
    )
    assert (bool(found.is_material.all()), found.shape.name) == (material, shape)


@pytest.mark.parametrize(
    ("window", "rate"),
    [
        ({"commits": 6, "consumed": 1200, "consume_rate": 3.0}, 10.0),
        # as much as since the answer before
        ({"commits": None, "consumed": 12_000, "consume_rate": 20.0}, 10.0),
        ({"commits": None, "consumed": None, "consume_rate": 20.0}, None),
        ({"commits": None, "consumed": 12_000, "consume_rate": None}, None),
        ({"commits": 6, "consumed": None, "consume_rate": 20.0}, None),
    ],
)
def test_what_a_member_did_is_by_the_time_in_which_it_was_done(
    window: Row, rate: float | None
) -> None:
    row = {"window_start": NOW, "window_end": NOW + timedelta(minutes=1), "members": 2} | window
    found = compute.rate_per_member(row)
    assert rate == (None if isnan(found) else found)
