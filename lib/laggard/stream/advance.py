"""One tick: what was known plus what a batch brought gives what is known now, and rows of history.

A pure function of plain values: the stream, a replay over history and a test call the same one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.positions import KEY, Merged, advance_positions, merge
from laggard.lag.tick import Tick
from laggard.lag.windows import close_windows
from laggard.rebalance.group_facts import KEPT
from laggard.rebalance.groups import Listing, group_rows, sum_partitions
from laggard.rebalance.history import History
from laggard.rebalance.records import fold_records, touched_groups
from laggard.rebalance.topics import Topics
from laggard.tables import schemas
from laggard.tables.arrow import arrow_schema

FOLDED = "folded"  # the column of group_status that only records need
_OF_STATE = ("group_state", "state_source")


@dataclass(frozen=True, slots=True)
class Batch:
    """What the decode stage found: commits (unique per key), group records in Kafka's order, rewinds."""

    commits: pa.Table
    records: Sequence[dict[str, Any]]
    rewinds: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Poll:
    """What the brokers said in the tick's poll."""

    positions: pa.Table
    listing: Listing


def advance(
    partition_status: pa.Table, group_status: pa.Table, batch: Batch, poll: Poll, tick: Tick
) -> dict[str, pa.Table]:
    """Rows per table; the status tables come whole, the others as rows to append."""
    groups_before = {row["group"]: row for row in group_status.select(["group", *KEPT, *_OF_STATE]).to_pylist()}
    folded_before = _folded(group_status, touched_groups(groups_before, batch.records))
    topics = Topics(poll.positions, partition_status)
    known = fold_records(groups_before, folded_before, batch.records, topics, tick)
    facts, history = known.facts, known.history
    merged = merge(partition_status, batch.commits, poll.positions, _subscribed(facts))
    rows, changes = advance_positions(merged, tick, arrow_schema(schemas.PARTITION_STATUS))
    living = rows.filter(pc.invert(merged.is_retired))
    groups_now = group_rows(groups_before, facts, sum_partitions(living), poll.listing, tick)
    ended = partition_status if tick.closes_windows else merged.before.filter(merged.is_retired)
    events: list[dict[str, Any]] = []
    if tick.has_history:  # what is first seen while reading the past is not an event of now
        events = [
            *_partition_events(merged, rows, changes, tick),
            *_group_events(groups_before, groups_now, tick),
            *_record_events(_new_rewinds(batch.rewinds, partition_status), history, tick),
        ]
    return {
        "partition_status": living,
        "group_status": _group_status(groups_now, group_status, known.folded),
        "lag_windows": close_windows(ended, tick, arrow_schema(schemas.LAG_WINDOWS)),
        "generations": _table(schemas.GENERATIONS, history.generations),
        "group_members": _table(schemas.GROUP_MEMBERS, history.members),
        "group_events": _table(schemas.GROUP_EVENTS, events),
    }


