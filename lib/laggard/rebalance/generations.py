"""Group records of the classic protocol as generations with their members.

Source: group-coordinator's GroupMetadataValue; the record is written when the leader's SyncGroup is handled, so its
time is the end of the rebalance and its state timestamp the end of the join phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laggard.wire.consumer_protocol import decode_assignment, decode_subscription
from laggard.wire.errors import WireError

MODES = {  # assignor -> rebalance mode, for the assignors that Kafka ships
    "range": "eager",
    "roundrobin": "eager",
    "sticky": "eager",
    "cooperative-sticky": "cooperative",
    "stream": "cooperative",
}


def describe_generation(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Columns of `generations` and, under `member_rows`, of `group_members` for one group record; times in ms.

    None is a tombstone. Fields that cannot be derived are null and make the status partial.
    """
    if value is None:
        return {"kind": "tombstone", "status": "ok", "member_rows": []}
    rows = [_member(member, value) for member in value["members"]]
    is_consumer = value["protocol_type"] == "consumer"
    readable = is_consumer and all(row["topics"] is not None and row["assigned"] is not None for row in rows)
    return {
        "kind": _kind(value),
        "status": "ok" if readable or not is_consumer or not rows else "partial",
        "generation": value["generation"],
        "protocol_type": value["protocol_type"] or None,
        "assignor": value["protocol"],
        "rebalance_mode": MODES.get(value["protocol"] or ""),
        "leader": value["leader"],
        "state_timestamp_ms": _known(value["current_state_timestamp"]),
        "member_count": len(rows),
        "static_count": sum(row["group_instance_id"] is not None for row in rows),
        "idle_members": sum(not row["assigned"] for row in rows) if readable else None,
        "topics": sorted({topic for row in rows for topic in row["topics"]}) if readable else None,
        "member_rows": rows,
    }


def _kind(value: Mapping[str, Any]) -> str:
    if value["members"]:
        return "sync"
    return "create" if value["generation"] == 0 and not value["protocol_type"] else "empty"


def _member(member: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    row = {
        "member_id": member["member_id"],
        "group_instance_id": member["group_instance_id"],
        "client_id": member["client_id"],
        "client_host": member["client_host"],
        "session_timeout_ms": member["session_timeout"],
        "rebalance_timeout_ms": _known(member["rebalance_timeout"]),
        "is_leader": member["member_id"] == value["leader"],
        "rack": None,
        "topics": None,
        "assigned": None,
        "owned": None,
        "own_generation": None,
        "subscription_version": None,
    }
    if value["protocol_type"] == "consumer":  # the blobs of other protocol types have other shapes
        row |= _subscription(member["subscription"]) | {"assigned": _assigned(member["assignment"])}
    return row


def _subscription(blob: bytes) -> dict[str, Any]:
    try:
        found = decode_subscription(blob)
    except WireError:  # a bad blob must not cost the group its record; null says that it was not readable
        return {}
    version = found["version"]
    has_owned = version >= 1 and not found["partial"]
    return {
        "topics": sorted(found["topics"]),
        "owned": _flat(found["owned_partitions"]) if has_owned else None,
        "own_generation": _known(found["generation_id"]) if has_owned else None,
        "rack": found["rack_id"],
        "subscription_version": version,
    }


def _assigned(blob: bytes) -> list[dict[str, Any]] | None:
    if not blob:
        return []  # the leader gave this member nothing
    try:
        return _flat(decode_assignment(blob)["assigned_partitions"])
    except WireError:
        return None


def _flat(by_topic: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"topic": each["topic"], "partition": partition} for each in by_topic for partition in each["partitions"]]


def _known(number: int) -> int | None:
    """Kafka writes -1 for unknown."""
    return None if number == -1 else number
