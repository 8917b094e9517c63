"""Group records of the classic protocol, described for the fold: the generation and its members.

Source: group-coordinator's GroupMetadataValue; the record is written when the leader's SyncGroup is
handled, so its time is the end of the rebalance and its state timestamp the end of the join phase.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

from laggard.wire.member_blobs import decode_member

MODES = {  # assignor -> rebalance mode, for the assignors that Kafka ships
    "range": "eager",
    "roundrobin": "eager",
    "sticky": "eager",
    "cooperative-sticky": "cooperative",
    "stream": "cooperative",
}
_NO_BLOBS = {  # what the blobs of a member say; None is not known
    "rack": None,
    "topics": None,
    "assigned": None,
    "owned": None,
    "pending_revocation": None,
    "own_generation": None,
    "subscription_version": None,
}


def describe_generation(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return columns of `generations` and, under `member_rows`, of `group_members` for a record.

    The record is a group record; times are in ms.

    None is a tombstone. Fields that cannot be derived are null and make the status partial.
    """
    if value is None:
        return {"kind": "tombstone", "status": "ok", "member_rows": []}
    mode = MODES.get(value["protocol"] or "")
    rows = [_member(member, value, mode) for member in value["members"]]
    return {
        "kind": _kind(value),
        "generation": value["generation"],
        "protocol_type": value["protocol_type"] or None,
        "assignor": value["protocol"],
        "rebalance_mode": mode,
        "leader": value["leader"],
        "state_timestamp_ms": _known(value["current_state_timestamp"]),
        "member_count": len(rows),
        "static_count": sum(row["group_instance_id"] is not None for row in rows),
        **_of_blobs(rows, value["protocol_type"]),
        "member_rows": rows,
    }


def _of_blobs(rows: list[dict[str, Any]], protocol_type: str) -> dict[str, Any]:
    """Return columns that need all members' blobs; only consumers have blobs that name topics."""
    is_consumer = protocol_type == "consumer"
    if not is_consumer:
        return {"status": "ok", "idle_members": None, "topics": None}
    topics = [row["topics"] for row in rows]
    assigned = [row["assigned"] for row in rows]
    if None in topics or None in assigned:
        return {"status": "partial", "idle_members": None, "topics": None}
    return {
        "status": "ok",
        "idle_members": assigned.count([]),
        "topics": sorted(set(chain.from_iterable(topics))),
    }


def _kind(value: Mapping[str, Any]) -> str:
    if value["members"]:
        return "sync"
    if value["generation"] == 0 and not value["protocol_type"]:
        return "create"
    return "empty"


def _member(
    member: Mapping[str, Any], value: Mapping[str, Any], mode: str | None
) -> dict[str, Any]:
    return {
        "member_id": member["member_id"],
        "group_instance_id": member["group_instance_id"],
        "client_id": member["client_id"],
        "client_host": member["client_host"],
        "session_timeout_ms": member["session_timeout"],
        "rebalance_timeout_ms": _known(member["rebalance_timeout"]),
        "is_leader": member["member_id"] == value["leader"],
        **_NO_BLOBS,
        **_blobs(member, value["protocol_type"], mode),
    }


def _blobs(member: Mapping[str, Any], protocol_type: str, mode: str | None) -> dict[str, Any]:
    """Return decoded fields of the blobs; null for an undecodable blob, so the record is kept."""
    subscription, assignment = decode_member(protocol_type, member)
    # a Connect worker has connectors and tasks, no topics and partitions
    if protocol_type != "consumer":
        return {"subscription_version": subscription.get("version")}
    assigned = None
    if "error" not in assignment:
        assigned = _flat(assignment["assigned_partitions"])
    if "error" in subscription:
        return {"assigned": assigned}
    version = subscription["version"]
    has_owned = version >= 1 and not subscription["partial"]
    owned, own_generation, pending = None, None, None
    if has_owned:
        owned = _flat(subscription["owned_partitions"])
        own_generation = _known(subscription["generation_id"])
    if mode == "cooperative":
        pending = _to_revoke(owned, assigned)
    return {
        "topics": sorted(subscription["topics"]),
        "assigned": assigned,
        "owned": owned,
        "pending_revocation": pending,
        "own_generation": own_generation,
        "rack": subscription["rack_id"],
        "subscription_version": version,
    }


def _to_revoke(
    owned: list[dict[str, Any]] | None, assigned: list[dict[str, Any]] | None
) -> list[dict[str, Any]] | None:
    """Return partitions that a cooperative member held and loses.

    It revokes just those and joins again (KIP-429).
    """
    if owned is None or assigned is None:
        return None
    name = itemgetter("topic", "partition")
    assigned_keys = set(map(name, assigned))
    return [partition for partition in owned if name(partition) not in assigned_keys]


def _flat(by_topic: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"topic": topic["topic"], "partition": partition}
        for topic in by_topic
        for partition in topic["partitions"]
    ]


def _known(number: int) -> int | None:
    """Return the number, but None for Kafka's -1, which means unknown."""
    if number == -1:
        return None
    return number
