"""Commits of a batch reduced to one entry per key."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from laggard.lag.commits import Compacted, compact_commits

Event = tuple[int, int | None]  # key, committed offset or None for a tombstone


def compact(events: list[Event]) -> Compacted:
    keys = np.array([key for key, _ in events], np.int64)
    is_commit = np.array([offset is not None for _, offset in events], bool)
    offsets = np.array([offset or 0 for _, offset in events], np.int64)
    return compact_commits(np.arange(len(events)), keys, is_commit, offsets)


class Naive:
    """One key, record by record."""

    def __init__(self, row: int, offset: int | None) -> None:
        self.last_row, self.last, self.first = row, offset, offset
        self.commits, self.noops, self.rewound = int(offset is not None), 0, 0
        self.rewinds: list[tuple[int, int]] = []

    def add(self, row: int, offset: int | None) -> None:
        if offset is not None:
            self.commits += 1
            if self.last is not None:
                self.noops += offset == self.last
                self.rewound += max(0, self.last - offset)
                self.rewinds += [(row, self.last)] if offset < self.last else []
        self.last_row, self.last = row, offset


def fold(events: list[Event]) -> dict[int, Naive]:
    found: dict[int, Naive] = {}
    for row, (key, offset) in enumerate(events):
        if key in found:
            found[key].add(row, offset)
        else:
            found[key] = Naive(row, offset)
    return dict(sorted(found.items()))


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(0, 4))))
def test_compaction_is_the_fold_of_the_records_one_by_one(events: list[Event]) -> None:
    compacted, naive = compact(events), fold(events)
    assert compacted.key.tolist() == list(naive)
    assert compacted.last_row.tolist() == [each.last_row for each in naive.values()]
    assert compacted.is_deleted.tolist() == [each.last is None for each in naive.values()]
    assert compacted.starts_with_commit.tolist() == [
        each.first is not None for each in naive.values()
    ]
    assert [
        offset if starts else None
        for offset, starts in zip(
            compacted.first_offset.tolist(), compacted.starts_with_commit.tolist(), strict=True
        )
    ] == [each.first for each in naive.values()]
    assert compacted.commits.tolist() == [each.commits for each in naive.values()]
    assert compacted.noop_commits.tolist() == [each.noops for each in naive.values()]
    assert compacted.rewound_records.tolist() == [each.rewound for each in naive.values()]
    pairs = zip(compacted.rewind_rows.tolist(), compacted.rewind_from.tolist(), strict=True)
    assert list(pairs) == [pair for each in naive.values() for pair in each.rewinds]


def test_an_offset_set_again_after_a_deletion_is_no_rewind() -> None:
    found = compact([(0, 100), (0, None), (0, 10)])
    assert (found.rewound_records.tolist(), found.is_deleted.tolist(), found.commits.tolist()) == (
        [0],
        [False],
        [2],
    )


def test_no_records_give_no_entries() -> None:
    assert compact([]).key.tolist() == []
