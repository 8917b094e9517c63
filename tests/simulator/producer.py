"""Arrivals: how many records each second brings to a partition, drawn once and in order."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Callable

Rate = Callable[[int], float]  # milliseconds since the simulation began -> records per second


def steady(per_second: float) -> Rate:
    return lambda _: per_second


def piecewise(*steps: tuple[int, float]) -> Rate:
    """Rates from (milliseconds, records per second), each valid until the next."""
    return lambda at: [rate for begin, rate in steps if begin <= at][-1]


def daily(mean: float, swing: float, day_ms: int = 86_400_000) -> Rate:
    return lambda at: mean * (1 + swing * math.sin(2 * math.pi * at / day_ms))


class Arrivals:
    """The log end over time; within a second records arrive evenly, so the result does not depend on who asks when."""

    def __init__(self, begin_ms: int, origin_ms: int, rate: Rate, chance: random.Random, first: int = 0) -> None:
        self._begin, self._origin, self._rate, self._chance = begin_ms, origin_ms, rate, chance
        self._ends = [first]  # at the end of each second

    def end_at(self, now_ms: int) -> int:
        """The next offset of the log."""
        second, rest = divmod(max(0, now_ms - self._begin), 1000)
        ends = self._ends
        if second + 1 >= len(ends):
            self._draw(second + 1)
        return ends[second] + (ends[second + 1] - ends[second]) * rest // 1000

    def produced_at(self, offset: int) -> int | None:
        """When a record arrived; None for one that is not there yet."""
        second = bisect.bisect_right(self._ends, offset) - 1
        if second < 0 or second + 1 >= len(self._ends):
            return None
        here, there = self._ends[second : second + 2]
        rest = -(-(offset + 1 - here) * 1000 // (there - here))
        return self._begin + second * 1000 + rest

    def _draw(self, seconds: int) -> None:
        ends = self._ends
        first = self._begin - self._origin
        for second in range(len(ends) - 1, seconds):
            ends.append(ends[-1] + _poisson(self._rate(first + 1000 * second), self._chance))


def _poisson(mean: float, chance: random.Random) -> int:
    if mean > 30:  # close enough to normal, and exp(-mean) would vanish
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    draw = chance.random
    limit, product, count = math.exp(-mean), draw(), 0
    while product > limit:
        product *= draw()
        count += 1
    return count
