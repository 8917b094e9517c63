"""Lag that exceeds what the commit interval makes."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from diagnosis.groups import PARAMETERS, topic_signals
from laggard.diagnosis.signals.significance import Floors, floors, lag_left, material


@pytest.mark.parametrize(
    ("interval", "frozen", "expected"),
    [
        (5.0, 4.0, 2 * 100 * 5 + 1),
        (20.0, 38.0, 2 * 100 * 38 + 1),  # batches of 1 to 40 s: the longest gap, not the middle one
        (20.0, 60.0, 2 * 100 * 20 + 1),  # three intervals without progress are no commit interval
        (nan, 100.0, 2 * 100 * 100 + 1),
        (nan, nan, 2 * 100 * 60 + 1),  # an unknown commit interval is a window
    ],
)
def test_the_floor_is_what_arrives_in_two_of_the_longest_gaps(
    interval: float, frozen: float, expected: float
) -> None:
    once = np.array([0.0, 0.0, frozen, 0.0, 0.0])
    topic = topic_signals([0.0], interval=interval, history={"frozen": once[None]}, windows=5).frame
    found = floors(topic, np.full((1, 5), 100.0), 60, PARAMETERS).momentary
    short = 2 * 100 * (60 if np.isnan(interval) else interval) + 1
    # remembered, and not foreseen
    assert found.tolist() == [[short, short, expected, expected, expected]]


def test_the_floor_rises_as_soon_as_more_arrives() -> None:
    """A mean over some windows comes after what arrives; while less and less does
    the mean stands.
    """
    arrival = np.array([[100.0, 100.0, 500.0, 500.0, 20.0]])
    means = np.array([[100.0, 100.0, 180.0, 260.0, nan]])
    topic = topic_signals([0.0], interval=5.0, history={"arrival": arrival}, windows=5).frame
    assert floors(topic, means, 60, PARAMETERS).momentary.tolist() == [
        [1001.0, 1001.0, 5001.0, 5001.0, 201.0]
    ]


@pytest.mark.parametrize(
    ("interval", "frozen", "expected"),
    [
        (5.0, 5.0, 2 * 100 * 5 + 1),  # never more than the floor of a momentary lag
        (30.0, 30.0, 2000 + 3 * 2000**0.5 + 1),  # two ticks of ten seconds
        (180.0, 180.0, 4500 + 3 * 4500**0.5 + 1),  # a quarter of the interval
        (180.0, 225.0, 4500 + 3 * 4500**0.5 + 1),
        # commits after batches: one and a half of the longest
        (180.0, 226.0, 33900 + 3 * 33900**0.5 + 1),
        (nan, 30.0, 9000 + 3 * 9000**0.5 + 1),  # an unknown commit interval is not known to be even
    ],
)
def test_what_a_commit_leaves_has_a_lower_floor_where_commits_come_at_even_gaps(
    interval: float, frozen: float, expected: float
) -> None:
    topic = topic_signals(
        [0.0], interval=interval, history={"frozen": np.full((1, 15), frozen)}, windows=15
    ).frame
    found = floors(topic, np.full((1, 15), 100.0), 60, PARAMETERS).at_commit
    assert found[0, -1] == pytest.approx(
        min(expected, 2 * 100 * np.fmax(frozen, 60 if np.isnan(interval) else 0) + 1)
    )
    # seen for 14 windows only
    assert found[0, -2] >= 1.5 * 100 * (60 if np.isnan(interval) else interval)


@pytest.mark.parametrize(
    ("lag", "envelope", "expected"),
    [
        (2500.0, 900.0, False),  # the next commit is due, and there was little at the last one
        (2500.0, 1100.0, True),
        (2500.0, nan, True),  # nobody committed
        (900.0, nan, False),
        (nan, 1100.0, False),  # where the group stands by now is not known
    ],
)
def test_lag_counts_at_a_commit_where_there_was_one(
    lag: float, envelope: float, *, expected: bool
) -> None:
    frame = topic_signals([0.0], history={"lag": [lag], "envelope": [envelope]}, windows=5).frame
    limits = np.full((1, 5), 1000.0)
    left = lag_left(frame, Floors(limits, limits), frame["envelope"])
    found = material(frame, left, 0.0, PARAMETERS)
    assert found.tolist() == [[expected] * 5]
