"""The two blobs of a group record's member, by protocol type; the broker stores them unread.

The protocol type is that of its group.

Sources: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json of Kafka's clients,
never flexible. For Connect ConnectProtocol.java and, from version 1 on,
IncrementalCooperativeConnectProtocol.java (KIP-415); version 2 (KIP-507) has the layout of version
1.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from laggard.wire.errors import WireError
from laggard.wire.primitives import (
    Reader,
    T,
    array_of,
    nullable_array_of,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_bytes,
    read_nullable_string,
    read_string,
)
from laggard.wire.structs import Field, Nested, Table, struct_reader

BlobDecoder: TypeAlias = Callable[[bytes], dict[str, Any]]


def _list_of(read_item: Reader[T]) -> Reader[list[T]]:
    # Kafka's reader takes a null list, which version 1 of Connect's assignment allows, for an empty
    # one
    read_nullable = nullable_array_of(read_item)

    def read(buffer: bytes, offset: int) -> tuple[list[T], int]:
        items, size = read_nullable(buffer, offset)
        return items or [], size

    return read


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

WORKER_STATE_PREFIX = (
    Field("worker_url", read_string),
    # how far the worker has read the topic of connector configurations
    Field("config_offset", read_int64),
)

WORKER_STATE_REST = (
    Field("allocation", read_nullable_bytes, since=1),  # what the worker runs now, as an assignment
)

CONNECTOR_TASKS = (
    Field("connector", read_string),
    Field("tasks", array_of(read_int32)),  # -1: the connector itself
)

WORKER_ASSIGNMENT_PREFIX = (
    Field("error_code", read_int16),
    Field("leader", read_string),
    Field("leader_url", read_string),
    Field("config_offset", read_int64),
    Field("assigned", Nested(_list_of, CONNECTOR_TASKS)),
)

WORKER_ASSIGNMENT_REST = (
    Field("revoked", Nested(_list_of, CONNECTOR_TASKS), since=1, default=()),
    # until lost tasks are given to others
    Field("scheduled_delay_ms", read_int32, since=1, default=0),
)

NO_ASSIGNMENT: dict[str, Any] = {"version": None, "assigned_partitions": [], "user_data": None}
NO_WORKER_ASSIGNMENT: dict[str, Any] = {
    "version": None, "error_code": 0, "leader": None, "leader_url": None, "config_offset": None,
    "assigned": [],
    "revoked": [], "scheduled_delay_ms": 0, "partial": False,
}  # fmt: skip


def decode_member(
    protocol_type: str, member: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decode subscription and assignment.

    Of an unknown protocol type only their `bytes` are kept.
    """
    subscription, assignment = member["subscription"], member["assignment"]
    if protocol_type not in DECODERS:
        return {"bytes": len(subscription)}, {"bytes": len(assignment)}
    read_subscription, read_assignment = DECODERS[protocol_type]
    return read_subscription(subscription), read_assignment(assignment)


def _read_version(blob: bytes) -> tuple[int, int]:
    try:
        version, size = read_int16(blob, 0)
    except WireError as error:
        raise error.inside("version") from None
    if version < 0:
        raise WireError("bad_version", "version")
    return version, size


def blob_decoder(
    prefix: Table, rest: Table = (), newest: int = 0, *, empty: dict[str, Any] | None = None
) -> BlobDecoder:
    """Make a decoder to the fields, or to the kind of their `error`.

    Bytes left over and newer versions are no error.

    The prefix must decode. The rest need not: some clients are said to write later versions
    without its fields, and the broker itself reads only the prefix (ConsumerProtocol.java); then
    `partial` is true and the rest has defaults. `empty` is what zero bytes stand for, if they are
    no error.
    """
    read_prefix = struct_reader(prefix, 0)
    readers = [struct_reader(rest, version) for version in range(newest + 1)]

    def decode(blob: bytes) -> dict[str, Any]:
        if empty is not None and not blob:
            return deepcopy(empty)
        try:
            version, head = _read_version(blob)
            fields, size = read_prefix(blob, head)
        except WireError as error:
            return {"error": error.kind}
        fields = {"version": version, **fields}
        if not rest:
            return fields
        try:
            return {
                **fields,
                **readers[min(version, newest)](blob, head + size)[0],
                "partial": False,
            }
        except WireError:
            return {**fields, **readers[0](blob, 0)[0], "partial": True}

    return decode


decode_subscription = blob_decoder(SUBSCRIPTION_PREFIX, SUBSCRIPTION_REST, newest=3)
decode_assignment = blob_decoder(ASSIGNMENT, empty=NO_ASSIGNMENT)
decode_worker_state = blob_decoder(WORKER_STATE_PREFIX, WORKER_STATE_REST, newest=1)
decode_worker_assignment = blob_decoder(
    WORKER_ASSIGNMENT_PREFIX, WORKER_ASSIGNMENT_REST, newest=1, empty=NO_WORKER_ASSIGNMENT
)

DECODERS = {
    "consumer": (decode_subscription, decode_assignment),
    "connect": (decode_worker_state, decode_worker_assignment),
}
