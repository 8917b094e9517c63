"""Members that left, the evidence of each, and the member that soon took its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from laggard.rebalance.analytics.pauses import PartitionPause
from laggard.rebalance.analytics.times import Start, seconds_between
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import MemberFacts
from laggard.rebalance.parameters import RebalanceParameters
from laggard.rebalance.slots import SlotChanges, client_id_pattern, name_slots, static_slots


@dataclass(frozen=True, slots=True)
class Departure:
    """A member that left at the end of a rebalance, and what was seen of it."""

    slot: str
    member_id: str
    group_instance_id: str | None
    client_id_pattern: str | None
    place: tuple[str | None, str | None]  # client id and host
    at: datetime
    partitions: tuple[TopicPartition, ...] | None
    # from its last sign, a commit that moved on or its join, to the begin of the rebalance
    idle_seconds: float | None
    session_seconds: float | None
    rebalance_timeout_seconds: float | None
    commit_interval_seconds: float | None
    was_material: bool | None
    returned: str | None = None  # same_host or other_host; None: not so far
    idle_at_end_seconds: float | None = None  # to the end of the join phase

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    def is_awaited(self, at: datetime, parameters: RebalanceParameters) -> bool:
        """Return True if no member has taken its place yet and one at this time still would."""
        return self.returned is None and (at - self.at).total_seconds() <= parameters.return_seconds


# level of a return -> True if a new member has taken the place of one that left
_RETURNS: dict[str, Callable[[Departure, MemberFacts], bool]] = {
    "same_host": lambda gone, new: gone.place == (new.client_id, new.client_host),
    "other_host": lambda gone, new: gone.client_id_pattern == client_id_pattern(new),
}


def find_departures(
    before: Iterable[MemberFacts],
    slots: SlotChanges,
    pauses: Iterable[PartitionPause],
    start: Start,
    at: datetime,
    *,
    by_member_id: bool,
    joined_at: datetime | None = None,
) -> tuple[Departure, ...]:
    """Return members that left, even if another one has their slot.

    A static member's restart in time is no departure.

    `joined_at` is when all of them last joined: they polled then, whether or not they got anything
    done since.
    """
    members = list(before)
    slot_of = name_slots(members, by_member_id=by_member_id)
    pause_of = {pause.place: pause for pause in pauses}
    gone = {*slots.left, *slots.expired, *(set(slots.restarted) - static_slots(members))}
    return tuple(
        _departure(member, slot_of[member.member_id], pause_of, start, at, joined_at)
        for member in sorted(members, key=lambda each: (slot_of[each.member_id], each.member_id))
        if slot_of[member.member_id] in gone
    )


def mark_returns(
    departures: Sequence[Departure],
    before: Iterable[MemberFacts],
    now: Iterable[MemberFacts],
    at: datetime,
    parameters: RebalanceParameters,
) -> tuple[Departure, ...]:
    """Return the departures, marked if a new member replaced the member that left.

    A new member counts for one departure only.
    """
    old = {member.member_id for member in before}
    fresh = sorted(
        (member for member in now if member.member_id not in old), key=attrgetter("member_id")
    )
    found = list(departures)
    for level, fits in _RETURNS.items():
        for index, departure in enumerate(found):
            if departure.is_awaited(at, parameters):
                member = next((each for each in fresh if fits(departure, each)), None)
                if member is not None:
                    fresh.remove(member)
                    found[index] = replace(departure, returned=level)
    return tuple(found)


def _departure(
    member: MemberFacts,
    slot: str,
    pause_of: dict[TopicPartition, PartitionPause],
    start: Start,
    at: datetime,
    joined_at: datetime | None,
) -> Departure:
    """Return facts about a member at the start of the rebalance.

    An idle partition is no evidence about its reader.
    """
    held = [pause_of[place] for place in member.assigned or () if place in pause_of]
    intervals = [
        each.commit_interval_seconds for each in held if each.commit_interval_seconds is not None
    ]
    last = _last_sign(held, joined_at) if start.is_seen else None
    idle, at_end = (_silence_seconds(last, until) for until in (start.est, start.high))
    timeout = (
        member.session_timeout_ms
        if member.rebalance_timeout_ms is None
        else member.rebalance_timeout_ms
    )
    return Departure(
        slot=slot,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id_pattern=client_id_pattern(member),
        place=(member.client_id, member.client_host),
        at=at,
        partitions=None if member.assigned is None else tuple(sorted(member.assigned)),
        idle_seconds=idle,
        session_seconds=_in_seconds(member.session_timeout_ms),
        rebalance_timeout_seconds=_in_seconds(timeout),
        commit_interval_seconds=max(intervals, default=None),
        idle_at_end_seconds=at_end,
        was_material=_was_material(held),
    )


def _last_sign(held: Sequence[PartitionPause], joined_at: datetime | None) -> datetime | None:
    """Return the time of the last progress, or of the join if later; None without traffic.

    At least one partition must have traffic.
    """
    progress = [each.progressed_at for each in held if each.has_traffic]
    return (
        max((each for each in (joined_at, *progress) if each is not None), default=None)
        if progress
        else None
    )


def _silence_seconds(last: datetime | None, until: datetime | None) -> float | None:
    seconds = seconds_between(until, last)
    return None if seconds is None else max(0.0, seconds)


def _was_material(held: Sequence[PartitionPause]) -> bool | None:
    """Return True if a partition had significant lag; None if that is unknown for one."""
    found = [each.material for each in held]
    if True in found:
        return True
    return None if None in found or not found else False


def _in_seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
