"""Commits next to a group's own records: where a rebalance stopped a partition, and where it went on.

Between two records of its group a key's first commit, its last, and the last that moved the offset tell all that the
pauses need. Commits and records of a group lie in one partition of the offsets topic, so their order is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from laggard.lag.arrays import Ints
from laggard.lag.commits import Bools, compact_commits


def edge_rows(
    records_of: Mapping[str, Sequence[int]],
    groups: Sequence[str | None],
    rows: Ints,
    key: Ints,
    is_commit: Bools,
    offset: Ints,
) -> tuple[Ints, Ints]:
    """Row numbers of the edges, ascending, and before each how many commits moved on that are no edges.

    `records_of`: row numbers of each group's records. `groups`: group by key number. The others are parallel, one
    element per commit or tombstone: its row number, key number, commit or tombstone, committed offset.
    """
    numbers = {group: number for number, group in enumerate(records_of)}
    group_of_key = np.array([numbers.get(group or "", -1) for group in groups], np.int64)
    group = group_of_key[key]
    near = np.flatnonzero((group >= 0) & is_commit)
    if not len(near):
        return near, near
    width = int(max(rows.max(), *(max(each) for each in records_of.values()))) + 1
    places = np.sort(np.array([numbers[name] * width + row for name, each in records_of.items() for row in each]))
    # how many records of all groups up to its own lie before a commit: another number between any two of them
    segment = np.searchsorted(places, group[near] * width + rows[near])
    _, piece = np.unique(key[near] * (len(places) + 1) + segment, return_inverse=True)
    found = compact_commits(rows[near], piece.astype(np.int64), is_commit[near], offset[near])
    has_moved = found.progress_row >= 0
    edges = np.unique(np.r_[found.first_row, found.last_row, found.progress_row[has_moved]])
    unseen = np.zeros(len(edges), np.int64)
    # of those that moved on, less the first and the last
    between = np.maximum(0, found.commits - found.noop_commits - 2)
    unseen[np.searchsorted(edges, found.progress_row[has_moved])] = between[has_moved]
    return edges, unseen
