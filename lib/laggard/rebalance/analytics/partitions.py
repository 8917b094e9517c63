"""Inputs of the rebalance analytics from `partition_status`: rates, commit interval, lag.

The lag is that at any commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import as_double, both, by_name, seconds_between, tuples, where
from laggard.lag.commit_gaps import gap_seconds
from laggard.lag.reached import reached_since_base
from laggard.lag.tick import Tick
from laggard.lag.time_lag import log_end_at
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import Commit, PartitionFacts
from laggard.rebalance.parameters import RebalanceParameters

Row = Mapping[str, Any]
_KEY = ("group", "topic", "partition")
_AS_THEY_ARE = (
    "committed_offset",
    "commit_timestamp",
    "commit_interval_seconds",
    "progressed_at",
    "lag",
)


@dataclass(frozen=True, slots=True)
class Series:
    """Log ends at the tick before and at this one, per group and partition."""

    ends: Mapping[tuple[str, str, int], tuple[int | None, int | None]]
    begin: datetime | None
    now: datetime

    def commit(self, row: Row, committed_offset: int, at: datetime) -> Commit:
        """Return a commit with the lag at its time, interpolated between the two polls."""
        low, high = self.ends.get((row["group"], row["topic"], row["partition"]), (None, None))
        lag = None
        if high is not None:
            end = high
            if low is not None and self.begin is not None and self.begin < self.now:
                share = (at - self.begin) / (self.now - self.begin)
                end = low + round((high - low) * min(1.0, max(0.0, share)))
            lag = max(0, end - committed_offset)
        return Commit(row["topic"], row["partition"], committed_offset, at, lag)


def read_series(before: pa.Table, after: pa.Table, tick: Tick) -> Series:
    """Log ends of rows before and after the tick."""
    low = dict(zip(_keys(before), before["log_end_offset"].to_pylist(), strict=True))
    high = dict(zip(_keys(after), after["log_end_offset"].to_pylist(), strict=True))
    begin = pc.max(before["sampled_at"]).as_py()
    return Series({key: (low.get(key), end) for key, end in high.items()}, begin, tick.now)


def read_partitions(
    before: pa.Table, tick: Tick, parameters: RebalanceParameters
) -> dict[str, dict[TopicPartition, PartitionFacts]]:
    """Return facts of each partition by group, as they were before the tick."""
    seconds = seconds_between(before["sampled_at"], before["base_at"])
    rates = {
        "arrival": window_rate(arrived_since_base(before), before["arrival_rate"], seconds),
        "consumed": window_rate(reached_since_base(before), before["consume_rate"], seconds),
    }
    end = log_end_at(before["end_points"], before["commit_timestamp"])
    columns = {
        **by_name(before.select(_AS_THEY_ARE)),
        **rates,
        "lag_at_commit": pc.max_element_wise(
            pc.subtract(end, before["committed_offset"]), 0, skip_nulls=False
        ),
        "gap_p95": gap_seconds(before["commit_gaps"], 0.95),
        "material": pc.greater(
            as_double(before["lag"]), floor_records(before, rates["arrival"], tick, parameters)
        ),
    }
    facts: dict[str, dict[TopicPartition, PartitionFacts]] = defaultdict(dict)
    for key, *values in zip(
        _keys(before), *(column.to_pylist() for column in columns.values()), strict=True
    ):
        facts[key[0]][key[1:]] = _facts(key, dict(zip(columns, values, strict=True)))
    return facts


def _facts(key: tuple[str, str, int], row: Row) -> PartitionFacts:
    commit = None
    if row["committed_offset"] is not None and row["commit_timestamp"] is not None:
        commit = Commit(
            *key[1:], row["committed_offset"], row["commit_timestamp"], row["lag_at_commit"]
        )
    return PartitionFacts(
        commit=commit,
        progressed_at=row["progressed_at"],
        commit_interval_seconds=row["commit_interval_seconds"],
        commit_gap_p95_seconds=row["gap_p95"],
        arrival_rate=row["arrival"],
        consume_rate=row["consumed"],
        lag=row["lag"],
        material=row["material"],
    )


def _keys(table: pa.Table) -> list[tuple[str, str, int]]:
    return list(tuples(table, _KEY))


def arrived_since_base(rows: pa.Table) -> Any:
    """Return records that arrived since the last tick of the previous window, per row.

    The rows are those of `partition_status`.
    """
    return pc.subtract(rows["log_end_offset"], rows["base_log_end_offset"])


def window_rate(risen: Any, since_tick: Any, seconds: Any) -> Any:
    """Return the rise per second since the last tick of the window before.

    The rate of one tick varies with commits.

    `risen`: records since that tick, so many `seconds` ago. `since_tick`: the rate of the newest
    tick, for where that is not known.
    """
    is_known = both(pc.greater(seconds, 0), pc.greater_equal(risen, 0))
    rate = pc.divide(as_double(where(is_known, risen)), seconds)
    return pc.coalesce(rate, since_tick)


def floor_records(rows: pa.Table, arrival: Any, tick: Tick, parameters: RebalanceParameters) -> Any:
    """Return the lag that the commit interval alone makes: two intervals of arrivals.

    It is at least `min_lag_records`.
    """
    interval = pc.coalesce(rows["commit_interval_seconds"], pa.scalar(float(tick.window_seconds)))
    floor = pc.add(pc.multiply(pc.multiply(arrival, interval), parameters.floor_intervals), 1.0)
    return pc.max_element_wise(floor, float(parameters.min_lag_records), skip_nulls=False)
