"""Questions about rebalances and members, each with an answer by hand: Q7 to Q11."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from questions.kit import CLUSTER, Row, answer, ask, at, columns, rebalance, window


def test_q7_rebalances_by_cause_and_what_was_unnecessary(tmp_path: Path) -> None:
    rows = [
        rebalance(-5, cause="member_left", necessity="unnecessary_processing"),
        rebalance(-4, cause="member_left", necessity="unnecessary_heartbeat"),
        rebalance(-3, cause="partitions_added", necessity="planned"),
        rebalance(-2, cause="unknown", necessity="unknown"),
        rebalance(-1, cause="member_left", necessity="unknown"),
        rebalance(-1440, cause="member_join"),
        rebalance(-1, "blind", cause="unknown", necessity="unknown"),
        rebalance(-20000, "old"),
    ]
    names = (
        "group",
        "cause",
        "rebalances",
        "rebalances_of_day",
        "membership_share",
        "unnecessary_share",
    )
    found = answer(tmp_path, "Q7", {"rebalances": rows})
    assert columns(found, "date", *names, "necessity_unknown") == [
        (at(0).date(), "g", "member_left", 3, 5, 0.75, round(2 / 3, 9), 2),
        (at(0).date(), "g", "partitions_added", 1, 5, 0.75, round(2 / 3, 9), 2),
        (at(0).date(), "g", "unknown", 1, 5, 0.75, round(2 / 3, 9), 2),
        (at(0).date(), "blind", "unknown", 1, 1, None, None, 1),
        (at(-1440).date(), "g", "member_join", 1, 1, 1.0, 0.0, 0),
    ]
    assert columns(ask(tmp_path, "Q7", group="old", begin="2026-11-01"), "rebalances") == [(1,)]


def test_q8_what_rebalances_cost(tmp_path: Path) -> None:
    rows = [
        rebalance(
            -5,
            paused_partition_seconds=10.0,
            pause_max_seconds=4.0,
            records_delayed=100,
            records_replayed=1,
        ),
        rebalance(
            -4, paused_partition_seconds=5.0, pause_max_seconds=2.0, records_delayed=50, avoidable=3
        ),
        rebalance(-3, paused_partition_seconds=None, rebalance_seconds=None, avoidable=2),
        rebalance(-2, "dear", paused_partition_seconds=60.0, pause_max_seconds=30.0),
        rebalance(-1, "blind", rebalance_seconds=None),
    ]
    names = (
        "rank", "group", "rebalances", "rebalance_seconds", "paused_partition_seconds",
        "pause_max_seconds",
        "records_delayed", "records_replayed", "avoidable", "rebalances_unknown",
    )  # fmt: skip
    assert columns(answer(tmp_path, "Q8", {"rebalances": rows}), *names) == [
        (1, "dear", 1, 6.0, 60.0, 30.0, None, None, None, 0),
        (2, "g", 3, 12.0, 15.0, 4.0, 150, 1, 5, 1),
        (3, "blind", 1, None, None, None, None, None, None, 1),
    ]


def deploy(minute: int, group: str = "g", **values: Any) -> Row:
    """A deploy of two rebalances, r1 and r2, over a minute."""
    start = at(minute)
    return {
        "date": start.date(), "cluster": CLUSTER, "group": group, "started_at": start,
        "ended_at": at(minute + 1),
        "rebalances": 2, "rebalance_ids": ["r1", "r2"], "replaced": 3, "rebalance_mode": "eager",
        "static_share": 0.0,
        **values,
    }  # fmt: skip


def test_q9_what_deploys_cost_before_and_after_a_switch(tmp_path: Path) -> None:
    deploys = [
        deploy(-300, lag_before=120.0, peak_lag=500.0, lag_record_seconds=6000.0, lag_seconds=60.0),
        deploy(-200, lag_seconds=50.0, recovery_seconds=9.0),
        deploy(
            -100, rebalance_mode="cooperative", rebalance_ids=["r3"], rebalances=1, lag_seconds=7.0
        ),
        deploy(-50, rebalance_mode="cooperative", rebalance_ids=[], rebalances=0, static_share=1.0),
        deploy(-40, rebalance_mode=None, rebalance_ids=["r4"]),
        deploy(-30, "blind"),
        deploy(-90_000, "old"),
    ]
    rebalances = [
        rebalance(-300, rebalance_id="r1", paused_partition_seconds=8.0),
        rebalance(-299, rebalance_id="r2", paused_partition_seconds=4.0),
        rebalance(-100, rebalance_id="r3", paused_partition_seconds=2.0),
        rebalance(-40, rebalance_id="r4", paused_partition_seconds=2.0),
        rebalance(-30, "blind", rebalance_id="r1", paused_partition_seconds=1.0),
        rebalance(-30, "blind", rebalance_id="r2"),
    ]
    found = answer(tmp_path, "Q9", {"deploys": deploys, "rebalances": rebalances})
    names = (
        "group",
        "rebalances",
        "rebalance_mode",
        "is_switch",
        "paused_seconds",
        "lag_seconds_earlier",
    )
    assert columns(found, "started_at", *names) == [
        (at(-30), "blind", 2, "eager", None, None, None),
        (at(-300), "g", 2, "eager", None, 12.0, None),
        (at(-200), "g", 2, "eager", False, 12.0, 60.0),
        (at(-100), "g", 1, "cooperative", True, 2.0, 50.0),
        (at(-50), "g", 0, "cooperative", True, 0.0, 7.0),
        (at(-40), "g", 2, None, True, None, None),
    ]
    costs = ("lag_before", "peak_lag", "lag_record_seconds", "lag_seconds", "recovery_seconds")
    assert columns(found, *costs)[1:3] == [
        (120.0, 500.0, 6000.0, 60.0, None),
        (None, None, None, 50.0, 9.0),
    ]


def member(group: str, name: str, minute: float = -10, **values: Any) -> Row:
    moment = at(minute)
    return {
        "date": moment.date(), "cluster": CLUSTER, "group": group, "member_id": name,
        "record_timestamp": moment,
        "source_partition": 3, "source_offset": 1000 + int(minute), "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000, **values,
    }  # fmt: skip


def absence(
    group: str, seconds: float | None, minute: float, kind: str = "static_replacement"
) -> Row:
    moment = at(minute)
    return {
        "date": moment.date(), "cluster": CLUSTER, "group": group, "event_id": f"{group}{minute}",
        "kind": kind,
        "event_at": moment, "seconds": seconds,
    }  # fmt: skip


def test_q10_sessions_too_short_for_heartbeats_polls_or_restarts(tmp_path: Path) -> None:
    members = [
        member("fine", "a", group_instance_id="one"),
        member("short", "a", -20, session_timeout_ms=60_000),
        member("short", "a", session_timeout_ms=6_000),
        member("short", "b", session_timeout_ms=10_000),
        member("hangs", "a", session_timeout_ms=60_000, rebalance_timeout_ms=30_000),
        member("hangs", "b", session_timeout_ms=60_000),
        member("pods", "a", group_instance_id="pod-0"),
        member("pods", "b"),
        member("tight", "a", session_timeout_ms=44_000, group_instance_id="pod-0"),
        member("modern", "a", session_timeout_ms=None, rebalance_timeout_ms=None),
    ]
    # 1 … 20 s, one not known, and 50 s: of 21 known the 20th is the 95th percentile
    events = [
        absence("pods", seconds, -30 - (seconds or 0))
        for seconds in (*map(float, range(1, 21)), None)
    ]
    events += [
        absence("pods", 50.0, -8, "static_expired"),
        absence("pods", 900.0, -9, "became_empty"),
    ]
    events += [
        absence("fine", 30.0, -7),
        absence("fine", 9000.0, -60_000),
        absence("tight", 30.0, -7),
    ]
    found = answer(tmp_path, "Q10", {"group_members": members, "group_events": events})
    names = (
        "group",
        "members",
        "session_seconds",
        "is_session_short",
        "is_session_above_poll",
        "is_session_tight",
    )
    assert columns(found, *names) == [
        ("hangs", 2, 60.0, False, True, None),
        ("short", 2, 6.0, True, False, None),
        ("tight", 1, 44.0, False, False, True),
        ("fine", 1, 45.0, False, False, False),
        ("modern", 1, None, None, None, None),
        ("pods", 2, 45.0, False, False, False),
    ]
    away = ("static_members", "absences", "absence_p95_seconds", "static_expired")
    assert columns(found, *away)[-1] == (1, 22, 20.0, 1)
    assert columns(found, *away)[0] == (0, 0, None, 0)
    slower = {
        row["group"]: row["is_session_short"] for row in ask(tmp_path, "Q10", heartbeat_seconds="2")
    }
    assert slower == {
        "hangs": False,
        "pods": False,
        "short": False,
        "tight": False,
        "fine": False,
        "modern": None,
    }


def test_q11_moves_by_assignor(tmp_path: Path) -> None:
    rows = [
        rebalance(-3, assignor="range", moved=10, avoidable=6, moved_ratio=0.5),
        rebalance(-2, "h", assignor="range", moved=6, avoidable=2, moved_ratio=0.3),
        rebalance(-1, assignor="range", moved=None),
        rebalance(-1, "s", assignor="cooperative-sticky", moved=0, avoidable=0, moved_ratio=0.0),
        rebalance(-1, "modern", assignor=None),
    ]
    history = [
        window(-2, assignor="range", ping_pong=0.4),
        window(-1, "h", assignor="range", ping_pong=0.1),
        window(-1, "s", assignor="cooperative-sticky"),
        window(-1, "modern", assignor=None, ping_pong=0.3),
    ]
    names = (
        "assignor", "groups", "rebalances", "rebalances_unknown", "moved", "avoidable",
        "avoidable_share",
        "moved_ratio", "max_ping_pong", "groups_ping_pong",
    )  # fmt: skip
    assert columns(
        answer(tmp_path, "Q11", {"rebalances": rows, "group_history": history}), *names
    ) == [
        ("range", 2, 3, 1, 16, 8, 0.5, 0.4, 0.4, 1),
        ("cooperative-sticky", 1, 1, 0, 0, 0, None, 0.0, None, 0),
        (None, 1, 1, 1, None, None, None, None, 0.3, 1),
    ]
