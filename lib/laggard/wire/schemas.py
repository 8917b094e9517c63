"""Record types of `__consumer_offsets` with their tables of fields; new types go here only.

Layouts follow Kafka's generated record classes;
group-coordinator/src/main/resources/common/message has their schemas.
"""

from dataclasses import dataclass

from laggard.wire import schemas_modern as modern
from laggard.wire import schemas_streams as streams
from laggard.wire.primitives import (
    array_of,
    compact_array_of,
    read_bytes,
    read_compact_bytes,
    read_compact_lossy_string,
    read_compact_nullable_string,
    read_compact_string,
    read_int32,
    read_int64,
    read_lossy_string,
    read_nonzero_uuid,
    read_nullable_string,
    read_string,
)
from laggard.wire.structs import Field, Nested, Table

# offset commits and the groups of the classic protocol
OFFSET_COMMIT_KEY = (  # OffsetCommitKey.json, LegacyOffsetCommitKey.json
    Field("group", read_string),
    Field("topic", read_string),
    Field("partition", read_int32),
)

OFFSET_COMMIT_VALUE = (  # OffsetCommitValue.json; v4 since 4.1 (KAFKA-19141)
    Field("offset", read_int64),
    Field("leader_epoch", read_int32, since=3, default=-1),
    Field("metadata", read_lossy_string, until=3),
    Field("metadata", read_compact_lossy_string, since=4),
    Field("commit_timestamp", read_int64),
    Field("expire_timestamp", read_int64, since=1, until=1, default=-1),
    Field("topic_id", read_nonzero_uuid, since=4, tag=0),
)

GROUP_METADATA_KEY = (Field("group", read_string),)  # GroupMetadataKey.json

GROUP_MEMBER = (  # MemberMetadata in GroupMetadataValue.json
    Field("member_id", read_string, until=3),
    Field("member_id", read_compact_string, since=4),
    Field("group_instance_id", read_nullable_string, since=3, until=3),
    Field("group_instance_id", read_compact_nullable_string, since=4),
    Field("client_id", read_string, until=3),
    Field("client_id", read_compact_string, since=4),
    Field("client_host", read_string, until=3),
    Field("client_host", read_compact_string, since=4),
    Field("rebalance_timeout", read_int32, since=1, default=-1),  # -1: use the session timeout
    Field("session_timeout", read_int32),
    Field("subscription", read_bytes, until=3),
    Field("subscription", read_compact_bytes, since=4),
    Field("assignment", read_bytes, until=3),
    Field("assignment", read_compact_bytes, since=4),
)

GROUP_METADATA_VALUE = (  # GroupMetadataValue.json; brokers write v3, v4 is only read
    Field("protocol_type", read_string, until=3),
    Field("protocol_type", read_compact_string, since=4),
    Field("generation", read_int32),
    Field("protocol", read_nullable_string, until=3),
    Field("protocol", read_compact_nullable_string, since=4),
    Field("leader", read_nullable_string, until=3),
    Field("leader", read_compact_nullable_string, since=4),
    Field("current_state_timestamp", read_int64, since=2, default=-1),
    Field("members", Nested(array_of, GROUP_MEMBER), until=3),
    Field("members", Nested(compact_array_of, GROUP_MEMBER), since=4),
)


@dataclass(frozen=True, slots=True)
class RecordType:
    """Kafka's name, key and value of a record type; keys have version 0 only, never flexible."""

    name: str
    key: Table
    value: Table
    newest: int = 0
    flexible_since: int = 0


LEGACY_OFFSET_COMMIT = 0
OFFSET_COMMIT = 1
GROUP_METADATA = 2
COMMIT_TYPES = (LEGACY_OFFSET_COMMIT, OFFSET_COMMIT)


def _classic(name: str, key: Table, value: Table) -> RecordType:
    return RecordType(name, key, value, newest=4, flexible_since=4)


def _of_group(name: str, value: Table) -> RecordType:
    return RecordType(name, modern.GROUP_KEY, value)


def _of_member(name: str, value: Table) -> RecordType:
    return RecordType(name, modern.MEMBER_KEY, value)


RECORD_TYPES = {
    # Kafka 4.1+ refuses type 0 with a newer value; older brokers wrote either key with any version
    LEGACY_OFFSET_COMMIT: _classic("LegacyOffsetCommit", OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    OFFSET_COMMIT: _classic("OffsetCommit", OFFSET_COMMIT_KEY, OFFSET_COMMIT_VALUE),
    GROUP_METADATA: _classic("GroupMetadata", GROUP_METADATA_KEY, GROUP_METADATA_VALUE),
    3: _of_group("ConsumerGroupMetadata", modern.CONSUMER_GROUP_METADATA_VALUE),
    4: _of_group("ConsumerGroupPartitionMetadata", modern.CONSUMER_PARTITION_METADATA_VALUE),
    5: _of_member("ConsumerGroupMemberMetadata", modern.CONSUMER_MEMBER_METADATA_VALUE),
    6: _of_group("ConsumerGroupTargetAssignmentMetadata", modern.TARGET_ASSIGNMENT_METADATA_VALUE),
    7: _of_member("ConsumerGroupTargetAssignmentMember", modern.TARGET_ASSIGNMENT_MEMBER_VALUE),
    8: _of_member(
        "ConsumerGroupCurrentMemberAssignment", modern.CONSUMER_CURRENT_MEMBER_ASSIGNMENT_VALUE
    ),
    # 9, of share groups, was withdrawn before its release
    10: _of_member("ShareGroupMemberMetadata", modern.SHARE_MEMBER_METADATA_VALUE),
    11: _of_group("ShareGroupMetadata", modern.SHARE_GROUP_METADATA_VALUE),
    12: _of_group("ShareGroupTargetAssignmentMetadata", modern.TARGET_ASSIGNMENT_METADATA_VALUE),
    13: _of_member("ShareGroupTargetAssignmentMember", modern.TARGET_ASSIGNMENT_MEMBER_VALUE),
    14: _of_member(
        "ShareGroupCurrentMemberAssignment", modern.SHARE_CURRENT_MEMBER_ASSIGNMENT_VALUE
    ),
    15: _of_group("ShareGroupStatePartitionMetadata", modern.SHARE_STATE_PARTITION_METADATA_VALUE),
    16: RecordType(
        "ConsumerGroupRegularExpression",
        modern.REGULAR_EXPRESSION_KEY,
        modern.REGULAR_EXPRESSION_VALUE,
    ),
    17: _of_group("StreamsGroupMetadata", streams.GROUP_METADATA_VALUE),
    # 18, of streams groups, was withdrawn before its release
    19: _of_member("StreamsGroupMemberMetadata", streams.MEMBER_METADATA_VALUE),
    20: _of_group("StreamsGroupTargetAssignmentMetadata", modern.TARGET_ASSIGNMENT_METADATA_VALUE),
    21: _of_member("StreamsGroupTargetAssignmentMember", streams.TARGET_ASSIGNMENT_MEMBER_VALUE),
    22: _of_member("StreamsGroupCurrentMemberAssignment", streams.CURRENT_MEMBER_ASSIGNMENT_VALUE),
    23: _of_group("StreamsGroupTopology", streams.TOPOLOGY_VALUE),
    24: _of_group("StreamsGroupTargetAssignmentResolvedTopicIds", streams.RESOLVED_TOPIC_IDS_VALUE),
}
