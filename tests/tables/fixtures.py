"""Real Delta tables for tests, written the way the job does: status tables whole,
`batches` last.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from laggard.tables.arrow import arrow_schema
from laggard.tables.delta import create_tables
from laggard.tables.schema.schemas import TABLES

NOW = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)
CLUSTER = "prod"
PUBLISHED = ("partition_status", "group_status", "topic_windows")
Row = dict[str, Any]


@cache
def _empty_root() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="laggard-empty-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    create_tables(str(folder))
    return folder


def make_root(root: Path | str) -> None:
    """All tables without rows, copied: to make them takes 0.2 s, and many tests need them."""
    shutil.copytree(_empty_root(), root, dirs_exist_ok=True)


def write_rows(root: Path | str, name: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows, overwriting where the job does; gives the version. Columns not given are null."""
    table = TABLES[name]
    return write_arrow(
        root, name, pa.Table.from_pylist([dict(row) for row in rows], schema=arrow_schema(table))
    )


def write_arrow(root: Path | str, name: str, rows: pa.Table) -> int:
    """The same for a frame of the table's schema."""
    table = TABLES[name]
    uri = str(Path(root) / name)
    if table.overwritten:
        write_deltalake(uri, rows, mode="overwrite")
    else:
        write_deltalake(uri, rows, mode="append", partition_by=["date"])
    return DeltaTable(uri).version()


def partition_row(group: str, topic: str, partition: int, status: str = "ok", **values: Any) -> Row:
    """A row of partition_status: offsets 0 … 1000 and a commit at 900 unless said otherwise; lag
    only when ok.
    """
    at, offset = (None, None) if status == "no_commit" else (NOW - timedelta(seconds=5), 900)
    end, start = (None, None) if status in ("no_end_offset", "topic_missing") else (1000, 0)
    row = {
        "cluster": CLUSTER,
        "group": group,
        "topic": topic,
        "topic_id": "",
        "partition": partition,
        "status": status,
        "batch_id": 1,
        "poll_id": 1,
        "sampled_at": NOW,
        "commit_timestamp": at,
        "committed_offset": offset,
        "log_end_offset": end,
        "log_start_offset": start,
        "end_points": [],
        **values,
    }
    if status == "ok":
        lag = row["log_end_offset"] - row["committed_offset"]
        method, error = ("history", 10.0) if lag else ("caught_up", 0.0)
        measured = {
            "lag": lag,
            "lost_records": 0,
            "readable_records": lag,
            "time_lag_seconds": float(lag) / 10,
            "time_lag_method": method,
            "time_lag_error_seconds": error,
            "time_lag_censored": False,
            "verdict": "ok",
        }
        row = {**measured, **row}
    return row


def group_row(group: str, **values: Any) -> Row:
    """A row of group_status: a stable classic group of two members."""
    return {
        "cluster": CLUSTER,
        "group": group,
        "status": "ok",
        "batch_id": 1,
        "poll_id": 1,
        "sampled_at": NOW,
        "group_type": "classic",
        "protocol_type": "consumer",
        "assignor": "range",
        "rebalance_mode": "eager",
        "group_state": "Stable",
        "state_source": "record",
        "generation": 7,
        "coordinator": 2,
        "offsets_partition": 3,
        "members": 2,
        "static_members": 0,
        "idle_members": 0,
        "topics": [],
        "lag": 100,
        "lag_known": 100,
        "max_time_lag_seconds": 10.0,
        "partitions_total": 1,
        "partitions_ok": 1,
        "partitions_no_commit": 0,
        "partitions_unknown": 0,
        "generations_total": 7,
        **values,
    }


def topic_row(topic: str, partition: int, **values: Any) -> Row:
    """A row of topic_windows in the minute that ends at NOW."""
    return {
        "date": NOW.date(),
        "cluster": CLUSTER,
        "topic": topic,
        "topic_id": "",
        "partition": partition,
        "window_start": NOW - timedelta(minutes=1),
        "window_end": NOW,
        "status": "ok",
        "batch_id": 1,
        "poll_id": 1,
        "ticks": 6,
        "log_start_offset": 0,
        "log_end_offset": 1000,
        "produced": 600,
        "arrival_rate": 10.0,
        "leader_broker": 1,
        **values,
    }


