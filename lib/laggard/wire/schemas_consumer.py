"""Groups of the consumer protocol (KIP-848): record types 3 to 8 and 16."""

from laggard.wire.primitives import (
    compact_array_of,
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
from laggard.wire.schemas_modern import ASSIGNMENT_EPOCHS, TOPIC_PARTITIONS, read_strings
from laggard.wire.structs import Field, Nested

REGULAR_EXPRESSION_KEY = (  # ConsumerGroupRegularExpressionKey.json
    Field("group_id", read_string),
    Field("regular_expression", read_string),
)

GROUP_METADATA_VALUE = (  # ConsumerGroupMetadataValue.json
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

PARTITION_METADATA_VALUE = (  # ConsumerGroupPartitionMetadataValue.json; 4.1+ writes tombstones only
    Field("topics", Nested(compact_array_of, TOPIC_METADATA)),
)

CLASSIC_PROTOCOL = (
    Field("name", read_compact_string),
    Field("metadata", read_compact_bytes),  # a subscription of the classic consumer protocol
)

CLASSIC_MEMBER = (
    Field("session_timeout_ms", read_int32),
    Field("supported_protocols", Nested(compact_array_of, CLASSIC_PROTOCOL)),
)

MEMBER_METADATA_VALUE = (  # ConsumerGroupMemberMetadataValue.json
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

CURRENT_MEMBER_ASSIGNMENT_VALUE = (  # ConsumerGroupCurrentMemberAssignmentValue.json
    Field("member_epoch", read_int32),  # -2: a static member has left for now
    Field("previous_member_epoch", read_int32),
    Field("state", read_int8),  # 0 stable, 1 has partitions to revoke, 2 waits for others to release some
    Field("assigned_partitions", Nested(compact_array_of, ASSIGNED_PARTITIONS)),
    Field("partitions_pending_revocation", Nested(compact_array_of, ASSIGNED_PARTITIONS)),
)

REGULAR_EXPRESSION_VALUE = (  # ConsumerGroupRegularExpressionValue.json
    Field("topics", read_strings),
    Field("version", read_int64),  # of the cluster's metadata that the expression was resolved with
    Field("timestamp", read_int64),
)
