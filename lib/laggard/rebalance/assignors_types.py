"""Input and output types of every assignor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
Assignment: TypeAlias = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Member:
    """A member as an assignor sees it; `owned` is what it held in `generation`, read by sticky assignors only."""

    member_id: str
    topics: frozenset[str]
    group_instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members by instance id, then dynamic ones by member id (AbstractPartitionAssignor.MemberInfo)."""
    return sorted(members, key=lambda each: (each.group_instance_id is None, each.group_instance_id or each.member_id))
