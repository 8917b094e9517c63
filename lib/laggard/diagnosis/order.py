"""Medians and percentiles that are values of the sample, so that every platform finds the same."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan


def lower_median(values: Iterable[float]) -> float:
    """The middle one of the known values, of two the lower; NaN without any."""
    known = sorted(value for value in values if not isnan(value))
    return known[(len(known) - 1) // 2] if known else nan


def percentile(values: Iterable[float], percent: int) -> float:
    """By nearest rank, of the known values; NaN without any."""
    known = sorted(value for value in values if not isnan(value))
    return known[-(-percent * len(known) // 100) - 1] if known else nan
