"""What lag is more than the rhythm of commits."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from diagnosis.views import PARAMETERS, topic_view
from laggard.diagnosis.measures import floors


@pytest.mark.parametrize(
    ("interval", "frozen", "expected"),
    [
        (5.0, 4.0, 2 * 100 * 5 + 1),
        (20.0, 38.0, 2 * 100 * 38 + 1),  # batches of 1 to 40 s: the longest gap, not the middle one
        (20.0, 60.0, 2 * 100 * 20 + 1),  # three intervals without progress are no rhythm
        (nan, 100.0, 2 * 100 * 100 + 1),
        (nan, nan, 2 * 100 * 60 + 1),  # an unknown rhythm is a window
    ],
)
def test_the_floor_is_what_arrives_in_two_of_the_longest_gaps(interval: float, frozen: float, expected: float) -> None:
    once = np.array([0.0, 0.0, frozen, 0.0, 0.0])
    topic = topic_view([0.0], interval=interval, history={"frozen": once[None]}, windows=5).frame
    found = floors(topic, np.full((1, 5), 100.0), 60, PARAMETERS)
    short = 2 * 100 * (60 if np.isnan(interval) else interval) + 1
    assert found.tolist() == [[short, short, expected, expected, expected]]  # remembered, and not foreseen
