"""The records of the offsets topic as the format's description gives them, for the encoder and
made-up values.

Written a second time and not taken from the decoder's tables, so that a slip in one of the two
shows. A kind is the name of a primitive, `[kind]` an array, a dict a struct by field; a name that
ends in ? may be null.
"""

from dataclasses import dataclass
from typing import Any

Kind = Any


@dataclass(frozen=True)
class Nullable:
    kind: Kind


@dataclass(frozen=True)
class Tag:
    number: int
    kind: Kind
    default: Any


GROUP = {"group": "string"}
GROUP_ID = {"group_id": "string"}
MEMBER_ID = {"group_id": "string", "member_id": "string"}
COMMIT = {"group": "string", "topic": "string", "partition": "int32"}

KEYS: dict[int, Kind] = {
    **dict.fromkeys((0, 1), COMMIT),
    2: GROUP,
    **dict.fromkeys((3, 4, 6, 11, 12, 15, 17, 20, 23, 24), GROUP_ID),
    **dict.fromkeys((5, 7, 8, 10, 13, 14, 19, 21, 22), MEMBER_ID),
    16: {"group_id": "string", "regular_expression": "string"},
}


def commit(version: int) -> Kind:
    layout: dict[str, Kind] = {"offset": "int64"}
    if version >= 3:
        layout["leader_epoch"] = "int32"
    layout |= {"metadata": "string", "commit_timestamp": "int64"}
    if version == 1:
        layout["expire_timestamp"] = "int64"
    if version >= 4:
        layout["topic_id"] = Tag(0, "uuid", None)
    return layout


def classic_group(version: int) -> Kind:
    member: dict[str, Kind] = {"member_id": "string"}
    if version >= 3:
        member["group_instance_id"] = "string?"
    member |= {"client_id": "string", "client_host": "string"}
    if version >= 1:
        member["rebalance_timeout"] = "int32"
    member |= {"session_timeout": "int32", "subscription": "bytes", "assignment": "bytes"}
    layout: dict[str, Kind] = {"protocol_type": "string", "generation": "int32"}
    layout |= {"protocol": "string?", "leader": "string?"}
    if version >= 2:
        layout["current_state_timestamp"] = "int64"
    return layout | {"members": [member]}


TOPIC_PARTITIONS = {"topic_id": "uuid", "partitions": ["int32"]}
EPOCHS = {"assignment_epochs": Tag(0, Nullable(["int32"]), None)}
TARGET_EPOCH = {"assignment_epoch": "int32", "assignment_timestamp": Tag(0, "int64", 0)}
TARGET_PARTITIONS = {"topic_partitions": [TOPIC_PARTITIONS]}
CURRENT = {"member_epoch": "int32", "previous_member_epoch": "int32", "state": "int8"}
KEY_VALUE = {"key": "string", "value": "string"}
TASKS = {"subtopology_id": "string", "partitions": ["int32"]}
ROLES = ("active_tasks", "standby_tasks", "warmup_tasks")
NAMED_TOPIC = {"topic_id": "uuid", "topic_name": "string"}
TOPIC_INFO = {
    "name": "string",
    "partitions": "int32",
    "replication_factor": "int16",
    "topic_configs": [KEY_VALUE],
}
CLASSIC_MEMBER = {
    "session_timeout_ms": "int32",
    "supported_protocols": [{"name": "string", "metadata": "bytes"}],
}
SUBTOPOLOGY = {
    "subtopology_id": "string",
    "source_topics": ["string"],
    "source_topic_regex": ["string"],
    "state_changelog_topics": [TOPIC_INFO],
    "repartition_sink_topics": ["string"],
    "repartition_source_topics": [TOPIC_INFO],
    "copartition_groups": [
        {
            "source_topics": ["int16"],
            "source_topic_regex": ["int16"],
            "repartition_source_topics": ["int16"],
        }
    ],
}

