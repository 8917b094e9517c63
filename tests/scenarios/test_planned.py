"""Drain times that `laggard plan` forecasts hold in runs of the simulator with that
many members.
"""

from __future__ import annotations

import pytest

from scenarios.planned import compare, percentile

SEEDS = range(1000, 1008)  # none by which the interval was chosen


@pytest.mark.nightly
def test_a_drain_takes_as_long_as_planned() -> None:
    found = [each for seed in SEEDS for each in compare(seed) if each.is_seen]
    assert len(found) >= 12
    ratios = [each.ratio for each in found]
    assert 0.97 <= percentile(ratios, 50) <= 1.03
    assert percentile(ratios, 10) >= 0.9
    assert [each for each in found if not each.is_within][1:] == []  # 95 of 100 hold
    assert (
        percentile([(each.forecast.p90 - each.forecast.p10) / each.truth for each in found], 50)
        <= 0.15
    )
