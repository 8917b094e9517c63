"""The record types of `__consumer_offsets`, each with its tables of fields: a type is added here, and nowhere else.

Layouts follow Kafka's generated record classes; group-coordinator/src/main/resources/common/message has their schemas.
"""

from dataclasses import dataclass

from laggard.wire import schemas_classic as classic
from laggard.wire import schemas_consumer as consumer
from laggard.wire import schemas_modern as modern
from laggard.wire import schemas_share as share
from laggard.wire import schemas_streams as streams
from laggard.wire.structs import Table


@dataclass(frozen=True, slots=True)
class RecordType:
    """Kafka's name, key and value of one record type; keys have version 0 only and are never flexible."""

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
    LEGACY_OFFSET_COMMIT: _classic("LegacyOffsetCommit", classic.OFFSET_COMMIT_KEY, classic.OFFSET_COMMIT_VALUE),
    OFFSET_COMMIT: _classic("OffsetCommit", classic.OFFSET_COMMIT_KEY, classic.OFFSET_COMMIT_VALUE),
    GROUP_METADATA: _classic("GroupMetadata", classic.GROUP_METADATA_KEY, classic.GROUP_METADATA_VALUE),
    3: _of_group("ConsumerGroupMetadata", consumer.GROUP_METADATA_VALUE),
    4: _of_group("ConsumerGroupPartitionMetadata", consumer.PARTITION_METADATA_VALUE),
    5: _of_member("ConsumerGroupMemberMetadata", consumer.MEMBER_METADATA_VALUE),
    6: _of_group("ConsumerGroupTargetAssignmentMetadata", modern.TARGET_ASSIGNMENT_METADATA_VALUE),
    7: _of_member("ConsumerGroupTargetAssignmentMember", modern.TARGET_ASSIGNMENT_MEMBER_VALUE),
    8: _of_member("ConsumerGroupCurrentMemberAssignment", consumer.CURRENT_MEMBER_ASSIGNMENT_VALUE),
    # 9, of share groups, was withdrawn before its release
    10: _of_member("ShareGroupMemberMetadata", share.MEMBER_METADATA_VALUE),
    11: _of_group("ShareGroupMetadata", share.GROUP_METADATA_VALUE),
    12: _of_group("ShareGroupTargetAssignmentMetadata", modern.TARGET_ASSIGNMENT_METADATA_VALUE),
    13: _of_member("ShareGroupTargetAssignmentMember", modern.TARGET_ASSIGNMENT_MEMBER_VALUE),
    14: _of_member("ShareGroupCurrentMemberAssignment", share.CURRENT_MEMBER_ASSIGNMENT_VALUE),
    15: _of_group("ShareGroupStatePartitionMetadata", share.STATE_PARTITION_METADATA_VALUE),
    16: RecordType(
        "ConsumerGroupRegularExpression", consumer.REGULAR_EXPRESSION_KEY, consumer.REGULAR_EXPRESSION_VALUE
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
