"""Offsets and their logs: a topic under another id, a transaction that hangs."""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from diagnosis.groups import END_MS, WINDOWS, signals_of, topic_signals
from laggard.diagnosis.rules.offsets import lso_stuck, topic_recreated

END = datetime.fromtimestamp(END_MS / 1000, timezone.utc)


def known_for(windows: int) -> np.ndarray[Any, np.dtype[np.object_]]:
    """Statuses of one partition that has had rows in so many windows."""
    return np.array([[""] * (WINDOWS - windows) + ["ok"] * windows], object)


@pytest.mark.parametrize(
    ("facts", "windows", "recreated_minutes_ago", "expected"),
    [
        ({"former_topic_id": "old"}, 1, None, 1),  # the change fell into a time without members
        ({"former_topic_id": "old"}, 2, None, 0),  # recorded a window ago
        ({}, 1, None, 0),  # new to the group
        ({"former_topic_id": "old"}, 1, 0.5, 1),  # its event says so
        ({"former_topic_id": "old"}, 1, 3.0, 0),  # its event has said so
    ],
)
def test_a_topic_that_returns_under_another_id_is_reported_once(
    facts: Mapping[str, Any], windows: int, recreated_minutes_ago: float | None, expected: int
) -> None:
    events = []
    if recreated_minutes_ago is not None:
        at = END - timedelta(minutes=recreated_minutes_ago)
        events = [{"kind": "topic_recreated", "topic": "orders", "partition": 0, "event_at": at}]
    topic = topic_signals([10.0], facts=dict(facts), history={"status": known_for(windows)})
    assert [each.code for each in topic_recreated.check(signals_of(topic, events=events))] == [
        "TOPIC_RECREATED"
    ] * expected


@pytest.mark.parametrize(
    ("windows", "committed", "moves", "codes"),
    [
        (15, 1000.0, 0, ["LSO_STUCK"]),
        (14, 1000.0, 0, []),  # no honest transaction lasts for a quarter of an hour
        (20, 500.0, 0, []),  # the group is not there yet
        (20, 1000.0, 1, []),  # the end of what is stable moves
    ],
)
def test_a_transaction_hangs_once_what_is_stable_has_stood_for_longer_than_any_may_last(
    windows: int, committed: float, moves: int, codes: list[str]
) -> None:
    rows = [
        {"last_stable_offset": 1000 + moves * at, "log_end_offset": 1000 + 600 * at}
        for at in range(windows)
    ]
    topic = topic_signals(
        [600.0 * windows],
        floor=100.0,
        history={"committed": committed},
        facts={"windows": {0: rows}},
    )
    assert [each.code for each in lso_stuck.check(signals_of(topic))] == codes
