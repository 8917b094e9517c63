"""Questions about lag, each with an answer by hand: Q1 to Q6."""

from __future__ import annotations

import math
from pathlib import Path

from questions.kit import answer, ask, at, columns, finding, window


def test_q1_groups_that_broke_their_service_level(tmp_path: Path) -> None:
    rows = [
        window(
            -3,
            "slow",
            matured_records=100,
            late_records=0,
            time_lag_seconds=5.0,
            time_lag_censored=False,
        ),
        window(
            -2,
            "slow",
            matured_records=100,
            late_records=50,
            time_lag_seconds=90.0,
            time_lag_censored=True,
        ),
        window(
            -1,
            "slow",
            matured_records=60,
            late_records=1,
            time_lag_seconds=9.0,
            time_lag_censored=False,
        ),
        window(-1, "slow", topic="refunds", matured_records=40, late_records=2),
        window(
            -1,
            "kept",
            matured_records=1000,
            late_records=5,
            time_lag_seconds=2.0,
            time_lag_censored=False,
        ),
        window(-1, "kept", partition=1, matured_records=0),
        window(-2, "blind", matured_records=100, late_records=0),
        window(-1, "blind"),
        window(-1, "half", partition=0, matured_records=10, late_records=10),
        window(-1, "half", partition=1, matured_records=990),
        window(-1, "dark", matured_records=7),
        window(-1, "none", time_lag_seconds=900.0),
        window(-2000, "kept", matured_records=10, late_records=10),
    ]
    rows = [{"partition": 0, **row} for row in rows]
    found = columns(
        answer(tmp_path, "Q1", {"lag_windows": rows}),
        "group", "is_broken", "breach_seconds", "late_records", "matured_records", "late_share",
        "max_time_lag_seconds", "is_lower_bound", "windows", "windows_unknown",
    )  # fmt: skip
    assert found == [
        ("slow", True, 120.0, 53, 300, round(53 / 300, 9), 90.0, True, 3, 0),
        ("half", True, 60.0, 10, 10, 1.0, None, None, 1, 1),
        ("kept", False, 0.0, 5, 1000, 0.005, 2.0, False, 1, 0),
        ("blind", None, 0.0, 0, 100, 0.0, None, None, 1, 1),
        ("dark", None, 0.0, None, None, None, None, None, 0, 1),
    ]


def test_q2_shape_cause_and_the_use_of_more_consumers_at_a_time(tmp_path: Path) -> None:
    rows = [
        window(-30, shape="none", trend="flat", scale_verdict="NOT_NEEDED", lag=0, lag_known=0),
        window(
            -2, shape="spread", trend="growing", scale_verdict="YES_PARTIAL", lag=900,
            lag_known=900,
            primary_code="CAPACITY_SHORTAGE", members=3, members_desired=6, members_ceiling=6,
        ),
        window(-2, topic="refunds", shape="none", trend="abstain", scale_verdict="YES_PARTIAL",
            lag_known=7),
        window(-1, "other", shape="single", scale_verdict="NO_HOT_PARTITION"),
        window(-1, "unsure", shape="spread", scale_verdict="UNKNOWN_INPUT", lag_known=5),
    ]  # fmt: skip
    findings = [
        finding(-20, "CAPACITY_SHORTAGE"),
        finding(
            -2,
            "CAPACITY_SHORTAGE",
            finding_id="g CAPACITY_SHORTAGE -20",
            seq=1,
            event="updated",
            severity="page",
        ),
        finding(-1, "CAPACITY_SHORTAGE", "other", severity="info"),
    ]
    names = (
        "topic",
        "lag",
        "shape",
        "trend",
        "primary_code",
        "primary_severity",
        "would_help",
        "members_desired",
    )
    found = answer(tmp_path, "Q2", {"group_windows": rows, "findings": findings}, group="g")
    assert columns(found, *names) == [
        ("orders", 900, "spread", "growing", "CAPACITY_SHORTAGE", "page", "yes", 6),
        ("refunds", None, "none", "abstain", None, None, "yes", None),
    ]
    before = ask(tmp_path, "Q2", group="g", to=at(-10).isoformat())
    assert columns(before, *names) == [("orders", 0, "none", "flat", None, None, "no", None)]
    assert columns(ask(tmp_path, "Q2", group="unsure"), "would_help") == [("unknown",)]


def test_q3_partitions_with_late_records_beside_their_share_of_arrivals(tmp_path: Path) -> None:
    rows = [
        window(-2, partition=0, late_records=30),
        window(-1, partition=0, late_records=50),
        window(-1, partition=1, late_records=20),
        window(-1, partition=2, late_records=0),
        window(-1, partition=3, late_records=None),
        window(-1, "else", topic="unseen", partition=0, late_records=1),
    ]
    arrivals = [
        window(minute, partition=p, produced=600 if p == 0 else 100)
        for minute in (-2, -1)
        for p in range(4)
    ]
    arrivals[3]["produced"] = None
    names = (
        "group", "partition", "late_records", "late_share", "produced", "arrival_share",
        "partitions", "windows_late",
    )  # fmt: skip
    found = answer(tmp_path, "Q3", {"lag_windows": rows, "topic_windows": arrivals})
    assert columns(found, *names) == [
        ("g", 0, 80, 0.8, 1200, round(1200 / 1700, 9), 4, 2),
        ("g", 1, 20, 0.2, 200, round(200 / 1700, 9), 4, 1),
        ("else", 0, 1, 1.0, None, None, None, 1),
    ]


