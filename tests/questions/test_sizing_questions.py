"""Questions about sizing, commits and incidents, each with an answer by hand: Q12 to Q15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from questions.kit import CLUSTER, Row, answer, ask, at, columns, finding, rebalance, window
from tables.fixtures import group_row


def test_q12_hours_of_idle_members_and_who_should_scale_on_lag(tmp_path: Path) -> None:
    hour = {"window_end": at(0)}
    rows = [
        window(-60, members=6, idle_members=2, busy_share=0.05, members_desired=2, **hour),
        window(
            -60,
            topic="refunds",
            members=6,
            idle_members=2,
            busy_share=0.05,
            members_desired=2,
            **hour,
        ),
        window(-120, members=6, idle_members=0, busy_share=0.05, window_end=at(-60)),
        window(-60, "busy", members=2, idle_members=0, busy_share=0.5, **hour),
        window(-60, "alone", members=1, idle_members=0, busy_share=0.0, **hour),
        window(-60, "blind", **hour),
    ]
    names = (
        "group", "hours", "hours_unknown", "member_hours", "idle_hours", "waiting_hours",
        "busy_share", "members",
        "members_desired", "is_candidate",
    )  # fmt: skip
    assert columns(answer(tmp_path, "Q12", {"group_windows": rows}), *names) == [
        ("g", 2.0, 0.0, 12.0, 2.0, 11.4, 0.05, 6, 2, True),
        ("alone", 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1, None, False),
        ("busy", 1.0, 0.0, 2.0, 0.0, 1.0, 0.5, 2, None, False),
        ("blind", 0.0, 1.0, None, None, None, None, None, None, None),
    ]


def scale_event(minute: int, group: str = "g", **values: Any) -> Row:
    moment = at(minute)
    return {
        "date": moment.date(), "cluster": CLUSTER, "group": group, "event_at": moment,
        "members_before": 2,
        "members_after": 4, **values,
    }  # fmt: skip


def test_q13_whether_more_members_helped(tmp_path: Path) -> None:
    rates = {"consume_rate_before": 100.0, "consume_rate_after": 200.0, "elasticity": 1.0}
    events = [
        scale_event(-90, "helped", **rates),
        scale_event(-40, "helped", members_before=4, members_after=2, elasticity=0.1),
        scale_event(-90, "futile", elasticity=0.2),
        scale_event(-90, "reported", **rates),
        scale_event(-90, "calm"),
        scale_event(-90_000, "old"),
    ]
    evidence = {"lag_before_records": 900.0, "lag_records": 950.0}
    findings = [
        finding(-60, "SCALE_OUT_FUTILE", "reported", evidence=evidence),
        finding(-44, "SCALE_OUT_FUTILE", "helped", evidence=evidence),
        finding(-91, "SCALE_OUT_FUTILE", "helped", evidence=evidence),
        finding(-60, "CAPACITY_SHORTAGE", "helped"),
    ]
    found = answer(tmp_path, "Q13", {"scale_events": events, "findings": findings})
    names = (
        "group",
        "members_before",
        "members_after",
        "consume_rate_before",
        "consume_rate_after",
        "elasticity",
    )
    assert columns(found, *names, "futile_findings", "lag_before", "lag_after", "outcome") == [
        ("calm", 2, 4, None, None, None, 0, None, None, "unknown"),
        ("futile", 2, 4, None, None, 0.2, 0, None, None, "futile"),
        ("helped", 2, 4, 100.0, 200.0, 1.0, 0, None, None, "helped"),
        ("reported", 2, 4, 100.0, 200.0, 1.0, 1, 900.0, 950.0, "futile"),
    ]
    lenient = ask(tmp_path, "Q13", elasticity_min="0.1", group="futile")
    assert columns(lenient, "group", "outcome") == [("futile", "helped")]


def test_q14_commits_without_progress_and_the_load_of_the_offsets_topic(tmp_path: Path) -> None:
    rows = [
        window(-2, commits=60, noop_commits=54),
        window(-1, commits=40, noop_commits=36),
        window(-1, topic="refunds", commits=20, noop_commits=6),
        window(-1, "h", commits=600, noop_commits=6),
        window(-1, "silent", commits=0, noop_commits=0),
        window(-1, "blind"),
    ]
    groups = [
        group_row("g", offsets_partition=3, coordinator=2),
        group_row("h", offsets_partition=3, coordinator=2),
        group_row("silent", offsets_partition=5, coordinator=None),
    ]
    findings = [
        finding(-1, "COMMIT_IDLE_CHURN"),
        finding(-1, "CAPACITY_SHORTAGE"),
    ]
    found = answer(
        tmp_path, "Q14", {"group_windows": rows, "group_status": groups, "findings": findings}
    )
    names = (
        "group",
        "offsets_partition",
        "coordinator",
        "commits",
        "noop_commits",
        "noop_share",
        "commits_per_second",
    )
    assert columns(found, *names) == [
        ("h", 3, 2, 600, 6, 0.01, 10.0),
        ("g", 3, 2, 120, 96, 0.8, 1.0),
        ("silent", 5, None, 0, 0, None, 0.0),
        ("blind", None, None, None, None, None, None),
    ]
    load = ("seconds", "partition_commits_per_second", "partition_groups", "findings")
    assert columns(found, *load) == [
        (60.0, 11.0, 2, 0),
        (120.0, 11.0, 2, 1),
        (60.0, 0.0, 1, 0),
        (None, None, None, 0),
    ]


def test_q15_incidents_of_the_cluster_and_the_owner_of_a_partition(tmp_path: Path) -> None:
    broken = finding(
        -60, "COORDINATOR_CORRELATED", None, subject="2", coordinator=2, evidence={"groups": 4.0}
    )
    findings = [
        broken,
        {**broken, "seq": 1, "event": "closed", "at": at(-40), "closed_at": at(-40)},
        *[
            finding(-30 + n, "TOPIC_RECREATED", f"g{n}", topic="orders", severity="info")
            for n in range(3)
        ],
        *[finding(-30 + n, "SLOW_MEMBER", f"g{n}", topic="orders") for n in range(2)],
        finding(-28, "SLOW_MEMBER", "g0", topic="orders"),
        finding(-10, "TOPIC_RECREATED", "g9", topic="orders"),
    ]
    rebalances = [
        rebalance(-50, coordinator=2), rebalance(-45, "h", coordinator=2),
            rebalance(-45, "i", coordinator=1),
        rebalance(-30, coordinator=2),
    ]  # fmt: skip
    rows = [
        window(-5, partition=1, owner="m-1", slot="a", client_host="/10.0.0.1"),
        window(-1, partition=1, owner="m-2", slot="b", client_host="/10.0.0.2"),
        window(-1, "h", partition=1, status="no_end_offset"),
        window(-1, partition=2, owner="m-3", slot="c"),
    ]
    tables = {"findings": findings, "rebalances": rebalances, "lag_windows": rows}
    found = answer(tmp_path, "Q15", tables, topic="orders", partition="1")
    names = (
        "kind",
        "code",
        "name",
        "group",
        "groups",
        "rebalances",
        "started_at",
        "ended_at",
        "severity",
    )
    assert columns(found, *names, "member_id") == [
        ("cluster", "COORDINATOR_CORRELATED", "2", None, 4, 2, at(-63), at(-40), "warn", None),
        ("owner", "no_end_offset", None, "h", None, None, at(-1), at(0), None, None),
        ("owner", "ok", "b", "g", None, None, at(-1), at(0), None, "m-2"),
        ("topic", "TOPIC_RECREATED", "orders", None, 3, None, at(-33), None, "info", None),
    ]
    earlier = ask(tmp_path, "Q15", topic="orders", partition="1", to=at(-4).isoformat())
    assert columns([row for row in earlier if row["kind"] == "owner"], "name", "client_host") == [
        ("a", "/10.0.0.1")
    ]
    assert [row["kind"] for row in ask(tmp_path, "Q15")] == ["cluster", "topic"]
