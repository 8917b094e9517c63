"""Metadata and assignment of Connect workers: the blobs of groups with protocol type `connect`.

Source: ConnectProtocol.java and, from version 1 on, IncrementalCooperativeConnectProtocol.java (KIP-415); version 2
(KIP-507) has the layout of version 1.
"""

from typing import Any

from laggard.wire.blobs import blob_decoder
from laggard.wire.primitives import (
    Reader,
    T,
    array_of,
    nullable_array_of,
    read_int16,
    read_int32,
    read_int64,
    read_nullable_bytes,
    read_string,
)
from laggard.wire.structs import Field, Nested


def _list_of(read_item: Reader[T]) -> Reader[list[T]]:
    # Kafka's reader takes a null list, which version 1 allows, for an empty one
    read_nullable = nullable_array_of(read_item)

    def read(buffer: bytes, offset: int) -> tuple[list[T], int]:
        items, size = read_nullable(buffer, offset)
        return items or [], size

    return read


SUBSCRIPTION_PREFIX = (
    Field("worker_url", read_string),
    Field("config_offset", read_int64),  # how far the worker has read the topic of connector configurations
)

SUBSCRIPTION_REST = (
    Field("allocation", read_nullable_bytes, since=1),  # what the worker runs now, as an assignment
)

CONNECTOR_TASKS = (
    Field("connector", read_string),
    Field("tasks", array_of(read_int32)),  # -1: the connector itself
)

ASSIGNMENT_PREFIX = (
    Field("error_code", read_int16),
    Field("leader", read_string),
    Field("leader_url", read_string),
    Field("config_offset", read_int64),
    Field("assigned", Nested(_list_of, CONNECTOR_TASKS)),
)

ASSIGNMENT_REST = (
    Field("revoked", Nested(_list_of, CONNECTOR_TASKS), since=1, default=()),
    Field("scheduled_delay_ms", read_int32, since=1, default=0),  # until lost tasks are given to others
)

NOTHING = {"version": None, "error_code": 0, "leader": None, "leader_url": None, "config_offset": None}

_decode_subscription = blob_decoder(SUBSCRIPTION_PREFIX, SUBSCRIPTION_REST, newest=1)
_decode_assignment = blob_decoder(ASSIGNMENT_PREFIX, ASSIGNMENT_REST, newest=1)


def decode_worker_state(blob: bytes) -> dict[str, Any]:
    """Decode the subscription of a worker to its fields, or to the kind of its `error`."""
    return _decode_subscription(blob)


def decode_worker_assignment(blob: bytes) -> dict[str, Any]:
    """Decode the connectors and tasks of a worker, or the kind of the `error`; zero bytes are the empty assignment."""
    if not blob:
        return {**NOTHING, "assigned": [], "revoked": [], "scheduled_delay_ms": 0, "partial": False}
    return _decode_assignment(blob)
