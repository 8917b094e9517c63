"""The two blobs of a group record's member, read by the protocol type of its group."""

from collections.abc import Mapping
from typing import Any

from laggard.wire.connect_protocol import decode_worker_assignment, decode_worker_state
from laggard.wire.consumer_protocol import decode_assignment, decode_subscription

DECODERS = {
    "consumer": {"subscription": decode_subscription, "assignment": decode_assignment},
    "connect": {"subscription": decode_worker_state, "assignment": decode_worker_assignment},
}


def decode_member(protocol_type: str, member: Mapping[str, Any]) -> dict[str, Any]:
    """Decode `subscription` and `assignment`; of a protocol type that is not known here only the lengths are given."""
    decoders = DECODERS.get(protocol_type, {})
    blobs = {name: member[name] for name in ("subscription", "assignment")}
    decoded = {name: decoders[name](blob) if name in decoders else None for name, blob in blobs.items()}
    return decoded | {f"{name}_bytes": len(blob) for name, blob in blobs.items()}
