"""Changes by a logical rebalance: members that left, partitions that moved, and moved back.

The least number of moves to a balanced result is the promise of Kafka's AbstractStickyAssignor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from laggard.rebalance.analytics.departures import Departure, find_departures, mark_returns
from laggard.rebalance.analytics.state import LastMove, OpenRebalance
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import Generation, MemberFacts
from laggard.rebalance.parameters import RebalanceParameters
from laggard.rebalance.slots import SlotChanges, compare_slots, holdings, name_slots

Held = Mapping[str, Collection[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that another slot owns than before."""

    topic: str
    partition: int
    from_slot: str
    to_slot: str


@dataclass(frozen=True, slots=True)
class Movement:
    """Counts in partitions, ratios 0 to 1; a ratio with nothing below the line is None."""

    partitions: int
    moved: int
    necessary: int
    avoidable: int
    moved_ratio: float | None
    efficiency: float | None


def find_moves(before: Held, after: Held, kept_slots: Mapping[str, str]) -> tuple[Move, ...] | None:
    """Return partitions whose owner slot changed; None if a partition has two owners.

    A changed partition is owned by one slot before and by another after.

    `kept_slots` is slot name before to name after. A partition never has two owners in one
    generation: then a record was read wrong, and nothing is known.
    """
    old, new = _owners(before), _owners(after)
    if old is None or new is None:
        return None
    return tuple(
        Move(*partition, old[partition], new[partition])
        for partition in sorted(old.keys() & new.keys())
        if kept_slots.get(old[partition]) != new[partition]
    )


def count_returns(moves: Iterable[Move], last: dict[TopicPartition, tuple[str, str]]) -> int:
    """Return the number of moves, in time order, back to the slot that the last move left.

    `last` is that move by partition, as (from, to), and is kept up to date.
    """
    returned = 0
    for move in moves:
        partition = (move.topic, move.partition)
        returned += last.get(partition) == (move.to_slot, move.from_slot)
        last[partition] = (move.from_slot, move.to_slot)
    return returned


def count_movement(
    moved: int, before: Held, after: Held, kept_slots: Mapping[str, str]
) -> Movement:
    """Return counts around so many moves between two complete assignments.

    All members subscribe to the same topics.

    `kept_slots` is slot name before to name after. Necessary is what departed slots held and what
    the others held above the fair share: of P partitions and N slots after, the P mod N that held
    most may keep one more than ⌊P/N⌋. A deleted partition does not move.
    """
    owned = set(chain.from_iterable(after.values()))
    counts = {slot: len(owned.intersection(held)) for slot, held in before.items()}
    kept_counts = sorted(
        (count for slot, count in counts.items() if slot in kept_slots), reverse=True
    )
    departed = sum(counts.values()) - sum(kept_counts)
    share, extra = divmod(len(owned), max(1, len(after)))
    surplus = 0
    for rank, count in enumerate(kept_counts):
        surplus += max(0, count - share - (rank < extra))
    necessary = departed + surplus
    avoidable = max(0, moved - necessary)
    return Movement(
        partitions=len(owned),
        moved=moved,
        necessary=necessary,
        avoidable=avoidable,
        moved_ratio=_ratio(moved, len(owned)),
        # an assignor that leaves the loads uneven can move less than balance needs
        efficiency=_ratio(min(moved, necessary), moved),
    )


def is_divergent(members: Iterable[MemberFacts]) -> bool | None:
    """Return True if members subscribe to different topics; None if a subscription is unknown."""
    subscriptions = set()
    for member in members:
        if member.topics is None:
            return None
        subscriptions.add(frozenset(member.topics))
    return len(subscriptions) > 1


def _owners(held: Held) -> dict[TopicPartition, str] | None:
    owners: dict[TopicPartition, str] = {}
    for slot, partitions in held.items():
        if not owners.keys().isdisjoint(partitions):
            return None
        owners |= dict.fromkeys(partitions, slot)
    return owners


def _ratio(part: int, whole: int) -> float | None:
    if not whole:
        return None
    return part / whole


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparison of before and after; None if one is unknown, or compaction thinned the history."""

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
    """Return the rosters before and after an open rebalance."""
    before, last = rebalance.before, rebalance.last
    if before is None or not rebalance.live_read:
        return Compared()
    slots = compare_slots(before.members, last.members, by_member_id=last.by_member_id)
    slots = replace(slots, expired=tuple(sorted(slots.kept.keys() & {*rebalance.absent})))
    old = holdings(before.members, name_slots(before.members, by_member_id=last.by_member_id))
    new = holdings(last.members, name_slots(last.members, by_member_id=last.by_member_id))
    if old is None or new is None or not (before.is_complete and rebalance.is_at_rest):
        return Compared(slots)
    moves = find_moves(old, new, slots.kept)
    movement = None
    # by equal shares: they mean nothing to members of different subscriptions
    is_comparable = {is_divergent(before.members), is_divergent(last.members)} == {False}
    if moves is not None and is_comparable:
        movement = count_movement(len(moves), old, new, slots.kept)
    return Compared(slots, moves, movement)


def find_departed(
    rebalance: OpenRebalance,
    compared: Compared,
    known: Iterable[Departure],
    ended_at: datetime,
    parameters: RebalanceParameters,
) -> Departed:
    """Return members that left; `known` are the departures kept so far."""
    earlier = [
        departure
        for departure in known
        if (ended_at - departure.at).total_seconds() <= parameters.deploy_horizon_seconds
    ]
    before, last = rebalance.before, rebalance.last
    if compared.slots is None or before is None:
        return Departed((), tuple(earlier))
    joined_at = None
    if not last.by_member_id:  # every classic generation is joined by all
        joined_at = before.ended_at
    own = find_departures(
        before.members,
        compared.slots,
        rebalance.pauses,
        rebalance.start,
        ended_at,
        by_member_id=last.by_member_id,
        joined_at=joined_at,
    )
    # a member that was evicted and rejoined may have its old id (KIP-848), and is a new member all
    # the same
    staying = [
        member
        for member in before.members
        if member.group_instance_id not in compared.slots.expired
    ]
    near = mark_returns([*earlier, *own], staying, last.members, ended_at, parameters)
    return Departed(near[len(earlier) :], near)


def add_returns(
    departed: Departed,
    rebalance: OpenRebalance,
    following: Generation | None,
    parameters: RebalanceParameters,
) -> Departed:
    """Return the departures with the returns that the following generation shows as well."""
    if following is None:
        return departed
    near = mark_returns(
        departed.near, rebalance.last.members, following.members, following.recorded_at, parameters
    )
    return Departed(near[len(departed.earlier) :], near)


def follow_moves(
    moves: Iterable[Move], known: Iterable[LastMove], at: datetime, parameters: RebalanceParameters
) -> tuple[int, tuple[LastMove, ...]]:
    """Count the moves that return a partition, and name the newest move of each now."""
    last = {
        (last_move.topic, last_move.partition): last_move
        for last_move in known
        if (at - last_move.at).total_seconds() <= parameters.ping_pong_seconds
    }
    new = list(moves)
    slots = {partition: (move.from_slot, move.to_slot) for partition, move in last.items()}
    returned = count_returns(new, slots)
    for move in new:
        last[move.topic, move.partition] = LastMove(
            move.topic, move.partition, move.from_slot, move.to_slot, at
        )
    return returned, tuple(last.values())
