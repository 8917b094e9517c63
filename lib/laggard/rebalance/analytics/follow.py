"""Rebalances of a batch: rows and records given to each group's analytics, and their results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa

from laggard.lag.arrays import of_groups
from laggard.lag.tick import Tick
from laggard.rebalance.analytics.logical import advance
from laggard.rebalance.analytics.partitions import Series, read_partitions, read_series
from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.analytics.state import OpenRebalance, from_text, to_text
from laggard.rebalance.facts import Commit, Generation, Surroundings
from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters

Row = dict[str, Any]
Facts = Mapping[str, list[tuple[int, Generation]]]
LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Followed:
    """Results per inspected group: its state as text, the rebalance due for a row, current rows."""

    texts: dict[str, str]
    under_way: dict[str, OpenRebalance | None]
    closed: dict[str, list[Closed]]


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits of a batch: one row per key, and in groups with records of their own the edges."""

    commits: pa.Table
    edges: pa.Table


def follow_rebalances(
    facts: Facts,
    texts: Mapping[str, str | None],
    groups: Mapping[str, Row],
    batch: Commits,
    partition_status: tuple[pa.Table, pa.Table],
    tick: Tick,
    parameters: RebalanceParameters = DEFAULTS,
) -> Followed:
    """Bring the rebalances of some groups up to date.

    `texts`: their column rebalance_state so far. `groups`: rows of `group_status` now.
    `partition_status`: rows before and after the tick.
    """
    rows = (*partition_status, batch.commits, batch.edges)
    before, after, commits, edges = (of_groups(table, texts) for table in rows)
    known = read_partitions(before, tick, parameters)
    seen = _commits(edges, read_series(before, after, tick), commits, without=facts.keys())
    followed = Followed({}, {}, {})
    for group, text in texts.items():
        row = groups.get(group, {})
        events = sorted([*facts.get(group, ()), *seen.get(group, ())], key=lambda entry: entry[0])
        closed, state = advance(
            from_text(text),
            [event for _, event in events],
            known.get(group, {}),
            _surroundings(group, row, tick),
            _read_until(row, tick),
            parameters,
        )
        followed.texts[group] = to_text(state)
        followed.under_way[group] = state.open
        followed.closed[group] = closed
    return followed


def _surroundings(group: str, row: Mapping[str, Any], tick: Tick) -> Surroundings:
    return Surroundings(
        tick.cluster,
        group,
        coordinator=row.get("coordinator"),
        coordinator_changed_at=row.get("coordinator_changed_at"),
        partitions_added_at=row.get("partitions_added_at"),
    )


def _read_until(row: Mapping[str, Any], tick: Tick) -> datetime:
    """Return the time up to which the group's records are read.

    This is the poll's time, or long ago if some records are not read yet.
    """
    number = row.get("offsets_partition")
    is_blocked = number in tick.blocked_partitions or number in tick.unread_partitions
    # by the clock that the brokers should have as well, which is not held
    if tick.is_caught_up and not is_blocked:
        return tick.wall or tick.now
    return LONG_AGO


def _commits(
    edges: pa.Table, series: Series, commits: pa.Table, *, without: Iterable[str]
) -> dict[str, list[tuple[int, Commit]]]:
    """Return per group its commits, each with a number to order them by."""
    commits_by_group: dict[str, list[tuple[int, Commit]]] = defaultdict(list)
    named = set(without)
    for row in edges.to_pylist():
        if row["group"] in named and row["commit_timestamp"] is not None:
            commit = series.commit(row, row["committed_offset"], row["commit_timestamp"])
            commits_by_group[row["group"]].append(
                (row["source_offset"], replace(commit, unseen=row["unseen"]))
            )
    for row in commits.to_pylist():
        if row["group"] not in named and not row["is_deleted"]:
            commits_by_group[row["group"]] += _of_key(row, series)
    return commits_by_group


def _of_key(row: Row, series: Series) -> Iterable[tuple[int, Commit]]:
    """Yield the first commit, the last with progress, and the last.

    They have no records between them and are ordered by time.
    """
    committed = row["committed_offset"]
    places = (
        (row["first_committed_offset"], row["first_commit_timestamp"]),
        (committed, row["progress_timestamp"]),
        (committed, row["commit_timestamp"]),
    )
    # of those that moved on, less the first and the last
    between = row["commits"] - row["noop_commits"] - 2
    for offset, at in dict.fromkeys(places):
        if offset is not None and at is not None:
            unseen = 0
            if (offset, at) == places[1]:
                unseen = max(0, between)
            yield (
                round(at.timestamp() * 1000),
                replace(series.commit(row, offset, at), unseen=unseen),
            )
