"""Rows of `group_events`: what a tick found to have happened to groups and their offsets."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import both, differ, equal, of_groups, tuples, when
from laggard.lag.merged import KEY, UNKNOWN_TOPIC, Merged
from laggard.lag.positions import NOT_POLLED
from laggard.lag.tick import Tick
from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.analytics.times import seconds_between
from laggard.rebalance.facts import columns_of
from laggard.rebalance.membership.history import History
from laggard.rebalance.parameters import RebalanceParameters

_NOT_THERE = (NOT_POLLED, UNKNOWN_TOPIC)
_END = "log_end_offset"
_GROUP_TYPES = ("classic", "consumer", "share", "streams")
_OF_OFFSET = (*KEY, "topic_id", "from_offset", "to_offset", "source_partition", "source_offset")
_OF_GROUP = ["group", "group_type", "coordinator", "empty_since", "offsets_partition"]

Row = Mapping[str, Any]
Place = tuple[str, str | None, int]  # group, topic, partition


def partition_events(
    merged: Merged, rows: pa.Table, changes: Mapping[str, Any], tick: Tick
) -> Iterable[dict[str, Any]]:
    """Yield events of offsets and of recreated topics.

    The offsets were deleted, jumped, or fell between two batches.
    """
    held, nothing = merged.before["committed_offset"], pa.nulls(rows.num_rows, pa.int64())
    kinds = (
        # also by the commit of a negative offset
        (
            "offset_deleted",
            both(merged.is_new, pc.is_null(merged.commit["committed_offset"]), pc.is_valid(held)),
            held,
            nothing,
        ),
        # an offset that is read again falls back to what it was long ago
        (
            "offset_rewind",
            pc.and_(pc.is_valid(changes["rewound_from"]), not tick.rereads),
            changes["rewound_from"],
            changes["rewound_to"],
        ),
        (
            "offset_skip",
            pc.and_(pc.is_valid(changes["skipped_to"]), not tick.rereads),
            held,
            changes["skipped_to"],
        ),
        ("topic_recreated", changes["was_recreated"], nothing, nothing),
    )
    names = [*KEY, "topic_id", "commit_timestamp", _END]
    places = rows.select(names)
    for name in ("source_partition", "source_offset"):
        newest = when(merged.is_new, merged.commit[name], merged.before[f"commit_{name}"])
        places = places.append_column(name, newest)
    for kind, applies, start, end in kinds:
        moved = places.append_column("from_offset", start).append_column("to_offset", end)
        for row in moved.filter(applies).to_pylist():
            is_commit = kind in ("offset_rewind", "offset_skip")
            # a poll showed it, or a record whose event may be there
            if kind == "topic_recreated" or tick.rereads:
                row |= {"source_partition": None, "source_offset": None}
            event_at, records = tick.now, None
            if is_commit:
                event_at = row["commit_timestamp"] or tick.now
                records = _records(row["from_offset"], row["to_offset"], row[_END])
            times = {"event_at": event_at, "records": records}
            yield event_row(kind, tick, columns_of(row, _OF_OFFSET) | times)


def _records(start: int, end: int, log_end: int | None) -> int:
    """Return the number of records between two committed offsets, none beyond the log end."""
    low, high = sorted((start, end))
    if log_end is None:
        return high - low
    return max(0, min(high, log_end) - min(low, log_end))


def life_events(
    before: Mapping[str, Any], now: Sequence[Mapping[str, Any]], listed: Collection[str], tick: Tick
) -> Iterable[dict[str, Any]]:
    """Yield events of groups that are new and of groups that have ended.

    Where coordinators are polled, a first row says only that the group answered: those `listed` as
    new are.
    """
    living = dict(map(itemgetter("group", "offsets_partition"), now))
    known = {group: row["offsets_partition"] for group, row in before.items()}
    created, partitions = living.keys() - known.keys(), living | known
    if tick.polls_commits:
        created &= set(listed)
    ended = known.keys() - living.keys()
    for kind, groups in (("group_created", created), ("group_deleted", ended)):
        for group in sorted(groups):
            columns = {"group": group, "event_at": tick.now, "source_partition": partitions[group]}
            yield event_row(kind, tick, columns)


def new_rewinds(
    rewinds: Sequence[Mapping[str, Any]], before: pa.Table, now: pa.Table
) -> list[Mapping[str, Any]]:
    """Return the rewinds that no earlier tick has seen, as the offsets topic may be read twice.

    `before`, `now`: rows of `partition_status`. Only records up to the log end can be read again.
    """
    if not rewinds:
        return []
    groups = set(map(itemgetter("group"), rewinds))
    known, now = of_groups(before, groups), of_groups(now, groups)
    sources = tuples(known, [*KEY, "commit_source_partition"])
    folded = dict(zip(sources, known["commit_source_offset"].to_pylist(), strict=True))
    key_of = itemgetter(*KEY)
    ends = dict(zip(tuples(now, KEY), now[_END].to_pylist(), strict=True))
    new_rows: list[Mapping[str, Any]] = []
    for row in rewinds:
        key = key_of(row)
        if row["source_offset"] > (folded.get((*key, row["source_partition"])) or -1):
            records = _records(row["from_offset"], row["to_offset"], ends.get(key))
            new_rows.append({**row, "records": records})
    return new_rows


def record_events(
    rewinds: Sequence[Mapping[str, Any]], history: History, away: Sequence[float | None], tick: Tick
) -> Iterable[dict[str, Any]]:
    """Yield the batch's rewinds, and static members that rejoined, with their absences.

    They rejoined within a generation (KIP-345).
    """
    for row in rewinds:
        yield event_row(
            "offset_rewind", tick, {**row, "event_at": row["record_timestamp"] or tick.now}
        )
    for row, seconds in zip(history.replacements, away, strict=True):
        yield event_row(
            "static_replacement",
            tick,
            {**row, "event_at": row["record_timestamp"], "seconds": seconds},
        )


def change_events(before: pa.Table, now: pa.Table, tick: Tick) -> Iterable[dict[str, Any]]:
    """Yield events of changed protocols or coordinators, and of members that left or rejoined."""
    prior = before.take(pc.index_in(now["group"], value_set=before["group"].combine_chunks()))
    had, has = pc.greater(prior["members"], 0), pc.greater(now["members"], 0)
    kinds_known = pa.array(_GROUP_TYPES)
    is_known = pc.and_(
        pc.is_in(prior["group_type"], value_set=kinds_known),
        pc.is_in(now["group_type"], value_set=kinds_known),
    )
    kinds = (
        (
            "group_type_changed",
            pc.and_(is_known, differ(prior["group_type"], now["group_type"])),
            "group_type",
        ),
        ("coordinator_changed", differ(prior["coordinator"], now["coordinator"]), "coordinator"),
        ("became_empty", both(had, pc.invert(has)), None),
        ("members_returned", both(pc.invert(had), has), None),
    )
    for kind, applies, column in kinds:
        chosen = pc.fill_null(applies, False)
        old, new = prior.select(_OF_GROUP).filter(chosen), now.select(_OF_GROUP).filter(chosen)
        for was, row in zip(old.to_pylist(), new.to_pylist(), strict=True):
            detail = None
            if column:
                detail = [("from", str(was[column])), ("to", str(row[column]))]
            away = None
            if kind == "members_returned":
                away = seconds_between(tick.now, was["empty_since"])
            yield event_row(
                kind,
                tick,
                {
                    "group": row["group"],
                    "event_at": tick.now,
                    "detail": detail,
                    "seconds": away,
                    "source_partition": row["offsets_partition"],
                },
            )


def grown_topics(
    merged: Merged, before: pa.Table, facts_before: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """Return a dict from group to topics with new partitions, and their present number.

    The partitions came since the tick before.

    A new member may commit on a new partition before any poll has seen it; it counts when a poll
    has, as a commit may name a partition that is not there. Of a topic that the group subscribed
    to all partitions were known, of another one a commit only shows where somebody began.
    """
    is_polled = pc.is_valid(merged.positions["partition"])
    is_new = pc.and_(
        is_polled,
        pc.or_(pc.is_null(merged.before["group"]), equal(merged.before["error"], NOT_POLLED)),
    )
    new = merged.keys.filter(is_new)
    if not new.num_rows:
        return {}
    known = before.filter(pc.is_in(before["group"], value_set=new["group"].combine_chunks()))
    known = known.filter(pc.invert(pc.is_in(known["error"], value_set=pa.array(_NOT_THERE))))
    pairs = known.group_by(["group", "topic"]).aggregate([("partition", "max")])
    highest = dict(
        zip(tuples(pairs, ["group", "topic"]), pairs["partition_max"].to_pylist(), strict=True)
    )
    grown: dict[str, dict[str, int]] = {}
    is_committed = pc.or_(pc.is_valid(merged.commit["group"]), pc.is_valid(merged.before["group"]))
    is_committed = is_committed.filter(is_new).to_pylist()
    for row, has_commit in zip(new.to_pylist(), is_committed, strict=True):
        if has_commit and row["topic"] not in (
            facts_before.get(row["group"], {}).get("topics") or ()
        ):
            continue
        if row["partition"] > highest.get((row["group"], row["topic"]), row["partition"]):
            topics = grown.setdefault(row["group"], {})
            topics[row["topic"]] = max(topics.get(row["topic"], 0), row["partition"] + 1)
    return grown


def growth_events(grown: Mapping[str, Mapping[str, int]], tick: Tick) -> Iterable[dict[str, Any]]:
    """Yield events of topics that got partitions, for each group that subscribes to them."""
    for group, topics in grown.items():
        for topic, partitions in topics.items():
            columns = {
                "group": group,
                "topic": topic,
                "event_at": tick.now,
                "detail": [("partitions", str(partitions))],
            }
            yield event_row("partitions_added", tick, columns)


def expiry_events(closed: Iterable[Closed], tick: Tick) -> Iterable[dict[str, Any]]:
    """Yield events of static members whose session expired; only a rebalance shows it (KIP-345)."""
    for rebalance in closed:
        if rebalance.row.cause != "static_expired":
            continue
        for gone in rebalance.departures:
            columns = {
                "group": rebalance.row.group,
                "event_at": gone.at,
                "member_id": gone.member_id,
                "slot": gone.slot,
            }
            yield event_row("static_expired", tick, columns)


def event_row(kind: str, tick: Tick, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `group_events`; an event has the same id, however often it is recorded."""
    at = columns.get("source_offset")
    place = f"poll {tick.poll_id}" if at is None else f"{columns.get('source_partition')}/{at}"
    named = map(columns.get, ("topic", "partition", "from_offset", "to_offset", "slot"))
    identity = "\0".join(map(str, (tick.cluster, columns["group"], kind, *named, place)))
    return {
        **columns,
        "kind": kind,
        "event_id": hashlib.sha256(identity.encode()).hexdigest(),
        "date": columns["event_at"].date(),
        "cluster": tick.cluster,
        "status": "ok",
        "batch_id": tick.batch_id,
    }


