"""Commits next to group records, against a search that goes through every commit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from laggard.stream.tick.decode import edge_rows
from laggard.stream.tick.decoded import of_kind
from stream.simulation import commit, decoded, generation

# a record: its group, and the key it commits with its offset, or None for a record of the group
# itself
COMMIT = st.tuples(st.integers(0, 2), st.tuples(st.integers(0, 2), st.integers(0, 4)) | st.none())


def edges_by_hand(log: list[tuple[int, tuple[int, int] | None]]) -> tuple[list[int], list[int]]:
    """Rows, and before the last rise how often the offset had changed already; a fall after it
    counts as well.
    """
    found, unseen = set(), {}
    touched = {group for group, key in log if key is None}
    for group in touched:
        pieces: list[dict[int, list[tuple[int, int]]]] = [{}]
        for row, (owner, key) in enumerate(log):
            if owner == group and key is None:
                pieces.append({})
            elif owner == group and key is not None:
                pieces[-1].setdefault(key[0], []).append((row, key[1]))
        for piece in pieces:
            for commits in piece.values():
                found |= {commits[0][0], commits[-1][0]}
                rises = [
                    row
                    for (row, offset), (_, before) in zip(commits[1:], commits, strict=False)
                    if offset > before
                ]
                found |= set(rises[-1:])
                changes = sum(
                    offset != before
                    for (_, offset), (_, before) in zip(commits[1:], commits, strict=False)
                )
                unseen |= dict.fromkeys(rises[-1:], changes - 1)
    return sorted(found), [unseen.get(row, 0) for row in sorted(found)]


@given(st.lists(COMMIT, max_size=30))
def test_edges_are_first_last_and_last_risen_between_two_records(
    log: list[tuple[int, tuple[int, int] | None]],
) -> None:
    commits = [(row, group, key) for row, (group, key) in enumerate(log) if key is not None]
    keys = sorted({(group, key[0]) for _, group, key in commits})
    records: dict[str, list[int]] = {}
    for row, (group, key) in enumerate(log):
        if key is None:
            records.setdefault(f"g{group}", []).append(row)
    if not records or not commits:
        return
    found, unseen = edge_rows(
        records,
        [f"g{group}" for group, _ in keys],
        np.array([row for row, _, _ in commits], np.int64),
        np.array([keys.index((group, key[0])) for _, group, key in commits], np.int64),
        np.ones(len(commits), bool),
        np.array([key[1] for _, _, key in commits], np.int64),
    )
    assert (found.tolist(), unseen.tolist()) == edges_by_hand(log)


def test_a_batch_without_group_records_has_no_edges() -> None:
    assert of_kind(decoded([commit(1), commit(2)]), "edge").num_rows == 0


def test_an_edge_is_a_commit_with_its_place_and_time() -> None:
    rows = decoded([commit(5), generation(1, {"m": ("t",)}), commit(7)], first_offset=10)
    found = [
        (row["source_offset"], row["committed_offset"], row["topic"])
        for row in of_kind(rows, "edge").to_pylist()
    ]
    assert found == [(10, 5, "t"), (12, 7, "t")]


def test_an_edge_counts_the_commits_that_are_none_since_the_one_before() -> None:
    rows = decoded([generation(1, {"m": ("t",)}), *(commit(offset) for offset in (5, 7, 7, 8, 9))])
    found = [(row["committed_offset"], row["unseen"]) for row in of_kind(rows, "edge").to_pylist()]
    assert found == [(5, 0), (9, 2)]
