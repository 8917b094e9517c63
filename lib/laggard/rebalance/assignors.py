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
        key=lambda each: (each.group_instance_id is None, each.group_instance_id or each.member_id),
    )


def assign(assignor: str, members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Return a mapping from member id to partitions, in order.

    `partitions` is topic to partition count; unknown topics give none.
    """
    return ASSIGNORS[assignor](members, partitions)


def assign_range(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign contiguous ranges per topic in member order; the first members get the remainders."""
    found: Assignment = {member.member_id: [] for member in members}
    for topic in sorted(partitions):
        readers = [member for member in in_order(members) if topic in member.topics]
        first = 0
        for rank, member in enumerate(readers):
            share = partitions[topic] // len(readers) + (rank < partitions[topic] % len(readers))
            found[member.member_id] += zip(repeat(topic), range(first, first + share))
            first += share
    return found


def assign_round_robin(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign all partitions in order, each to the next member that subscribes to its topic."""
    found: Assignment = {member.member_id: [] for member in members}
    circle = in_order(members)
    turn = 0
    for topic, partition in _wanted(members, partitions):
        while topic not in circle[turn % len(circle)].topics:
            turn += 1
        found[circle[turn % len(circle)].member_id].append((topic, partition))
        turn += 1
    return found


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
    found = assign_sticky(members, partitions)
    holder: dict[TopicPartition, str] = {}
    for member, held in _valid_claims(members, partitions).items():
        holder |= dict.fromkeys(held, member)
    for member, given in found.items():
        found[member] = [
            partition for partition in given if holder.get(partition, member) == member
        ]
    return found


def assign_uniform(members: Sequence[Member], partitions: Mapping[str, int]) -> Assignment:
    """Assign as the broker's sticky assignor; `owned` is the current target.

    The broker's class is UniformHomogeneousAssignmentBuilder.

    Who may keep one above the fair share is left to a hash map in Kafka, here it is who has one
    already: Kafka may move up to one partition per member more.
    """
    places = _wanted(members, partitions)
    known = set(places)
    owned: dict[str, list[TopicPartition]] = {}
    for each in members:
        owned[each.member_id] = [place for place in each.owned if place in known]
    if len(_subscriptions(members)) > 1:
        return _level(members, owned, partitions)
    share, extras = divmod(len(places), max(1, len(members)))
    found, extras = _keep(owned, share, extras)
    free = _left(places, found)
    short = [member for member, held in owned.items() if len(held) <= share]
    for member in short:  # one member after the other is filled up, unlike the client's turns
        quota = share
        if extras:
            quota, extras = share + 1, extras - 1
        missing = quota - len(found[member])
        found[member] += free[:missing]
        free = free[missing:]
    return found


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
        for place in member.owned:
            if place[0] in member.topics and 0 <= place[1] < partitions.get(place[0], 0):
                claims.setdefault(place, []).append(member)
    owned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
    for place, rivals in claims.items():
        first, *others = sorted(rivals, key=attrgetter("generation"), reverse=True)
        if not others or others[0].generation < first.generation:
            owned[first.member_id].append(place)
    return owned


def _fill_in_turn(
    owned: Mapping[str, list[TopicPartition]], places: Sequence[TopicPartition]
) -> Assignment:
    """Keep members' partitions up to the quota; give free ones in turn to members below it."""
    share, extras = divmod(len(places), max(1, len(owned)))
    in_order_of_ids = {member: sorted(owned[member]) for member in sorted(owned)}
    found, extras = _keep(in_order_of_ids, share, extras)
    free = _left(places, found)
    while free:
        below = [member for member in found if len(found[member]) < share]
        for member in below or [member for member in found if len(found[member]) == share][:extras]:
            if free:
                found[member].append(free.pop(0))
    return found


def _keep(
    owned: Mapping[str, list[TopicPartition]], share: int, extras: int
) -> tuple[Assignment, int]:
    """Let members keep a fair share, and one more while there are extras; return extras left."""
    found: Assignment = {}
    for member, held in owned.items():
        may_keep = share
        if len(held) > share and extras:
            may_keep, extras = share + 1, extras - 1
        found[member] = held[:may_keep]
    return found, extras


def _left(places: Sequence[TopicPartition], found: Assignment) -> list[TopicPartition]:
    taken = set(chain.from_iterable(found.values()))
    return [place for place in places if place not in taken]


def _level(
    members: Sequence[Member],
    owned: Mapping[str, list[TopicPartition]],
    partitions: Mapping[str, int],
) -> Assignment:
    """Assign for differing subscriptions: free partitions to the least loaded reader.

    Then moves level the loads.
    """
    readers = _readers(members)
    found = {member: list(held) for member, held in owned.items()}

    def load(member: str) -> int:
        return len(found[member])

    free = _left(_wanted(members, partitions), found)
    for place in sorted(free, key=lambda each: (len(readers[each[0]]), each)):
        found[min(readers[place[0]], key=load)].append(place)
    moved = True
    while moved:
        moved = False
        for giver in sorted(found, key=load, reverse=True):
            for place in list(found[giver]):
                lightest = min(readers[place[0]], key=load)
                if load(giver) - load(lightest) >= 2:
                    found[giver].remove(place)
                    found[lightest].append(place)
                    moved = True
    return found


def _readers(members: Sequence[Member]) -> dict[str, list[str]]:
    """Return topic to the members that subscribe to it, in order of their ids."""
    found: dict[str, list[str]] = {}
    for member in sorted(members, key=attrgetter("member_id")):
        for topic in member.topics:
            found.setdefault(topic, []).append(member.member_id)
    return found


ASSIGNORS: dict[str, Callable[[Sequence[Member], Mapping[str, int]], Assignment]] = {
    # the broker's own (KIP-848) has given the same ranges in the same order since 4.0
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
    "uniform": assign_uniform,
}
