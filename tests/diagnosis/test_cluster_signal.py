"""What the cluster's rules hear of a group's rebalances."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from diagnosis.groups import END, GENERATION, signals_of, topic_signals
from laggard.diagnosis.signals.cluster import cluster_signal


def rebalanced_at(*rows: tuple[str, int | None, float]) -> list[datetime]:
    """Ends that are recorded of generations given by kind, number and seconds before the window's
    end.
    """
    generations = [
        GENERATION
        | {"kind": kind, "generation": number, "record_timestamp": END - timedelta(seconds=ago)}
        for kind, number, ago in rows
    ]
    times: list[datetime] = cluster_signal(
        signals_of(topic_signals([100.0]), generations=generations), []
    )["rebalanced_at"]
    return times


def test_a_group_that_is_deleted_did_not_rebalance() -> None:
    assert rebalanced_at(("tombstone", None, 5)) == []


@pytest.mark.parametrize("first", [1, 8])
def test_the_first_members_of_a_group_come_one_after_the_other(first: int) -> None:
    ends = rebalanced_at(("sync", first, 30), ("sync", first + 1, 28))
    assert ends == ([] if first == 1 else [END - timedelta(seconds=ago) for ago in (30, 28)])
