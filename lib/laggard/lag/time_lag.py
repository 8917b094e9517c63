"""Age of the first unread record, from the log ends that were polled since the committed offset.

Interpolated only inside the one poll gap in which the record arrived; before the oldest pair it is
a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import TIMESTAMP, Ints, one_chunk

MAX_END_POINTS = 32
END_POINTS = pa.list_(pa.struct([("log_end_offset", pa.int64()), ("at", TIMESTAMP)]))
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class EndPoints:
    """Pairs (log end, time in µs) of many rows, oldest first.

    Row i has the pairs starts[i] … starts[i+1].
    """

    starts: Ints
    log_ends: Ints
    times: Ints

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    @property
    def rows(self) -> Ints:
        return np.repeat(np.arange(len(self.starts) - 1), self.lengths)


def read_end_points(column: Any) -> EndPoints:
    """Read the pairs of a column of type `END_POINTS`; a null row has no pairs."""
    array = one_chunk(column)
    flat = array.flatten()  # skips what null rows may hide
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = flat.field("log_end_offset").to_numpy(zero_copy_only=False)
    times = flat.field("at").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return EndPoints(
        np.r_[0, np.cumsum(lengths)].astype(np.int64), ends.astype(np.int64), times.astype(np.int64)
    )


def to_column(points: EndPoints) -> pa.Array:
    """Convert the points to a column, the inverse of `read_end_points`."""
    pairs = pa.StructArray.from_arrays(
        [pa.array(points.log_ends, pa.int64()), pa.array(points.times, TIMESTAMP)],
        fields=list(END_POINTS.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(points.starts, pa.int32()), pairs).cast(END_POINTS)


def add_point(
    points: EndPoints, is_usable: Bools, log_end: Ints, is_known: Bools, now_us: int
) -> EndPoints:
    """Return the pairs with this poll's log end added; an unchanged log end keeps two pairs only.

    `is_usable`: the row's old pairs belong to the same topic. A log that became shorter makes them
    unusable too.
    """
    lengths, last = points.lengths, points.starts[1:] - 1
    safe = np.maximum(last, 0)
    fell = is_known & (lengths > 0) & (_at(points.log_ends, safe) > log_end)
    keep_row = is_usable & ~fell
    is_flat = (
        keep_row
        & is_known
        & (lengths > 1)
        & (_at(points.log_ends, safe) == log_end)
        & (_at(points.log_ends, np.maximum(last - 1, 0)) == log_end)
    )
    is_kept = keep_row[points.rows].copy()
    is_kept[last[is_flat]] = False
    kept_lengths = np.bincount(points.rows[is_kept], minlength=len(lengths))
    new_lengths = kept_lengths + is_known
    starts = np.r_[0, np.cumsum(new_lengths)].astype(np.int64)
    ends, times = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    is_new = np.zeros(starts[-1], bool)
    is_new[starts[1:][is_known] - 1] = True
    ends[is_new], times[is_new] = log_end[is_known], now_us
    ends[~is_new], times[~is_new] = points.log_ends[is_kept], points.times[is_kept]
    return EndPoints(starts, ends, times)


def drop_passed(points: EndPoints, committed: Ints, has_commit: Bools) -> EndPoints:
    """Keep the pairs that time lag needs, from the last pair not beyond the committed offset.

    Without a commit keep the newest pair.
    """
    rows, lengths = points.rows, points.lengths
    passed = np.bincount(rows[points.log_ends <= committed[rows]], minlength=len(lengths))
    drop = np.where(has_commit, np.maximum(passed - 1, 0), np.maximum(lengths - 1, 0))
    index_in_row = np.arange(len(rows)) - points.starts[:-1][rows]
    return _select(points, index_in_row >= drop[rows])


def thin(points: EndPoints) -> EndPoints:
    """Keep at most 32 pairs a row.

    Drop the pair whose neighbours are closest in time, never the first or the last pair.
    """
    full = np.flatnonzero(points.lengths > MAX_END_POINTS)
    if not len(full):
        return points
    is_kept = np.ones(len(points.log_ends), bool)
    # one pair comes a tick, so a row has one too many; a row that has more gets there tick by tick
    for row in full if np.ptp(points.lengths[full]) else ():
        times = points.times[points.starts[row] : points.starts[row + 1]]
        is_kept[points.starts[row] + 1 + np.argmin(times[2:] - times[:-2])] = False
    if not np.ptp(points.lengths[full]):
        width = int(points.lengths[full[0]])
        times = points.times[points.starts[full][:, None] + np.arange(width)]
        is_kept[points.starts[full] + 1 + np.argmin(times[:, 2:] - times[:, :-2], axis=1)] = False
    return _select(points, is_kept)


@dataclass(frozen=True, slots=True)
class Age:
    """Age in seconds of the first unread record per row, its error bound, a lower-bound flag.

    The flag is True if the age is only a lower bound.
    """

    seconds: npt.NDArray[np.float64]
    error_seconds: npt.NDArray[np.float64]  # nan if censored
    is_censored: Bools


def age_of_first_unread(points: EndPoints, committed: Ints, now_us: int) -> Age:
    """Return the age of the first unread record, for rows with lag and `drop_passed` pairs.

    The pairs are as `drop_passed` leaves them.
    """
    first = np.minimum(points.starts[:-1], max(len(points.log_ends) - 1, 0))
    second = np.minimum(first + 1, max(len(points.log_ends) - 1, 0))
    low_end, low_at = _at(points.log_ends, first), _at(points.times, first)
    high_end, high_at = _at(points.log_ends, second), _at(points.times, second)
    is_censored = low_end > committed
    share = (committed - low_end) / np.maximum(high_end - low_end, 1)
    appended_at = np.where(is_censored, low_at, low_at + share * (high_at - low_at))
    return Age(
        (now_us - appended_at) / 1e6,
        np.where(is_censored, np.nan, (high_at - low_at) / 1e6),
        is_censored,
    )


def log_end_at(end_points: Any, at: Any) -> pa.Array:
    """Return the log end at a time per row, on the line between the polls around it.

    Beyond the polls the nearest poll's log end counts.

    `end_points`: column of that type. `at`: timestamps. Null without a pair or a time.
    """
    points = read_end_points(end_points)
    times = pc.fill_null(pc.cast(at, pa.int64()), 0).to_numpy().astype(np.int64)
    is_known = pc.is_valid(at).to_numpy(zero_copy_only=False).astype(bool) & (points.lengths > 0)
    rows = points.rows
    passed = np.bincount(rows[points.times <= times[rows]], minlength=len(times))
    last = np.maximum(points.lengths - 1, 0)
    low = np.minimum(points.starts[:-1] + np.clip(passed - 1, 0, last), max(len(rows) - 1, 0))
    high = np.minimum(points.starts[:-1] + np.clip(passed, 0, last), max(len(rows) - 1, 0))
    low_at, high_at = _at(points.times, low), _at(points.times, high)
    share = np.clip((times - low_at) / np.maximum(high_at - low_at, 1), 0, 1)
    low_end, high_end = _at(points.log_ends, low), _at(points.log_ends, high)
    risen = np.rint(share * (high_end - low_end)).astype(np.int64)  # only the rise is rounded
    return pa.array(low_end + risen, mask=~is_known)


def _at(values: Ints, places: Ints) -> Ints:
    if len(values):
        return values[places]
    return np.zeros(len(places), np.int64)


def _select(points: EndPoints, is_kept: Bools) -> EndPoints:
    lengths = np.bincount(points.rows[is_kept], minlength=len(points.lengths))
    return EndPoints(
        np.r_[0, np.cumsum(lengths)].astype(np.int64),
        points.log_ends[is_kept],
        points.times[is_kept],
    )
