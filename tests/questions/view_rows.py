"""A few rows, and what each view makes of them, worked out by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from questions.kit import Row, at, finding, rebalance, window
from tables.fixtures import CLUSTER, NOW, group_row

DAY = NOW.date()
INFINITE = float("inf")
ELSEWHERE = {"cluster": "test"}  # another cluster, whose groups and topics have the same names
YESTERDAY = {"date": DAY - timedelta(days=1)}


def tables() -> dict[str, list[Row]]:
    """Rows about g, which is watched for five windows, one of them partly, and fewer about others
    beside it.
    """
    return {
        "group_windows": _group_windows(),
        "group_history": [
            window(-3, state_seconds={"Stable": 60.0}),
            window(-2, state_seconds={"Stable": 20.0, "PreparingRebalance": 30.0, "Unknown": 10.0}),
            window(-1, "h", state_seconds={}),
            window(-1, "s", state_seconds=dict(zip(_STATES, range(1, 10), strict=True))),
        ],
        "group_status": [
            group_row("g", max_time_lag_seconds=5.0, lag=100, lag_known=100),
            group_row("h", max_time_lag_seconds=90.0, lag=None, lag_known=40, partitions_unknown=2),
            group_row("i", max_time_lag_seconds=None, lag=0, lag_known=0, group_state="Empty"),
            group_row("j", max_time_lag_seconds=1.0, lag=1, lag_known=1),
            group_row("k", max_time_lag_seconds=2.0, lag=1, lag_known=1),
            group_row("g", max_time_lag_seconds=1.0, lag=1, lag_known=1, **ELSEWHERE),
        ],
        "findings": [
            finding(-9, "HOT_PARTITION", "g", severity="page"),
            finding(-9, "LAG", "g", severity="info", role="symptom"),
            finding(-8, "STORM", "h", severity="page"),
            finding(-8, "STORM", "h", severity="page", seq=1, event="closed"),
            finding(-8, "CLUSTER_WIDE", None, severity="page"),
            finding(-7, "QUIET", "i", severity="warn", role="suppressed"),
            finding(-7, "LAG", "j", severity="warn"),
            finding(-7, "LAG", "k", severity="info"),
            finding(-9, "HOT_PARTITION", "g", severity="page", seq=5, event="closed", **ELSEWHERE),
        ],
        "rebalances": [
            rebalance(-4, moved=2, avoidable=1, paused_partition_seconds=8.0, pause_max_seconds=3.0,
                      records_delayed=10),
            rebalance(-3, moved=None, paused_partition_seconds=None),
            rebalance(-2, cause="member_left", paused_partition_seconds=4.0, pause_max_seconds=4.0,
                records_replayed=7),
            rebalance(-1, cause="member_left", paused_partition_seconds=1.0, pause_max_seconds=1.0),
            rebalance(-4, "h", rebalance_id="g-4", paused_partition_seconds=100.0),
            rebalance(-4, paused_partition_seconds=100.0, **ELSEWHERE),
        ],
        "deploys": [_deploy(-5, ["g-4", "g-2"]), _deploy(-20, ["g-3"]), _deploy(-30, [])],
        "lag_windows": _lag_windows(),
    }  # fmt: skip


def _group_windows() -> list[Row]:
    known: dict[str, Any] = {
        "members": 2,
        "idle_members": 1,
        "busy_share": 0.25,
        "loss_seconds": INFINITE,
    }
    exact = {**known, "time_lag_censored": False}
    return [
        window(-5, lag=10, max_time_lag_seconds=1.0, **exact),
        window(-4, lag=30, max_time_lag_seconds=3.0, **exact),
        window(-3, lag=20, max_time_lag_seconds=3.0, time_lag_censored=True, **known),
        window(-2, lag=None, lag_known=5),
        window(-1, lag=40, lost_records=6, **(known | {"loss_seconds": 120.0})),
        window(-1, topic="emails", lag=0, **known),
        window(-1, "h", lag=None, lag_known=40),
        window(-5, topic="left", lag=1, loss_seconds=60.0, lost_records=5),
        window(-5, lag=1000, **ELSEWHERE),
        # from 23:59 to 00:00
        window(-721, "night", lag=2, members=1, idle_members=0, busy_share=1.0),
    ]  # fmt: skip


def _deploy(minute: int, rebalance_ids: list[str]) -> Row:
    start = at(minute)
    return {
        "date": start.date(), "cluster": CLUSTER, "group": "g", "started_at": start,
        "ended_at": at(minute + 1),
        "rebalances": len(rebalance_ids), "rebalance_ids": rebalance_ids, "replaced": 2,
        "rebalance_mode": "eager",
        "static_share": 0.5, "lag_before": 100.0, "peak_lag": 160.0 if minute == -5 else None,
        "lag_seconds": 12.0,
        "recovery_seconds": None,
    }  # fmt: skip


def _lag_windows() -> list[Row]:
    """Partition 0 of g goes from a to b, with a gap before the last window; nobody
    has partition 1.
    """
    owners = {-6: "a", -5: "a", -4: "b", -3: "b", -1: "b"}
    held = [
        window(minute, partition=0, owner=owner, slot=f"slot-{owner}", client_id="app",
            client_host="/10.0.0.1",
               commits=6, noop_commits=2, rewound_records=0, commit_interval_seconds=10.0,
               headroom_records=500,
               lost_records=0)
        for minute, owner in owners.items()
    ]  # fmt: skip
    free = window(
        -1,
        partition=1,
        commits=0,
        noop_commits=0,
        rewound_records=9,
        headroom_records=80,
        lost_records=6,
    )
    blind = window(-1, partition=2, commits=None)
    deleted = [window(minute, partition=0, topic_id="deleted", owner="a") for minute in (-6, -5)]
    recreated = window(
        -1, partition=0, topic_id="deleted", owner="a", status="topic_recreated",
        headroom_records=-5000,
    )  # fmt: skip
    return [*held, free, blind, *deleted, recreated, *_slo_windows()]


def _slo_windows() -> list[Row]:
    """Of partition 1, with most of the records, it is not known how many were late."""
    return [
        window(-3, "s", partition=0, matured_records=100, late_records=0),
        window(-2, "s", partition=0, matured_records=200, late_records=3),
        window(-1, "s", partition=0),
        window(-2, "s", partition=1, matured_records=990),
        window(-1, "s", partition=1, matured_records=0),
    ]


GAP = {
    "kind": "gap", "gap_seq": 1, "gap_scope": "all", "gap_from": at(-120), "gap_to": at(-90),
    "gap_reason": "job_down",
    "table_versions": None,
}  # fmt: skip

_KEY = {"date": DAY, "cluster": CLUSTER}
_STATES = ("Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling",
    "Empty", "Dead",
           "NotReady", "Unknown")  # fmt: skip


def _hour(
    group: str, topic: str, lags: tuple[Any, ...], times: tuple[Any, ...], counts: tuple[int, int]
) -> Row:
    p50, p95, most = lags
    time_lag, is_bound = times
    return {
        **_KEY, "group": group, "topic": topic, "hour_start": at(-60),
        "windows": counts[0], "windows_unknown": counts[1], "lag_p50": p50, "lag_p95": p95,
        "lag_max": most,
        "max_time_lag_seconds": time_lag, "is_lower_bound": is_bound,
    }  # fmt: skip


def _states(group: str, windows: int, **seconds: float) -> Row:
    names = ("stable", "preparing_rebalance", "completing_rebalance", "assigning", "reconciling",
        "empty", "dead",
             "not_ready", "unknown")  # fmt: skip
    return {**_KEY, "group": group, "windows": windows} | {
        f"{name}_seconds": seconds.get(name, 0.0) for name in names
    }


def _cost(cause: str, *values: Any) -> Row:
    names = ("rebalances", "rebalance_seconds", "paused_partition_seconds", "pause_max_seconds",
        "records_delayed",
             "records_replayed", "moved", "avoidable", "rebalances_unknown")  # fmt: skip
    return {**_KEY, "group": "g", "cause": cause} | dict(zip(names, values, strict=True))


def _impact(minute: int, rebalances: int, paused: float | None, added: float | None) -> Row:
    return {
        **_KEY, "group": "g", "started_at": at(minute), "ended_at": at(minute + 1),
        "rebalance_mode": "eager",
        "replaced": 2, "static_share": 0.5, "rebalances": rebalances,
        "paused_partition_seconds": paused,
        "lag_before": 100.0, "lag_added": added, "lag_seconds": 12.0, "recovery_seconds": None,
    }  # fmt: skip


def _owned(partition: int, begin: int, end: int, owner: str | None, group: str = "g") -> Row:
    slot = client_id = host = None
    if owner is not None:
        slot, client_id, host = f"slot-{owner}", "app", "/10.0.0.1"
    return {
        "cluster": CLUSTER, "group": group, "topic": "orders", "topic_id": "",
        "partition": partition,
        "owned_from": at(begin), "owned_until": at(end), "owner": owner,
        "slot": slot, "client_id": client_id, "client_host": host,
    }  # fmt: skip


_DELETED = _owned(0, -6, -4, "a") | {
    "topic_id": "deleted",
    "slot": None,
    "client_id": None,
    "client_host": None,
}


def _risk(group: str, topic: str, *values: Any) -> Row:
    names = (
        "loss_seconds",
        "headroom_records",
        "lost_records",
        "partitions_lost",
        "partitions_unknown",
    )
    place = {
        "cluster": CLUSTER,
        "group": group,
        "topic": topic,
        "window_end": at(0),
        "is_current": True,
    }
    return place | dict(zip(names, values, strict=True))


def _worst(place: int, group: str, severity: str | None, code: str | None, *values: Any) -> Row:
    names = ("group_state", "max_time_lag_seconds", "lag", "lag_known", "partitions_unknown")
    found = {
        "place": place,
        "cluster": CLUSTER,
        "group": group,
        "severity": severity,
        "primary_code": code,
    }
    return found | dict(zip(names, values, strict=True))


EXPECTED: dict[str, list[Row]] = {
    # of 10, 20, 30 and 40 half do not exceed 20, and only 40 is at least 95 % of them
    "lag_hourly": [
        _hour("g", "orders", (20, 40, 40), (3.0, True), (5, 1)),
        _hour("g", "emails", (0, 0, 0), (None, None), (1, 0)),
        _hour("h", "orders", (None, None, None), (None, None), (1, 1)),
        _hour("g", "left", (1, 1, 1), (None, None), (1, 0)),
        _hour("g", "orders", (1000, 1000, 1000), (None, None), (1, 0)) | ELSEWHERE,
        _hour("night", "orders", (2, 2, 2), (None, None),
            (1, 0)) | YESTERDAY | {"hour_start": at(-780)},
    ],
    "state_seconds": [
        _states("g", 2, stable=80.0, preparing_rebalance=30.0, unknown=10.0),
        _states("h", 1),
        _states("s", 1, stable=1.0, preparing_rebalance=2.0, completing_rebalance=3.0,
            assigning=4.0, reconciling=5.0,
                empty=6.0, dead=7.0, not_ready=8.0, unknown=9.0),
    ],
    "worst_groups": [
        _worst(1, "g", "page", "HOT_PARTITION", "Stable", 5.0, 100, 100, 0),
        _worst(2, "j", "warn", "LAG", "Stable", 1.0, 1, 1, 0),
        _worst(3, "k", "info", "LAG", "Stable", 2.0, 1, 1, 0),
        _worst(4, "h", None, None, "Stable", 90.0, None, 40, 2),
        _worst(5, "g", None, None, "Stable", 1.0, 1, 1, 0) | ELSEWHERE,
        _worst(6, "i", None, None, "Empty", None, 0, 0, 0),
    ],
    # 3 late of the 300 of partition 0; not known are its last window, and of partition 1 the one
    # with records
    "slo_daily": [
        {**_KEY, "group": "s", "matured_records": 300, "late_records": 3, "late_share": 0.01,
        "burn": 1.0,
         "windows_unknown": 2},
    ],
    "rebalance_cost": [
        _cost("member_join", 2, 12.0, 8.0, 3.0, 10, None, 2, 1, 1),
        _cost("member_left", 2, 12.0, 5.0, 4.0, None, 7, None, None, 0),
        _cost("member_join", 1, 6.0, 100.0, None, None, None, None, None, 0) | {"group": "h"},
        _cost("member_join", 1, 6.0, 100.0, None, None, None, None, None, 0) | ELSEWHERE,
    ],
    "deploy_impact": [_impact(-5, 2, 12.0, 60.0), _impact(-20, 1, None, None),
    _impact(-30, 0, 0.0, None)],
    "ownership_at": [
        _owned(0, -6, -4, "a"), _owned(0, -4, -2, "b"), _owned(0, -1, 0, "b"),
            _owned(1, -1, 0, None),
        _owned(2, -1, 0, None), _DELETED, _DELETED | {"owned_from": at(-1), "owned_until": at(0)},
        _owned(0, -3, 0, None, "s"), _owned(1, -2, 0, None, "s"),
    ],
    "data_loss_risk": [
        _risk("g", "orders", 120.0, 80, 6, 1, 2),
            _risk("g", "emails", INFINITE, None, None, None, None),
        _risk("h", "orders", None, None, None, None, None),
        _risk("g", "left", 60.0, None, 5, None, None) | {"window_end": at(-4), "is_current": False},
        _risk("g", "orders", None, None, None, None, None) | ELSEWHERE | {"window_end": at(-4)},
        _risk("night", "orders", None, None, None, None, None) | {"window_end": at(-720),
            "is_current": False},
    ],
    # g: four minutes known, of which each has two members, one idle, three quarters of both waiting
    "idle_capacity": [
        {**_KEY, "group": "g", "hours": 4 / 60, "hours_unknown": 1 / 60, "member_hours": 8 / 60,
        "idle_hours": 4 / 60,
         "waiting_hours": 6 / 60},
        {**_KEY, "group": "h", "hours": 0.0, "hours_unknown": 1 / 60, "member_hours": None,
        "idle_hours": None,
         "waiting_hours": None},
        {**_KEY, **ELSEWHERE, "group": "g", "hours": 0.0, "hours_unknown": 1 / 60,
        "member_hours": None,
         "idle_hours": None, "waiting_hours": None},
        {**_KEY, **YESTERDAY, "group": "night", "hours": 1 / 60, "hours_unknown": 0.0,
        "member_hours": 1 / 60,
         "idle_hours": 0.0, "waiting_hours": 0.0},
    ],
    "commit_hygiene": [
        {**_KEY, "group": "g", "topic": "orders", "windows": 10, "windows_unknown": 4,
        "commits": 30,
         "noop_commits": 10, "noop_share": 1 / 3, "max_commit_interval_seconds": 10.0,
         "rewound_records": 9},
        {**_KEY, "group": "s", "topic": "orders", "windows": 5, "windows_unknown": 5,
        "commits": None,
         "noop_commits": None, "noop_share": None, "max_commit_interval_seconds": None,
         "rewound_records": None},
    ],
    "gaps": [
        {**_KEY, "gap_from": at(-120), "gap_to": at(-90), "reason": "job_down", "scope": "all",
        "gap_from_offset": None,
         "gap_to_offset": None},
    ],
}  # fmt: skip
