"""Subscription and assignment of classic members: the blobs of groups with protocol type `consumer`.

Source: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json of Kafka's clients; never flexible.
"""

from typing import Any

from laggard.wire.blobs import blob_decoder
from laggard.wire.primitives import (
    array_of,
    read_int32,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
)
from laggard.wire.structs import Field, Nested

NEWEST_VERSION = 3

TOPIC_PARTITIONS = (
    Field("topic", read_string),
    Field("partitions", array_of(read_int32)),
)

SUBSCRIPTION_PREFIX = (
    Field("topics", array_of(read_string)),
    Field("user_data", read_nullable_bytes),
)

SUBSCRIPTION_REST = (
    Field("owned_partitions", Nested(array_of, TOPIC_PARTITIONS), since=1, default=()),
    Field("generation_id", read_int32, since=2, default=-1),
    Field("rack_id", read_nullable_string, since=3),
)

ASSIGNMENT = (
    Field("assigned_partitions", Nested(array_of, TOPIC_PARTITIONS)),
    Field("user_data", read_nullable_bytes),
)

_decode_subscription = blob_decoder(SUBSCRIPTION_PREFIX, SUBSCRIPTION_REST, NEWEST_VERSION)
_decode_assignment = blob_decoder(ASSIGNMENT)


def decode_subscription(blob: bytes) -> dict[str, Any]:
    """Decode a subscription to its fields, or to the kind of its `error`; bytes left over are ignored."""
    return _decode_subscription(blob)


def decode_assignment(blob: bytes) -> dict[str, Any]:
    """Decode an assignment to its fields, or to the kind of its `error`; zero bytes are the empty assignment."""
    return _decode_assignment(blob) if blob else {"version": None, "assigned_partitions": [], "user_data": None}
