"""Kafka's assignors as pure functions, from subscriptions and the partitions that members hold.

They give the partitions of each member.

Sources: clients' RangeAssignor, RoundRobinAssignor and AbstractStickyAssignor; group-coordinator's
UniformAssignor and RangeAssignor (KIP-848). Racks are left out.

The sticky ones keep what members hold. Members with one common subscription follow Kafka's
constrained algorithm step by step. For differing subscriptions Kafka searches with a heuristic;
here the loads are levelled by single moves, so there only balance is comparable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter
from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
Assignment: TypeAlias = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Member:
    """Member as an assignor sees it.

    `owned` has its partitions in `generation`, read by sticky assignors only.
    """

    member_id: str
    topics: frozenset[str]
    group_instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1


def in_order(members: Iterable[Member]) -> list[Member]:
    """Return static members by instance id, then dynamic ones by member id.

    The order is that of AbstractPartitionAssignor.MemberInfo.
    """
    return sorted(
        members,
        key=lambda member: (
            member.group_instance_id is None,
            member.group_instance_id or member.member_id,
        ),
    )


def assign(assignor: str, members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Return a mapping from member id to partitions, in order.

    `partitions` is topic to partition count; unknown topics give none.
    """
    return ASSIGNORS[assignor](members, partitions)


