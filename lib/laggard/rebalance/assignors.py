"""Kafka's assignors as pure functions: who gets which partition, from subscriptions and what each member holds.

Sources: clients' RangeAssignor, RoundRobinAssignor and AbstractStickyAssignor; group-coordinator's UniformAssignor and
RangeAssignor (KIP-848). Racks are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from laggard.rebalance.assignors_sticky import assign_cooperative, assign_sticky, assign_uniform
from laggard.rebalance.assignors_types import Assignment, Member, TopicPartition, in_order

__all__ = ["ASSIGNORS", "Assignment", "Member", "TopicPartition", "assign"]


def assign(assignor: str, members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Member id to partitions, in order; `partitions` is topic to partition count, unknown topics give nothing."""
    return ASSIGNORS[assignor](members, partitions)


def assign_range(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Per topic contiguous ranges in order of member, so the first members collect the remainders."""
    found: Assignment = {member.member_id: [] for member in members}
    for topic in sorted(partitions):
        readers = [member for member in in_order(members) if topic in member.topics]
        first = 0
        for place, member in enumerate(readers):
            share = partitions[topic] // len(readers) + (place < partitions[topic] % len(readers))
            found[member.member_id] += [(topic, partition) for partition in range(first, first + share)]
            first += share
    return found


def assign_round_robin(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """All partitions in order, one by one to the next member that subscribes to the topic."""
    found: Assignment = {member.member_id: [] for member in members}
    circle = in_order(members)
    turn = 0
    wanted = {topic for member in members for topic in member.topics}
    for topic in sorted(partitions.keys() & wanted):
        for partition in range(partitions[topic]):
            while topic not in circle[turn % len(circle)].topics:
                turn += 1
            found[circle[turn % len(circle)].member_id].append((topic, partition))
            turn += 1
    return found


ASSIGNORS: dict[str, Callable[[Sequence[Member], Mapping[str, int]], Assignment]] = {
    "range": assign_range,  # the broker's own (KIP-848) has given the same ranges in the same order since 4.0
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
    "uniform": assign_uniform,
}
