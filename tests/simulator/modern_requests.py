"""What members of the KIP-848 protocol tell, and what the coordinator keeps of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.classic_requests import Wish
from simulator.records import TopicPartition

STABLE, UNREVOKED, UNRELEASED = 0, 1, 2
LEFT_FOR_NOW = -2  # member epoch of a static member that said it will rejoin


@dataclass(frozen=True)
class Beat:
    """A ConsumerGroupHeartbeat; epoch 0 joins, -1 leaves, -2 leaves for now. `owned` is None if
    nothing changed.
    """

    member_id: str
    epoch: int
    client_id: str
    host: str
    slot: str
    topics: tuple[str, ...]
    session_ms: int
    rebalance_ms: int
    instance_id: str | None = None
    owned: frozenset[TopicPartition] | None = None
    reason: str = "join"


@dataclass
class Mate:
    """A member as the coordinator knows it; `classic` is the JoinGroup of one that speaks the
    classic protocol.
    """

    member_id: str
    beat: Beat
    epoch: int = 0
    previous: int = 0
    state: int = STABLE
    assigned: set[TopicPartition] = field(default_factory=set)
    revoking: set[TopicPartition] = field(default_factory=set)
    last_seen: int = 0
    classic: Wish | None = None

    @property
    def holds(self) -> set[TopicPartition]:
        return self.assigned | self.revoking


def beat_of(wish: Wish, member_id: str, epoch: int) -> Beat:
    """What a member of the classic protocol would say in the new one."""
    subscription = next(iter(wish.protocols.values()))
    return Beat(
        member_id, epoch, wish.client_id, wish.host, wish.slot, subscription.topics,
        wish.session_ms,
        wish.rebalance_ms, wish.instance_id,
    )  # fmt: skip
