"""The `group_status` columns carried from tick to tick, and those changed by rebalances.

Most groups have neither records nor a rebalance in a tick: their columns stay in Arrow and are
never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import TIMESTAMP, both, differ, equal, of_groups, repeat, when, where
from laggard.lag.commit_gaps import add_to_groups
from laggard.lag.flows import COUNTS, OUTCOMES, add_flows
from laggard.lag.tick import Tick
from laggard.rebalance.analytics import counters
from laggard.rebalance.analytics.follow import Commits, Followed, follow_rebalances
from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.groups import by_group
from laggard.rebalance.membership.records import Known
from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters
from laggard.stream.tick.decoded import Batch
from laggard.stream.tick.group_history import add_state_seconds

_AROUND = ("offsets_partition", "coordinator", "coordinator_changed_at", "partitions_added_at")
_RECENT = ("watched_since", "recent_rebalances")
_MEASURED = ("time_in_rebalance_ratio", "ping_pong")


@dataclass(frozen=True, slots=True)
class Changed:
    """Input of a tick: rows of `group_status` before it, of `partition_status` before and after.

    `flows`, `gaps` and `outcomes` are parallel to them. `rewinds` are those inside the batch;
    `grown`, by group, the topics that got partitions. `polled_topics` may have a topic more than
    once.
    """

    group_status: pa.Table
    partition_status: tuple[pa.Table, pa.Table]
    batch: Batch
    known: Known
    rewinds: Sequence[Mapping[str, Any]]
    flows: Mapping[str, Any]
    gaps: Mapping[str, Any]
    outcomes: Mapping[str, Any]
    grown: Mapping[str, Mapping[str, int]]
    polled_topics: pa.Array
    limits: RebalanceParameters = DEFAULTS


def finish_group_status(
    table: pa.Table, changed: Changed, tick: Tick
) -> tuple[pa.Table, list[Closed]]:
    """Return the table with its carried columns, and the rebalances that are over."""
    before, history = changed.group_status, changed.known.history
    prior = before.take(pc.index_in(table["group"], value_set=before["group"].combine_chunks()))
    table = _put(table, _times(table, prior, changed.grown, history.generations, tick))
    table = _put(table, {"window_state_seconds": add_state_seconds(prior, tick)})
    gaps = pa.table({"group": changed.partition_status[1]["group"], **changed.gaps})
    table = _put(table, add_to_groups(prior, table["group"], gaps))
    followed = _follow(table, changed, tick)
    rebalancing_since: dict[str, datetime | None] = {}
    for group, rebalance in followed.under_way.items():
        rebalancing_since[group] = None
        if rebalance is not None:
            rebalancing_since[group] = rebalance.start.est or rebalance.opened_at
    time_of_record = itemgetter("group", "record_timestamp")
    updates: dict[str, Mapping[str, Any]] = {
        "folded": changed.known.folded,
        "rebalance_state": followed.texts,
        "rebalancing_since": rebalancing_since,
        "generation_at": dict(map(time_of_record, history.generations)),
        "roster_at": dict(map(time_of_record, history.members)),
        **_counted(table, changed, followed, tick),
    }
    for name, values in updates.items():
        table = _put(table, {name: overlay(table["group"], before, name, values)})
    table = _put(table, _measured(table, tick))
    groups = table["group"].combine_chunks()
    sums = (
        ("topic_counters", COUNTS, _flows(changed)),
        ("outcome_counters", OUTCOMES, _of_topics(changed, changed.outcomes)),
    )
    there = _topics_there(changed)
    for name, counts, rows in sums:
        table = _put(table, {name: add_flows(before, name, counts, rows, groups, there)})
    return table, [closed for group in sorted(followed.closed) for closed in followed.closed[group]]


def _follow(table: pa.Table, changed: Changed, tick: Tick) -> Followed:
    """Follow groups with a new generation, and those whose last rebalance has no row yet."""
    before, facts = changed.group_status, changed.known.history.facts
    is_open = pc.is_valid(before["rebalancing_since"])
    groups = sorted(facts.keys() | {*before["group"].filter(is_open).to_pylist()})
    return follow_rebalances(
        facts,
        dict.fromkeys(groups) | column_of(before, "rebalance_state", groups),
        rows_of(table.select(["group", *_AROUND]), groups),
        Commits(changed.batch.commits, changed.batch.edges),
        changed.partition_status,
        tick,
        changed.limits,
    )


def _topics_there(changed: Changed) -> pa.Array | None:
    """Return topics in the poll, with a row, or wanted by a member; None if the poll has none."""
    if not len(changed.polled_topics):
        return None
    asked = {topic for facts in changed.known.facts.values() for topic in facts.get("topics") or ()}
    rows = changed.partition_status[1]["topic"].unique()
    return pa.concat_arrays(
        [changed.polled_topics, rows, pa.array(sorted(asked), pa.string())]
    ).unique()


def column_of(table: pa.Table, name: str, groups: Iterable[str]) -> dict[str, Any]:
    """Return a column's values for some groups, by group."""
    wanted = list(groups)
    if not wanted:
        return {}
    rows = of_groups(table.select(["group", name]), wanted)
    return dict(zip(rows["group"].to_pylist(), rows[name].to_pylist(), strict=True))