def test_q4_the_member_host_or_broker_that_holds_the_lag(tmp_path: Path) -> None:
    place = {"client_host": "/10.0.0.1", "leader_broker": 1}
    rows = [
        window(minute, partition=p, lag=lag, slot=slot, **place)
        for minute in (-2, -1)
        for p, lag, slot in ((0, 80, "a"), (1, 100, "a"), (2, 20, "b"))
    ]
    rows[5] |= {"status": "no_end_offset", "lag": None}
    rows += [
        window(-1, partition=3, lag=None, status="no_commit"),
        window(-1, "idle", partition=0, lag=0),
    ]
    found = answer(tmp_path, "Q4", {"lag_windows": rows})
    names = (
        "group",
        "factor",
        "name",
        "mean_lag",
        "lag_share",
        "partition_share",
        "partitions",
        "partitions_unknown",
    )
    # 360 of 380 records over two windows are those of a, which had four of the five known
    # partition-windows
    assert columns(found, *names) == [
        ("g", "broker", "1", 190.0, 1.0, 1.0, 3, 1),
        ("g", "host", "/10.0.0.1", 190.0, 1.0, 1.0, 3, 1),
        ("g", "member", "a", 180.0, round(360 / 380, 9), 0.8, 2, 0),
        ("g", "member", "b", 10.0, round(20 / 380, 9), 0.2, 1, 1),
        ("idle", "broker", None, 0.0, None, 1.0, 1, 0),
        ("idle", "host", None, 0.0, None, 1.0, 1, 0),
        ("idle", "member", None, 0.0, None, 1.0, 1, 0),
    ]


def test_q5_the_end_of_a_drain_and_how_good_forecasts_were(tmp_path: Path) -> None:
    def drain(
        minute: int, seconds: float | None, material: int, **values: object
    ) -> dict[str, object]:
        return window(
            minute,
            drain_seconds=seconds,
            partitions_material=material,
            lag_known=10 * material,
            **values,
        )

    rows = [
        drain(-60, 240.0, 2, drain_low_seconds=100.0, drain_high_seconds=300.0),  # took 180: inside
        drain(-59, 60.0, 2, drain_low_seconds=30.0, drain_high_seconds=90.0),  # took 120: outside
        drain(-58, math.inf, 1),  # no forecast
        drain(-57, 0.0, 0),
        drain(-40, 60.0, 1),  # a gap before its end: not seen
        drain(-30, 0.0, 0),
        drain(-29, 60.0, 1),  # an unknown partition before its end: not seen
        drain(-28, None, 1, partitions_unknown=1),
        drain(-27, 0.0, 0),
        drain(-1, 90.0, 3, drain_low_seconds=60.0),
        window(-1, "other", drain_seconds=1.0, partitions_material=1),
    ]
    (found,) = answer(tmp_path, "Q5", {"group_windows": rows}, group="g")
    assert columns([found], "lag_known", "drain_seconds", "forecasts", "forecasts_open") == [
        (30, 90.0, 2, 3)
    ]
    assert columns([found], "error_ratio", "forecasts_bounded", "inside_share") == [(0.75, 2, 0.5)]
    assert found["drained_at"].replace(tzinfo=None) == at(1.5).replace(tzinfo=None)


def test_q6_the_groups_closest_to_loss_and_what_was_lost(tmp_path: Path) -> None:
    evaluated = [
        window(-2, "losing", loss_seconds=0.0, lost_records=40),
        window(-1, "losing", loss_seconds=0.0, lost_records=0),
        window(-1, "near", loss_seconds=3600.0, lost_records=0),
        window(-2, "safe", loss_seconds=600.0, lost_records=0),
        window(-1, "safe", loss_seconds=math.inf, lost_records=0),
        window(-1, "blind"),
    ]
    lost = {"status": "below_log_start", "headroom_records": -40}
    rows = [
        window(-4, "losing", partition=0, committed_offset=100, lost_records=15, **lost),
        window(-3, "losing", partition=0, committed_offset=100, lost_records=40, **lost),
        window(-2, "losing", partition=0, committed_offset=500, lost_records=2, **lost),
        window(-1, "losing", partition=0, committed_offset=600, lost_records=0, headroom_records=7),
        window(-1, "losing", partition=1, committed_offset=900, lost_records=0, headroom_records=3),
        window(-1, "near", partition=0, committed_offset=900, lost_records=0, headroom_records=50),
        window(-1, "blind", partition=0, status="no_end_offset"),
    ]
    findings = [
        finding(-4, "DATA_LOST", "losing", topic="orders"),
        finding(-3, "DATA_LOSS_FORECAST", "near", topic="orders"),
    ]
    found = answer(
        tmp_path, "Q6", {"group_windows": evaluated, "lag_windows": rows, "findings": findings}
    )
    names = (
        "group",
        "loss_seconds",
        "headroom_records",
        "lost_records",
        "partitions_lost",
        "findings",
    )
    assert columns(found, *names, "windows_unknown") == [
        ("losing", 0.0, 3, 42, 1, 1, 0),
        ("near", 3600.0, 50, 0, 0, 0, 0),
        ("safe", math.inf, None, 0, 0, 0, 0),
        ("blind", None, None, None, None, 0, 1),
    ]
