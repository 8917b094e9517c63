"""Tables for the page: a group in trouble with an hour of history, one that is well, odd names,
thousands more.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from cli.group_rows import group, member_row, rebalance_row
from tables.fixtures import (
    CLUSTER,
    NOW,
    Row,
    batch_row,
    finding_row,
    group_row,
    partition_row,
    topic_row,
    window_row,
    write_evaluated,
    write_rows,
)

MINUTE = timedelta(minutes=1)
HOSTILE = "<img src=x onerror=alert(1)>\"'&/%\n\u202e evil"
PARTITIONS = 8
HOT, LOST = 5, 6  # a partition that is far behind, and one whose lag is not known in some windows


def lags(place: int, age: int) -> int | None:
    """Lag of a partition so many windows ago."""
    if place == LOST and 20 <= age < 30:
        return None
    return max(0, 90 * (60 - age)) if place == HOT else (7 * place + 3 * age) % 40


def write_tables(root: Path, more: int = 0, hostile: str = HOSTILE) -> None:
    """Write a batch of NOW in which `checkout` has a hot partition and its members changed half an
    hour ago.
    """
    starts = {age: NOW - age * MINUTE for age in range(1, 61)}
    history: list[Row] = []
    windows: list[Row] = []
    for age, start in starts.items():
        same = {
            "date": start.date(),
            "cluster": CLUSTER,
            "group": "checkout",
            "batch_id": 1,
            "window_start": start,
        }
        for place in range(PARTITIONS):
            lag = lags(place, age)
            seconds = None if lag is None else lag / 10
            slot = (
                f"c{place % 3 + 1}/10.0.0.{place % 3 + 1}#0"
                if age > 30
                else f"c{place % 2 + 1}/10.0.0.{place % 2 + 1}#0"
            )
            status = "ok" if lag is not None else "no_end_offset"
            history.append(
                same
                | {
                    "topic": "orders",
                    "topic_id": "",
                    "partition": place,
                    "lag": lag,
                    "time_lag_seconds": seconds,
                }
                | {"status": status, "slot": slot}
            )
        known = [lag for place in range(PARTITIONS) if (lag := lags(place, age)) is not None]
        whole = sum(known) if len(known) == PARTITIONS else None
        facts = {
            "lag": whole, "lag_known": sum(known), "max_time_lag_seconds": max(known) / 10,
            "time_lag_censored": False, "partitions_total": PARTITIONS, "partitions_material": 1,
            "top_partitions": [HOT], "flags": [], "scale_reason": {"moved_partitions": 2.0},
            "scale_verdict": "NO_HOT_PARTITION", "shape": "concentrated", "members_desired": 2,
            "status": "ok" if whole is not None else "partial",
        }  # fmt: skip
        if age not in (40, 41, 42):  # which the rules have not evaluated
            windows.append(
                same | window_row("checkout", "orders", **facts) | {"window_end": start + MINUTE}
            )
    calm = {
        "lag": 0, "lag_known": 0, "max_time_lag_seconds": 0.0, "partitions_total": 1,
        "partitions_material": 0,
        "flags": [], "scale_reason": {}, "top_partitions": [], "scale_verdict": "NOT_NEEDED",
        "shape": "none",
        "trend": "flat",
    }  # fmt: skip
    names = ["calm", *(f"group-{number:04}" for number in range(more))]
    reported = {
        "topic": "orders", "partitions": [HOT], "rule": "D6", "rule_version": 1, "class": "cause",
        "scope": "partition",
        "started_at": NOW - 40 * MINUTE, "opened_at": NOW - 35 * MINUTE, "evidence": {"share": 0.8},
        "evidence_text": {"owner": "c2"},
        "guards": {"no_deploy": "pass", "log_start_jumps": "unknown"},
        "falsifier": "the rates are equal",
    }  # fmt: skip
    write_evaluated(
        root,
        windows=[window_row(name, "orders", **calm) for name in names],
        findings=[
            finding_row("HOT_PARTITION_ARRIVAL", "checkout", severity="page") | reported,
            finding_row("CAPACITY_SHORTAGE", "checkout", role="contributing")
            | reported
            | {"partitions": [], "rule": "D1"},
        ],
    )
    write_rows(root, "group_windows", windows)
    ago = NOW - 30 * MINUTE
    held = [
        [("orders", place) for place in range(PARTITIONS) if place % 2 == member]
        for member in (0, 1)
    ]
    now = {place: lags(place, 1) for place in range(PARTITIONS)}
    partitions = [
        partition_row(
            "checkout",
            "orders",
            place,
            "ok" if place != LOST else "no_end_offset",
            committed_offset=9000,
            log_end_offset=9000 + (lag or 0),
        )
        for place, lag in now.items()
    ]
    partitions += [partition_row(name, "orders", 0, committed_offset=1000) for name in names]
    partitions += [partition_row(hostile, hostile, 0), partition_row("bare", "t", 0, "no_commit")]
    known = sum(lag or 0 for place, lag in now.items() if place != LOST)
    worst = {"lag": None, "lag_known": known, "max_time_lag_seconds": 531.0, "status": "partial"}
    sick = group(
        **worst,
        partitions_total=PARTITIONS,
        partitions_unknown=1,
        members=2,
        idle_members=0,
        state_since=ago,
    )
    groups = [
        sick,
        *(group_row(name, lag=0, lag_known=0, max_time_lag_seconds=0.0) for name in names),
        group_row(hostile), group_row("bare", lag=None, lag_known=None, max_time_lag_seconds=None,
            members=None),
    ]  # fmt: skip
    tables = {
        "partition_status": partitions,
        "group_status": groups,
        "group_members": [
            member_row(
                number,
                place,
                record_timestamp=ago,
                group_instance_id=hostile if number == 1 else None,
            )
            for number, place in enumerate(held, 1)
        ],
        "rebalances": [
            rebalance_row(ago),
            rebalance_row(
                NOW - 150 * MINUTE,
                cause="member_join",
                joined=["c3/10.0.0.3#0"],
                left=[],
                pause_max_seconds=None,
            ),
            rebalance_row(NOW - 700 * MINUTE, pause_max_seconds=31.0),
        ],
        "topic_windows": [topic_row("orders", place) for place in range(PARTITIONS)],
        "lag_windows": history,
    }
    versions = {name: write_rows(root, name, rows) for name, rows in tables.items()}
    write_rows(root, "batches", [batch_row(274, versions)])