def _subscribed(facts: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    pairs = [
        (group, topic)
        for group, found in facts.items()
        if found.get("group_type") != "share"  # it never commits: its progress is in another topic (KIP-932)
        for topic in found.get("topics") or ()
    ]
    return pa.table(
        {
            "group": pa.array([pair[0] for pair in pairs], pa.string()),
            "topic": pa.array([pair[1] for pair in pairs], pa.string()),
        }
    )


def _folded(group_status: pa.Table, groups: Sequence[str]) -> dict[str, dict[str, Any] | None]:
    if not groups:
        return {}
    rows = group_status.select(["group", FOLDED])
    rows = rows.filter(pc.is_in(rows["group"], value_set=pa.array(groups, pa.string())))
    return dict(zip(rows["group"].to_pylist(), rows[FOLDED].to_pylist(), strict=True))


def _group_status(
    rows: Sequence[Mapping[str, Any]], before: pa.Table, folded: Mapping[str, dict[str, Any] | None]
) -> pa.Table:
    """Rows as a table; what a group was folded to stays in Arrow where no record of the batch changed it."""
    table = _table(schemas.GROUP_STATUS, rows)
    field = table.schema.field(FOLDED)
    if not folded and table["group"].equals(before["group"]):
        column = before[FOLDED]
    else:
        groups = pa.concat_arrays([pa.array(list(folded), pa.string()), *before["group"].chunks])
        states = pa.concat_arrays([pa.array(list(folded.values()), field.type), *before[FOLDED].chunks])
        column = states.take(pc.index_in(table["group"], value_set=groups))  # the first one: what was folded now
    return table.set_column(table.schema.get_field_index(FOLDED), field, column)


def _table(table: schemas.Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    schema = arrow_schema(table)
    return pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)


def _partition_events(
    merged: Merged, rows: pa.Table, changes: Mapping[str, Any], tick: Tick
) -> Iterable[dict[str, Any]]:
    held = merged.before["committed_offset"]
    kinds = (
        ("offset_deleted", pc.and_(merged.is_retired, pc.is_valid(held)), held, None),
        ("offset_rewind", pc.is_valid(changes["rewound_from"]), changes["rewound_from"], changes["rewound_to"]),
        ("topic_recreated", changes["was_recreated"], None, None),
    )
    names = [*KEY, "topic_id", "commit_source_partition", "commit_source_offset", "commit_timestamp"]
    for kind, applies, start, end in kinds:
        found = rows.select(names).filter(applies)
        starts = start.filter(applies).to_pylist() if start is not None else [None] * found.num_rows
        ends = end.filter(applies).to_pylist() if end is not None else [None] * found.num_rows
        for row, from_offset, to_offset in zip(found.to_pylist(), starts, ends, strict=True):
            is_commit = kind == "offset_rewind"
            yield _event(
                kind,
                tick,
                {name: row[name] for name in (*KEY, "topic_id")}
                | {
                    "event_at": row["commit_timestamp"] if is_commit and row["commit_timestamp"] else tick.now,
                    "from_offset": from_offset,
                    "to_offset": to_offset,
                    "records": from_offset - to_offset if is_commit else None,
                    "source_partition": row["commit_source_partition"],
                    "source_offset": row["commit_source_offset"],
                },
            )


def _group_events(before: Mapping[str, Any], now: Sequence[Mapping[str, Any]], tick: Tick) -> Iterable[dict[str, Any]]:
    living = {row["group"]: row["offsets_partition"] for row in now}
    for group in sorted(living.keys() - before.keys()):
        yield _event("group_created", tick, {"group": group, "event_at": tick.now, "source_partition": living[group]})
    for group in sorted(before.keys() - living.keys()):
        yield _event(
            "group_deleted",
            tick,
            {"group": group, "event_at": tick.now, "source_partition": before[group]["offsets_partition"]},
        )


def _new_rewinds(rewinds: Sequence[Mapping[str, Any]], before: pa.Table) -> list[Mapping[str, Any]]:
    """Those that no earlier tick has seen: the offsets topic may be read twice."""
    if not rewinds:
        return []
    known = before.filter(pc.is_in(before["group"], value_set=pa.array([row["group"] for row in rewinds], pa.string())))
    folded = {
        (row["group"], row["topic"], row["partition"], row["commit_source_partition"]): row["commit_source_offset"]
        for row in known.select([*KEY, "commit_source_partition", "commit_source_offset"]).to_pylist()
    }
    return [
        row
        for row in rewinds
        if row["source_offset"] > (folded.get((*(row[name] for name in KEY), row["source_partition"])) or -1)
    ]


def _record_events(rewinds: Sequence[Mapping[str, Any]], history: History, tick: Tick) -> Iterable[dict[str, Any]]:
    for row in rewinds:
        yield _event("offset_rewind", tick, {**row, "event_at": row["record_timestamp"]})
    for row in history.replacements:
        yield _event("static_replacement", tick, {**row, "event_at": row["record_timestamp"]})


def _event(kind: str, tick: Tick, columns: Mapping[str, Any]) -> dict[str, Any]:
    at = columns.get("source_offset")
    place = f"poll {tick.poll_id}" if at is None else f"{columns.get('source_partition')}/{at}"
    named = (columns.get(name) for name in ("topic", "partition", "from_offset", "to_offset"))
    identity = "\0".join(str(part) for part in (tick.cluster, columns["group"], kind, *named, place))
    return {
        **columns,
        "kind": kind,
        "event_id": hashlib.sha256(identity.encode()).hexdigest(),
        "date": columns["event_at"].date(),
        "cluster": tick.cluster,
        "status": "ok",
        "batch_id": tick.batch_id,
    }
