"""Rows of a group in quarantine: its last known values, as stale, with positions read since.

What its tick would have counted is lost: the window it falls in has no row, and flows are not
counted from before it to after it. Its committed offsets are not lost, so its lag is right at the
first tick that succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from laggard.lag.merged import forget_truncated
from laggard.lag.positions import ADVANCE_FAILED
from laggard.lag.tick import Tick
from laggard.rebalance.facts import columns_of
from laggard.rebalance.groups import by_group, refused_columns
from laggard.rebalance.membership.group_facts import KEPT
from laggard.rebalance.membership.records import fold_records, place_of_newest, touched_groups
from laggard.rebalance.topics import Topics
from laggard.stream.tick.events import event_row, life_events
from laggard.stream.tick.group_status import column_of
from laggard.stream.tick.quarantine import Failed, Inputs, Tables, join
from laggard.tables.arrow import to_arrow
from laggard.tables.schema import schemas

Row = dict[str, Any]
QUARANTINED, RECOVERED = "quarantined", "quarantine_ended"
# not known of a row that is stale; its evidence and what it counted so far stay
_UNKNOWN_OF_PARTITION = (
    "answered_at",
    "lag", "time_lag_seconds", "time_lag_method", "time_lag_error_seconds", "time_lag_censored",
    "lost_records",
    "readable_records", "ahead_records", "arrival_rate", "consume_rate", "verdict", "window_start",
    "window_ticks",
    "window_ok_ticks", "window_lag_min", "window_lag_max", "window_commits", "window_noop_commits",
    "window_rewound_records", "window_lag_envelope", "base_at", "base_answered_at",
    "base_log_end_offset",
    "base_committed_offset", "probe_offset", "window_matured_records", "window_late_records",
)  # fmt: skip
_UNKNOWN_OF_GROUP = (
    "lag",
    "lag_known",
    "max_time_lag_seconds",
    "time_in_rebalance_ratio",
    "watched_since",
)
_OF_COMMIT = {  # column of the row: of the commit
    "commit_source_partition": "source_partition",
    "commit_source_offset": "source_offset",
    "commit_timestamp": "commit_timestamp",
    "committed_offset": "committed_offset",
    "leader_epoch": "leader_epoch",
}


def hold(inputs: Inputs, failed: Sequence[Failed], positions: Any, tick: Tick) -> Tables:
    """Return rows of the status tables and history for groups whose tick raised.

    A newly failing group is an event.

    A group that its coordinator does not know any more has none: it says so once, and the poller
    forgets the group.
    """
    gone = set(inputs.batch.answers.gone)
    results = []
    for failure in failed:
        own = inputs.of([failure.group])
        if failure.group in gone:
            results.append(_end_group(own, failure, tick))
        else:
            results.append(_hold_group(own, failure, positions, tick))
    if not results:
        return {}
    return join(results)


def recovery_events(groups: Iterable[str], tick: Tick) -> Tables:
    """Return rows of `group_events` for groups whose tick succeeded again."""
    rows = [event_row(RECOVERED, tick, {"group": group, "event_at": tick.now}) for group in groups]
    return {"group_events": to_arrow(schemas.GROUP_EVENTS, rows)}


def unseen_ends(before: pa.Table, remaining: pa.Table, tick: Tick) -> Tables:
    """Return `group_events` rows for `group_status` groups that ended without a read tombstone."""
    known = by_group(before.select(["group", "offsets_partition"]))
    living = remaining.select(["group", "offsets_partition"]).to_pylist()
    ended = list(life_events(known, living, (), tick)) if tick.has_history else []
    return {"group_events": to_arrow(schemas.GROUP_EVENTS, ended)}


def _end_group(inputs: Inputs, failed: Failed, tick: Tick) -> Tables:
    rows = _entry_event(failed, tick)
    if tick.has_history:
        rows += life_events(by_group(inputs.group_status), [], (), tick)
    return {"group_events": to_arrow(schemas.GROUP_EVENTS, rows)}


def _entry_event(failed: Failed, tick: Tick) -> list[Row]:
    detail = [
        ("error", ADVANCE_FAILED),
        ("exception", failed.exception),
        ("message", failed.message),
    ]
    columns = {"group": failed.group, "event_at": tick.now, "detail": detail}
    if not failed.is_new:
        return []
    return [event_row(QUARANTINED, tick, columns)]


def _hold_group(inputs: Inputs, failed: Failed, positions: Any, tick: Tick) -> Tables:
    partitions = _partitions(inputs, tick)
    group = next(iter(inputs.group_status.to_pylist()), None) or _unknown_group(failed.group, tick)
    records, history = _fold(inputs, positions, tick)
    status = {
        **group,
        **dict.fromkeys(_UNKNOWN_OF_GROUP),
        **records,
        "status": "stale",
        **refused_columns(inputs.batch.refused.get(failed.group, ())),
        "error": ADVANCE_FAILED,
        "batch_id": tick.batch_id,
        "partitions_total": len(partitions),
        "partitions_ok": 0,
        "partitions_no_commit": 0,
        "partitions_unknown": len(partitions),
    }
    return {
        "partition_status": to_arrow(schemas.PARTITION_STATUS, partitions),
        "group_status": to_arrow(schemas.GROUP_STATUS, [status]),
        "group_events": to_arrow(schemas.GROUP_EVENTS, _entry_event(failed, tick)),
        **history,
    }


def _partitions(inputs: Inputs, tick: Tick) -> list[Row]:
    """Return the partitions' rows with the batch's commits; nothing computed, so nothing raises."""
    before = forget_truncated(inputs.partition_status, tick).to_pylist()
    rows = {(row["topic"], row["partition"]): row for row in before}
    for commit in inputs.batch.commits.to_pylist():
        key = commit["topic"], commit["partition"]
        row = rows.setdefault(
            key, {"group": commit["group"], "topic": key[0], "partition": key[1], "topic_id": ""}
        )
        if _is_later(commit, row):
            _take_commit(row, commit, tick)
    unknown = dict.fromkeys(_UNKNOWN_OF_PARTITION)
    same = {
        "cluster": tick.cluster,
        "batch_id": tick.batch_id,
        "status": "stale",
        "error": ADVANCE_FAILED,
    }
    stale_rows = []
    for row in rows.values():
        known = {name: value for name, value in row.items() if value is not None}
        stale_rows.append(_sampled(tick) | known | unknown | same)
    return stale_rows


def _take_commit(row: Row, commit: Row, tick: Tick) -> None:
    is_moved = commit["committed_offset"] != row.get("committed_offset")
    for name, name_of_commit in _OF_COMMIT.items():
        row[name] = commit[name_of_commit]
    if commit["topic_id"] or commit["follows_deletion"]:
        row["topic_id"] = commit["topic_id"] or ""
    row.setdefault("commit_poll_id", None)
    if is_moved:
        row["commit_poll_id"] = tick.poll_id
    if commit["is_deleted"]:
        row |= {"commit_source_partition": None, "commit_source_offset": None}


def _sampled(tick: Tick) -> Row:
    return {"poll_id": tick.poll_id, "sampled_at": tick.now}


def _is_later(commit: Row, row: Mapping[str, Any]) -> bool:
    """Return True if a commit is later than the row's, by the rule of `lag.merged.merge`."""
    known, at = row.get("commit_source_offset"), commit["record_timestamp"]
    if known is not None and row.get("commit_source_partition") != commit["source_partition"]:
        return bool(None in (at, row.get("commit_timestamp")) or at >= row["commit_timestamp"])
    return bool(known is None or commit["source_offset"] > known)


