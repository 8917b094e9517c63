"""Offset commits and the groups of the classic protocol: record types 0 to 2."""

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
from laggard.wire.structs import Field, Nested

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