def absence_seconds(
    replacements: Sequence[Row], before: pa.Table, edges: pa.Table, parameters: RebalanceParameters
) -> list[float | None]:
    """Return the absence of each static member that rejoined within its generation.

    It is not recorded: it is estimated from the newest commit on the member's partitions, as an
    upper bound. It is longer than the absence by what the member did not commit any more, most
    often less than an interval of commits. `before`: rows of `partition_status`.

    None if it has no partitions, or they were idle: a member that is away for longer than a
    session has expired.
    """
    if not replacements:
        return []
    groups = pa.array(sorted(set(map(itemgetter("group"), replacements))), pa.string())
    commits: dict[Place, list[tuple[int, datetime]]] = {}
    for table, offset in ((before, "commit_source_offset"), (edges, "source_offset")):
        is_known = pc.and_(pc.is_valid(table["commit_timestamp"]), pc.is_valid(table[offset]))
        is_wanted = pc.and_(pc.is_in(table["group"], value_set=groups), is_known)
        for row in table.filter(is_wanted).select([*KEY, offset, "commit_timestamp"]).to_pylist():
            key = row["group"], row["topic"], row["partition"]
            commits.setdefault(key, []).append((row[offset], row["commit_timestamp"]))
    return [_absence(row, commits, parameters) for row in replacements]


def _absence(
    row: Row,
    commits: Mapping[Place, Iterable[tuple[int, datetime]]],
    parameters: RebalanceParameters,
) -> float | None:
    newest: datetime | None = None
    for held in row["held"] or ():
        for offset, at in commits.get((row["group"], held["topic"], held["partition"]), ()):
            if offset < row["source_offset"]:
                newest = max(newest or at, at)
    session = parameters.modern_session_seconds
    if row["session_timeout_ms"] is not None:
        session = row["session_timeout_ms"] / 1000
    seconds = seconds_between(row["record_timestamp"], newest)
    if seconds is not None and seconds <= session:
        return seconds
    return None
