"""Arrivals: how many records each second brings to a partition, drawn once and in order."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import count

Rate = Callable[[int], float]  # milliseconds since the simulation began -> records per second


def steady(per_second: float) -> Rate:
    return lambda _: per_second


def piecewise(*steps: tuple[int, float]) -> Rate:
    """Rates from (milliseconds, records per second), each valid until the next."""
    begins, rates = [begin for begin, _ in steps], [rate for _, rate in steps]
    return lambda at: rates[bisect_right(begins, at) - 1]


def daily(mean: float, swing: float, day_ms: int = 86_400_000) -> Rate:
    return lambda at: mean * (1 + swing * math.sin(2 * math.pi * at / day_ms))


class Arrivals:
    """The log end over time; within a second records arrive evenly, so the result does not depend
    on who asks when.
    """

    def __init__(
        self, begin_ms: int, origin_ms: int, rate: Rate, chance: random.Random, first: int = 0
    ) -> None:
        self._begin, self._origin, self._rate, self._chance = begin_ms, origin_ms, rate, chance
        self._ends = [first]  # at the end of each second
        self._later_ends = self._draw()

    def end_at(self, now_ms: int) -> int:
        """The next offset of the log."""
        second, rest = divmod(now_ms - self._begin, 1000)
        if second < 0:
            return self._ends[0]
        ends = self._ends
        while second + 1 >= len(ends):
            ends.append(next(self._later_ends))
        here = ends[second]
        return here + (ends[second + 1] - here) * rest // 1000

    def produced_at(self, offset: int) -> int | None:
        """When a record arrived; None for one that is not there yet."""
        second = bisect_right(self._ends, offset) - 1
        if second < 0 or second + 1 >= len(self._ends):
            return None
        here, there = self._ends[second : second + 2]
        rest = -(-(offset + 1 - here) * 1000 // (there - here))
        return self._begin + second * 1000 + rest

    def _draw(self) -> Iterator[int]:
        """The end after each second that nobody has asked for yet, at the rate of the moment at
        which one asks.
        """
        chance, gauss, sqrt = self._chance, self._chance.gauss, math.sqrt
        end = self._ends[0]
        for at in count(self._begin - self._origin, 1000):
            mean = self._rate(at)
            if mean > 30:  # close enough to normal, and exp(-mean) would vanish
                arrived = round(gauss(mean, sqrt(mean)))
                end += max(0, arrived)
            else:
                end += _poisson(mean, chance)
            yield end


def _poisson(mean: float, chance: random.Random) -> int:
    draw = chance.random
    limit, product, arrived = math.exp(-mean), draw(), 0
    while product > limit:
        product *= draw()
        arrived += 1
    return arrived
