"""Lag at commits that are rare: what it is between two of them, and which shape it has before it is
past the floor.
"""

from __future__ import annotations

import numpy as np

from diagnosis.fluid import Fluid, evaluate
from diagnosis.groups import topic_signals
from laggard.diagnosis.signals.trend import newest_at_commits


def test_between_two_commits_lag_is_what_it_was_at_the_newest_for_two_intervals() -> None:
    seconds = 60.0 * np.arange(6)
    envelopes = np.array(
        [[10.0, *[np.nan] * 5], [20.0, np.nan, np.nan, 30.0, np.nan, np.nan], [np.nan] * 6]
    )
    topic = topic_signals([0.0] * 3, interval=120.0, windows=6).frame
    found = newest_at_commits(topic, seconds, envelopes, 60)
    assert np.where(np.isnan(found), None, found).tolist() == [
        [10, 10, 10, 10, 10, None],  # two intervals are four windows
        [20, 20, 20, 30, 30, 30],
        [None] * 6,
    ]


def test_growth_below_the_floor_has_the_shape_of_the_lag_that_grows() -> None:
    arrival = np.full((12, 60), 100.0)
    # 20 records/s more than four members can do: 48 000 each after 40 minutes
    arrival[:, 20:] = 220
    evaluation = evaluate(Fluid(arrival, np.full((4, 60), 600.0), interval=120.0).tables())
    significant = [row for row in evaluation.windows if row["partitions_material"]]
    assert significant[0]["lag"] < significant[0]["floor_records"]
    assert {row["shape"] for row in significant[1:]} == {"spread"}
