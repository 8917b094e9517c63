"""Sizes of groups that are short of members for a while, drawn at random: advice that is followed
must not move.
"""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from diagnosis.fluid import Fluid, evaluate
from patience import examples

pytestmark = pytest.mark.examples
GROUPS = examples(12)
SHORT, OVER, MINUTES = 20, 45, 64


def changes(chance: random.Random, *, later: float = 1.0) -> list[tuple[int, int]]:
    """Sizes before and after each change of the number while the answer is yes.

    From minute `SHORT` more arrives than members can read, in the last ten minutes `later` times as
    much again.
    """
    members, each = chance.choice((2, 3, 4)), chance.choice((3, 4, 5, 6))
    partitions, capacity = members * each, chance.uniform(100, 800)
    over, rate = chance.uniform(1.1, 1.6), 0.6 * capacity / each
    arrival = rate * np.array([[chance.uniform(0.9, 1.1)] * MINUTES for _ in range(partitions)])
    arrival[:, SHORT:OVER] *= over / 0.6
    arrival[:, OVER - 10 : OVER] *= later
    group = Fluid(
        arrival, np.full((members, MINUTES), capacity), chance.randrange(1000), noise=0.05
    )
    found = evaluate(group.tables(), first=15).windows
    shown = [
        row["members_desired"] if row["scale_verdict"].startswith("YES") else None for row in found
    ]
    return [
        (one, two)
        for one, two in pairwise(shown)
        if one is not None and two is not None and one != two
    ]


def test_a_backlog_that_drains_does_not_shrink_the_size_step_by_step() -> None:
    found = {seed: changes(random.Random(f"drains {seed}")) for seed in range(GROUPS)}

    # 17 before a size stayed
    assert all(one < two for each in found.values() for one, two in each), found
    # as lag gathers while nobody follows the advice
    assert all(len(each) <= 1 for each in found.values()), found


def test_a_shortage_that_grows_raises_the_size_and_never_lowers_it() -> None:
    found = [changes(random.Random(f"grows {seed}"), later=1.5) for seed in range(GROUPS)]

    assert sum(map(bool, found)) >= GROUPS // 2, found
    assert all(one < two for each in found for one, two in each), found