def rows_of(table: pa.Table, groups: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return rows of some groups, by group."""
    return by_group(of_groups(table, groups))


def overlay(
    groups: pa.ChunkedArray, before: pa.Table, name: str, values: Mapping[str, Any]
) -> pa.Array:
    """Return the column for these groups: a new value if there is one, else the one before."""
    column = before[name]
    if not values and groups.equals(before["group"]):
        return column
    names = pa.concat_arrays([pa.array(list(values), pa.string()), *before["group"].chunks])
    candidates = pa.concat_arrays([pa.array(list(values.values()), column.type), *column.chunks])
    return candidates.take(pc.index_in(groups, value_set=names))  # the first one: the new value


def _is_next(prior: pa.Table, tick: Tick) -> Any:
    """Return a mask of groups that were seen within the last window, by the true elapsed time."""
    if tick.shift is None:
        return pa.scalar(False)
    seen = pc.add(prior["sampled_at"], pa.scalar(tick.shift, pa.duration("us")))
    return pc.greater_equal(seen, pa.scalar(tick.now - tick.window, TIMESTAMP))


def _has_other_generation(
    table: pa.Table, prior: pa.Table, generations: Sequence[Mapping[str, Any]]
) -> Any:
    """Return a mask of groups that rebalanced since the last tick, whatever their state now."""
    groups = pa.array(set(map(itemgetter("group"), generations)), pa.string())
    is_written = pc.is_in(table["group"], value_set=groups)
    is_other = differ(prior["generation"], table["generation"])
    is_bumped = differ(prior["group_epoch"], table["group_epoch"])
    return pc.or_(pc.or_(is_written, is_other), is_bumped)


def _times(
    table: pa.Table,
    prior: pa.Table,
    grown: Mapping[str, Mapping[str, int]],
    generations: Sequence[Mapping[str, Any]],
    tick: Tick,
) -> dict[str, Any]:
    """Return times since which a fact holds, per group.

    A fact found by a poll may have changed any time since the last poll.
    """
    now = repeat(tick.now, TIMESTAMP, table.num_rows)
    has_grown = pc.is_in(table["group"], value_set=pa.array(list(grown), pa.string()))
    has_moved = differ(prior["coordinator"], table["coordinator"])
    was_empty, is_empty = equal(prior["members"], 0), equal(table["members"], 0)
    follows = both(differ(prior["status"], "stale"), _is_next(prior, tick))
    watched = when(follows, pc.coalesce(prior["watched_since"], now), now)
    is_other = _has_other_generation(table, prior, generations)
    emptied = when(
        both(was_empty, pc.invert(is_other)),
        prior["empty_since"],
        where(pc.is_valid(prior["members"]), now),
    )
    is_same = both(equal(prior["group_state"], table["group_state"]), pc.invert(is_other))
    # the same generation proves the state where nothing was observed: a group leaves no state
    # without another one
    is_proven = pc.or_(
        follows, pc.or_(pc.is_valid(prior["generation"]), pc.is_valid(prior["group_epoch"]))
    )
    return {
        "watched_since": where(pa.scalar(tick.is_caught_up), watched),
        "state_since": when(both(is_same, is_proven), pc.coalesce(prior["state_since"], now), now),
        "empty_since": where(is_empty, emptied),
        "coordinator_changed_at": when(
            has_moved, prior["sampled_at"], prior["coordinator_changed_at"]
        ),
        "partitions_added_at": when(has_grown, prior["sampled_at"], prior["partitions_added_at"]),
    }


def _counted(
    table: pa.Table, changed: Changed, followed: Followed, tick: Tick
) -> dict[str, dict[str, Any]]:
    """Return counters, by column and group, of groups that are new or changed.

    A changed group has something to count or to forget.
    """
    history, before = changed.known.history, changed.group_status
    groups: dict[str, tuple[list[Any], list[int]]] = {}
    is_new = pc.is_null(pc.index_in(table["group"], value_set=before["group"].combine_chunks()))
    for group in table["group"].filter(is_new).to_pylist():
        groups[group] = ([], [])
    for group in before["group"].filter(pc.is_valid(before["recent_rebalances"])).to_pylist():
        groups.setdefault(group, ([], []))
    for row in history.generations:
        groups.setdefault(row["group"], ([], []))[0].append(row)
    if tick.is_caught_up:
        for row in history.replacements:
            groups.setdefault(row["group"], ([], []))[1].append(1)
    for group in followed.texts:
        groups.setdefault(group, ([], []))
    rows = rows_of(before.select(["group", *counters.STATE]), groups)
    counted: dict[str, dict[str, Any]] = {name: {} for name in counters.STATE}
    for group, (generations, replacements) in groups.items():
        row = counters.count_rebalances(
            rows.get(group, {}),
            followed.closed.get(group, ()),
            generations,
            len(replacements),
            followed.under_way.get(group),
            tick.now,
        )
        for name in counters.STATE:
            counted[name][group] = _pairs(row[name])
    return counted


def _pairs(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return list(value.items())


def _measured(table: pa.Table, tick: Tick) -> dict[str, Any]:
    """Return the ratios of groups with a rebalance in the last hour; 0 for the others.

    The others have 0 as far as they are watched.
    """
    is_watched = both(pc.less(table["watched_since"], pa.scalar(tick.now, TIMESTAMP)))
    quiet = {
        "time_in_rebalance_ratio": where(is_watched, repeat(0.0, pa.float64(), table.num_rows)),
        "ping_pong": pa.nulls(table.num_rows, pa.float64()),
    }
    moving = table.select(["group", *_RECENT]).filter(pc.is_valid(table["recent_rebalances"]))
    measured: dict[str, dict[str, Any]] = {name: {} for name in _MEASURED}
    for row in moving.to_pylist():
        ratios = counters.measure_recent(row["recent_rebalances"], row["watched_since"], tick.now)
        for name in _MEASURED:
            measured[name][row["group"]] = ratios[name]
    base = pa.table({"group": table["group"], **quiet})
    return {name: overlay(table["group"], base, name, measured[name]) for name in _MEASURED}


def _flows(changed: Changed) -> pa.Table:
    """Return the counts of each partition, by group and topic.

    Rewinds inside the batch are rows of their own.
    """
    whole = _of_topics(changed, changed.flows).select(["group", "topic", *COUNTS])
    rewinds = [
        {"group": row["group"], "topic": row["topic"], "rewinds": 1} for row in changed.rewinds
    ]
    inside = pa.Table.from_pylist(rewinds, schema=whole.schema)
    return pa.concat_tables([whole, inside])


def _of_topics(changed: Changed, counts: Mapping[str, Any]) -> pa.Table:
    after = changed.partition_status[1]
    return pa.table({"group": after["group"], "topic": after["topic"], **counts})


def _put(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    for name, column in columns.items():
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), column)
    return table
