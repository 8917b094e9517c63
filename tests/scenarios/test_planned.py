"""Drain times that `laggard plan` forecasts hold in runs of the simulator with that many members."""

from __future__ import annotations

import pytest

from scenarios.planned import compare

SEEDS = (1, 2, 4)


@pytest.mark.full
def test_a_drain_takes_as_long_as_planned() -> None:
    found = [each for seed in SEEDS for each in compare(seed)]
    assert len(found) >= 6
    # commits every 5 s hide the end of a drain of two minutes for a tenth of it
    assert [each for each in found if not 0.8 <= each.ratio <= 1.1] == []
