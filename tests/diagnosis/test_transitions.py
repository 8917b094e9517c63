"""Groups whose truth changes at a known minute, drawn at random: the verdict has to follow what is
physically so.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import Fluid, evaluate
from laggard.diagnosis.signals.rates import newest_level
from patience import examples

GROUPS, BEGIN = examples(12), 20
Drawn = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], float]


def verdicts(group: Fluid, first: int) -> list[str]:
    """Verdicts of the windows from the first on."""
    return [row["scale_verdict"] for row in evaluate(group.tables(), first=12).windows][
        first - 12 :
    ]


def drawn(chance: random.Random, members: int, each: int, minutes: int) -> Drawn:
    """Arrivals and capacities of a group with half of what it can do to do, and the capacity of a
    member.
    """
    capacity = chance.uniform(100, 800)
    uneven = np.array([chance.uniform(0.9, 1.1) for _ in range(members * each)])[:, None]
    arrival = np.repeat(0.5 * capacity / each * uneven, minutes, axis=1)
    return arrival, np.full((members, minutes), capacity), capacity


@pytest.mark.examples
def test_the_verdict_on_a_shortage_does_not_wait_for_the_capacity_of_each_member() -> None:
    unknown = []
    for seed in range(GROUPS):
        chance = random.Random(f"short {seed}")
        arrival, capacity, _ = drawn(chance, chance.choice((3, 4, 5)), chance.choice((2, 3, 4)), 32)
        arrival[:, BEGIN:] *= chance.uniform(1.15, 1.6) / 0.5
        found = verdicts(Fluid(arrival, capacity, chance.randrange(1000)), BEGIN)
        assert found[-1].startswith("YES"), (seed, found)
        unknown.append(sum(each == "UNKNOWN" for each in found))

    assert sum(unknown) <= GROUPS, unknown  # 40 before rates of all members counted together


@pytest.mark.examples
def test_a_backlog_that_drains_in_time_does_so_with_a_member_for_each_partition_too() -> None:
    wrong = []
    for seed in range(GROUPS):
        chance = random.Random(f"full {seed}")
        arrival, capacity, _ = drawn(chance, chance.choice((3, 4, 6)), 1, 45)
        capacity[chance.randrange(len(capacity)), BEGIN : BEGIN + chance.randint(6, 10)] = 0.0
        found = verdicts(Fluid(arrival, capacity, chance.randrange(1000)), BEGIN + 13)
        wrong.append(sum(not each.startswith("NOT_NEEDED") for each in found))

    assert sum(wrong) == 0, wrong  # 25: it said NO_IDLE while the lag fell


@pytest.mark.examples
def test_lag_of_a_partition_that_stands_shows_no_capacity() -> None:
    for seed in range(GROUPS):
        chance = random.Random(f"paused {seed}")
        arrival, capacity, one = drawn(chance, chance.choice((2, 3, 4)), chance.choice((2, 3)), 40)
        paused = np.zeros_like(arrival, bool)
        paused[chance.randrange(len(arrival)), BEGIN:] = True
        found = evaluate(
            Fluid(arrival, capacity, chance.randrange(1000), paused=paused).tables(), first=BEGIN
        )
        known = [row["capacity"] for row in found.windows if row["capacity"] is not None]

        assert all(each > 0.9 * one for each in known), (seed, known)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ([100, 104, 96, 100, 100], 100.0),  # no change
        ([100, 100, 100, 100, 120], 104.0),  # one window that is not much higher may be chance
        ([100, 100, 100, 100, 140], 140.0),
        ([100, 100, 100, 120, 124], 122.0),
        ([100, 120, 121, 122, 119], 120.5),
        ([200, 200, 200, 140, 60], 60.0),
        ([0, 0, 0, 0, 10], 10.0),
        ([np.nan, 100, 100, 100, 140], 110.0),  # not known since when
    ],
)
def test_arrivals_count_since_they_changed_level(rates: list[float], expected: float) -> None:
    assert newest_level(np.array([[500.0, *rates]]), 5, 1.3).tolist() == [expected]
