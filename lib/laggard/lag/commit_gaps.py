"""Commit interval of a partition: its newest gaps between commits, and their median.

Of a group the gaps are counted and summed, and their squares: enough to tell a clock from work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import Ints, add_saturating, one_chunk, sum_groups

MAX_GAPS = 20
MIN_GAPS = 3  # fewer give no commit interval
MAX_GAP_MS = 6 * 3_600_000  # a longer one is a stop
GAPS = pa.list_(pa.int32())
# of a batch's rows; of groups with _total
SUMS = ("commit_gaps", "commit_gap_ms", "commit_gap_squares")


@dataclass(frozen=True, slots=True)
class NewCommits:
    """Commits of a batch per row: their number and three times in ms, -1 if unknown.

    The times are those of the first, the last, and the one before the batch.
    """

    commits: Ints
    first_ms: Ints
    last_ms: Ints
    before_ms: Ints


def add_gaps(column: Any, intervals: Any, new: NewCommits) -> tuple[pa.Array, pa.Array]:
    """Return the columns commit_gaps (ms) and commit_interval_seconds after a batch.

    Between the first and the last commit of a batch only the mean gap is known; it counts as often
    as there are gaps.
    """
    known = (new.commits > 0) & (new.first_ms >= 0) & (new.last_ms >= new.first_ms)
    border = np.where(known & (new.before_ms >= 0), new.first_ms - new.before_ms, -1)
    has_border = (border >= 0) & (border <= MAX_GAP_MS)
    spread = new.last_ms - new.first_ms
    inner = np.where(known, np.minimum(new.commits - 1, MAX_GAPS), 0)
    mean = np.where(inner > 0, spread // np.maximum(new.commits - 1, 1), 0)
    inner = np.where(mean <= MAX_GAP_MS, inner, 0)
    rows = np.flatnonzero((inner > 0) | has_border)
    before = one_chunk(column)
    if not len(rows):
        return before, one_chunk(intervals)
    old = before.take(pa.array(rows))
    gaps = _append(old, np.where(has_border, border, -1)[rows], inner[rows], mean[rows])
    # where nothing came the old list stands: one look-up over both
    index = np.arange(len(before))
    index[rows] = len(before) + np.arange(len(rows))
    lists = pa.concat_arrays([before, gaps]).take(pa.array(index))
    medians = pa.concat_arrays([one_chunk(intervals), _lower_median(gaps)]).take(pa.array(index))
    return lists, medians


def sum_gaps(new: NewCommits, inner: Mapping[str, Any]) -> dict[str, pa.Array]:
    """Return `SUMS` per row: sums inside the batch, and the gap at its border.

    `inner` has the sums inside, null if not read live.
    """
    border = np.where(
        (new.commits > 0) & (new.first_ms >= 0) & (new.before_ms >= 0),
        new.first_ms - new.before_ms,
        -1,
    )
    has_border = (border >= 0) & (border <= MAX_GAP_MS)
    border = np.where(has_border, border, 0)
    at_border = dict(zip(SUMS, (has_border.astype(np.int64), border, border * border), strict=True))
    return {
        name: add_saturating(pc.fill_null(inner[name], 0), pa.array(at_border[name]))
        for name in SUMS
    }


def add_to_groups(prior: pa.Table, groups: Any, rows: pa.Table) -> dict[str, Any]:
    """Return the `SUMS` columns with _total of these groups: prior values plus the rows' values.

    The columns are parallel to `prior`.
    """
    sums = sum_groups(rows, ["group"], SUMS)
    index = one_chunk(pc.index_in(groups, value_set=one_chunk(sums["group"])))
    return {
        f"{name}_total": add_saturating(
            pc.fill_null(prior[f"{name}_total"], 0),
            pc.fill_null(one_chunk(sums[f"{name}_sum"]).take(index), 0),
        )
        for name in SUMS
    }


def _append(old: pa.Array, border: Ints, inner: Ints, mean: Ints) -> pa.Array:
    """Return the newest gaps of each row: old gaps, the border gap (-1: none), inner gaps.

    Only some of the old gaps are kept.
    """
    inner = np.minimum(inner, MAX_GAPS)
    has_border = (border >= 0) & (inner < MAX_GAPS)
    held = old.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    kept_counts = np.minimum(held, MAX_GAPS - inner - has_border)
    ends = np.cumsum(held)
    starts = np.r_[0, np.cumsum(kept_counts + has_border + inner)]
    # the inner ones; the others are put in their places
    values = np.repeat(mean, kept_counts + has_border + inner)
    flat = old.flatten().to_numpy(zero_copy_only=False)
    offset_in_row = np.arange(kept_counts.sum()) - np.repeat(
        np.cumsum(kept_counts) - kept_counts, kept_counts
    )
    values[np.repeat(starts[:-1], kept_counts) + offset_in_row] = flat[
        np.repeat(ends - kept_counts, kept_counts) + offset_in_row
    ]
    values[(starts[:-1] + kept_counts)[has_border]] = border[has_border]
    return pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), pa.array(values, pa.int32())
    ).cast(GAPS)


def gap_seconds(column: Any, share: float) -> pa.Array:
    """Return the percentile of each row's gaps in seconds, by nearest rank; null without a gap."""
    gaps = one_chunk(column)
    lengths = gaps.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    table = np.full((len(lengths), MAX_GAPS), np.iinfo(np.int64).max)
    table[np.arange(MAX_GAPS) < lengths[:, None]] = gaps.flatten().to_numpy(zero_copy_only=False)
    rank = np.maximum(np.ceil(share * lengths).astype(np.int64) - 1, 0)
    return pa.array(
        np.sort(table, axis=1)[np.arange(len(lengths)), rank] / 1000,
        pa.float64(),
        mask=lengths == 0,
    )


def _lower_median(gaps: pa.Array) -> pa.Array:
    """Return the lower median of each row's gaps in seconds; null below `MIN_GAPS` gaps."""
    enough = pc.greater_equal(gaps.value_lengths(), MIN_GAPS)
    return pc.if_else(enough, gap_seconds(gaps, 0.5), pa.scalar(None, pa.float64()))
