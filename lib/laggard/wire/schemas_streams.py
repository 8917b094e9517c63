"""Streams groups (KIP-1071): record types 17 and 19 to 24."""

from laggard.wire.primitives import (
    compact_array_of,
    compact_nullable_array_of,
    nullable,
    read_compact_nullable_string,
    read_compact_string,
    read_int8,
    read_int16,
    read_int32,
    read_int64,
    read_uint16,
    read_uuid,
)
from laggard.wire.schemas_modern import ASSIGNMENT_EPOCHS, KEY_VALUE, read_int32s, read_strings
from laggard.wire.structs import Field, Nested

GROUP_METADATA_VALUE = (  # StreamsGroupMetadataValue.json
    Field("epoch", read_int32),
    Field("metadata_hash", read_int64),
    # 4.2+; absent does not mean "not ready"
    Field("validated_topology_epoch", read_int32, default=-1, tag=0),
    # 4.2+
    Field(
        "last_assignment_configs", Nested(compact_nullable_array_of, KEY_VALUE), default=(), tag=1
    ),
    # 4.4+; -2: uncertain
    Field("stored_description_topology_epoch", read_int32, default=-1, tag=2),
    Field("failed_description_topology_epoch", read_int32, default=-1, tag=3),  # 4.4+
)

ENDPOINT = (
    Field("host", read_compact_string),
    Field("port", read_uint16),
)

MEMBER_METADATA_VALUE = (  # StreamsGroupMemberMetadataValue.json
    Field("instance_id", read_compact_nullable_string),
    Field("rack_id", read_compact_nullable_string),
    Field("client_id", read_compact_string),
    Field("client_host", read_compact_string),
    Field("rebalance_timeout_ms", read_int32),
    Field("topology_epoch", read_int32),
    Field("process_id", read_compact_string),
    Field("user_endpoint", Nested(nullable, ENDPOINT)),
    Field("client_tags", Nested(compact_array_of, KEY_VALUE)),
)

TASKS = (
    Field("subtopology_id", read_compact_string),
    Field("partitions", read_int32s),
)

TARGET_ASSIGNMENT_MEMBER_VALUE = (  # StreamsGroupTargetAssignmentMemberValue.json
    Field("active_tasks", Nested(compact_array_of, TASKS)),
    Field("standby_tasks", Nested(compact_array_of, TASKS)),
    Field("warmup_tasks", Nested(compact_array_of, TASKS)),
)

ASSIGNED_TASKS = (*TASKS, ASSIGNMENT_EPOCHS)

CURRENT_MEMBER_ASSIGNMENT_VALUE = (  # StreamsGroupCurrentMemberAssignmentValue.json
    Field("member_epoch", read_int32),
    Field("previous_member_epoch", read_int32),
    # one higher than in consumer groups: 1 stable, 2 has to revoke, 3 waits for others
    Field("state", read_int8),
    Field("active_tasks", Nested(compact_array_of, ASSIGNED_TASKS)),
    Field("standby_tasks", Nested(compact_array_of, ASSIGNED_TASKS)),
    Field("warmup_tasks", Nested(compact_array_of, ASSIGNED_TASKS)),
    Field("active_tasks_pending_revocation", Nested(compact_array_of, ASSIGNED_TASKS)),
    Field("standby_tasks_pending_revocation", Nested(compact_array_of, ASSIGNED_TASKS)),
    Field("warmup_tasks_pending_revocation", Nested(compact_array_of, ASSIGNED_TASKS)),
)

TOPIC_INFO = (
    Field("name", read_compact_string),
    Field("partitions", read_int32),
    Field("replication_factor", read_int16),
    Field("topic_configs", Nested(compact_array_of, KEY_VALUE)),
)

COPARTITION_GROUP = (  # positions in the lists of the subtopology around it
    Field("source_topics", compact_array_of(read_int16)),
    Field("source_topic_regex", compact_array_of(read_int16)),
    Field("repartition_source_topics", compact_array_of(read_int16)),
)

SUBTOPOLOGY = (
    Field("subtopology_id", read_compact_string),
    Field("source_topics", read_strings),
    Field("source_topic_regex", read_strings),
    Field("state_changelog_topics", Nested(compact_array_of, TOPIC_INFO)),
    Field("repartition_sink_topics", read_strings),
    Field("repartition_source_topics", Nested(compact_array_of, TOPIC_INFO)),
    Field("copartition_groups", Nested(compact_array_of, COPARTITION_GROUP)),
)

TOPOLOGY_VALUE = (  # StreamsGroupTopologyValue.json
    Field("epoch", read_int32),
    Field("subtopologies", Nested(compact_array_of, SUBTOPOLOGY)),
)

RESOLVED_TOPIC_IDS = (
    Field("subtopology_id", read_compact_string),
    Field("topic_ids", compact_array_of(read_uuid)),
)

# StreamsGroupTargetAssignmentResolvedTopicIdsValue.json, in no release up to 4.4.0
RESOLVED_TOPIC_IDS_VALUE = (
    Field("assignment_epoch", read_int32),
    Field("resolved_topic_ids_by_subtopology", Nested(compact_array_of, RESOLVED_TOPIC_IDS)),
)