def assign_range(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign contiguous ranges per topic in member order; the first members get the remainders."""
    assignment: Assignment = {member.member_id: [] for member in members}
    for topic in sorted(partitions):
        readers = [member for member in in_order(members) if topic in member.topics]
        first = 0
        for rank, member in enumerate(readers):
            share = partitions[topic] // len(readers) + (rank < partitions[topic] % len(readers))
            assignment[member.member_id] += zip(repeat(topic), range(first, first + share))
            first += share
    return assignment


def assign_round_robin(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign all partitions in order, each to the next member that subscribes to its topic."""
    assignment: Assignment = {member.member_id: [] for member in members}
    circle = in_order(members)
    turn = 0
    for topic, partition in _wanted(members, partitions):
        while topic not in circle[turn % len(circle)].topics:
            turn += 1
        assignment[circle[turn % len(circle)].member_id].append((topic, partition))
        turn += 1
    return assignment


def assign_sticky(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign evenly, with as few moves as balance allows (AbstractStickyAssignor)."""
    owned = _valid_claims(members, partitions)
    if len(_subscriptions(members)) > 1:
        return _level(members, owned, partitions)
    return _fill_in_turn(owned, _wanted(members, partitions))


def assign_cooperative(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign as sticky does, but withhold a partition that another living member holds.

    The partition is withheld until that member has given it up.
    """
    assignment = assign_sticky(members, partitions)
    holder: dict[TopicPartition, str] = {}
    for member, held in _valid_claims(members, partitions).items():
        holder |= dict.fromkeys(held, member)
    for member, given in assignment.items():
        assignment[member] = [
            partition for partition in given if holder.get(partition, member) == member
        ]
    return assignment


def assign_uniform(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign as the broker's sticky assignor; `owned` is the current target.

    The broker's class is UniformHomogeneousAssignmentBuilder.

    Who may keep one above the fair share is left to a hash map in Kafka, here it is who has one
    already: Kafka may move up to one partition per member more.
    """
    wanted = _wanted(members, partitions)
    known = set(wanted)
    owned: dict[str, list[TopicPartition]] = {}
    for member in members:
        owned[member.member_id] = [partition for partition in member.owned if partition in known]
    if len(_subscriptions(members)) > 1:
        return _level(members, owned, partitions)
    share, extras = divmod(len(wanted), max(1, len(members)))
    assignment, extras = _keep(owned, share, extras)
    free = _left(wanted, assignment)
    short = [member_id for member_id, held in owned.items() if len(held) <= share]
    for member_id in short:  # one member after the other is filled up, unlike the client's turns
        quota = share
        if extras:
            quota, extras = share + 1, extras - 1
        missing = quota - len(assignment[member_id])
        assignment[member_id] += free[:missing]
        free = free[missing:]
    return assignment


def _wanted(members: Sequence[Member], partitions: Mapping[str, int]) -> list[TopicPartition]:
    wanted: list[TopicPartition] = []
    for topic in sorted(partitions.keys() & frozenset().union(*_subscriptions(members))):
        wanted += zip(repeat(topic), range(partitions[topic]))
    return wanted


def _subscriptions(members: Sequence[Member]) -> set[frozenset[str]]:
    return set(map(attrgetter("topics"), members))


def _valid_claims(
    members: Sequence[Member], partitions: Mapping[str, int]
) -> dict[str, list[TopicPartition]]:
    """Return the partitions of each member; of two claims the newer generation wins.

    Of two claims of equal generation neither wins.
    """
    claims: dict[TopicPartition, list[Member]] = {}
    for member in members:
        for partition in member.owned:
            if partition[0] in member.topics and 0 <= partition[1] < partitions.get(
                partition[0], 0
            ):
                claims.setdefault(partition, []).append(member)
    owned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for partition, rivals in claims.items():
        first, *others = sorted(rivals, key=attrgetter("generation"), reverse=True)
        if not others or others[0].generation < first.generation:
            owned[first.member_id].append(partition)
    return owned


def _fill_in_turn(
    owned: Mapping[str, list[TopicPartition]], wanted: Sequence[TopicPartition]
) -> Assignment:
    """Keep members' partitions up to the quota; give free ones in turn to members below it."""
    share, extras = divmod(len(wanted), max(1, len(owned)))
    in_order_of_ids = {member: sorted(owned[member]) for member in sorted(owned)}
    assignment, extras = _keep(in_order_of_ids, share, extras)
    free = _left(wanted, assignment)
    while free:
        below = [member for member in assignment if len(assignment[member]) < share]
        for member in (
            below or [member for member in assignment if len(assignment[member]) == share][:extras]
        ):
            if free:
                assignment[member].append(free.pop(0))
    return assignment


def _keep(
    owned: Mapping[str, list[TopicPartition]], share: int, extras: int
) -> tuple[Assignment, int]:
    """Let members keep a fair share, and one more while there are extras; return extras left."""
    assignment: Assignment = {}
    for member, held in owned.items():
        may_keep = share
        if len(held) > share and extras:
            may_keep, extras = share + 1, extras - 1
        assignment[member] = held[:may_keep]
    return assignment, extras


def _left(wanted: Sequence[TopicPartition], assignment: Assignment) -> list[TopicPartition]:
    taken = set(chain.from_iterable(assignment.values()))
    return [partition for partition in wanted if partition not in taken]


def _level(
    members: Sequence[Member],
    owned: Mapping[str, list[TopicPartition]],
    partitions: Mapping[str, int],
) -> Assignment:
    """Assign for differing subscriptions: free partitions to the least loaded reader.

    Then moves level the loads.
    """
    readers = _readers(members)
    assignment = {member: list(held) for member, held in owned.items()}

    def load(member: str) -> int:
        return len(assignment[member])

    free = _left(_wanted(members, partitions), assignment)
    for partition in sorted(free, key=lambda pair: (len(readers[pair[0]]), pair)):
        assignment[min(readers[partition[0]], key=load)].append(partition)
    moved = True
    while moved:
        moved = False
        for giver in sorted(assignment, key=load, reverse=True):
            for partition in list(assignment[giver]):
                lightest = min(readers[partition[0]], key=load)
                if load(giver) - load(lightest) >= 2:
                    assignment[giver].remove(partition)
                    assignment[lightest].append(partition)
                    moved = True
    return assignment


def _readers(members: Sequence[Member]) -> dict[str, list[str]]:
    """Return topic to the members that subscribe to it, in order of their ids."""
    readers: dict[str, list[str]] = {}
    for member in sorted(members, key=attrgetter("member_id")):
        for topic in member.topics:
            readers.setdefault(topic, []).append(member.member_id)
    return readers


ASSIGNORS: dict[str, Callable[[Sequence[Member], Mapping[str, int]], Assignment]] = {
    # the broker's own (KIP-848) has given the same ranges in the same order since 4.0
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
    "uniform": assign_uniform,
}
