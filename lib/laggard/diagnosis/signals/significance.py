"""Lag that counts: its floor, and its shape over the partitions.

Below the floor, lag is only the records between two commits.

All functions take arrays [partitions, windows] with NaN if a value is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, Names, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Flags, Shape
from laggard.rebalance.parameters import DEFAULTS

_FLOOR_INTERVALS = fixed(
    "floor_intervals", DEFAULTS.floor_intervals, "commit intervals of arrivals, and one record"
)
# as the defaults have it: the ticks themselves are not in the history
TICK_SHARE = fixed("tick_share", 1 / 6, "of a window")
ENVELOPE_TICKS = fixed(
    "envelope_ticks", 2, "ticks of arrivals, which the log end at a commit may be off by"
)
ENVELOPE_INTERVALS = fixed(
    "envelope_intervals", 0.25, "commit intervals of arrivals, if that is more"
)
_EVEN_INTERVALS = fixed(
    "even_intervals", 1.25, "commit intervals, up to which the longest gap is one of a timer"
)
_EVEN_WINDOWS = fixed("even_windows", 15, "windows in which they must have been even")
_BATCH_GAPS = fixed("batch_gaps", 1.5, "times the longest gap, of commits that come after batches")
_COUNT_DEVIATIONS = fixed(
    "count_deviations",
    3,
    "standard deviations by which a count of records that come at random varies",
)
_MATERIAL_SLO_SHARE = fixed("material_slo_share", 0.2, "of the time-lag objective")
_HIDDEN_INTERVALS = fixed("hidden_intervals", 2.0, "commit intervals for which commits are hidden")


@dataclass(frozen=True, slots=True)
class Floors:
    """Records below which lag is what commits make of it, [partitions, windows] both."""

    momentary: Floats  # of the lag at any time
    at_commit: Floats  # of what a commit leaves, which is next to nothing where the reader keeps up


@dataclass(frozen=True, slots=True)
class Left:
    """Lag of each window and the floor that it has to exceed, [partitions, windows] each.

    It is the lag at the newest commit while that is fresh: what arrived since tells when the next
    commit comes.
    """

    newest: Floats  # at the end of the window
    least: Floats  # smallest in it
    floor: Floats


def floors(
    frame: TopicFrame, arrival: Floats, window_seconds: int, parameters: Parameters
) -> Floors:
    """Return the lag that the commit interval alone causes.

    It is twice the arrivals of one interval, and one record.

    Commits of batches that take now long, now short are as far apart as the longest that was seen
    and was no stall; more arrives between them as soon as more arrives at all. `arrival` is a mean
    over some windows.

    A timer commits at even gaps, and leaves what came in a batch, which is short beside them.
    Where gaps are uneven, commits come after batches, and leave what came in the longest. Counts
    of records that come at random scatter.
    """
    known = frame["interval"]
    interval = np.where(np.isnan(known), window_seconds, known)
    longest = np.maximum.accumulate(
        _batches(frame, parameters.stall_ci * interval, window_seconds), axis=1
    )
    rate = np.fmax(arrival, frame["arrival"])
    momentary: Floats = _FLOOR_INTERVALS * rate * np.maximum(interval, longest) + 1.0
    is_seen = np.cumsum(~np.isnan(known), axis=1) >= _EVEN_WINDOWS
    # members of a group are the same program: one that commits after batches shows what all of them
    # do
    is_even = is_seen & (np.fmax.reduce(longest / interval, axis=0, initial=0.0) <= _EVEN_INTERVALS)
    seconds = np.maximum(
        ENVELOPE_TICKS * TICK_SHARE * window_seconds, ENVELOPE_INTERVALS * interval
    )
    records = rate * np.where(is_even, seconds, _BATCH_GAPS * np.maximum(interval, longest))
    return Floors(
        momentary, np.fmin(momentary, records + _COUNT_DEVIATIONS * np.sqrt(records) + 1.0)
    )


def _batches(frame: TopicFrame, limit: Floats, window_seconds: int) -> Floats:
    """Return seconds, [partitions, windows], since the offset last moved at each window's end.

    The offset has stood as it does in a batch.

    0 in a silence that lasted as long as a stall before it ended, or in which the partition
    changed its owner: it says nothing about how long a batch takes. One that lasts on may be one
    until it is as long, from when somebody owned the partition.
    """
    frozen = frame["frozen"]
    count = np.arange(frozen.shape[1])
    goes_on = frozen[:, 1:] >= window_seconds  # into the next window
    is_end = np.append(~goes_on, np.full((len(frozen), 1), fill_value=True), axis=1)
    end = np.minimum.accumulate(np.where(is_end, count, count[-1])[:, ::-1], axis=1)[:, ::-1]
    # before the third gap nothing says what is long
    has_ended = (end < count[-1]) & ~np.isnan(frame["interval"])
    lasted = np.take_along_axis(frozen, end, axis=1)
    batches = np.where(np.where(has_ended, lasted, frozen) < limit, frozen, 0.0)
    rows = np.flatnonzero((batches > window_seconds).any(axis=1))
    names = _last_known(frame.named("owner")[rows], frame.named("status")[rows] != "")
    is_change = names[:, 1:] != names[:, :-1]  # names take long to compare
    for row, owners, changes in zip(rows.tolist(), names, is_change, strict=True):
        if not changes.any():
            continue
        begin = end[row] - lasted[row] / window_seconds
        changed = np.maximum.accumulate(np.where(np.append(False, changes), count, -1))
        batches[row] = np.where(has_ended[row] & (changed[end[row]] > begin), 0.0, batches[row])
        nobody = int(np.flatnonzero(owners == "")[-1]) if (owners == "").any() else -1
        is_left = (end[row] == count[-1]) & (nobody > begin)  # in a silence that lasts on
        since = np.maximum(0, count - nobody) * float(window_seconds)
        batches[row] = np.where(is_left, np.fmin(batches[row], since), batches[row])
    return batches


def _last_known(names: Names, is_known: Flags) -> Names:
    """Return names [n, windows] with each unknown name replaced by the name before.

    Names before the first known name are replaced by that first name.
    """
    if is_known.all():
        return names
    count = np.arange(names.shape[1])
    first = np.argmax(is_known, axis=1)[:, None]
    places = np.maximum.accumulate(np.where(is_known, count, first), axis=1)
    found: Names = np.take_along_axis(names, places, axis=1)
    return found


def lag_left(frame: TopicFrame, floor: Floors, at_commits: Floats) -> Left:
    """Return the unread records of each window.

    `at_commits` is the newest lag at a commit, NaN if it is old.
    """
    is_old = np.isnan(at_commits)
    if not is_old.any():
        newest, least = (np.minimum(lag, at_commits) for lag in (frame["lag"], frame["lag_min"]))
        return Left(newest, least, floor.at_commit)
    newest, least = (
        np.where(is_old, lag, np.minimum(lag, at_commits))
        for lag in (frame["lag"], frame["lag_min"])
    )
    return Left(newest, least, np.where(is_old, floor.momentary, floor.at_commit))


def material(frame: TopicFrame, left: Left, slo_seconds: float, parameters: Parameters) -> Flags:
    """Return where lag is above the floor; with an SLO it must also be a fifth of it in time."""
    found: Flags = left.newest > np.fmax(left.floor, parameters.min_lag_records)
    if slo_seconds:
        found = found & ~(frame["time_lag"] <= _MATERIAL_SLO_SHARE * slo_seconds)
    return found


def unseen(frame: TopicFrame, group: GroupFrame) -> Flags:
    """Return windows at whose end commits of more than one interval are hidden.

    The position is then unknown.
    """
    if group.hidden is None:
        return np.zeros(frame["lag"].shape, np.bool_)
    interval = frame["interval"][:, -1:]
    rhythm = _HIDDEN_INTERVALS * np.where(np.isnan(interval), group.window_seconds, interval)
    found: Flags = group.hidden.least > rhythm
    return found


# outlier tests by mean and deviation have no place here: of n values none lies further than √(n−1)
# deviations out
NONE, SINGLE, SPREAD, MIXED, CONCENTRATED = "none", "single", "spread", "mixed", "concentrated"
_SHAPE_FEW = fixed(
    "shape_few", 4, "partitions up to which noise alone looks concentrated too often"
)
_SHAPE_DECILE_MIN = fixed(
    "shape_decile_min", 10, "partitions from which the top decile is a group of its own"
)
_SHAPE_ALIKE = fixed("shape_alike", 0.5, "Jaccard index of two top sets")
_SHAPE_TOP_TENTHS = fixed("shape_top_tenths", 7, "tenths of the lag that the top partitions hold")
_SPREAD_WINDOWS = fixed("spread_windows", 2, "windows that are spread")
_SPREAD_AMONG = fixed("spread_among", 3, "newest windows, among which they are")


def measure(values: Floats, partitions: npt.NDArray[np.int64]) -> Shape:
    """Return the measures of a shape without its name; NaN below two known values or without lag.

    Both arguments are [n]; partitions with an unknown value are left out, and less than nothing
    counts as nothing.
    """
    known = ~np.isnan(values)
    numbers, lags = partitions[known], np.maximum(values[known], 0.0)
    n, total = len(lags), float(lags.sum())
    if total <= 0:
        return Shape(NONE, NONE)
    order = np.lexsort((numbers, -lags))  # largest first, equal ones by partition
    # sums of whole records are exact, sums of shares are not: thresholds are met exactly
    lags = lags[order]
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


def raw_shape(
    values: Floats, partitions: npt.NDArray[np.int64], *, is_material: bool, parameters: Parameters
) -> Shape:
    """Return the shape by this window alone: `raw` and `name` are the same."""
    shape = measure(values, partitions)
    name = (
        _verdict(shape, int(np.count_nonzero(~np.isnan(values))), parameters)
        if is_material
        else NONE
    )
    return replace(shape, raw=name, name=name)


def _verdict(shape: Shape, n: int, parameters: Parameters) -> str:
    """Return the first that matches of: single, concentrated, spread, mixed."""
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
    """Return the name that adjacent windows confirm by their raw shapes, newest last.

    It is mixed until a name is confirmed.

    Concentrated takes a run of windows whose top partitions are those of the newest; spread takes
    two of three, so that one odd window among them changes nothing.
    """
    newest = raws[-1] if raws else Shape(NONE, NONE)
    if newest.raw in {NONE, SINGLE}:
        return newest.raw
    needed = (
        parameters.shape_windows_few if partitions_total <= _SHAPE_FEW else parameters.shape_windows
    )
    run = [each for each in raws[-needed:] if each.raw == CONCENTRATED]
    if len(run) == needed and all(_is_alike(each, newest) for each in run):
        return CONCENTRATED
    return (
        SPREAD
        if sum(each.raw == SPREAD for each in raws[-_SPREAD_AMONG:]) >= _SPREAD_WINDOWS
        else MIXED
    )


def _is_alike(one: Shape, other: Shape) -> bool:
    """Return True if two concentrated windows have the same top partition.

    It is also true if they have several hot partitions that mostly agree.
    """
    if one.top[0] == other.top[0]:
        return True
    a, b = set(one.top), set(other.top)
    return min(len(a), len(b)) > 1 and len(a & b) >= _SHAPE_ALIKE * len(a | b)
