"""What one scrape shows: one `batches` row and the tables at exactly the versions it names, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from laggard.diagnosis.policy import Policy
from laggard.exporter.fold import (
    PARTITION_COLUMNS,
    TOPIC_COLUMNS,
    GroupTopics,
    exported_partitions,
    fold_group_topics,
    fold_topics,
    sort_worst_first,
)
from laggard.exporter.judged import Judged
from laggard.tables.readers import BACKFILL, Batch, TableUnreadable, read_newest, read_table, table_uri
from laggard.tables.schemas import BATCHES, GROUP_STATUS, PARTITION_STATUS, TOPIC_WINDOWS

GROUP_COLUMNS = (
    "group", "status", "group_type", "protocol_type", "assignor", "rebalance_mode", "group_state", "generation",
    "group_epoch", "coordinator", "members", "static_members", "idle_members", "lag", "lag_known",
    "max_time_lag_seconds", "partitions_total", "assignment_imbalance", "last_rebalance_at", "time_in_rebalance_ratio",
    "ping_pong", "generations_total", "interrupted_generations_total", "static_restarts_absorbed_total",
    "rebalances_total", "member_changes_total", "partitions_moved_total", "partitions_moved_avoidable_total",
    "rebalance_duration_buckets", "rebalance_duration_sum", "rebalance_pause_buckets", "rebalance_pause_sum",
    "topic_counters", "outcome_counters", "empty_since", "topics",
)  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One batch, whole. A backfill has the batch only: its rows are stale."""

    batch: Batch
    group_topics: GroupTopics = field(default_factory=lambda: GroupTopics((), (), {}))
    partitions: Sequence[Row] = ()  # the exported ones, worst first inside a group–topic
    groups: Sequence[Row] = ()
    topics: Sequence[Row] = ()  # of the newest closed window
    judged: Judged = field(default_factory=Judged)  # as far as the rules are, which follow the batches
    policies: Mapping[str, Policy] = field(default_factory=dict)  # by group, at the time of the poll

    @property
    def cluster(self) -> str:
        return self.batch.cluster

    @property
    def polled_at(self) -> float:
        """Poll time in seconds since 1970."""
        return self.batch.polled_at.timestamp()


def load_snapshot(root: str, batch: Batch, partition_top_k: int) -> Snapshot:
    """Read the versions a batch names, and fold them."""
    if batch.kind == BACKFILL:
        return Snapshot(batch)
    partitions = sort_worst_first(
        read_table(root, PARTITION_STATUS.name, _version(root, batch, PARTITION_STATUS.name), PARTITION_COLUMNS)
    )
    groups = read_table(root, GROUP_STATUS.name, _version(root, batch, GROUP_STATUS.name), GROUP_COLUMNS)
    topics = read_newest(root, TOPIC_WINDOWS.name, _version(root, batch, TOPIC_WINDOWS.name), TOPIC_COLUMNS)
    return Snapshot(
        batch,
        fold_group_topics(partitions),
        _unique(exported_partitions(partitions, partition_top_k), ("group", "topic", "partition")),
        sorted(groups.to_pylist(maps_as_pydicts="strict"), key=lambda row: str(row["group"])),
        fold_topics(topics),
    )


def _version(root: str, batch: Batch, name: str) -> int:
    version = batch.table_versions.get(name)
    if version is None:
        raise TableUnreadable(table_uri(root, BATCHES.name), f"batch {batch.batch_id} names no version of {name}")
    return version


def _unique(rows: pa.Table, key: tuple[str, ...]) -> list[Row]:
    """The first row of each key: a topic made anew has one per topic id, and a scrape allows one."""
    seen: dict[tuple[Any, ...], Row] = {}
    for row in rows.to_pylist():
        seen.setdefault(tuple(row[name] for name in key), row)
    return list(seen.values())
