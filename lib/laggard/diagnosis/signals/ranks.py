"""How likely it is that partitions picked at random carry as much lag as the ones in question."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

EXACT_UP_TO = 5_000  # subsets; above it, as many less one are drawn
_CHUNK = 500


def rank_p(lags: tuple[float, ...], chosen: tuple[int, ...], seed: str, enough: float = 1.0) -> float:
    """(1 + other subsets of that size with at least the lag of `chosen`) / subsets; `chosen` are places in `lags`.

    Where the subsets are drawn, drawing ends when p has passed `enough` and cannot come back.
    """
    values = np.asarray(lags)
    reached = float(values[list(chosen)].sum()) * (1 - 1e-12)  # sums of fractions differ by their order
    size, count = len(lags), len(chosen)
    if comb(size, count) <= EXACT_UP_TO:
        sums = values[_subsets(size, count)].sum(axis=1)
        return float((sums >= reached).sum()) / len(sums)  # chosen is one of them
    random = np.random.default_rng(int.from_bytes(sha256(seed.encode()).digest()[:8], "big"))
    as_much, left = 0, EXACT_UP_TO - 1
    while left and (1 + as_much) / EXACT_UP_TO <= enough:
        drawn = random.random((min(_CHUNK, left), size)).argpartition(count, axis=1)[:, :count]
        as_much += int((values[drawn].sum(axis=1) >= reached).sum())
        left -= len(drawn)
    return (1 + as_much) / EXACT_UP_TO


def least_p(size: int, count: int) -> float:
    """The smallest p that any data could reach."""
    return 1 / comb(size, count)


@lru_cache(maxsize=16)
def _subsets(size: int, count: int) -> npt.NDArray[np.intp]:
    return np.array(list(combinations(range(size), count)), np.intp)
