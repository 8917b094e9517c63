"""Changes made by a logical rebalance: members that left, partitions that moved, and those that moved back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from laggard.rebalance.departures import Departure, find_departures, mark_returns
from laggard.rebalance.facts import Generation
from laggard.rebalance.movement import Move, Movement, count_movement, count_returns, find_moves, is_divergent
from laggard.rebalance.parameters import RebalanceParameters
from laggard.rebalance.slots import SlotChanges, compare_slots, holdings, name_slots
from laggard.rebalance.state import LastMove, OpenRebalance


@dataclass(frozen=True, slots=True)
class Compared:
    """Before and after; None if one of them is not known, or history that compaction thinned out."""

    slots: SlotChanges | None = None
    moves: tuple[Move, ...] | None = None
    movement: Movement | None = None


@dataclass(frozen=True, slots=True)
class Departed:
    """Departures of this rebalance, and all of the last half hour."""

    own: tuple[Departure, ...]
    near: tuple[Departure, ...]

    @property
    def earlier(self) -> tuple[Departure, ...]:
        return self.near[: len(self.near) - len(self.own)]


def compare_rosters(rebalance: OpenRebalance) -> Compared:
    """The rosters before and after an open rebalance."""
    before, last = rebalance.before, rebalance.last
    if before is None or not rebalance.live_read:
        return Compared()
    slots = compare_slots(before.members, last.members, by_member_id=last.by_member_id)
    slots = replace(slots, expired=tuple(sorted(slots.kept.keys() & {*rebalance.absent})))
    old, new = (
        holdings(members, name_slots(members, by_member_id=last.by_member_id))
        for members in (before.members, last.members)
    )
    if old is None or new is None or not (before.is_complete and rebalance.is_at_rest):
        return Compared(slots)
    moves = find_moves(old, new, slots.kept)
    movement = None if moves is None else count_movement(len(moves), old, new, slots.kept)
    # by equal shares: they mean nothing to members of different subscriptions
    is_comparable = {is_divergent(before.members), is_divergent(last.members)} == {False}
    return Compared(slots, moves, movement if is_comparable else None)


def find_departed(
    rebalance: OpenRebalance,
    compared: Compared,
    known: Iterable[Departure],
    ended_at: datetime,
    parameters: RebalanceParameters,
) -> Departed:
    """Members that left; `known` are the departures kept so far."""
    earlier = [each for each in known if (ended_at - each.at).total_seconds() <= parameters.deploy_horizon_seconds]
    before, last = rebalance.before, rebalance.last
    if compared.slots is None or before is None:
        return Departed((), tuple(earlier))
    own = find_departures(
        before.members,
        compared.slots,
        rebalance.pauses,
        rebalance.start,
        ended_at,
        by_member_id=last.by_member_id,
        joined_at=None if last.by_member_id else before.ended_at,  # every classic generation is joined by all
    )
    # a member that was evicted and rejoined may have its old id (KIP-848), and is a new member all the same
    staying = [each for each in before.members if each.group_instance_id not in compared.slots.expired]
    near = mark_returns([*earlier, *own], staying, last.members, ended_at, parameters)
    return Departed(near[len(earlier) :], near)


def add_returns(
    departed: Departed, rebalance: OpenRebalance, following: Generation | None, parameters: RebalanceParameters
) -> Departed:
    """The departures with the returns that the following generation shows as well."""
    if following is None:
        return departed
    near = mark_returns(departed.near, rebalance.last.members, following.members, following.recorded_at, parameters)
    return Departed(near[len(departed.earlier) :], near)


def follow_moves(
    moves: Iterable[Move], known: Iterable[LastMove], at: datetime, parameters: RebalanceParameters
) -> tuple[int, tuple[LastMove, ...]]:
    """Count the moves that return a partition, and name the newest move of each now."""
    last = {
        (each.topic, each.partition): each
        for each in known
        if (at - each.at).total_seconds() <= parameters.ping_pong_seconds
    }
    new = list(moves)
    returned = count_returns(new, {place: (each.from_slot, each.to_slot) for place, each in last.items()})
    for move in new:
        last[move.topic, move.partition] = LastMove(move.topic, move.partition, move.from_slot, move.to_slot, at)
    return returned, tuple(last.values())
