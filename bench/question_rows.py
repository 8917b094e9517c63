"""Windows of one day for bench/questions.py: 50 groups of 20 partitions over 10 topics.

There is a window a minute.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import TABLES

GROUPS, PARTITIONS, TOPICS, WINDOWS = 50, 20, 10, 1440


def lag_windows(begin: datetime, random: np.random.Generator) -> pa.Table:
    """Return a row per partition and window; every fifth group falls behind its SLO for an hour."""
    count = GROUPS * PARTITIONS
    shape = (WINDOWS, count)
    group = np.repeat(np.arange(GROUPS), PARTITIONS)
    partition = np.tile(np.arange(PARTITIONS), GROUPS)
    produced = random.poisson(600, shape)
    ends = produced.cumsum(axis=0) + 10**9
    lag = random.poisson(50, shape)
    late = np.zeros(shape, np.int64)
    late[600:660, group % 5 == 0] = random.poisson(20, (60, int((group % 5 == 0).sum())))
    times = _times(begin, count)
    rate = produced / 60
    some = random.integers(0, 20, WINDOWS * count) > 0
    return frame(
        "lag_windows",
        WINDOWS * count,
        {
            **times,
            "cluster": _text(["prod"], 0, WINDOWS * count),
            "group": _text(names("group"), np.tile(group, WINDOWS)),
            "topic": _text(names("topic"), np.tile(group % TOPICS, WINDOWS)),
            "topic_id": _text(["AAAAAAAAAAAAAAAAAAAAAA"], 0, WINDOWS * count),
            "partition": pa.array(np.tile(partition, WINDOWS), pa.int32()),
            "status": _text(["ok"], 0, WINDOWS * count),
            "commit_source_offset": ends.ravel(),
            "commit_source_partition": pa.array(np.tile(group, WINDOWS), pa.int32()),
            "commit_timestamp": times["window_end"],
            "committed_offset": (ends - lag).ravel(),
            "log_end_offset": ends.ravel(),
            "log_start_offset": np.repeat(np.arange(WINDOWS) + 10**8, count),
            "ticks": pa.array(np.full(WINDOWS * count, 6), pa.int32()),
            "ok_ticks": pa.array(np.full(WINDOWS * count, 6), pa.int32()),
            "lag": lag.ravel(),
            "lag_min": (lag // 2).ravel(),
            "lag_max": (lag * 2).ravel(),
            "time_lag_seconds": lag.ravel() / 10,
            "time_lag_method": _text(["history"], 0, WINDOWS * count),
            "time_lag_error_seconds": np.full(WINDOWS * count, 10.0),
            "time_lag_censored": pa.array(np.zeros(WINDOWS * count, bool)),
            "lost_records": np.zeros(WINDOWS * count, np.int64),
            "produced": pa.array(produced.ravel(), mask=~some),
            "consumed": produced.ravel(),
            "arrival_rate": rate.ravel(),
            "consume_rate": rate.ravel(),
            "commits": np.full(WINDOWS * count, 12),
            "noop_commits": np.zeros(WINDOWS * count, np.int64),
            "rewound_records": np.zeros(WINDOWS * count, np.int64),
            "lag_envelope": (lag // 2).ravel(),
            "commit_interval_seconds": np.full(WINDOWS * count, 5.0),
            "frozen_seconds": np.zeros(WINDOWS * count),
            "headroom_records": (ends - 10**8).ravel(),
            "matured_records": produced.ravel(),
            "late_records": late.ravel(),
            "owner": _text(
                names("member-of-a-long-name", 200), np.tile(np.arange(count) // 5, WINDOWS)
            ),
            "slot": _text(names("slot", 200), np.tile(np.arange(count) // 5, WINDOWS)),
            "client_id": _text(names("client", 200), np.tile(np.arange(count) // 5, WINDOWS)),
            "client_host": _text(names("/10.0.0.", 40), np.tile(np.arange(count) // 25, WINDOWS)),
            "generation": pa.array(np.full(WINDOWS * count, 7), pa.int32()),
            "leader_broker": pa.array(np.tile(partition % 3, WINDOWS), pa.int32()),
        },
    )


def topic_windows(begin: datetime, random: np.random.Generator) -> pa.Table:
    count = TOPICS * PARTITIONS
    produced = random.poisson(600, WINDOWS * count)
    return frame(
        "topic_windows",
        WINDOWS * count,
        {
            **_times(begin, count),
            "cluster": _text(["prod"], 0, WINDOWS * count),
            "topic": _text(
                names("topic"), np.tile(np.repeat(np.arange(TOPICS), PARTITIONS), WINDOWS)
            ),
            "topic_id": _text(["AAAAAAAAAAAAAAAAAAAAAA"], 0, WINDOWS * count),
            "partition": pa.array(
                np.tile(np.tile(np.arange(PARTITIONS), TOPICS), WINDOWS), pa.int32()
            ),
            "status": _text(["ok"], 0, WINDOWS * count),
            "produced": produced,
            "arrival_rate": produced / 60,
        },
    )


def group_windows(begin: datetime, random: np.random.Generator) -> pa.Table:
    size = WINDOWS * GROUPS
    lag = random.poisson(1000, size)
    numbers = (
        "lag",
        "lag_known",
        "lag_max",
        "lag_envelope",
        "produced",
        "consumed",
        "commits",
        "matured_records",
    )
    ratios = (
        "arrival_rate", "consume_rate", "max_time_lag_seconds", "p50_time_lag_seconds", "gini",
        "slope",
        "drain_low_seconds", "drain_high_seconds", "busy_share",
    )  # fmt: skip
    return frame(
        "group_windows",
        size,
        {
            **_of_groups(begin),
            "topic": _text(names("topic"), np.tile(np.arange(GROUPS) % TOPICS, WINDOWS)),
            **dict.fromkeys(numbers, lag),
            **{name: random.random(size) for name in ratios},
            "late_records": random.poisson(1, size),
            "noop_commits": random.poisson(1, size),
            "lost_records": np.zeros(size, np.int64),
            "drain_seconds": random.random(size) * 600,
            "loss_seconds": random.random(size) * 1e6,
            "partitions_material": pa.array(random.integers(0, 5, size), pa.int32()),
            "partitions_unknown": pa.array(np.zeros(size), pa.int32()),
            "members": pa.array(np.full(size, 5), pa.int32()),
            "idle_members": pa.array(np.full(size, 1), pa.int32()),
            "scale_verdict": _text(["NOT_NEEDED", "YES"], random.integers(0, 2, size)),
            "shape": _text(["none", "spread"], random.integers(0, 2, size)),
        },
    )


def group_history(begin: datetime) -> pa.Table:
    size = WINDOWS * GROUPS
    return frame(
        "group_history",
        size,
        {
            **_of_groups(begin),
            "assignor": _text(["range"], 0, size),
            "members": pa.array(np.full(size, 5), pa.int32()),
            "static_members": pa.array(np.zeros(size), pa.int32()),
            "ping_pong": np.full(size, 0.1),
        },
    )


def _of_groups(begin: datetime) -> dict[str, Any]:
    return {
        **_times(begin, GROUPS),
        "cluster": _text(["prod"], 0, WINDOWS * GROUPS),
        "group": _text(names("group"), np.tile(np.arange(GROUPS), WINDOWS)),
        "status": _text(["ok"], 0, WINDOWS * GROUPS),
    }


def _times(begin: datetime, count: int) -> dict[str, pa.Array]:
    start = int(begin.timestamp()) * 10**6 + np.repeat(np.arange(WINDOWS), count) * 60 * 10**6
    kind = pa.timestamp("us", tz="UTC")
    return {
        "date": pa.array(np.full(len(start), np.datetime64(begin.date())), pa.date32()),
        "window_start": pa.array(start).cast(kind),
        "window_end": pa.array(start + 60 * 10**6).cast(kind),
    }


def names(what: str, count: int = GROUPS) -> list[str]:
    return [f"{what}-{n}" if what == "topic" else f"{what}-{n:02d}" for n in range(count)]


def _text(values: list[str], places: Any, size: int = 0) -> pa.Array:
    return pa.array(values).take(pa.array(np.full(size, places) if size else places))


def columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    keys = dict.fromkeys(key for row in rows for key in row)
    return {name: [row.get(name) for row in rows] for name in keys}


def frame(name: str, size: int, columns: dict[str, Any]) -> pa.Table:
    arrays = []
    for field in arrow_schema(TABLES[name]):
        values = columns.get(field.name)
        if values is None:
            arrays.append(pa.nulls(size, field.type))
        elif isinstance(values, pa.Array):
            arrays.append(values.cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.table(arrays, schema=arrow_schema(TABLES[name]))
