"""From partition rows to group–topic rows, without a Python step per partition."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.signals.significance import measure
from laggard.exporter.body.families import RECORD_BOUNDS, SECOND_BOUNDS
from laggard.exporter.body.sticky_series import Held, count_before
from laggard.lag.arrays import as_double, where
from laggard.lag.burrow import OK, VERDICTS
from laggard.lag.status import KNOWN_STATUSES, STATUSES

PARTITION_COLUMNS = (
    "group", "topic", "partition", "status", "poll_id", "commit_timestamp", "committed_offset",
    "log_end_offset",
    "log_start_offset", "lag", "time_lag_seconds", "time_lag_error_seconds", "time_lag_censored",
    "readable_records",
    "verdict",
)  # fmt: skip
TOPIC_COLUMNS = (
    "topic", "partition", "window_start", "status", "poll_id", "log_start_offset", "log_end_offset",
    "arrival_rate",
)  # fmt: skip
_MICROSECONDS = 1e6
# columns that are None if a part is not known
_WHOLE = ("lag", "time_lag", "uncommitted", "unrated")
_BAD_PARTITIONS = 20  # exported partitions per group–topic because of their status


@dataclass(frozen=True, slots=True)
class GroupTopics:
    """One entry per group–topic in every column, in the order of their names; None is unknown."""

    group: Sequence[str]
    topic: Sequence[str]
    columns: Mapping[str, Sequence[Any]]

    def of_groups(self, names: Collection[str | None]) -> GroupTopics:
        """Return the entries of these groups."""
        is_wanted = [group in names for group in self.group]
        columns = {name: list(compress(values, is_wanted)) for name, values in self.columns.items()}
        group, topic = compress(self.group, is_wanted), compress(self.topic, is_wanted)
        return GroupTopics(list(group), list(topic), columns)

    def partial_in(self, names: Collection[str | None]) -> GroupTopics:
        """Return the entries with unknown totals for these groups, which lack partition rows."""
        if not names:
            return self
        columns = dict(self.columns)
        is_partial = [group in names for group in self.group]
        for column in columns.keys() & set(_WHOLE):
            values = zip(columns[column], is_partial, strict=True)
            columns[column] = [None if is_hidden else value for value, is_hidden in values]
        return GroupTopics(self.group, self.topic, columns)

    def commits_by_group(self) -> dict[str, int]:
        """Return the number of partitions with a commit, by group."""
        commits: dict[str, int] = {}
        for group, count in zip(self.group, self.columns.get("committed", ()), strict=True):
            commits[group] = commits.get(group, 0) + count
        return commits

    def rows(self) -> list[dict[str, Any]]:
        """Return the entries as one dict per group–topic."""
        columns = {"group": self.group, "topic": self.topic, **self.columns}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def worst_verdict(topics: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the worst verdict of these entries.

    The result is None if the verdict would be ok and a committed partition has no verdict.
    """
    rows = list(topics)
    worst = max((row["verdict"] for row in rows if row["verdict"] is not None), default=None)
    # None is unknown: a shed key may have a worse verdict
    is_whole = all(row["unrated"] == 0 for row in rows)
    if worst is None or (worst == VERDICTS.index(OK) and not is_whole):
        return None
    return VERDICTS[worst]


