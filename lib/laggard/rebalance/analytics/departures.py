"""Members that left, the evidence of each, and the member that soon took its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from laggard.rebalance.analytics.pauses import PartitionPause
from laggard.rebalance.analytics.times import Start, known, seconds_between
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
    departures = []
    for member in sorted(members, key=lambda facts: (slot_of[facts.member_id], facts.member_id)):
        slot = slot_of[member.member_id]
        if slot in gone:
            departures.append(_departure(member, slot, pause_of, start, at, joined_at))
    return tuple(departures)


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
    by_id = sorted(now, key=attrgetter("member_id"))
    fresh = [member for member in by_id if member.member_id not in old]
    marked = list(departures)
    for level, fits in _RETURNS.items():
        for index, departure in enumerate(marked):
            if departure.is_awaited(at, parameters):
                member = next((joiner for joiner in fresh if fits(departure, joiner)), None)
                if member is not None:
                    fresh.remove(member)
                    marked[index] = replace(departure, returned=level)
    return tuple(marked)


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
    held = known(map(pause_of.get, member.assigned or ()))
    intervals = known(map(attrgetter("commit_interval_seconds"), held))
    last = None
    if start.is_seen:
        last = _last_sign(held, joined_at)
    partitions = None
    if member.assigned is not None:
        partitions = tuple(sorted(member.assigned))
    return Departure(
        slot=slot,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id_pattern=client_id_pattern(member),
        place=(member.client_id, member.client_host),
        at=at,
        partitions=partitions,
        idle_seconds=_silence_seconds(last, start.est),
        session_seconds=_in_seconds(member.session_timeout_ms),
        rebalance_timeout_seconds=_in_seconds(member.join_timeout_ms),
        commit_interval_seconds=max(intervals, default=None),
        idle_at_end_seconds=_silence_seconds(last, start.high),
        was_material=_was_material(held),
    )


def _last_sign(held: Sequence[PartitionPause], joined_at: datetime | None) -> datetime | None:
    """Return the time of the last progress, or of the join if later; None without traffic.

    At least one partition must have traffic.
    """
    progress = [pause.progressed_at for pause in held if pause.has_traffic]
    if not progress:
        return None
    return max(known([joined_at, *progress]), default=None)


def _silence_seconds(last: datetime | None, until: datetime | None) -> float | None:
    seconds = seconds_between(until, last)
    if seconds is None:
        return None
    return max(0.0, seconds)


def _was_material(held: Sequence[PartitionPause]) -> bool | None:
    """Return True if a partition had significant lag; None if that is unknown for one."""
    flags = {pause.material for pause in held}
    if True in flags:
        return True
    if None in flags or not flags:
        return None
    return False


def _in_seconds(milliseconds: int | None) -> float | None:
    if milliseconds is None:
        return None
    return milliseconds / 1000
