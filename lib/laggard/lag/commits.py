"""Commits of a batch as the next state needs them: a row per group, topic and partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laggard.lag.arrays import Ints, sum_saturating
from laggard.lag.commit_gaps import MAX_GAP_MS

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Compacted:
    """One entry per distinct key, in order of key; row numbers point into the batch."""

    key: Ints
    last_row: Ints  # the newest record of the key: a commit, or a tombstone
    is_deleted: Bools
    follows_deletion: Bools  # a tombstone of the batch comes before its newest record, a commit
    first_row: Ints
    progress_row: Ints  # the newest commit above the one before it in the batch, or -1
    first_offset: Ints  # committed offset of the first record; valid where `starts_with_commit`
    starts_with_commit: Bools  # of an offset: not a tombstone, nor a negative number
    commits: Ints
    noop_commits: Ints  # commits that repeat the offset before them in the batch
    repeat_commits: Ints  # of these, those since the newest progress in the batch
    rewound_records: Ints
    gaps: Ints  # between two commits in the batch whose times are known
    gap_ms: Ints  # their sum
    gap_squares: Ints  # sum of their squares, ms²
    rewind_rows: Ints  # rows whose committed offset is below the commit before them
    rewind_from: Ints  # that commit's offset, parallel to `rewind_rows`


def compact_commits(
    rows: Ints, key: Ints, is_commit: Bools, offset: Ints, at_ms: Ints | None = None
) -> Compacted:
    """Reduce commits and tombstones, given in Kafka's order within each key.

    Parallel arrays, one element per record: its row number, key number, commit or tombstone,
    committed offset, and when it was committed, -1 unknown (without it no gap is known). A
    tombstone between two commits breaks the comparison: an offset set again after a deletion is no
    rewind. So does a negative offset, by which the broker has no offset either (OffsetFetch answers
    with it, and clients take every negative number for none).
    """
    order = np.argsort(key, kind="stable")
    rows, key, is_commit, offset = rows[order], key[order], is_commit[order], offset[order]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.zeros(0, np.int64)
    lasts = starts
    if len(key):
        lasts = np.r_[starts[1:], len(key)].astype(np.int64) - 1
    follows = np.zeros(len(key), bool)  # has a commit of the same key right before it, and is one
    has_offset = is_commit & (offset >= 0)
    follows[1:] = has_offset[1:] & has_offset[:-1] & (key[1:] == key[:-1])
    rise = np.zeros(len(key), np.int64)
    # the difference of two offsets that are not negative fits
    counted = np.where(has_offset, offset, 0)
    rise[1:] = np.where(follows[1:], counted[1:] - counted[:-1], 0)
    rewinds = np.flatnonzero(follows & (rise < 0))
    risen = np.where(rise > 0, np.arange(len(key)), -1)
    gap = np.zeros(len(key), np.int64)
    if at_ms is not None:
        at = at_ms[order]
        gap[1:] = at[1:] - at[:-1]
        is_gap = follows & (gap >= 0) & (gap <= MAX_GAP_MS) & (at >= 0)
        is_gap[1:] &= at[:-1] >= 0
    else:
        is_gap = np.zeros(len(key), bool)
    gap = np.where(is_gap, gap, 0)

    def total(values: Ints) -> Ints:
        return sum_saturating(values, starts)

    progress = starts
    if len(starts):
        progress = np.maximum.reduceat(risen, starts)
    noops = (follows & (rise == 0)).astype(np.int64)
    since_progress = noops * (np.arange(len(key)) > np.repeat(progress, lasts - starts + 1))
    return Compacted(
        key=key[starts],
        last_row=rows[lasts],
        is_deleted=~is_commit[lasts],
        follows_deletion=is_commit[lasts] & (total((~is_commit).astype(np.int64)) > 0),
        first_row=rows[starts],
        progress_row=np.where(progress >= 0, rows[np.maximum(progress, 0)], -1)
        if len(starts)
        else starts,
        first_offset=offset[starts],
        starts_with_commit=has_offset[starts],
        commits=total(is_commit.astype(np.int64)),
        noop_commits=total(noops),
        repeat_commits=total(since_progress),
        rewound_records=total(np.where(rise < 0, -rise, 0)),
        gaps=total(is_gap.astype(np.int64)),
        gap_ms=total(gap),
        gap_squares=total(gap * gap),
        rewind_rows=rows[rewinds],
        rewind_from=offset[rewinds] - rise[rewinds],
    )
