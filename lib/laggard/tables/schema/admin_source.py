"""Columns that are unknown if commits are polled (`cluster.source = "admin"`).

The offsets topic is then not read.

A poll says where a group stands. It does not say when it committed, how often, or what its
rebalances were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_COMMITS = (
    "commit_timestamp",
    "commit_source_partition",
    "commit_interval_seconds",
    "repeat_commits",
)
_REBALANCES = (
    "generation", "last_rebalance_at", "generation_at", "roster_at", "time_in_rebalance_ratio",
    "ping_pong",
    "generations_total", "interrupted_generations_total", "static_restarts_absorbed_total",
    "rebalances_total",
    "member_changes_total", "partitions_moved_total", "partitions_moved_avoidable_total",
    "rebalancing_since",
)  # fmt: skip
_HISTOGRAMS = (
    "rebalance_duration_buckets", "rebalance_duration_sum", "rebalance_pause_buckets",
    "rebalance_pause_sum",
)  # fmt: skip
_GAPS = ("commit_gaps_total", "commit_gap_ms_total", "commit_gap_squares_total")
# table -> columns that are null in every row; a dot names a struct's field
UNKNOWN: Mapping[str, tuple[str, ...]] = {
    "partition_status": (
        *_COMMITS, "verdict", "rated", "rewound_from", "commit_age_seconds", "commit_gaps",
        "window_commits",
        "window_noop_commits", "window_lag_envelope",
    ),
    "group_status": (
        *_REBALANCES, *_HISTOGRAMS, *_GAPS, "offsets_partition", "recent_rebalances",
        "rebalance_state", "record_state",
        "topic_counters.commits", "topic_counters.noop_commits",
    ),
    "lag_windows": (*_COMMITS, "commits", "noop_commits", "lag_envelope", "late_records"),
    "group_history": (*_REBALANCES, *_GAPS, "offsets_partition"),
    "group_windows": ("commits", "noop_commits", "late_records"),
}  # fmt: skip
# tables without a row
EMPTY = ("generations", "group_members", "rebalances", "dead_letters", "deploys")


def hide_unknown(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables with null in every column that this source cannot know."""
    return {name: _without(rows, UNKNOWN.get(name, ())) for name, rows in tables.items()}


def _without(rows: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    for name in columns:
        column, _, inner = name.partition(".")
        index = rows.schema.get_field_index(column)
        if index < 0:
            continue
        field = rows.schema.field(index)
        if inner:
            values = _without_field(rows[column], inner)
        else:
            values = pa.nulls(rows.num_rows, field.type)
        rows = rows.set_column(index, field, values)
    return rows


def _without_field(lists: Any, name: str) -> pa.Array:
    """Return a column of lists of structs with one field of the structs set to null."""
    whole = lists.combine_chunks()
    flat, kinds = whole.flatten(), list(whole.type.value_type)
    fields = [
        pa.nulls(len(flat), kind.type) if kind.name == name else flat.field(kind.name)
        for kind in kinds
    ]
    lengths = whole.value_lengths().fill_null(0).to_pylist()
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    values = pa.StructArray.from_arrays(fields, fields=kinds)
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), values).cast(whole.type)
