"""Group records of a batch folded onto what was known of each group, with the rows of history they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from laggard.lag.arrays import MAX_TIMESTAMP_MS
from laggard.lag.tick import Tick

# what group_status keeps of the newest group record
KEPT = (
    "group_type", "protocol_type", "assignor", "rebalance_mode", "generation", "members", "static_members",
    "idle_members", "topics", "offsets_partition", "group_record_offset", "generations_total",
)  # fmt: skip
_OF_TOMBSTONE = ("offsets_partition", "group_record_offset", "generations_total")


@dataclass
class History:
    """Rows that a batch's group records add to the append tables."""

    generations: list[dict[str, Any]] = field(default_factory=list)
    members: list[dict[str, Any]] = field(default_factory=list)
    replacements: list[dict[str, Any]] = field(default_factory=list)  # static members that came back


def fold_records(
    known: Mapping[str, dict[str, Any]], records: Iterable[dict[str, Any]], tick: Tick
) -> tuple[dict[str, dict[str, Any]], History]:
    """The newest record's facts per group (columns `KEPT`) after these records, given in Kafka's order per group.

    `records`: generation rows of the decode stage. `known`: facts so far; a record already folded is passed over.
    """
    facts, history = dict(known), History()
    for record in records:
        group = record["group"]
        before = facts.get(group, {})
        folded = before.get("group_record_offset")
        if folded is not None and record["source_offset"] <= folded:
            continue
        found = json.loads(record["detail"])
        place = {
            "date": record["record_timestamp"].date(),
            "cluster": tick.cluster,
            "group": group,
            "generation_kind": "classic",
            "generation": found.get("generation"),
            "status": found["status"],
            "batch_id": tick.batch_id,
            **{name: record[name] for name in ("source_partition", "source_offset", "record_timestamp")},
        }
        gap = _gap(found, before)
        is_replacement = gap == 0 and found["kind"] == "sync"  # same generation: no rebalance took place
        if is_replacement:
            history.replacements.append({**place, "kind": "static_replacement"})
        else:
            history.generations.append(place | _generation(found, record, gap, tick))
        history.members += [place | member for member in found["member_rows"]]
        completed = int(found["kind"] in ("sync", "empty") and not is_replacement)
        facts[group] = _facts(found, record, (before.get("generations_total") or 0) + completed)
    return facts, history


def _gap(found: Mapping[str, Any], before: Mapping[str, Any]) -> int | None:
    now, then = found.get("generation"), before.get("generation")
    return None if now is None or then is None else int(now - then)


def _generation(found: Mapping[str, Any], record: Mapping[str, Any], gap: int | None, tick: Tick) -> dict[str, Any]:
    state_timestamp = _moment(found.get("state_timestamp_ms"))
    sync = None if state_timestamp is None else (record["record_timestamp"] - state_timestamp).total_seconds()
    return {
        **{
            name: found.get(name)
            for name in (
                "kind",
                "protocol_type",
                "assignor",
                "rebalance_mode",
                "leader",
                "member_count",
                "static_count",
            )
        },
        "group_type": "classic",
        "state_timestamp": state_timestamp,
        # a clock that was set back would give a negative duration: then it is not known
        "sync_seconds": sync if found["kind"] == "sync" and sync is not None and sync >= 0 else None,
        "generation_gap": gap if tick.is_caught_up else None,  # compaction removes records of the past
        "record_version": record["record_version"],
        "live_read": tick.is_caught_up,
    }


def _moment(milliseconds: int | None) -> datetime | None:
    """A time that a record states; None where it is none that a calendar knows."""
    if milliseconds is None or not 0 <= milliseconds <= MAX_TIMESTAMP_MS:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def _facts(found: Mapping[str, Any], record: Mapping[str, Any], generations_total: int) -> dict[str, Any]:
    facts = {
        "group_type": "classic",
        **{
            name: found.get(name)
            for name in ("protocol_type", "assignor", "rebalance_mode", "generation", "idle_members", "topics")
        },
        "members": found.get("member_count"),
        "static_members": found.get("static_count"),
        "offsets_partition": record["source_partition"],
        "group_record_offset": record["source_offset"],
        "generations_total": generations_total,
    }
    if found["kind"] == "tombstone":  # the group may live on: as offsets, or under another protocol
        return dict.fromkeys(KEPT) | {name: facts[name] for name in _OF_TOMBSTONE}
    return facts
