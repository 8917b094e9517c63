"""What rows of `partition_status` say to the analytics of rebalances: rates, rhythm, and the lag at any commit."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

import pyarrow as pa

from laggard.lag.tick import Tick
from laggard.rebalance.assignors_types import TopicPartition
from laggard.rebalance.facts import Commit, PartitionFacts
from laggard.rebalance.times import seconds_between

Row = Mapping[str, Any]
Points = Sequence[tuple[datetime, int]]
MIN_LAG_RECORDS = 5  # lag of less is none
_KEY = ("group", "topic", "partition")
_OF_STATUS = (
    "committed_offset", "commit_timestamp", "commit_interval_seconds", "commit_gaps", "progressed_at", "lag",
    "log_end_offset", "sampled_at", "base_at", "base_log_end_offset", "base_committed_offset", "arrival_rate",
    "consume_rate", "end_points",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Series:
    """Log ends by time, per group and partition."""

    points: Mapping[tuple[str, str, int], Points]

    def commit(self, row: Row, committed_offset: int, at: datetime) -> Commit:
        """A commit with the lag at its instant, by the log ends polled around it."""
        end = end_at(self.points.get((row["group"], row["topic"], row["partition"]), ()), at)
        lag = None if end is None else max(0, round(end) - committed_offset)
        return Commit(row["topic"], row["partition"], committed_offset, at, lag)


def read_series(before: pa.Table, after: pa.Table, tick: Tick) -> Series:
    """Log ends of the last tick and of this one."""
    points: dict[tuple[str, str, int], list[tuple[datetime, int]]] = defaultdict(list)
    for table, name in ((before, "sampled_at"), (after, None)):
        for row in table.select([*_KEY, "log_end_offset", "sampled_at"]).to_pylist():
            if row["log_end_offset"] is not None:
                at = tick.now if name is None else row[name]
                points[row["group"], row["topic"], row["partition"]].append((at, row["log_end_offset"]))
    return Series(points)


def read_partitions(before: pa.Table, tick: Tick) -> dict[str, dict[TopicPartition, PartitionFacts]]:
    """Facts of each partition by group, as they were before the tick."""
    found: dict[str, dict[TopicPartition, PartitionFacts]] = defaultdict(dict)
    for row in before.select([*_KEY, *_OF_STATUS]).to_pylist():
        found[row["group"]][row["topic"], row["partition"]] = _facts(row, tick)
    return found


def end_at(points: Points, at: datetime) -> float | None:
    """The log end at a time, on the line between the polls around it; beyond them the nearest poll's."""
    if not points:
        return None
    place = bisect_right([time for time, _ in points], at)
    if place in (0, len(points)):
        return points[min(place, len(points) - 1)][1]
    (low_at, low), (high_at, high) = points[place - 1], points[place]
    return low + (high - low) * (at - low_at) / (high_at - low_at)


def _facts(row: Row, tick: Tick) -> PartitionFacts:
    points = [(each["at"], each["log_end_offset"]) for each in row["end_points"] or ()]
    commit = None
    if row["committed_offset"] is not None and row["commit_timestamp"] is not None:
        end = end_at(points, row["commit_timestamp"])
        lag = None if end is None else max(0, round(end) - row["committed_offset"])
        commit = Commit(row["topic"], row["partition"], row["committed_offset"], row["commit_timestamp"], lag)
    arrival = _rate(row, "log_end_offset", "base_log_end_offset", "arrival_rate")
    interval, gaps = row["commit_interval_seconds"], sorted(row["commit_gaps"] or ())
    return PartitionFacts(
        commit=commit,
        progressed_at=row["progressed_at"],
        commit_interval_seconds=interval,
        commit_gap_p95_seconds=gaps[ceil(0.95 * len(gaps)) - 1] / 1000 if gaps else None,
        arrival_rate=arrival,
        consume_rate=_rate(row, "committed_offset", "base_committed_offset", "consume_rate"),
        lag=row["lag"],
        material=_is_material(row["lag"], arrival, interval, tick),
    )


def _rate(row: Row, name: str, base: str, since_tick: str) -> float | None:
    """Per second since the window before; a single tick's rate jumps with every commit."""
    seconds = seconds_between(row["sampled_at"], row["base_at"])
    if not seconds or row[name] is None or row[base] is None or row[name] < row[base]:
        rate: float | None = row[since_tick]
        return rate
    return float((row[name] - row[base]) / seconds)


def _is_material(lag: int | None, arrival: float | None, interval: float | None, tick: Tick) -> bool | None:
    """Lag above what the commit rhythm alone makes: two commit intervals of arrivals."""
    if lag is None or arrival is None:
        return None
    floor = 2 * arrival * (tick.window_seconds if interval is None else interval) + 1
    return lag > max(floor, MIN_LAG_RECORDS)
