"""Cause of a rebalance, the first of a list that fits, and its necessity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from laggard.rebalance.analytics.departures import Departure
from laggard.rebalance.analytics.times import seconds_between
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import MemberFacts, Surroundings, are_assignments_known, partitions_of
from laggard.rebalance.parameters import RebalanceParameters
from laggard.rebalance.slots import SlotChanges, static_slots

CAUSES = (
    "coordinator_failover", "partitions_added", "subscription_change", "assignor_change",
    "static_expired",
    "static_return", "member_join", "member_left", "replacement", "streams_probing",
    "leader_rejoin", "unknown",
)  # fmt: skip
PLANNED = "planned"
OPERATIONAL = "operational"
UNKNOWN = "unknown"
HEARTBEAT = "unnecessary_heartbeat"
PROCESSING = "unnecessary_processing"

_NECESSITY = {
    "member_join": PLANNED,
    "partitions_added": PLANNED,
    "subscription_change": PLANNED,
    "streams_probing": PLANNED,
    "coordinator_failover": OPERATIONAL,
    "assignor_change": OPERATIONAL,
    # static members send no LeaveGroup: their session ran out (KIP-345)
    "static_expired": HEARTBEAT,
    "static_return": HEARTBEAT,  # needed only because it had run out
}
_NECESSITY_OF_REASON = {
    "scale_in": PLANNED,
    "deploy": OPERATIONAL,
    "session_expiry": HEARTBEAT,
    "poll_timeout": PROCESSING,
    "crash": UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Change:
    """A logical rebalance as the list of causes sees it; None as a roster: not known."""

    live_read: bool
    is_epoch: bool
    interrupted: int | None
    has_guests: bool  # a generation but the last one has a member that was not there before
    started_at: datetime | None
    ended_at: datetime
    last_ended_at: datetime | None
    before: Sequence[MemberFacts] | None
    now: Sequence[MemberFacts]
    slots: SlotChanges | None
    slot_before: Mapping[str, str]
    slot_now: Mapping[str, str]
    assignor_before: str | None
    assignor: str | None


def find_cause(
    change: Change,
    surroundings: Surroundings,
    earlier: Iterable[Departure],
    parameters: RebalanceParameters,
) -> str:
    """Return the first cause in the list that fits; `earlier` are departures before this rebalance.

    Records that compaction may have thinned out are not evaluated.
    """
    slots = change.slots
    if not change.live_read or slots is None or change.interrupted is None:
        return UNKNOWN
    return (
        _cause_around(change, slots, surroundings, parameters)
        or _cause_in_settings(change, slots)
        or _cause_in_members(change, slots, list(earlier), parameters)
        or _cause_without_change(change, slots, parameters)
    )


def find_necessity(cause: str, reason: str | None, *, is_declared_deploy: bool) -> str:
    """Return the necessity of the rebalance; `reason` is the one claimed for the departures."""
    if cause in {"member_left", "replacement", "static_expired"}:
        if is_declared_deploy and reason in {None, "deploy", "scale_in"}:
            return PLANNED
        if reason is not None:
            return _NECESSITY_OF_REASON[reason]
    return _NECESSITY.get(cause, UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Nearness:
    started_at: datetime
    ended_at: datetime

    def holds(self, at: datetime | None, seconds: float) -> bool:
        """Return True if a time lies in the rebalance or at most `seconds` before its start."""
        before = seconds_between(self.started_at, at)
        return before is not None and before <= seconds and at is not None and at <= self.ended_at


def _cause_around(
    change: Change, slots: SlotChanges, surroundings: Surroundings, parameters: RebalanceParameters
) -> str | None:
    near = _Nearness(change.started_at or change.ended_at, change.ended_at)
    has_moved = near.holds(surroundings.coordinator_changed_at, parameters.coordinator_seconds)
    # every step of an epoch is written: nothing restarts
    if slots.is_equal and has_moved and not change.is_epoch:
        return "coordinator_failover"
    has_grown = near.holds(surroundings.partitions_added_at, parameters.partitions_added_seconds)
    if has_grown and _has_new_partitions(change):
        return "partitions_added"
    return None


def _cause_in_settings(change: Change, slots: SlotChanges) -> str | None:
    if _has_new_subscription(change, slots):
        return "subscription_change"
    is_known = None not in (change.assignor_before, change.assignor)
    if is_known and change.assignor_before != change.assignor:
        return "assignor_change"
    return None


def _has_new_partitions(change: Change) -> bool:
    """Return True unless the rebalance hands out no new partitions.

    A rebalance without new partitions does not explain the rebalances that follow.
    """
    old, new = _assigned(change.before), _assigned(change.now)
    return old is None or new is None or bool(new - old)


def _assigned(members: Sequence[MemberFacts] | None) -> set[TopicPartition] | None:
    """Return the partitions of all members; None if those of a member are not known."""
    if members is None or not are_assignments_known(members):
        return None
    return partitions_of(members)


def _has_new_subscription(change: Change, slots: SlotChanges) -> bool:
    old = {change.slot_before[member.member_id]: member.topics for member in change.before or ()}
    new = {change.slot_now[member.member_id]: member.topics for member in change.now}
    for before, now in slots.kept.items():
        topics_before, topics = old[before], new[now]
        if topics_before is not None and topics is not None and set(topics_before) != set(topics):
            return True
    return False


def _cause_in_members(
    change: Change,
    slots: SlotChanges,
    earlier: Sequence[Departure],
    parameters: RebalanceParameters,
) -> str | None:
    static = static_slots(change.before or ())
    # a static one that restarts in time begins no rebalance (KIP-345)
    restarted = set(slots.restarted) - static
    left = {*slots.left, *slots.expired}
    if restarted or (left and slots.joined):
        return "replacement"
    if left:
        if left <= static:
            return "static_expired"
        return "member_left"
    if slots.joined:
        if _are_back(change, slots, earlier, parameters):
            return "static_return"
        return "member_join"
    return None


def _cause_without_change(
    change: Change, slots: SlotChanges, parameters: RebalanceParameters
) -> str:
    if _may_hide_a_cause(change, slots):
        return UNKNOWN
    if change.assignor == "stream" and _is_probing(change, parameters):
        return "streams_probing"
    return "leader_rejoin"


def _may_hide_a_cause(change: Change, slots: SlotChanges) -> bool:
    """Return True if an event that is not recorded may have begun the rebalance.

    A static member may have expired and rejoined between two records, or restarted in time beside
    another cause; somebody came and went, seen or not; and nobody leads a KIP-848 group and could
    ask for a rebalance.
    """
    return bool(slots.restarted or change.interrupted or change.has_guests or change.is_epoch)


def _are_back(
    change: Change,
    slots: SlotChanges,
    earlier: Sequence[Departure],
    parameters: RebalanceParameters,
) -> bool:
    """Return True if all that joined are static members that had been away for a short time."""
    gone = set()
    for departure in earlier:
        away_seconds = (change.ended_at - departure.at).total_seconds()
        if departure.is_static and away_seconds <= parameters.static_return_seconds:
            gone.add(departure.group_instance_id)
    joined = {change.slot_now[member.member_id]: member.group_instance_id for member in change.now}
    return all(joined[slot] is not None and joined[slot] in gone for slot in slots.joined)


def _is_probing(change: Change, parameters: RebalanceParameters) -> bool:
    since = seconds_between(change.ended_at, change.last_ended_at)
    tolerance = parameters.probing_tolerance * parameters.probing_seconds
    return since is not None and abs(since - parameters.probing_seconds) <= tolerance
