"""The members of a classic group and what follows from all of them together
(GC/classic/ClassicGroup).
"""

from __future__ import annotations

from collections import Counter

from simulator.classic_requests import Peer
from simulator.records import TopicPartition


class Roster:
    """Members by id, in the order in which they came."""

    def __init__(self) -> None:
        self.peers: dict[str, Peer] = {}

    def static(self, instance_id: str) -> Peer | None:
        return next(
            (peer for peer in self.peers.values() if peer.wish.instance_id == instance_id), None
        )

    def replace(self, old_id: str, peer: Peer) -> None:
        """A static member under another id keeps its place."""
        places = [
            (peer.member_id, peer) if name == old_id else (name, each)
            for name, each in self.peers.items()
        ]
        self.peers = dict(places)

    def why_unknown(self, member_id: str) -> str:
        """A static member's old id is fenced: its instance is there under another one."""
        is_fenced = any(
            member_id.startswith(f"{peer.wish.instance_id}-") for peer in self.peers.values()
        )
        return "FENCED_INSTANCE_ID" if is_fenced else "UNKNOWN_MEMBER_ID"

    def rebalance_ms(self) -> int:
        """The largest rebalance timeout bounds the join and the sync phase."""
        return max((peer.wish.rebalance_ms for peer in self.peers.values()), default=0)

    def common(self) -> set[str]:
        """Assignors that all support."""
        return set.intersection(*(set(peer.wish.protocols) for peer in self.peers.values()))

    def vote(self) -> str:
        """Each member votes for its first assignor that all support; a tie goes to the one voted
        for first.
        """
        common = self.common()
        votes = Counter(
            next(name for name in peer.wish.protocols if name in common)
            for peer in self.peers.values()
        )
        return max(votes, key=lambda name: votes[name])

    def held(self) -> dict[str, list[TopicPartition]]:
        """Partitions by slot."""
        return {peer.wish.slot: list(peer.assigned or ()) for peer in self.peers.values()}
