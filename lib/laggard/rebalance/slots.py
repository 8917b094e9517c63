"""Members that joined a group, left it or were replaced between two generations.

A slot is a place that outlives its member: the static instance (KIP-345), else client id, host and
ordinal, else the member id of a modern group (KIP-848). A slot is named as in the generation it
comes from.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import Identity, MemberFacts

Named = Identity | MemberFacts  # what says who a member is
_MEMBER_ID = attrgetter("member_id")
Holdings = dict[str, frozenset[TopicPartition]]


@dataclass(frozen=True, slots=True)
class SlotChanges:
    """Slots joined (named as now), left (named as before) and replaced.

    `kept` is name before to name now.
    """

    joined: tuple[str, ...]
    left: tuple[str, ...]
    replaced: tuple[str, ...]
    kept: dict[str, str]
    # kept by another member: the part of `replaced` that did not leave
    restarted: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()  # kept by a static member that was evicted in between

    @property
    def is_equal(self) -> bool:
        return not (self.joined or self.left or self.replaced)


def name_slots(members: Iterable[Named], *, by_member_id: bool) -> dict[str, str]:
    """Return a mapping from member id to slot name.

    The slot is the instance id; else client id, host and ordinal; else, in modern groups, member
    id.

    A modern member keeps its id as long as it lives (KIP-848), a classic one has a new id for each
    time it joins.
    """
    slot_of, alike = {}, defaultdict(list)
    for member in members:
        if member.group_instance_id is not None or by_member_id:
            slot_of[member.member_id] = member.group_instance_id or member.member_id
        else:
            alike[member.client_id, member.client_host].append(member.member_id)
    for (client_id, host), ids in alike.items():
        for number, member_id in enumerate(sorted(ids)):
            slot_of[member_id] = f"{client_id}{host}#{number}"  # hosts begin with a slash
    return slot_of


def static_slots(members: Iterable[Named]) -> set[str]:
    """Return slots of the static members, which are named as their instances."""
    return {member.group_instance_id for member in members if member.group_instance_id is not None}


def compare_slots(
    before: Sequence[Named], now: Sequence[Named], *, by_member_id: bool
) -> SlotChanges:
    """Return changes between two rosters.

    A member id that stays keeps its slot even if its ordinal moved, as the death of its neighbour
    on the host moves it; only the others are paired by place.
    """
    old = name_slots(before, by_member_id=by_member_id)
    new = name_slots(now, by_member_id=by_member_id)
    kept_slots = {old[member]: new[member] for member in old.keys() & new.keys()}
    gone = sorted((member for member in before if member.member_id not in new), key=_MEMBER_ID)
    joiners = [member for member in now if member.member_id not in old]
    fresh = _by_place(joiners, by_member_id=by_member_id)
    left: list[Named] = []
    restarted: list[str] = []
    for member in gone:
        slot, waiting = old[member.member_id], fresh[_place(member, by_member_id=by_member_id)]
        if waiting:
            kept_slots[slot] = new[waiting.pop(0).member_id]
            restarted.append(slot)
        else:
            left.append(member)
    joined = list(chain.from_iterable(fresh.values()))
    return SlotChanges(
        joined=_slots_of(joined, new),
        left=_slots_of(left, old),
        replaced=tuple(sorted([*restarted, *_slots_of(_find_followed(left, joined), old)])),
        kept=dict(sorted(kept_slots.items())),
        restarted=tuple(sorted(restarted)),
    )


def _slots_of(members: Iterable[Named], slot_of: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(slot_of[member.member_id] for member in members))


def _find_followed(left: Iterable[Named], joined: Iterable[Named]) -> Iterator[Named]:
    """Yield members that left while a member of the same program joined.

    Each joined member follows one of them only.
    """
    free = Counter(map(client_id_pattern, joined))
    for member in left:
        pattern = client_id_pattern(member)
        if free[pattern] > 0:
            free[pattern] -= 1
            yield member


def slot_columns(changes: SlotChanges | None) -> dict[str, tuple[str, ...] | None]:
    """Return columns joined, left and replaced; None while the changes are not known."""
    if changes is None:
        return {"joined": None, "left": None, "replaced": None}
    return {"joined": changes.joined, "left": changes.left, "replaced": changes.replaced}


def holdings(members: Iterable[MemberFacts], slot_of: Mapping[str, str]) -> Holdings | None:
    """Return a dict from slot to its partitions; None while one member's assignment is unknown."""
    held_by_slot: Holdings = {}
    for member in members:
        if member.assigned is None:
            return None
        held_by_slot[slot_of[member.member_id]] = frozenset(member.assigned)
    return held_by_slot


def client_id_pattern(member: Named) -> str | None:
    """Return the client id without the numbers that distinguish instances of one program."""
    return member.client_id and re.sub(r"\d+", "#", member.client_id)


def _by_place(members: Sequence[Named], *, by_member_id: bool) -> dict[Hashable, list[Named]]:
    members_by_place: dict[Hashable, list[Named]] = defaultdict(list)
    for member in sorted(members, key=_MEMBER_ID):
        members_by_place[_place(member, by_member_id=by_member_id)].append(member)
    return members_by_place


def _place(member: Named, *, by_member_id: bool) -> Hashable:
    if member.group_instance_id is not None:
        return ("instance", member.group_instance_id)
    if by_member_id:
        return ("member", member.member_id)
    return ("host", member.client_id, member.client_host)
