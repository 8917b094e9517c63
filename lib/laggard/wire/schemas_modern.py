"""Parts shared by the records of consumer, share and streams groups: keys, target epochs, partitions of a topic.

Their values have version 0 only and are flexible. Numbers and names are Kafka's, in snake case.
"""

from laggard.wire.primitives import (
    compact_array_of,
    compact_nullable_array_of,
    read_compact_string,
    read_int32,
    read_int64,
    read_string,
    read_uuid,
)
from laggard.wire.structs import Field, Nested

GROUP_KEY = (Field("group_id", read_string),)

MEMBER_KEY = (
    Field("group_id", read_string),
    Field("member_id", read_string),
)

read_strings = compact_array_of(read_compact_string)
read_int32s = compact_array_of(read_int32)

# per partition, the epoch at which the member was given it; brokers before 4.2 (streams) and 4.3 write none
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
