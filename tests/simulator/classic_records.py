"""One group record (type 2): its value for the encoder, and the same thing for the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator import records
from simulator.classic_requests import Peer
from simulator.records import Subscription
from simulator.truth import Generation


@dataclass(frozen=True)
class GroupRecord:
    """The group at the moment it is written."""

    group: str
    kind: str
    generation: int
    protocol: str | None
    leader: str | None
    state_ms: int
    peers: Sequence[Peer]

    @property
    def protocol_type(self) -> str:
        return "" if self.kind == "create" else "consumer"

    def _subscription(self, peer: Peer) -> Subscription:
        """Only the chosen assignor's metadata is kept."""
        return peer.wish.protocols[self.protocol or ""]

    def value(self) -> dict[str, Any]:
        return {
            "protocol_type": self.protocol_type,
            "generation": self.generation,
            "protocol": self.protocol,
            "leader": self.leader,
            "current_state_timestamp": self.state_ms,
            "members": [
                {
                    "member_id": peer.member_id,
                    "group_instance_id": peer.wish.instance_id,
                    "client_id": peer.wish.client_id,
                    "client_host": peer.wish.host,
                    "rebalance_timeout": peer.wish.rebalance_ms,
                    "session_timeout": peer.wish.session_ms,
                    "subscription": bytes(self._subscription(peer)),
                    "assignment": b""
                    if peer.assigned is None
                    else records.assignment(peer.assigned),
                }
                for peer in self.peers
            ],
        }

    def truth(self, now_ms: int, partition: int, offset: int, version: int) -> Generation:
        """As the record tells it: old versions have no place for the state's time and the instance
        id.
        """
        members = {}
        for peer in self.peers:
            subscription = self._subscription(peer)
            owned = sorted(subscription.owned) if subscription.version >= 1 else None
            members[peer.member_id] = {
                "group_instance_id": peer.wish.instance_id if version >= 3 else None,
                "client_id": peer.wish.client_id,
                "client_host": peer.wish.host,
                "slot": peer.wish.slot,
                "topics": sorted(subscription.topics),
                "owned": owned,
                "assigned": sorted(peer.assigned or ()),
            }
        return Generation(
            self.group, self.kind, now_ms, partition, offset, self.generation,
            self.protocol_type or None,
            self.protocol, self.leader, self.state_ms if version >= 2 else None, members,
        )  # fmt: skip