def sort_worst_first(partitions: pa.Table) -> pa.Table:
    """Sort by group and topic, then time lag, lag and partition; add group–topic number `pair`."""
    group, topic = _codes(partitions["group"]), _codes(partitions["topic"])
    seconds = pc.fill_null(partitions["time_lag_seconds"], -1.0).to_numpy()
    records = pc.fill_null(partitions["lag"], -1).to_numpy()
    order = np.lexsort((partitions["partition"].to_numpy(), -records, -seconds, topic, group))
    group, topic = group[order], topic[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (group[1:] != group[:-1]) | (topic[1:] != topic[:-1])
    return partitions.take(order).append_column("pair", pa.array(np.cumsum(is_new) - 1))


def fold_group_topics(partitions: pa.Table) -> GroupTopics:
    """Return sums, maxima and distributions of sorted partition rows; None for incomplete ones."""
    measures = pa.table({"pair": partitions["pair"], **_measures(partitions)})
    names = measures.column_names[1:]
    plans = [(name, _AGGREGATES.get(name, "sum")) for name in names]
    folded = measures.group_by("pair", use_threads=False).aggregate(plans)
    columns = {name: folded[f"{name}_{how}"].combine_chunks() for name, how in plans}
    lists = {name: column.to_pylist() for name, column in _close(columns).items()}
    return GroupTopics(lists.pop("group"), lists.pop("topic"), lists)


def exported_partitions(
    partitions: pa.Table,
    top_k: int,
    whole_groups: Sequence[str] = (),
    held: Held | None = None,
    at: float = 0.0,
) -> pa.Table:
    """Return the `top_k` worst partitions of each group–topic and some others.

    The others are those `held`, up to 20 of bad status, and all of `whole_groups`.
    """
    pair = partitions["pair"].to_numpy()
    rank = np.arange(len(pair)) - np.searchsorted(pair, pair)
    is_bad = ~np.asarray(_is_known(partitions))
    is_worst = held.choose(partitions, rank, top_k, at) if held else rank < top_k
    is_chosen = pa.array(is_worst | (is_bad & (count_before(is_bad, rank) < _BAD_PARTITIONS)))
    is_whole = pc.is_in(partitions["group"], value_set=pa.array(whole_groups, pa.string()))
    return partitions.filter(pc.or_(is_chosen, is_whole))


def fold_topics(windows: pa.Table) -> list[dict[str, Any]]:
    """Return per topic the newest partitions, retained records, arrival rate and gini.

    A value is None if a partition lacks it.
    """
    is_newest = pc.equal(windows["window_start"], pc.max(windows["window_start"]))
    there = windows.filter(pc.and_(is_newest, pc.not_equal(windows["status"], "topic_missing")))
    there = there.append_column(
        "retained", pc.subtract(there["log_end_offset"], there["log_start_offset"])
    )
    # a recreated topic within the window has a row per topic id: the newest poll counts
    ordered = there.sort_by(
        [("topic", "ascending"), ("partition", "ascending"), ("poll_id", "descending")]
    )
    whole = pc.ScalarAggregateOptions(skip_nulls=False)
    unique = ordered.group_by(["topic", "partition"], use_threads=False).aggregate(
        [("retained", "first", whole), ("arrival_rate", "first", whole)]
    )
    topics = unique.group_by("topic", use_threads=False).aggregate(
        [
            ("partition", "count"),
            ("retained_first", "sum", whole),
            ("arrival_rate_first", "sum", whole),
            ("arrival_rate_first", "list"),
        ]
    )
    rows = topics.rename_columns(
        ["topic", "partitions", "retained", "arrival_rate", "rates"]
    ).to_pylist()
    return [{**row, "arrival_gini": _gini(row.pop("rates"))} for row in rows]


def _gini(values: Sequence[float | None]) -> float | None:
    """Return the Gini coefficient from 0 to 1.

    The result is None if a value is unknown, for one value, and if all are 0.
    """
    if None in values:
        return None
    with np.errstate(all="ignore"):  # of rates that cannot be, nothing comes out
        gini = measure(np.array(values, dtype=float), np.arange(len(values))).gini
    if not np.isfinite(gini):
        return None
    return gini


_AGGREGATES = {
    "group": "first", "topic": "first", "max_lag": "max", "time_lag_known": "max",
    "time_lag_error": "first",
    "is_censored": "max", "retention_used": "max", "verdict": "max", "oldest_commit": "min",
    "newest_commit": "max",
    "first_commit": "min",
}  # fmt: skip


def _measures(partitions: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return one column per measure to fold; null if the partition does not take part."""
    status = partitions["status"]
    is_ok = pc.equal(status, "ok")
    lag = where(is_ok, partitions["lag"])
    seconds = where(is_ok, partitions["time_lag_seconds"])
    commits = pc.divide(
        as_double(pc.cast(partitions["commit_timestamp"], pa.int64())), _MICROSECONDS
    )
    retained = pc.subtract(partitions["log_end_offset"], partitions["log_start_offset"])
    is_bare = pc.equal(status, "no_commit")
    verdict = where(is_ok, pc.index_in(partitions["verdict"], value_set=pa.array(VERDICTS)))
    return {
        "group": partitions["group"],
        "topic": partitions["topic"],
        "lag_known": lag,
        "max_lag": lag,
        "time_lag_known": seconds,
        "time_lag_error": where(is_ok, partitions["time_lag_error_seconds"]),
        "is_censored": _number(where(is_ok, partitions["time_lag_censored"])),
        "readable": pc.if_else(
            pc.equal(status, "below_log_start"), partitions["readable_records"], 0
        ),
        "uncommitted": pc.if_else(is_bare, retained, 0),
        "uncommitted_unknown": _number(pc.and_(is_bare, pc.is_null(retained))),
        "verdict": verdict,
        "unrated": _number(pc.and_(pc.invert(pc.fill_null(is_bare, False)), pc.is_null(verdict))),
        "retention_used": pc.divide(
            as_double(lag), as_double(where(pc.greater(retained, 0), retained))
        ),
        "oldest_commit": where(pc.greater(lag, 0), commits),
        "newest_commit": commits,
        "first_commit": commits,
        "partitions_bad": _number(pc.invert(_is_known(partitions))),
        "committed": _number(pc.is_valid(partitions["committed_offset"])),
        "untimed": _number(pc.and_(is_ok, pc.is_null(seconds))),
        "time_lag_total": seconds,
        **{f"status_{name}": _number(pc.equal(status, name)) for name in STATUSES},
        **{f"lag_le_{bound}": _number(pc.less_equal(lag, bound)) for bound in RECORD_BOUNDS},
        "lag_le_inf": _number(pc.is_valid(lag)),
        **{
            f"seconds_le_{bound}": _number(pc.less_equal(seconds, bound)) for bound in SECOND_BOUNDS
        },
        "seconds_le_inf": _number(pc.is_valid(seconds)),
    }


def _close(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Set a sum that lacks rows to null."""
    is_whole = pc.equal(columns["partitions_bad"], 0)
    is_timed = pc.and_(is_whole, pc.equal(columns["untimed"], 0))
    is_exact = pc.and_(is_timed, pc.equal(columns["is_censored"], 0))
    has_ends = pc.equal(columns["uncommitted_unknown"], 0)
    return {
        **columns,
        "lag": where(is_whole, columns["lag_known"]),
        "time_lag": where(is_exact, columns["time_lag_known"]),
        "uncommitted": where(has_ends, columns["uncommitted"]),
    }


def _is_known(partitions: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(partitions["status"], pa.array(KNOWN_STATUSES))


def _number(flags: Any) -> Any:
    return pc.cast(flags, pa.int64())


def _codes(names: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return a number per name that sorts as the names do."""
    encoded = pc.dictionary_encode(names.combine_chunks())
    ranks = np.empty(len(encoded.dictionary), dtype=np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    return np.asarray(ranks[encoded.indices.to_numpy()])
