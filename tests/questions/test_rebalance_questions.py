"""Questions about rebalances and members, each with an answer by hand: Q7 to Q11."""

from __future__ import annotations

from datetime import timedelta
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
    names = ("group", "cause", "rebalances", "rebalances_of_day", "membership_share", "unnecessary_share")
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
        rebalance(-5, paused_partition_seconds=10.0, pause_max_seconds=4.0, records_delayed=100, records_replayed=1),
        rebalance(-4, paused_partition_seconds=5.0, pause_max_seconds=2.0, records_delayed=50, avoidable=3),
        rebalance(-3, paused_partition_seconds=None, rebalance_seconds=None),
        rebalance(-2, "dear", paused_partition_seconds=60.0, pause_max_seconds=30.0),
        rebalance(-1, "blind", rebalance_seconds=None),
    ]
    names = (
        "rank", "group", "rebalances", "rebalance_seconds", "paused_partition_seconds", "pause_max_seconds",
        "records_delayed", "records_replayed", "avoidable", "rebalances_unknown",
    )  # fmt: skip
    assert columns(answer(tmp_path, "Q8", {"rebalances": rows}), *names) == [
        (1, "dear", 1, 6.0, 60.0, 30.0, None, None, None, 0),
        (2, "g", 3, 12.0, 15.0, 4.0, 150, 1, 3, 1),
        (3, "blind", 1, None, None, None, None, None, None, 1),
    ]


def deployed(minute: int, group: str = "g", rebalance_mode: str = "eager") -> Row:
    return rebalance(
        minute, group, cause="replacement", replaced=["a"], members_before=4, members_after=4,
        rebalance_mode=rebalance_mode, paused_partition_seconds=8.0,
    )  # fmt: skip


def test_q9_what_deploys_cost_before_and_after_a_switch(tmp_path: Path) -> None:
    """The lag is 100; in the first deploy it is 500 for three minutes, in the second 200 for one."""
    rows = [deployed(-300), deployed(-298), deployed(-100, rebalance_mode="cooperative"), deployed(-50, "blind")]
    rows += [rebalance(-200, members_before=4, members_after=6), rebalance(-90, "grown", replaced=["a", "b"])]
    rows[-1] |= {"members_before": 2, "members_after": 4}
    high = {-300: 500, -299: 500, -298: 500, -100: 200}
    lags = [
        window(minute, topic=topic, lag=high.get(minute, 100) // 2)
        for minute in (*range(-315, -270), *range(-115, -70))
        for topic in ("orders", "refunds")
    ]
    lags += [window(minute, "blind", lag=None) for minute in range(-60, -30)]
    history = [window(-297, static_members=0), window(-99, static_members=4)]
    tables = {"rebalances": rows, "group_windows": lags, "group_history": history}
    found = answer(tmp_path, "Q9", tables)
    names = ("group", "rebalances", "members", "rebalance_mode", "static_members", "is_switch", "paused_seconds")
    assert columns(found, *names) == [
        ("blind", 1, 4, "eager", None, None, 8.0),
        ("g", 2, 4, "eager", 0, None, 16.0),
        ("g", 1, 4, "cooperative", 4, True, 8.0),
    ]
    costs = ("lag_before", "peak_lag", "lag_record_seconds", "recovery_seconds", "cost_before")
    # recovered at the end of the first window of 100 that begins after the end: -297 … -296, and -99 … -98
    assert columns(found, *costs) == [
        (None, None, None, None, None),
        (100, 500, 3 * 400 * 60.0, 120.0, None),
        (100, 200, 1 * 100 * 60.0, 120.0, 3 * 400 * 60.0),
    ]
    assert columns(found, "started_at") == [(at(m) - timedelta(seconds=6),) for m in (-50, -300, -100)]


def member(group: str, name: str, minute: float = -10, **values: Any) -> Row:
    moment = at(minute)
    return {
        "date": moment.date(), "cluster": CLUSTER, "group": group, "member_id": name, "record_timestamp": moment,
        "source_partition": 3, "source_offset": 1000 + int(minute), "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000, **values,
    }  # fmt: skip


def absence(group: str, seconds: float | None, minute: float, kind: str = "static_replacement") -> Row:
    moment = at(minute)
    return {
        "date": moment.date(), "cluster": CLUSTER, "group": group, "event_id": f"{group}{minute}", "kind": kind,
        "event_at": moment, "seconds": seconds,
    }  # fmt: skip


def test_q10_sessions_too_short_for_heartbeats_polls_or_restarts(tmp_path: Path) -> None:
    members = [
        member("fine", "a"),
        member("short", "a", -20, session_timeout_ms=60_000),
        member("short", "a", session_timeout_ms=6_000),
        member("short", "b", session_timeout_ms=10_000),
        member("hangs", "a", session_timeout_ms=60_000, rebalance_timeout_ms=30_000),
        member("pods", "a", group_instance_id="pod-0"),
        member("pods", "b", session_timeout_ms=30_000),
        member("modern", "a", session_timeout_ms=None, rebalance_timeout_ms=None),
    ]
    events = [absence("pods", seconds, -minute) for minute, seconds in enumerate((20.0, 25.0, None, 30.0))]
    events += [absence("pods", 50.0, -8, "static_expired"), absence("pods", 900.0, -9, "became_empty")]
    found = answer(tmp_path, "Q10", {"group_members": members, "group_events": events})
    names = ("group", "members", "session_seconds", "is_session_short", "is_session_above_poll", "is_session_tight")
    assert columns(found, *names) == [
        ("hangs", 1, 60.0, False, True, None),
        ("pods", 2, 30.0, False, False, True),
        ("short", 2, 6.0, True, False, None),
        ("fine", 1, 45.0, False, False, None),
        ("modern", 1, None, None, None, None),
    ]
    away = ("static_members", "absences", "absence_p95_seconds", "static_expired")
    assert columns(found, *away)[1] == (1, 5, 50.0, 1)
    assert columns(found, *away)[0] == (0, 0, None, 0)
    slower = {row["group"]: row["is_session_short"] for row in ask(tmp_path, "Q10", heartbeat_seconds="2")}
    assert slower == {"hangs": False, "pods": False, "short": False, "fine": False, "modern": None}


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
        "assignor", "groups", "rebalances", "rebalances_unknown", "moved", "avoidable", "avoidable_share",
        "moved_ratio", "max_ping_pong", "groups_ping_pong",
    )  # fmt: skip
    assert columns(answer(tmp_path, "Q11", {"rebalances": rows, "group_history": history}), *names) == [
        ("range", 2, 3, 1, 16, 8, 0.5, 0.4, 0.4, 1),
        ("cooperative-sticky", 1, 1, 0, 0, 0, None, 0.0, None, 0),
        (None, 1, 1, 1, None, None, None, None, 0.3, 1),
    ]