def _unknown_group(group: str, tick: Tick) -> Row:
    """Return the columns that are never null, for a group that no tick has seen yet."""
    counters = {
        column.name: 0
        for column in schemas.GROUP_STATUS.columns
        if column.name.endswith("_total") and column.type in ("bigint", "int")
    }
    state = {"group_state": "Unknown", "state_source": "none", "is_held": False, **_sampled(tick)}
    return {**counters, "cluster": tick.cluster, "group": group, **state}


def _fold(inputs: Inputs, positions: Any, tick: Tick) -> tuple[Row, Tables]:
    """Fold the batch's group records into the group, with their history.

    Members are unknown if the records raise.

    The rebalance under way is forgotten: it is not known what these records did to it.
    """
    records = inputs.batch.records
    if not records:
        return {}, {}
    forgotten: Row = {"rebalance_state": None, "rebalancing_since": None, "recent_rebalances": None}
    group = records[0]["group"]
    before = by_group(inputs.group_status.select(["group", *KEPT]))
    try:
        folded = column_of(inputs.group_status, "folded", touched_groups(before, records))
        newest_at = column_of(inputs.group_status, "generation_at", [group])
        known = fold_records(
            before, folded, records, Topics(positions, inputs.partition_status), tick, newest_at
        )
        facts = columns_of(known.facts[group], KEPT) | {"folded": known.folded.get(group)}
        history = {
            "generations": to_arrow(schemas.GENERATIONS, known.history.generations),
            "group_members": to_arrow(schemas.GROUP_MEMBERS, known.history.members),
        }
        to_arrow(schemas.GROUP_STATUS, [facts])
    except Exception:  # noqa: BLE001 - the records may be what the tick raised by
        count = before.get(group, {}).get("generations_total") or 0
        lost: Row = {
            **dict.fromkeys(KEPT),
            "generations_total": count,
            "is_held": False,
            "folded": None,
        }
        return forgotten | lost | place_of_newest(records, {}), {}
    return forgotten | facts, history
