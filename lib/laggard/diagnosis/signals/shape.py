"""Shape of the lag over the partitions of a topic: indices of concentration, and a name that holds for some windows.

Outlier tests by mean and deviation have no place here: of n values none lies further than √(n−1) deviations out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Shape

NONE, SINGLE, SPREAD, MIXED, CONCENTRATED = "none", "single", "spread", "mixed", "concentrated"
_SHAPE_FEW = fixed("shape_few", 4, "partitions up to which noise alone looks concentrated too often")
_SHAPE_DECILE_MIN = fixed("shape_decile_min", 10, "partitions from which the top decile is a group of its own")
_SHAPE_ALIKE = fixed("shape_alike", 0.5, "Jaccard index of two top sets")
_SHAPE_TOP_TENTHS = fixed("shape_top_tenths", 7, "tenths of the lag that the top partitions hold")
_SPREAD_WINDOWS = fixed("spread_windows", 2, "windows that are spread")
_SPREAD_AMONG = fixed("spread_among", 3, "newest windows, among which they are")


def measure(values: Floats, partitions: npt.NDArray[np.int64]) -> Shape:
    """The numbers of a shape, not yet named; NaN below two known values or without lag.

    Both arguments are [n]; partitions with an unknown value are left out, and less than nothing counts as nothing.
    """
    known = ~np.isnan(values)
    numbers, lags = partitions[known], np.maximum(values[known], 0.0)
    n, total = len(lags), float(lags.sum())
    if total <= 0:
        return Shape(NONE, NONE)
    order = np.lexsort((numbers, -lags))  # largest first, equal ones by partition
    lags = lags[order]  # sums of whole records are exact, sums of shares are not: thresholds are met exactly
    in_top = 1 + int(np.argmax(10 * np.cumsum(lags) >= _SHAPE_TOP_TENTHS * total))
    top = tuple(numbers[order[:in_top]].tolist())
    if n < 2:
        return Shape(NONE, NONE, top=top)
    shares = lags[lags > 0] / total
    effective = total**2 / float(lags @ lags)
    return Shape(
        NONE,
        NONE,
        gini=float((n - 1 - 2 * np.arange(n)) @ lags) / ((n - 1) * total),
        n_eff=effective,
        rho=effective / n,
        top1_share=float(lags[0]) / total,
        top_decile_share=float(lags[: -(-n // 10)].sum()) / total,
        entropy=max(0.0, -float(shares @ np.log(shares)) / float(np.log(n))),
        top=top,
    )


def raw_shape(values: Floats, partitions: npt.NDArray[np.int64], *, is_material: bool, parameters: Parameters) -> Shape:
    """The shape by this window alone: `raw` and `name` are the same."""
    shape = measure(values, partitions)
    name = _verdict(shape, int(np.count_nonzero(~np.isnan(values))), parameters) if is_material else NONE
    return replace(shape, raw=name, name=name)


def _verdict(shape: Shape, n: int, parameters: Parameters) -> str:
    """First match of: single, concentrated, spread, mixed."""
    if n == 1:
        return SINGLE
    if np.isnan(shape.gini):
        return NONE
    if shape.gini >= parameters.shape_gini_concentrated or (
        n >= _SHAPE_DECILE_MIN and shape.top_decile_share >= parameters.shape_top_decile
    ):
        return CONCENTRATED
    if shape.gini <= parameters.shape_gini_spread and shape.rho >= parameters.shape_rho_spread:
        return SPREAD
    return MIXED


def persist(raws: Sequence[Shape], partitions_total: int, parameters: Parameters) -> str:
    """The name that lasts, from the raw shapes of adjacent windows, the newest last; mixed until one is earned.

    Concentrated takes a run of windows whose top partitions are those of the newest; spread takes two of three,
    so that one odd window among them changes nothing.
    """
    if not raws or raws[-1].raw in {NONE, SINGLE}:
        return raws[-1].raw if raws else NONE
    needed = parameters.shape_windows_few if partitions_total <= _SHAPE_FEW else parameters.shape_windows
    run = raws[-needed:]
    is_run = len(run) == needed and all(each.raw == CONCENTRATED for each in run)
    if is_run and all(_is_alike(each, raws[-1]) for each in run):
        return CONCENTRATED
    return SPREAD if sum(each.raw == SPREAD for each in raws[-_SPREAD_AMONG:]) >= _SPREAD_WINDOWS else MIXED


def _is_alike(one: Shape, other: Shape) -> bool:
    """True if two concentrated windows have the same partition on top, or several hot ones that mostly agree."""
    if one.top[0] == other.top[0]:
        return True
    a, b = set(one.top), set(other.top)
    return min(len(a), len(b)) > 1 and len(a & b) >= _SHAPE_ALIKE * len(a | b)
