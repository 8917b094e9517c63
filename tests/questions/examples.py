"""An hour in the life of the group payments, as rows: what the examples in docs/questions.md are
asked about.

It is too slow for its load, a rolling deploy makes it worse, and a third consumer lets it drain.
"""

from __future__ import annotations

from questions.kit import Row, at, finding, rebalance, window
from tables.fixtures import group_row

GROUP = "payments"
_DEPLOY, _SCALE_OUT = -40, -15
_RATES = {0: 60.0, 1: 30.0, 2: 10.0}  # arrivals of each partition, records/s
_MINUTES = range(-60, 0)


def tables() -> dict[str, list[Row]]:
    """Rows by table."""
    return {
        "lag_windows": [_partition(minute, number) for minute in _MINUTES for number in _RATES],
        "topic_windows": [
            window(minute, partition=number, produced=round(60 * rate))
            for minute in _MINUTES
            for number, rate in _RATES.items()
        ],
        "group_windows": [_group(minute) for minute in _MINUTES],
        "group_history": [
            window(minute, GROUP, assignor="range", static_members=0, ping_pong=0.1)
            for minute in _MINUTES
        ],
        "group_status": [group_row(GROUP, offsets_partition=17, coordinator=2)],
        "group_members": [_member(number) for number in range(3)],
        "group_events": [],
        "rebalances": _rebalances(),
        "deploys": [_deploy()],
        "scale_events": [_scale_event()],
        "findings": _findings(),
    }


def _lag(minute: int) -> int:
    """It grows by 2 records/s, with 900 more for two minutes of the deploy, and shrinks by 15 once
    there are three.
    """
    grown = 1000 + 120 * (minute + 60) + (900 if _DEPLOY <= minute < _DEPLOY + 2 else 0)
    return grown if minute < _SCALE_OUT else max(0, 6400 - 900 * (minute - _SCALE_OUT))


def _is_late(minute: int) -> bool:
    return _lag(minute) > 3000  # 30 s at 100 records/s


def _members(minute: int) -> int:
    return 2 if minute < _SCALE_OUT else 3


def _partition(minute: int, number: int) -> Row:
    lag = round(_lag(minute) * _RATES[number] / 100)
    owner = f"pod-{number % _members(minute)}"
    return window(
        minute, GROUP, partition=number, lag=lag, lost_records=0, headroom_records=5000 + lag,
        owner=f"{owner}-1f3a",
        slot=owner, client_host=f"/10.0.0.{number % _members(minute)}", leader_broker=number,
        time_lag_seconds=_lag(minute) / 100, time_lag_censored=False,
        matured_records=round(60 * _RATES[number]),
        late_records=round(60 * _RATES[number]) if _is_late(minute) else 0,
    )  # fmt: skip


def _group(minute: int) -> Row:
    lag = _lag(minute)
    late = 6000 if _is_late(minute) else 0
    rate, trend, verdict = 98.0, "growing", "YES"
    drain = low = high = None
    if minute >= _SCALE_OUT:
        rate, trend, verdict = 115.0, "draining", "NOT_NEEDED_DRAINING"
        drain, low, high = lag / 15, lag / 20, lag / 10
    return window(
        minute, GROUP, lag=lag, lag_known=lag, lag_max=round(0.6 * lag),
        partitions_material=3 if lag > 100 else 0,
        matured_records=6000, late_records=late,
        max_time_lag_seconds=lag / 100,
        time_lag_censored=False, lost_records=0, loss_seconds=86_400.0, arrival_rate=100.0,
        consume_rate=rate, commits=36, noop_commits=3, shape="spread",
        trend=trend, members=_members(minute), idle_members=0,
        members_desired=3, members_ceiling=3, busy_share=1.0,
        scale_verdict=verdict,
        primary_code="CAPACITY_SHORTAGE",
        drain_seconds=drain, drain_low_seconds=low, drain_high_seconds=high,
    )  # fmt: skip


def _member(number: int) -> Row:
    moment = at(_SCALE_OUT)
    return {
        "date": moment.date(), "cluster": "prod", "group": GROUP, "member_id": f"pod-{number}-1f3a",
        "record_timestamp": moment, "source_partition": 17, "source_offset": 900,
        "session_timeout_ms": 6000,
        "rebalance_timeout_ms": 300_000,
    }  # fmt: skip


def _rebalances() -> list[Row]:
    cost: dict[str, Row] = {
        "deploy": {
            "cause": "replacement", "necessity": "operational", "replaced": ["pod-0"],
            "members_before": 2,
            "members_after": 2, "moved": 3, "avoidable": 1, "moved_ratio": 1.0,
            "paused_partition_seconds": 24.5,
            "pause_max_seconds": 9.5, "records_delayed": 820, "records_replayed": 75,
        },
        "growth": {
            "members_before": 2, "members_after": 3, "moved": 1, "avoidable": 0,
            "moved_ratio": 0.25,
            "paused_partition_seconds": 12.0, "pause_max_seconds": 4.0, "records_delayed": 400,
            "records_replayed": 0,
        },
    }  # fmt: skip
    both = {"assignor": "range", "rebalance_mode": "eager", "coordinator": 2}
    return [
        rebalance(_DEPLOY, GROUP, **cost["deploy"], **both),
        rebalance(_DEPLOY + 1, GROUP, **cost["deploy"], **both),
        rebalance(_SCALE_OUT, GROUP, **cost["growth"], **both),
    ]


def _deploy() -> Row:
    begin, end = at(_DEPLOY), at(_DEPLOY + 1)
    return {
        "date": begin.date(), "cluster": "prod", "group": GROUP, "started_at": begin,
        "ended_at": end, "batches": 2,
        "slots": 2, "replaced": 2, "static_share": 0.0, "rebalances": 2, "rebalance_mode": "eager",
        "rebalance_ids": [f"{GROUP}{_DEPLOY}", f"{GROUP}{_DEPLOY + 1}"], "lag_before": 3280.0,
        "peak_lag": 4420.0,
        "lag_record_seconds": 129_600.0, "lag_seconds": 1296.0, "recovery_seconds": 60.0,
        "is_spike": True,
    }  # fmt: skip


def _scale_event() -> Row:
    moment = at(_SCALE_OUT)
    return {
        "date": moment.date(), "cluster": "prod", "group": GROUP, "event_at": moment,
        "members_before": 2,
        "members_after": 3, "consume_rate_before": 98.0, "consume_rate_after": 115.0,
        "elasticity": 0.395,
    }  # fmt: skip


def _findings() -> list[Row]:
    return [
        finding(-50, "CAPACITY_SHORTAGE", GROUP),
        finding(
            -39,
            "COORDINATOR_CORRELATED",
            None,
            subject="2",
            coordinator=2,
            evidence={"groups": 4.0},
        ),
    ]
