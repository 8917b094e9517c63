"""What the view of a window takes from the windows before."""

import numpy as np
import pytest

from diagnosis.views import WINDOWS, topic_view, view_of
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals import viewing
from laggard.diagnosis.signals.trend import TrendState

EVERY, RATE = 10, 200.0  # windows from commit to commit, records/s


@pytest.mark.parametrize(("growth", "material", "shape"), [(10_000.0, True, "spread"), (0.0, False, "none")])
def test_a_backlog_that_grows_under_a_slow_rhythm_of_commits_has_a_shape(
    growth: float, material: bool, shape: str
) -> None:
    back = np.arange(WINDOWS)[::-1]  # windows ago
    at_commit = 1000.0 + growth * ((WINDOWS - 1 - back) // EVERY)
    since_commit = (EVERY - back % EVERY) % EVERY
    envelope = np.where(since_commit == 0, at_commit, np.nan)
    lag = at_commit + RATE * 60 * since_commit
    assert lag.max() < 2 * RATE * 600  # never above what the rhythm alone makes
    history = {"envelope": envelope, "lag": lag, "lag_max": lag}
    topic = topic_view([0.0] * 4, arrival=RATE, interval=600.0, history=history)
    found, _ = viewing.topic_view(topic.frame, view_of(topic).frame, TrendState("", 0), Parameters(), has_members=True)
    assert (bool(found.is_material.all()), found.shape.name) == (material, shape)
