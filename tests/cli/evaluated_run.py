"""Groups whose records flow like water, recorded in real Delta tables and evaluated by the code of
the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from diagnosis.fluid import NOON, Fluid, Row
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.stream.evaluation.diagnose import Diagnosis
from laggard.stream.evaluation.reading import Options, find_closed
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import GROUP_STATUS, PARTITION_STATUS, TABLES
from tables.fixtures import batch_row, make_root, write_arrow, write_rows

MINUTE = timedelta(minutes=1)
OPTIONS = Options("prod", 60, Parameters(), lambda *_: Policy())
_PUBLISHED = (
    "partition_status",
    "group_status",
    "generations",
    "group_members",
    "rebalances",
    "lag_windows",
    "group_history",
    "topic_windows",
)


def even(
    windows: int, arrival: float = 900.0, capacity: float = 1000.0, members: int = 3, **values: Any
) -> Fluid:
    """12 partitions that get `arrival` records/s between them, and members that do
    `capacity` each.
    """
    return Fluid(
        np.full((12, windows), arrival / 12), np.full((members, windows), capacity), **values
    )


def hot(windows: int, group: str = "fraud", begin: int = 10) -> Fluid:
    """3 members of 1000 records/s; partition 7 gets 1500 from window `begin` on, the others 50."""
    arrival = np.full((12, windows), 50.0)
    arrival[7, begin:] = 1500.0
    return Fluid(arrival, np.full((3, windows), 1000.0), group=group)


def record(
    root: Path,
    groups: Sequence[Fluid],
    events: Sequence[Row] = (),
    joined_at: datetime = NOON - timedelta(hours=1),
    **of_members: Any,
) -> datetime:
    """All history up to the newest window, and the batch that closed it; gives its poll's time.

    All members joined at one time; `of_members` are columns of all of them.
    """
    make_root(root)
    lag = [_written(row) for each in groups for row in each.lag_rows]
    dated = {"generation_at": joined_at, "roster_at": joined_at}
    facts = [_with_lag(_written(row), lag) | dated for each in groups for row in each.fact_rows]
    for name, rows in (("lag_windows", lag), ("group_history", facts), ("group_events", events)):
        if rows:
            write_arrow(root, name, to_arrow(TABLES[name], rows))
    members = [row | of_members for each in groups for row in _members(each, joined_at)]
    write_rows(root, "group_members", members)
    write_rows(root, "generations", [_generation(each, joined_at) for each in groups])
    newest = max(row["window_start"] for row in facts)
    polled_at = newest + MINUTE + timedelta(seconds=5)
    now_facts = [_status(row, lag) for row in facts if row["window_start"] == newest]
    now_lag = [_only(row, PARTITION_STATUS.names) for row in lag if row["window_start"] == newest]
    versions = {name: Writer(str(root), "seen").version(name) for name in _PUBLISHED} | {
        "group_status": write_rows(root, "group_status", now_facts)
    }
    versions["partition_status"] = write_rows(root, "partition_status", now_lag)
    write_rows(root, "batches", [batch_row(batch_of(newest), versions, polled_at)])
    return polled_at


def evaluate(root: Path, first: int = 0, last: int = 10_000, options: Options = OPTIONS) -> None:
    """Windows by their number, each by a query that has just started: it knows what is in the
    tables only.
    """
    begin, end = (round((NOON + number * MINUTE).timestamp() * 1000) for number in (first, last))
    until = end + 2000 * options.window_seconds
    for window in find_closed(str(root), {}, begin, end, options.window_seconds, until_ms=until):
        Diagnosis(cast("Any", LocalSpark()), Writer(str(root), "c1"), options).evaluate(window, {})


def batch_of(begin: datetime) -> int:
    """The batch that closed a window."""
    return 100 + 6 * round((begin - NOON) / MINUTE)


class LocalSpark:
    """The little of Spark that the evaluation needs, in this process."""

    sparkContext = SimpleNamespace(defaultParallelism=2)  # noqa: N815 - Spark's name

    def range(self, *bounds: int) -> _Frame:
        return _Frame(list(range(*bounds[:3])))


class _Frame:
    def __init__(self, numbers: list[int]) -> None:
        self._numbers = numbers
        self._rows: list[Row] = []

    def mapInArrow(  # noqa: N802 - Spark's name
        self, evaluate_shard: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], _: str
    ) -> _Frame:
        batch = pa.RecordBatch.from_pydict({"id": self._numbers})
        self._rows = [row for found in evaluate_shard(iter([batch])) for row in found.to_pylist()]
        return self

    def collect(self) -> list[Row]:
        return self._rows


def _written(row: Row) -> Row:
    return row | {"cluster": "prod", "batch_id": batch_of(row["window_start"])}


def _generation(group: Fluid, at: datetime) -> Row:
    return {
        "date": at.date(), "cluster": "prod", "group": group.group, "generation_kind": "classic",
        "generation": 7,
        "source_partition": 3, "source_offset": 700, "record_timestamp": at, "status": "ok",
        "batch_id": 1,
        "kind": "sync", "group_type": "classic", "protocol_type": "consumer", "assignor": "range",
        "rebalance_mode": "eager", "member_count": len(group.capacity), "static_count": 0,
        "live_read": True,
    }  # fmt: skip


def _members(group: Fluid, at: datetime) -> list[Row]:
    """The members and what they own."""
    held: dict[str, list[int]] = {}
    for row in group.lag_rows:
        if row["window_start"] == NOON and row["owner"] is not None:
            held.setdefault(row["owner"], []).append(row["partition"])
    return [
        {
            "date": at.date(), "cluster": "prod", "group": group.group,
            "generation_kind": "classic", "generation": 7,
            "member_id": owner, "source_partition": 3, "source_offset": 700, "record_timestamp": at,
            "status": "ok",
            "batch_id": 1, "client_id": "app", "client_host": f"/10.0.0.{owner[1:-3]}",
            "slot": f"app/10.0.0.{owner[1:-3]}#0",
            "assigned": [{"topic": "orders", "partition": number} for number in numbers],
        }
        for owner, numbers in held.items()
    ]  # fmt: skip


def _with_lag(row: Row, lag: Sequence[Row]) -> Row:
    mine = [
        each
        for each in lag
        if (each["group"], each["window_start"]) == (row["group"], row["window_start"])
    ]
    total = sum(each["lag"] for each in mine)
    return row | {
        "rebalances_total": {},
        "lag": total,
        "lag_known": total,
        "partitions_total": len(mine),
        "partitions_ok": len(mine),
        "partitions_no_commit": 0,
        "partitions_unknown": 0,
    }


def _status(row: Row, lag: Sequence[Row]) -> Row:
    mine = [
        each
        for each in lag
        if (each["group"], each["window_start"]) == (row["group"], row["window_start"])
    ]
    return _only(row, GROUP_STATUS.names) | {
        "max_time_lag_seconds": max(each["time_lag_seconds"] for each in mine)
    }


def _only(row: Row, names: Sequence[str]) -> Row:
    return {name: value for name, value in row.items() if name in names}
