"""The two blobs of a group record's member, read by the protocol type of its group."""

from collections.abc import Mapping
from typing import Any

from laggard.wire.connect_protocol import decode_worker_assignment, decode_worker_state
from laggard.wire.consumer_protocol import decode_assignment, decode_subscription

DECODERS = {
    "consumer": (decode_subscription, decode_assignment),
    "connect": (decode_worker_state, decode_worker_assignment),
}


def decode_member(protocol_type: str, member: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decode subscription and assignment; of an unknown protocol type only their `bytes` are kept."""
    subscription, assignment = member["subscription"], member["assignment"]
    if protocol_type not in DECODERS:
        return {"bytes": len(subscription)}, {"bytes": len(assignment)}
    read_subscription, read_assignment = DECODERS[protocol_type]
    return read_subscription(subscription), read_assignment(assignment)
