"""What classic members ask for and get: the blobs of groups with protocol type `consumer`.

Source: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json of Kafka's clients; never flexible.
"""

from typing import Any

from laggard.wire.errors import WireError
from laggard.wire.primitives import (
    array_of,
    read_int16,
    read_int32,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
)
from laggard.wire.structs import Field, Nested, Struct, struct_reader

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

_read_prefix = struct_reader(SUBSCRIPTION_PREFIX, 0)
_read_rest = [struct_reader(SUBSCRIPTION_REST, version) for version in range(NEWEST_VERSION + 1)]
_read_assignment = struct_reader(ASSIGNMENT, 0)


def _read_version(blob: bytes) -> tuple[int, int]:
    try:
        version, size = read_int16(blob, 0)
    except WireError as error:
        raise error.inside("version") from None
    if version < 0:
        raise WireError("bad_version", "version")
    return version, size


def _read_best_effort(blob: bytes, offset: int, version: int) -> Struct:
    # the broker itself reads only the prefix of version 0, and some clients are said to write no more
    try:
        rest, _ = _read_rest[min(version, NEWEST_VERSION)](blob, offset)
    except WireError:
        rest, _ = _read_rest[0](blob, offset)
        return {**rest, "partial": True}
    return {**rest, "partial": False}


def decode_subscription(blob: bytes) -> dict[str, Any]:
    """Decode a subscription to its fields, or to the kind of its `error`; bytes left over are ignored."""
    try:
        version, size = _read_version(blob)
        prefix, prefix_size = _read_prefix(blob, size)
    except WireError as error:
        return {"error": error.kind}
    rest = _read_best_effort(blob, size + prefix_size, version)
    return {"version": version, **prefix, **rest, "owned_partitions": list(rest["owned_partitions"])}


def decode_assignment(blob: bytes) -> dict[str, Any]:
    """Decode an assignment to its fields, or to the kind of its `error`; zero bytes are the empty assignment."""
    if not blob:
        return {"version": None, "assigned_partitions": [], "user_data": None}
    try:
        version, size = _read_version(blob)
        assignment, _ = _read_assignment(blob, size)
    except WireError as error:
        return {"error": error.kind}
    return {"version": version, **assignment}
