"""Who is in a group: slots that outlive a member id, and what changed between two generations."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """By what a member is known again."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """Slots that are new, that are gone, and those that another member took: in its place or in one like it."""

    joined: list[str]
    left: list[str]
    replaced: list[str]


def slots(members: Iterable[Identity], *, by_member_id: bool) -> dict[str, str]:
    """Member id to slot: the instance id; else client id, host and ordinal; else, in modern groups, the member id.

    A modern member keeps its id as long as it lives (KIP-848), a classic one has a new id for each time it joins.
    """
    found, alike = {}, defaultdict(list)
    for member in members:
        if member.group_instance_id is not None or by_member_id:
            found[member.member_id] = member.group_instance_id or member.member_id
        else:
            alike[member.client_id, member.client_host].append(member.member_id)
    for (client_id, host), ids in alike.items():
        for number, member_id in enumerate(sorted(ids)):
            found[member_id] = f"{client_id}{host}#{number}"  # hosts begin with a slash
    return found


def compare(before: Sequence[Identity], now: Sequence[Identity], *, by_member_id: bool) -> Changes:
    """Changes from one generation to the next: `joined` named as now, the others as before.

    A member that stays keeps its slot even if its ordinal moves, as the end of its neighbour on the host moves it.
    """
    old, new = slots(before, by_member_id=by_member_id), slots(now, by_member_id=by_member_id)
    fresh: dict[tuple[str | None, ...], list[Identity]] = defaultdict(list)
    for member in sorted(now, key=_id, reverse=True):
        if member.member_id not in old:
            fresh[_place(member, by_member_id=by_member_id)].append(member)
    left: list[Identity] = []
    restarted: list[Identity] = []
    for member in sorted(before, key=_id):
        if member.member_id not in new:
            waiting = fresh[_place(member, by_member_id=by_member_id)]
            (restarted if waiting else left).append(member)
            if waiting:
                waiting.pop()
    joined = [member for waiting in fresh.values() for member in waiting]
    free = Counter(_pattern(member) for member in joined)
    followed = []
    for member in left:
        if free[_pattern(member)] > 0:
            free[_pattern(member)] -= 1
            followed.append(member)
    return Changes(
        joined=sorted(new[member.member_id] for member in joined),
        left=sorted(old[member.member_id] for member in left),
        replaced=sorted(old[member.member_id] for member in (*restarted, *followed)),
    )


def _id(member: Identity) -> str:
    return member.member_id


def _place(member: Identity, *, by_member_id: bool) -> tuple[str | None, ...]:
    """What a member has in common with the one that takes its slot."""
    if member.group_instance_id is not None:
        return ("instance", member.group_instance_id)
    return ("member", member.member_id) if by_member_id else ("host", member.client_id, member.client_host)


def _pattern(member: Identity) -> str | None:
    """The client id without the numbers that tell instances of one program apart."""
    return None if member.client_id is None else re.sub(r"\d+", "#", member.client_id)
