"""Medians, percentiles and slopes that are values of the sample.

So every platform finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import erfc, isnan, nan, sqrt

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats


def lower_median(values: Iterable[float]) -> float:
    """Return the lower median of the known values; NaN without any."""
    known = sorted(value for value in values if not isnan(value))
    return known[(len(known) - 1) // 2] if known else nan


def is_most(part: int, whole: int) -> bool:
    """Return True if the part is more than half of the whole."""
    return part > whole - part


def known_sum(values: Floats) -> float:
    """Sum of the known values, 0 without any: np.nansum to the last bit, in a third of the time."""
    return float(np.add.reduce(np.where(np.isnan(values), 0.0, values), axis=None))


def percentile(values: Iterable[float], percent: int) -> float:
    """Return a percentile of the known values by nearest rank; NaN without any."""
    known = sorted(value for value in values if not isnan(value))
    return known[-(-percent * len(known) // 100) - 1] if known else nan


Ints = npt.NDArray[np.int64]
_Z95 = 1.959964  # of the normal distribution, two-sided 95 %
# series at a time: 60 points make 1770 pairs, which should stay in the processor's cache
_ROWS = 64


@dataclass(frozen=True, slots=True)
class Fits:
    """Slopes of each series, [n]; all but `points` is NaN if there are too few of them."""

    points: Ints
    span: Floats  # seconds between the first and the last point
    slope: Floats  # per second, the lower median of the slopes of all pairs
    low: Floats  # 95 % interval by Sen's ranks
    high: Floats
    p: Floats  # two-sided, normal approximation with tie and continuity correction


def fit(seconds: Floats, values: Floats, min_points: int) -> Fits:
    """Fit each row of `values` [n, w] over the ascending `seconds` [w]; NaN is no point."""
    points = np.count_nonzero(~np.isnan(values), axis=1)
    numbers = np.full((5, len(values)), np.nan)
    for rows in _blocks(points, min_points):
        numbers[:, rows] = _fit(seconds, values[rows], points[rows])
    return Fits(points, *numbers)


def median_slopes(seconds: Floats, values: Floats, min_points: int) -> Floats:
    """Return only the slopes of `fit`, several times as fast if few points are missing."""
    points = np.count_nonzero(~np.isnan(values), axis=1)
    medians = np.full(len(values), np.nan)
    for rows in _blocks(points, min_points):
        slopes = _divide(_rises(values[rows]), seconds)
        middle = _middle(points[rows])
        slopes.partition(np.unique(middle), axis=1)
        medians[rows] = slopes[np.arange(len(rows)), middle]
    return medians


def _blocks(points: Ints, min_points: int) -> Iterator[Ints]:
    """Return row numbers of the series that have enough points, a block at a time."""
    rows = np.flatnonzero(points >= max(min_points, 2))
    return (rows[first : first + _ROWS] for first in range(0, len(rows), _ROWS))


def _rises(values: Floats) -> Floats:
    """Return the later minus the earlier value of all pairs, [n, pairs]."""
    earlier, later = _pairs(values.shape[1])
    rises: Floats = values.take(later, axis=1)  # twice as fast as an index in brackets
    rises -= values.take(earlier, axis=1)
    return rises


def _divide(rises: Floats, seconds: Floats) -> Floats:
    earlier, later = _pairs(len(seconds))
    slopes: Floats = rises / (seconds[later] - seconds[earlier])
    return slopes


def _middle(n: Ints) -> Ints:
    """Return the index of the lower median among the sorted slopes of all pairs of n points."""
    middle: Ints = (n * (n - 1) // 2 - 1) // 2
    return middle


def _fit(seconds: Floats, values: Floats, n: Ints) -> tuple[Floats, ...]:
    """Return span, slope, low, high and p of each row; all rows have two points or more."""
    rises = _rises(values)
    slopes = _divide(rises, seconds)
    slopes.sort(axis=1)  # unknown ones go last
    pairs, deviation = n * (n - 1) // 2, np.sqrt(_variance(values, n))
    reach = _Z95 * deviation
    row = np.arange(len(values))
    lowest = np.maximum((pairs - reach) // 2 - 1, 0).astype(np.intp)
    highest = np.minimum(np.ceil((pairs + reach) / 2), pairs - 1).astype(np.intp)
    balance = np.abs(np.count_nonzero(rises > 0, axis=1) - np.count_nonzero(rises < 0, axis=1))
    z = np.divide(balance - 1, deviation, out=np.zeros(len(values)), where=balance > 0)
    p = np.array([erfc(each / sqrt(2)) for each in z.tolist()])
    return (
        _span(seconds, values),
        slopes[row, _middle(n)],
        slopes[row, lowest],
        slopes[row, highest],
        p,
    )


@cache
def _pairs(points: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the indexes of the earlier and of the later point of all pairs."""
    earlier, later = np.triu_indices(points, 1)
    return earlier, later


def _variance(values: Floats, n: Ints) -> Floats:
    """Return the variance of Mann–Kendall's S per row, reduced for every group of equal values."""
    # itself included; 0 if unknown
    equal = np.count_nonzero(values[:, :, None] == values[:, None, :], axis=2)
    ties = np.where(equal > 1, (equal - 1) * (2 * equal + 5), 0).sum(axis=1)
    variance: Floats = (n * (n - 1) * (2 * n + 5) - ties) / 18
    return variance


def _span(seconds: Floats, values: Floats) -> Floats:
    known = ~np.isnan(values)
    last = len(seconds) - 1 - np.argmax(known[:, ::-1], axis=1)
    span: Floats = seconds[last] - seconds[np.argmax(known, axis=1)]
    return span
