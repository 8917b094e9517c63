"""What members of the classic protocol ask for, and what the coordinator keeps of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from simulator.records import Subscription, TopicPartition

Reply = Callable[..., None]


@dataclass(frozen=True)
class Wish:
    """A JoinGroup request; `protocols` in order of preference, `reason` is for the truth alone."""

    client_id: str
    host: str
    slot: str
    session_ms: int
    rebalance_ms: int
    protocols: Mapping[str, Subscription]
    member_id: str = ""
    instance_id: str | None = None
    reason: str = "join"


@dataclass
class Peer:
    """A member as the coordinator knows it."""

    member_id: str
    wish: Wish
    # None: zero bytes, the leader gave it nothing
    assigned: tuple[TopicPartition, ...] | None = None
    last_seen: int = 0
    joining: Reply | None = None
    syncing: Reply | None = None

    def answer(self, error: str) -> None:
        """To whatever it waits for."""
        for waiting in (self.joining, self.syncing):
            if waiting is not None:
                waiting(error, {})
