"""Records of consumer groups (KIP-848) and share groups (KIP-932), and shared parts.

Streams groups use the shared parts too.

Their values have version 0 only and are flexible. Numbers and names are Kafka's, in snake case.
"""

from laggard.wire.primitives import (
    compact_array_of,
    compact_nullable_array_of,
    read_compact_bytes,
    read_compact_nullable_string,
    read_compact_string,
    read_int8,
    read_int32,
    read_int64,
    read_string,
    read_uuid,
    tagged_nullable,
)
from laggard.wire.structs import Field, Nested

GROUP_KEY = (Field("group_id", read_string),)

MEMBER_KEY = (
    Field("group_id", read_string),
    Field("member_id", read_string),
)

read_strings = compact_array_of(read_compact_string)
read_int32s = compact_array_of(read_int32)

# per partition, the epoch at which the member was given it; brokers before 4.2 (streams) and 4.3
# write none
ASSIGNMENT_EPOCHS = Field("assignment_epochs", compact_nullable_array_of(read_int32), tag=0)

TOPIC_PARTITIONS = (  # TopicPartitions of the assignments: ids and no names
    Field("topic_id", read_uuid),
    Field("partitions", read_int32s),
)

TARGET_ASSIGNMENT_METADATA_VALUE = (  # …GroupTargetAssignmentMetadataValue.json of all three
    Field("assignment_epoch", read_int32),
    Field("assignment_timestamp", read_int64, default=0, tag=0),  # 4.3+ (KIP-1263)
)

TARGET_ASSIGNMENT_MEMBER_VALUE = (  # ConsumerGroup… and ShareGroupTargetAssignmentMemberValue.json
    Field("topic_partitions", Nested(compact_array_of, TOPIC_PARTITIONS)),
)

KEY_VALUE = (
    Field("key", read_compact_string),
    Field("value", read_compact_string),
)

# consumer groups (KIP-848): record types 3 to 8 and 16
REGULAR_EXPRESSION_KEY = (  # ConsumerGroupRegularExpressionKey.json
    Field("group_id", read_string),
    Field("regular_expression", read_string),
)

CONSUMER_GROUP_METADATA_VALUE = (  # ConsumerGroupMetadataValue.json
    Field("epoch", read_int32),
    Field("metadata_hash", read_int64, default=0, tag=0),  # 4.1+, in place of record type 4
)

PARTITION_RACKS = (
    Field("partition", read_int32),
    Field("racks", read_strings),
)

TOPIC_METADATA = (
    Field("topic_id", read_uuid),
    Field("topic_name", read_compact_string),
    Field("num_partitions", read_int32),
    Field("partition_metadata", Nested(compact_array_of, PARTITION_RACKS)),
)

# ConsumerGroupPartitionMetadataValue.json; 4.1+ writes tombstones only
CONSUMER_PARTITION_METADATA_VALUE = (Field("topics", Nested(compact_array_of, TOPIC_METADATA)),)

CLASSIC_PROTOCOL = (
    Field("name", read_compact_string),
    Field("metadata", read_compact_bytes),  # a subscription of the classic consumer protocol
)

CLASSIC_MEMBER = (
    Field("session_timeout_ms", read_int32),
    Field("supported_protocols", Nested(compact_array_of, CLASSIC_PROTOCOL)),
)

CONSUMER_MEMBER_METADATA_VALUE = (  # ConsumerGroupMemberMetadataValue.json
    Field("instance_id", read_compact_nullable_string),
    Field("rack_id", read_compact_nullable_string),
    Field("client_id", read_compact_string),
    Field("client_host", read_compact_string),
    Field("subscribed_topic_names", read_strings),
    Field("subscribed_topic_regex", read_compact_nullable_string),  # brokers write "" for none
    Field("rebalance_timeout_ms", read_int32),
    Field("server_assignor", read_compact_nullable_string),
    # brokers write an explicit null for all but members that still speak the classic protocol
    Field("classic_member_metadata", Nested(tagged_nullable, CLASSIC_MEMBER), tag=0),
)

ASSIGNED_PARTITIONS = (*TOPIC_PARTITIONS, ASSIGNMENT_EPOCHS)

CONSUMER_CURRENT_MEMBER_ASSIGNMENT_VALUE = (  # ConsumerGroupCurrentMemberAssignmentValue.json
    Field("member_epoch", read_int32),  # -2: a static member has left for now
    Field("previous_member_epoch", read_int32),
    # 0 stable, 1 has partitions to revoke, 2 waits for others to release some
    Field("state", read_int8),
    Field("assigned_partitions", Nested(compact_array_of, ASSIGNED_PARTITIONS)),
    Field("partitions_pending_revocation", Nested(compact_array_of, ASSIGNED_PARTITIONS)),
)

REGULAR_EXPRESSION_VALUE = (  # ConsumerGroupRegularExpressionValue.json
    Field("topics", read_strings),
    Field("version", read_int64),  # of the cluster's metadata that the expression was resolved with
    Field("timestamp", read_int64),
)

# share groups (KIP-932): record types 10 to 15; their progress is in another topic
SHARE_MEMBER_METADATA_VALUE = (  # ShareGroupMemberMetadataValue.json
    Field("rack_id", read_compact_nullable_string),
    Field("client_id", read_compact_string),
    Field("client_host", read_compact_string),
    Field("subscribed_topic_names", read_strings),
)

SHARE_GROUP_METADATA_VALUE = (  # ShareGroupMetadataValue.json
    Field("epoch", read_int32),
    Field("metadata_hash", read_int64),  # a tag in consumer groups, and none here
)

SHARE_CURRENT_MEMBER_ASSIGNMENT_VALUE = (  # ShareGroupCurrentMemberAssignmentValue.json
    Field("member_epoch", read_int32),
    Field("previous_member_epoch", read_int32),
    Field("state", read_int8),
    Field("assigned_partitions", Nested(compact_array_of, TOPIC_PARTITIONS)),
)

NAMED_TOPIC = (
    Field("topic_id", read_uuid),
    Field("topic_name", read_compact_string),
)

NAMED_TOPIC_PARTITIONS = (*NAMED_TOPIC, Field("partitions", read_int32s))

SHARE_STATE_PARTITION_METADATA_VALUE = (  # ShareGroupStatePartitionMetadataValue.json
    Field("initializing_topics", Nested(compact_array_of, NAMED_TOPIC_PARTITIONS)),
    Field("initialized_topics", Nested(compact_array_of, NAMED_TOPIC_PARTITIONS)),
    Field("deleting_topics", Nested(compact_array_of, NAMED_TOPIC)),
)