VALUES: dict[tuple[int, int], Kind] = {
    **{(record_type, version): commit(version) for record_type in (0, 1) for version in range(5)},
    **{(2, version): classic_group(version) for version in range(5)},
    (3, 0): {"epoch": "int32", "metadata_hash": Tag(0, "int64", 0)},
    (4, 0): {
        "topics": [
            NAMED_TOPIC
            | {
                "num_partitions": "int32",
                "partition_metadata": [{"partition": "int32", "racks": ["string"]}],
            }
        ]
    },
    (5, 0): {
        "instance_id": "string?",
        "rack_id": "string?",
        "client_id": "string",
        "client_host": "string",
        "subscribed_topic_names": ["string"],
        "subscribed_topic_regex": "string?",
        "rebalance_timeout_ms": "int32",
        "server_assignor": "string?",
        "classic_member_metadata": Tag(0, Nullable(CLASSIC_MEMBER), None),
    },
    (6, 0): TARGET_EPOCH,
    (7, 0): TARGET_PARTITIONS,
    (8, 0): CURRENT
    | {
        "assigned_partitions": [TOPIC_PARTITIONS | EPOCHS],
        "partitions_pending_revocation": [TOPIC_PARTITIONS | EPOCHS],
    },
    (10, 0): {
        "rack_id": "string?",
        "client_id": "string",
        "client_host": "string",
        "subscribed_topic_names": ["string"],
    },
    (11, 0): {"epoch": "int32", "metadata_hash": "int64"},
    (12, 0): TARGET_EPOCH,
    (13, 0): TARGET_PARTITIONS,
    (14, 0): CURRENT | {"assigned_partitions": [TOPIC_PARTITIONS]},
    (15, 0): {
        "initializing_topics": [NAMED_TOPIC | {"partitions": ["int32"]}],
        "initialized_topics": [NAMED_TOPIC | {"partitions": ["int32"]}],
        "deleting_topics": [NAMED_TOPIC],
    },
    (16, 0): {"topics": ["string"], "version": "int64", "timestamp": "int64"},
    (17, 0): {
        "epoch": "int32",
        "metadata_hash": "int64",
        "validated_topology_epoch": Tag(0, "int32", -1),
        "last_assignment_configs": Tag(1, Nullable([KEY_VALUE]), []),
        "stored_description_topology_epoch": Tag(2, "int32", -1),
        "failed_description_topology_epoch": Tag(3, "int32", -1),
    },
    (19, 0): {
        "instance_id": "string?",
        "rack_id": "string?",
        "client_id": "string",
        "client_host": "string",
        "rebalance_timeout_ms": "int32",
        "topology_epoch": "int32",
        "process_id": "string",
        "user_endpoint": Nullable({"host": "string", "port": "uint16"}),
        "client_tags": [KEY_VALUE],
    },
    (20, 0): TARGET_EPOCH,
    (21, 0): {role: [TASKS] for role in ROLES},
    (22, 0): CURRENT
    | {
        role + pending: [TASKS | EPOCHS]
        for pending in ("", "_pending_revocation")
        for role in ROLES
    },
    (23, 0): {"epoch": "int32", "subtopologies": [SUBTOPOLOGY]},
    (24, 0): {
        "assignment_epoch": "int32",
        "resolved_topic_ids_by_subtopology": [{"subtopology_id": "string", "topic_ids": ["uuid"]}],
    },
}


def is_flexible(record_type: int, version: int) -> bool:
    return record_type >= 3 or version >= 4


# what a field holds when its version has no place for it
COMMIT_DEFAULTS = {"leader_epoch": -1, "expire_timestamp": -1, "topic_id": None}
DEFAULTS: dict[int, dict[str, Any]] = {
    0: COMMIT_DEFAULTS,
    1: COMMIT_DEFAULTS,
    2: {"current_state_timestamp": -1},
}
MEMBER_DEFAULTS = {"group_instance_id": None, "rebalance_timeout": -1}
