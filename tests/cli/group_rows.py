"""Rows of one group for tests of `laggard explain`, a batch that publishes them, and what the verb
says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.declared import data_of
from laggard.cli.main import main
from laggard.errors import OK
from tables.fixtures import CLUSTER, NOW, Row, batch_row, group_row, partition_row, write_rows

PUBLISHED = ("partition_status", "group_status", "group_members", "rebalances", "topic_windows")
AGO = timedelta(minutes=10)
COUNTED = {
    "rebalances_total": {"member_left": 2, "member_join": 3},
    "member_changes_total": {"joined": 4, "left": 2},
    "interrupted_generations_total": 1,
    "static_restarts_absorbed_total": 2,
    "partitions_moved_total": 20,
    "partitions_moved_avoidable_total": 7,
    "time_in_rebalance_ratio": 0.031,
    "last_rebalance_at": NOW - AGO,
    "watched_since": NOW - timedelta(hours=3),
    "state_since": NOW - AGO,
}
LAGS = (0, 40, 550, 110)


def member_row(
    number: int, assigned: Iterable[tuple[str | None, int]] | None = (), **values: Any
) -> Row:
    """A row of group_members: member `number` in generation 7 of the classic group `checkout`."""
    held = (
        None
        if assigned is None
        else [{"topic": topic, "partition": place} for topic, place in assigned]
    )
    at = values.get("record_timestamp", NOW - AGO)
    return {
        "date": at.date(),
        "cluster": CLUSTER,
        "group": "checkout",
        "generation_kind": "classic",
        "generation": 7,
        "member_id": f"c{number}-id",
        "source_partition": 3,
        "source_offset": 700,
        "record_timestamp": at,
        "status": "ok",
        "batch_id": 1,
        "client_id": f"c{number}",
        "client_host": f"/10.0.0.{number}",
        "slot": f"c{number}/10.0.0.{number}#0",
        "assigned": held,
        **values,
    }


def rebalance_row(ended_at: datetime = NOW - AGO, **values: Any) -> Row:
    """A row of rebalances: an eager one of 4 s in which member 3 left and members 1 and 2 stayed;
    all is known.
    """
    return {
        "date": ended_at.date(),
        "cluster": CLUSTER,
        "group": "checkout",
        "rebalance_id": f"{ended_at:%H%M%S}",
        "status": "ok",
        "batch_id": 1,
        "started_low": ended_at - timedelta(seconds=30),
        "started_high": ended_at - timedelta(seconds=1),
        "started_est": ended_at - timedelta(seconds=4),
        "ended_at": ended_at,
        "rebalance_seconds": 4.0,
        "join_seconds": 3.0,
        "sync_seconds": 1.0,
        "generations": [7],
        "interrupted": 0,
        "rebalance_mode": "eager",
        "assignor": "range",
        "cause": "member_left",
        "necessity": "unknown",
        "cause_posterior": {
            "poll_timeout": 0.5, "session_expiry": 0.3, "deploy": 0.1, "crash": 0.06,
            "scale_in": 0.04,
        },
        "joined": [],
        "left": ["c3/10.0.0.3#0"],
        "replaced": [],
        "members_before": 3,
        "members_after": 2,
        "partitions": 6,
        "moved": 3,
        "necessary": 2,
        "avoidable": 1,
        "stateful": False,
        "paused_partitions": 6,
        "pause_p50_seconds": 4.5,
        "pause_p95_seconds": 8.0,
        "pause_max_seconds": 8.0,
        "paused_partition_seconds": 30.0,
        "records_delayed": 600,
        "records_replayed": 12,
        "replay_bound": 40,
        "lag_before": 100,
        "lag_after": 700,
        "coordinator": 2,
        "live_read": True,
        "flags": [],
        **values,
    }  # fmt: skip


def publish(
    root: Path,
    rows: Mapping[str, Iterable[Row]],
    *,
    at: datetime = NOW,
    without: Iterable[str] = (),
) -> dict[str, int]:
    """One batch of the tables that `explain` reads; those `without` are tables that an older job
    does not know.
    """
    known = [name for name in PUBLISHED if name not in without]
    versions = {name: write_rows(root, name, rows.get(name, ())) for name in known}
    write_rows(root, "batches", [batch_row(42, versions, at)])
    return versions


def group(**values: Any) -> Row:
    """The group `checkout`: three members, one of them idle, behind on three of four partitions."""
    lag = {
        "lag": sum(LAGS),
        "lag_known": sum(LAGS),
        "max_time_lag_seconds": 55.0,
        "partitions_total": len(LAGS),
    }
    return group_row("checkout", **{**lag, "members": 3, "idle_members": 1, **COUNTED, **values})


def partitions(*more: Row) -> list[Row]:
    rows = [
        partition_row("checkout", "orders", n, committed_offset=1000 - lag)
        for n, lag in enumerate(LAGS)
    ]
    return [*rows, *more, partition_row("other", "orders", 0)]


def members() -> list[Row]:
    return [
        member_row(1, [("orders", 0), ("orders", 1)]),
        member_row(2, [("orders", 2), ("orders", 3)], group_instance_id="pod-2"),
        member_row(3),
    ]


def write(root: Path, **tables: list[Row]) -> None:
    rows = {
        "partition_status": partitions(),
        "group_status": [group(), group_row("other")],
        "group_members": members(),
        "rebalances": [rebalance_row()],
    }
    publish(root, rows | tables)


def explain(root: Path, *words: str) -> int:
    return main(["explain", *(words or ("checkout",)), "--set", f"job.tables={root}"])


def page(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, list[str]]:
    """Section to its lines; the two lines above all sections are under "". Lines that were broken
    are whole again.
    """
    assert explain(root, *words) == OK
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for line in capsys.readouterr().out.splitlines():
        if line and not line.startswith(" "):
            title = line if len(sections[""]) == 2 else ""
            sections.setdefault(title, [])
        if line.startswith("    ") and sections[title] and sections[title][-1].startswith("- "):
            sections[title][-1] += f" {line.strip()}"
        elif line and line != title:
            sections[title].append(line.strip())
    return sections


def data(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert explain(root, *(words or ("checkout",)), "--json") == OK
    found: dict[str, Any] = data_of("explain", capsys)
    return found


def codes(found: dict[str, Any]) -> set[str]:
    return {gap["code"] for gap in found["not_known"]}
