"""Content of one scrape: a `batches` row and the tables at exactly its versions, immutable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.parameters import Policy
from laggard.exporter.body.sticky_series import Held
from laggard.exporter.evaluated import Evaluated
from laggard.exporter.options import PolicyOf, Selection, no_policy
from laggard.exporter.totals import (
    PARTITION_COLUMNS,
    TOPIC_COLUMNS,
    GroupTopics,
    exported_partitions,
    fold_group_topics,
    fold_topics,
    sort_worst_first,
)
from laggard.tables.odd_rows import VALUE, Skipped, sift_columns, sound_rows
from laggard.tables.published import BACKFILL, Batch
from laggard.tables.readers import TableUnreadable, read_newest, read_table, table_uri
from laggard.tables.schema.schemas import BATCHES, GROUP_STATUS, PARTITION_STATUS, TOPIC_WINDOWS

GROUP_COLUMNS = (
    "group", "status", "group_type", "protocol_type", "assignor", "rebalance_mode", "group_state",
    "generation",
    "group_epoch", "coordinator", "members", "static_members", "idle_members", "lag", "lag_known",
    "max_time_lag_seconds", "partitions_total", "assignment_imbalance", "last_rebalance_at",
    "time_in_rebalance_ratio",
    "ping_pong", "generations_total", "interrupted_generations_total",
    "static_restarts_absorbed_total",
    "rebalances_total", "member_changes_total", "partitions_moved_total",
    "partitions_moved_avoidable_total",
    "rebalance_duration_buckets", "rebalance_duration_sum", "rebalance_pause_buckets",
    "rebalance_pause_sum",
    "topic_counters", "outcome_counters", "empty_since", "topics", "offsets_partition",
    "shed_keys",
)  # fmt: skip

MEMBERSHIP = ("folded", "rebalance_state")  # of group_status: who has which partition

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One batch, whole. A backfill has the batch only: its rows are stale."""

    batch: Batch
    group_topics: GroupTopics = field(default_factory=lambda: GroupTopics((), (), {}))
    partitions: Sequence[Row] = ()  # the exported ones, worst first inside a group–topic
    groups: Sequence[Row] = ()
    topics: Sequence[Row] = ()  # of the newest closed window
    # as far as the rules are, which follow the batches
    evaluated: Evaluated = field(default_factory=Evaluated)
    # by group, at the time of the poll
    policies: Mapping[str, Policy] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    # for the names of other tools only; one row per key, as read
    every_partition: pa.Table | None = None
    worst: Sequence[Row] = ()  # of each group–topic, if none is exported for its lag

    @property
    def cluster(self) -> str:
        return self.batch.cluster

    @property
    def polled_at(self) -> float:
        """Poll time in seconds since 1970, by the wall clock of the job's machine."""
        return self.batch.clock_at.timestamp()

    @property
    def group_names(self) -> list[str | None]:
        """Every group that any part of it names."""
        parts = (self.partitions, self.groups, self.evaluated.windows, self.evaluated.findings)
        names = map(itemgetter("group"), chain.from_iterable(parts))
        return sorted({*names, *self.group_topics.group}, key=str)

    def of_groups(self, names: Collection[str | None]) -> Snapshot:
        """Return the snapshot of these groups only; findings about the cluster belong to None."""

        def among(rows: Sequence[Row]) -> list[Row]:
            return [row for row in rows if row["group"] in names]

        seen = self.evaluated
        every = self.every_partition
        if every is not None:
            every = every.filter(
                pc.is_in(every["group"], value_set=pa.array([*names], pa.string()))
            )
        return replace(
            self,
            group_topics=self.group_topics.of_groups(names),
            partitions=among(self.partitions),
            every_partition=every,
            worst=among(self.worst),
            groups=among(self.groups),
            evaluated=replace(seen, windows=among(seen.windows), findings=among(seen.findings)),
            policies={group: policy for group, policy in self.policies.items() if group in names},
        )

    def of_topics(self, names: Collection[str | None]) -> Snapshot:
        """Return the snapshot with only the rows of these topics in `topics`."""
        return replace(self, topics=[row for row in self.topics if row["topic"] in names])


@dataclass(frozen=True, slots=True)
class Read:
    """Rows of the tables that one batch names."""

    partitions: pa.Table
    groups: pa.Table
    topics: pa.Table


