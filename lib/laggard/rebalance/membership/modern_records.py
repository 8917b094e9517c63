"""Records of consumer, share and streams groups for the fold, with one role for every kind.

Source: KIP-848, KIP-932 and KIP-1071 with the record schemas of Kafka's group-coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

Struct = Mapping[str, Any]

CLASSIC_GROUP = 2  # GroupMetadata, which `generations` describes
# record type -> kind of group and what the record says; type 24 adds nothing that a table names
ROLES = {
    3: ("consumer", "epoch"),
    4: ("consumer", "names"),
    5: ("consumer", "member"),
    6: ("consumer", "target_epoch"),
    7: ("consumer", "target"),
    8: ("consumer", "current"),
    10: ("share", "member"),
    11: ("share", "epoch"),
    12: ("share", "target_epoch"),
    13: ("share", "target"),
    14: ("share", "current"),
    15: ("share", "names"),
    16: ("consumer", "regex"),
    17: ("streams", "epoch"),
    19: ("streams", "member"),
    20: ("streams", "target_epoch"),
    21: ("streams", "target"),
    22: ("streams", "current"),
    23: ("streams", "topology"),
    24: ("streams", "resolved"),
}
_STABLE = {"consumer": 0, "share": 0, "streams": 1}  # the byte of a member that has nothing to do
_STATES = {
    "consumer": ("Stable", "UnrevokedPartitions", "UnreleasedPartitions"),
    "share": ("Stable", "UnrevokedPartitions", "UnreleasedPartitions"),
    "streams": ("Stable", "UnrevokedTasks", "UnreleasedTasks"),
}


def describe_modern(record_type: int, key: Struct, value: Struct | None) -> dict[str, Any]:
    """Return a record's content, JSON-safe, for the fold.

    It has `group_type`, `role`, the rest of its key, and fields the fold needs.
    """
    kind, role = ROLES[record_type]
    description = {"group_type": kind, "role": role, "is_tombstone": value is None}
    for name, column in (("member_id", "member_id"), ("regular_expression", "regex")):
        if name in key:
            description[column] = key[name]
    if value is not None and role in _FIELDS:
        description |= _FIELDS[role](kind, value)
    return description


def _epoch(value: Struct) -> dict[str, Any]:
    # an absent tag is -1, so is one that a broker before 4.2 leaves out; only newer ones write
    # configurations
    validated = value.get("validated_topology_epoch", -1)
    if validated == -1 and not value.get("last_assignment_configs"):
        validated = None
    return {"epoch": value["epoch"], "validated_topology_epoch": validated}


def _member(kind: str, value: Struct) -> dict[str, Any]:
    timeout = value.get("rebalance_timeout_ms")
    if timeout == -1:
        timeout = None
    session_timeout, protocols = None, None
    if classic := value.get("classic_member_metadata"):
        session_timeout = classic["session_timeout_ms"]
        protocols = list(map(itemgetter("name"), classic["supported_protocols"]))
    # a member of a streams group subscribes to what the group's topology reads
    topics = None
    if kind != "streams":
        topics = sorted(value["subscribed_topic_names"])
    return {
        "group_instance_id": value.get("instance_id"),
        "client_id": value["client_id"],
        "client_host": value["client_host"],
        "rack": value["rack_id"],
        "session_timeout_ms": session_timeout,
        "rebalance_timeout_ms": timeout,
        "topics": topics,
        "regex": value.get("subscribed_topic_regex") or None,  # brokers write "" for none
        "server_assignor": value.get("server_assignor"),
        "classic_protocols": protocols,
    }


def _current(kind: str, value: Struct) -> dict[str, Any]:
    states, number = _STATES[kind], value["state"] - _STABLE[kind]
    assigned = value["active_tasks"] if kind == "streams" else value["assigned_partitions"]
    pending = value.get(
        "active_tasks_pending_revocation", value.get("partitions_pending_revocation")
    )
    if pending is not None:
        pending = _parts(pending)
    member_state = states[number] if 0 <= number < len(states) else "Unknown"
    return {
        "member_epoch": value["member_epoch"],
        "previous_member_epoch": value["previous_member_epoch"],
        "member_state": member_state,
        "assigned": _parts(assigned),
        # share groups revoke at once
        "pending_revocation": pending,
    }


def _parts(held: list[Struct]) -> list[dict[str, Any]]:
    return [
        {
            "source": part.get("topic_id", part.get("subtopology_id")),
            "partitions": list(part["partitions"]),
        }
        for part in held
    ]


def _names(value: Struct) -> list[dict[str, Any]]:
    lists = ("topics", "initializing_topics", "initialized_topics", "deleting_topics")
    names: dict[str, str] = {}
    for kind in lists:
        names.update(map(itemgetter("topic_id", "topic_name"), value.get(kind, ())))
    return [{"topic_id": number, "topic": name} for number, name in sorted(names.items())]


def _topology(value: Struct) -> dict[str, Any]:
    subtopologies = list(map(_subtopology, value["subtopologies"]))
    return {"topology_epoch": value["epoch"], "subtopologies": subtopologies}


def _subtopology(value: Struct) -> dict[str, Any]:
    topics = map(itemgetter("name"), value["repartition_source_topics"])
    return {
        "subtopology_id": value["subtopology_id"],
        "topics": sorted({*value["source_topics"], *topics}),
        "has_regex": bool(value["source_topic_regex"]),
    }


# of other roles no table names anything
_FIELDS: dict[str, Callable[[str, Struct], dict[str, Any]]] = {
    "epoch": lambda _, value: _epoch(value),
    "target_epoch": lambda _, value: {"assignment_epoch": value["assignment_epoch"]},
    "member": _member,
    "current": _current,
    "regex": lambda _, value: {"topics": sorted(value["topics"])},
    "names": lambda _, value: {"topic_names": _names(value)},
    "topology": lambda _, value: _topology(value),
}
