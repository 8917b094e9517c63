"""Share groups: members and state, and no lag, as they commit no offsets here."""

from __future__ import annotations

from rebalance.lives import SHARE_LIFE
from rebalance.modern import ENDS, SHARE, folded, rows_of, states


def test_a_share_group_is_stable_or_empty() -> None:
    shown = [state for state in states(SHARE, SHARE_LIFE) if state is not None]
    assert set(shown) == {"Stable", "Empty"}
    assert shown[-1] == "Empty"


def test_a_share_group_has_members_and_no_lag() -> None:
    job = folded(SHARE_LIFE[:12])
    row = job.groups["g"]
    assert (row["group_type"], row["protocol_type"], row["rebalance_mode"]) == (
        "share",
        "share",
        None,
    )
    assert (row["members"], row["static_members"], row["topics"]) == (2, 0, ["t"])
    assert (row["lag"], row["lag_known"], row["partitions_total"]) == (None, None, 0)
    assert job.rows == []  # no partition it will ever commit


def test_a_partition_with_two_owners_counts_once() -> None:
    row = rows_of(folded(SHARE_LIFE[:12]), "generations")[1]
    assert (row["partitions_assigned"], row["partitions_unassigned"]) == (2, 0)


def test_a_share_group_names_topics_that_no_poll_shows() -> None:
    deleted = "x" * 21 + "A"  # the id in the group's own record
    job = folded([*SHARE_LIFE[:5], SHARE.current("a", 1, {deleted: [0]})], ends=ENDS[2:])
    (row,) = rows_of(job, "group_members")
    assert row["assigned"] == [{"topic": "t", "partition": 0}]
    assert (row["pending_revocation"], row["rebalance_timeout_ms"]) == (None, None)


def test_a_deleted_share_group_is_gone() -> None:
    job = folded(SHARE_LIFE, [])
    assert (job.groups, job.events()) == ({}, ["group_created", "group_deleted"])
