"""ConsumerGroupDescribe (KIP-848): state, epochs and members of a group of the new protocol."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

from laggard.sources import protocol


# kafka-python has no types
class ConsumerGroupDescribeRequest(ApiMessage, load_json=protocol):  # type: ignore[misc,call-arg]
    """Ask the coordinator of these groups."""


# kafka-python has no types
class ConsumerGroupDescribeResponse(ApiMessage, load_json=protocol):  # type: ignore[misc,call-arg]
    """Their state and members."""