def batch_row(batch_id: int, versions: Mapping[str, int], at: datetime = NOW, **values: Any) -> Row:
    """A row of `batches`: a tick that read offsets partitions 0 and 3."""
    return {
        "date": at.date(),
        "cluster": CLUSTER,
        "batch_id": batch_id,
        "kind": "tick",
        "gap_seq": 0,
        "poll_id": batch_id,
        "polled_at": at,
        "started_at": at + timedelta(seconds=1),
        "published_at": at + timedelta(seconds=3),
        "checkpoint_id": "c1",
        "source_from": {0: 10, 3: 20},
        "source_to": {0: 15, 3: 20},
        "source_high_watermark": {0: 17, 3: 30},
        "source_last_stable_offset": {0: 17, 3: 22},
        "source_log_start_offset": {0: 2, 3: 5},
        "source_coordinator": {0: 1, 3: 2},
        "source_commits_total": {3: 30},
        "clock_skew_seconds": 0.25,
        "shed_keys_total": 3,
        "reconcile_corrections_total": 1,
        "source_blocked_since": {3: at - timedelta(minutes=2)},
        "records": 5,
        "decoded": 4,
        "tombstones": 1,
        "unknown": 0,
        "dead": 0,
        "table_versions": dict(versions),
        "durations_seconds": {"poll": 0.5, "decode": 0.25, "advance": 1.0, "publish": 0.25},
        "batches_total": batch_id,
        "records_total": {"decoded": 40, "tombstone": 3, "unknown": 1, "dead": 2},
        "dead_letters_total": {"truncated": 2},
        "unknown_records_total": [{"record_type": 99, "version": 0, "records": 1}],
        "polls_total": {"list_offsets": 12},
        "poll_seconds_total": {"list_offsets": 1.5},
        "poll_errors_total": [
            {"api": "list_offsets", "error": "NOT_LEADER_OR_FOLLOWER", "errors": 1}
        ],
        "gaps_total": {"job_down": 1},
        "stage_seconds_total": {"poll": 5.0, "decode": 2.5, "advance": 10.0, "publish": 2.5},
        "quarantined_groups": 0,
        "quarantined": {},
        "quarantines_total": 2,
        **values,
    }


def write_batch(
    root: Path | str,
    batch_id: int = 1,
    at: datetime = NOW,
    *,
    partitions: Iterable[Row] = (),
    groups: Iterable[Row] = (),
    topics: Iterable[Row] = (),
    **values: Any,
) -> dict[str, int]:
    """One consistent batch: the three tables, then the row that names their versions."""
    rows = {"partition_status": partitions, "group_status": groups, "topic_windows": topics}
    versions = {name: write_rows(root, name, rows[name]) for name in PUBLISHED}
    write_rows(root, "batches", [batch_row(batch_id, versions, at, **values)])
    return versions


def window_row(group: str, topic: str, **values: Any) -> Row:
    """A row of group_windows for the minute that ends at NOW: even, growing lag of a group that
    could use a member.
    """
    return {
        "group": group,
        "topic": topic,
        "status": "ok",
        "lag": 1200,
        "lag_known": 1200,
        "floor_records": 101.5,
        "arrival_rate": 10.0,
        "gini": 0.25,
        "n_eff": 2.5,
        "top_decile_share": 0.5,
        "shape": "spread",
        "arrival_shape": "spread",
        "trend": "growing",
        "slope": 1.5,
        "drain_seconds": float("inf"),
        "drain_at_capacity_seconds": 240.0,
        "loss_seconds": 7200.0,
        "slo_breach_seconds": None,
        "members": 2,
        "capacity": 8.0,
        "scale_verdict": "YES",
        "members_desired": 3,
        "members_ceiling": 6,
        **values,
    }


def finding_row(code: str, group: str | None, event: str = "opened", **values: Any) -> Row:
    """A row of findings; its id is made of code and group unless given."""
    return {
        "group": group,
        "finding_id": f"{code} {group}",
        "seq": 0,
        "event": event,
        "status": "ok",
        "code": code,
        "severity": "warn",
        "role": "primary",
        "topic": None,
        "confidence": 0.9,
        **values,
    }


def write_evaluated(
    root: Path | str,
    end: datetime = NOW,
    *,
    windows: Iterable[Row] = (),
    findings: Iterable[Row] = (),
) -> None:
    """What the rules write of the minute that ends then, in their order."""
    start = end - timedelta(minutes=1)
    same = {"date": start.date(), "cluster": CLUSTER, "batch_id": int(end.timestamp())}
    place = {**same, "window_start": start}
    write_rows(
        root, "findings", [{**row, **same, "date": end.date(), "at": end} for row in findings]
    )
    write_rows(root, "group_windows", [{**row, **place, "window_end": end} for row in windows])
    write_rows(root, "finding_state", [{**place, "group": "", "status": "ok", "state": None}])