def load_snapshot(
    root: str,
    batch: Batch,
    selection: Selection,
    skipped: Skipped | None = None,
    policy: PolicyOf = no_policy,
    held: Held | None = None,
) -> Snapshot:
    """Read the versions a batch names, and fold them; what is odd is counted in `skipped`."""
    if batch.kind == BACKFILL:
        return Snapshot(batch)
    if skipped is None:
        skipped = Skipped()
    of_partitions, of_groups = [*PARTITION_COLUMNS], [*GROUP_COLUMNS]
    if selection.needs_members:
        of_partitions.append("topic_id")
        of_groups += MEMBERSHIP
    read = Read(
        read_table(
            root, PARTITION_STATUS.name, _version(root, batch, PARTITION_STATUS.name), of_partitions
        ),
        read_table(root, GROUP_STATUS.name, _version(root, batch, GROUP_STATUS.name), of_groups),
        read_newest(
            root, TOPIC_WINDOWS.name, _version(root, batch, TOPIC_WINDOWS.name), TOPIC_COLUMNS
        ),
    )
    return make_snapshot(batch, read, selection, skipped, policy, held)


def make_snapshot(
    batch: Batch,
    read: Read,
    selection: Selection,
    skipped: Skipped,
    policy: PolicyOf = no_policy,
    held: Held | None = None,
) -> Snapshot:
    """Fold what was read."""
    key = ("group", "topic", "partition")
    partitions = sort_worst_first(
        sift_columns(read.partitions, PARTITION_STATUS.name, key, skipped)
    )
    groups = sound_rows(read.groups, GROUP_STATUS.name, skipped, unique=("group",))
    policies = {}
    for row in groups:
        _drop_odd_counters(row, skipped)
        policies[row["group"]] = policy(batch.cluster, row["group"], batch.polled_at)
    exported, bare = _exported(partitions, policies, selection, held, batch.polled_at.timestamp())
    partial = {row["group"] for row in groups if row["shed_keys"]}
    topic_key = ("topic", "partition", "window_start")
    topics = sift_columns(read.topics, TOPIC_WINDOWS.name, topic_key, skipped)
    every_partition = _first_of_each(partitions, key) if selection.compat else None
    return Snapshot(
        batch,
        fold_group_topics(partitions).partial_in(partial),
        _unique(exported, key),
        sorted(groups, key=lambda row: str(row["group"])),
        fold_topics(topics),
        policies=policies,
        selection=selection,
        every_partition=every_partition,
        worst=_unique(exported_partitions(bare, 1), key),
    )


def _exported(
    partitions: pa.Table,
    policies: Mapping[str, Policy],
    selection: Selection,
    held: Held | None,
    at: float,
) -> tuple[pa.Table, pa.Table]:
    """Choose the partitions with series of their own.

    The second table has the partitions of groups with no partition exported for its lag.
    """
    whole = [name for name in policies if policies[name].exports_all]
    hidden = [name for name in policies if policies[name].exports_none]
    is_hidden = pc.is_in(partitions["group"], value_set=pa.array(hidden, pa.string()))
    seen = partitions
    if hidden:
        seen = partitions.filter(pc.invert(is_hidden))
    exported = exported_partitions(seen, selection.partition_top_k, whole, held, at)
    if selection.partition_top_k:
        return exported, partitions.filter(is_hidden)
    return exported, partitions


def _drop_odd_counters(row: Row, skipped: Skipped) -> None:
    for column in ("topic_counters", "outcome_counters"):
        topics = [counter and counter["topic"] for counter in row[column] or ()]
        if None in topics or len({*topics}) < len(topics):
            row[column] = None
            wrong = f"of group {row['group']!r}: {column} has a topic twice or one without a name"
            skipped.add(GROUP_STATUS.name, VALUE, 1, wrong)


def _version(root: str, batch: Batch, name: str) -> int:
    version = batch.table_versions.get(name)
    if version is None:
        raise TableUnreadable(
            table_uri(root, BATCHES.name), f"batch {batch.batch_id} names no version of {name}"
        )
    return version


def _first_of_each(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Return the first row of each key as `_unique` does, but without a dict per row."""
    numbered = rows.select(key).append_column("place", pa.array(np.arange(len(rows))))
    first = numbered.group_by(list(key), use_threads=False).aggregate([("place", "min")])[
        "place_min"
    ]
    return rows.take(np.sort(first.to_numpy()))


def _unique(rows: pa.Table, key: tuple[str, ...]) -> list[Row]:
    """Return the first row of each key.

    A recreated topic has a row per topic id, and a scrape allows one.
    """
    seen: dict[tuple[Any, ...], Row] = {}
    for row in rows.to_pylist():
        seen.setdefault(itemgetter(*key)(row), row)
    return list(seen.values())
