"""Share groups (KIP-932): record types 10 to 15. Their progress is in another topic."""

from laggard.wire.primitives import (
    compact_array_of,
    read_compact_nullable_string,
    read_compact_string,
    read_int8,
    read_int32,
    read_int64,
    read_uuid,
)
from laggard.wire.schemas_modern import TOPIC_PARTITIONS, read_int32s, read_strings
from laggard.wire.structs import Field, Nested

MEMBER_METADATA_VALUE = (  # ShareGroupMemberMetadataValue.json
    Field("rack_id", read_compact_nullable_string),
    Field("client_id", read_compact_string),
    Field("client_host", read_compact_string),
    Field("subscribed_topic_names", read_strings),
)

GROUP_METADATA_VALUE = (  # ShareGroupMetadataValue.json
    Field("epoch", read_int32),
    Field("metadata_hash", read_int64),  # a tag in consumer groups, and none here
)

CURRENT_MEMBER_ASSIGNMENT_VALUE = (  # ShareGroupCurrentMemberAssignmentValue.json
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

STATE_PARTITION_METADATA_VALUE = (  # ShareGroupStatePartitionMetadataValue.json
    Field("initializing_topics", Nested(compact_array_of, NAMED_TOPIC_PARTITIONS)),
    Field("initialized_topics", Nested(compact_array_of, NAMED_TOPIC_PARTITIONS)),
    Field("deleting_topics", Nested(compact_array_of, NAMED_TOPIC)),
)
