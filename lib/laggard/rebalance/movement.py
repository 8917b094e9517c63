"""Partitions that changed hands between two complete assignments, and how many of these moves were needed.

The least number of moves to a balanced result is the promise of Kafka's AbstractStickyAssignor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import MemberFacts

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
    stickiness: float | None


def find_moves(before: Held, after: Held, kept: Mapping[str, str] | None = None) -> tuple[Move, ...] | None:
    """Partitions owned by one slot before and by another after; None if a partition has two owners.

    `kept` is slot name before to name after, by default equal names. A partition never has two owners in one
    generation: then a record was read wrong, and nothing is known.
    """
    same = _same(before, after) if kept is None else kept
    old, new = _owners(before), _owners(after)
    if old is None or new is None:
        return None
    return tuple(
        Move(*place, old[place], new[place])
        for place in sorted(old.keys() & new.keys())
        if same.get(old[place]) != new[place]
    )


def count_returns(moves: Iterable[Move], last: dict[TopicPartition, tuple[str, str]]) -> int:
    """Moves, in time, that bring a partition back to the slot its last move took it from.

    `last` is that move by partition, as (from, to), and is kept up to date.
    """
    returned = 0
    for move in moves:
        place = (move.topic, move.partition)
        returned += last.get(place) == (move.to_slot, move.from_slot)
        last[place] = (move.from_slot, move.to_slot)
    return returned


def measure_movement(before: Held, after: Held, kept: Mapping[str, str] | None = None) -> Movement | None:
    """Moves between two complete assignments of members that all subscribe to the same topics, by `count_movement`."""
    same = _same(before, after) if kept is None else kept
    moves = find_moves(before, after, same)
    return None if moves is None else count_movement(len(moves), before, after, same)


def count_movement(moved: int, before: Held, after: Held, same: Mapping[str, str]) -> Movement:
    """Counts around so many moves; `same` is slot name before to name after.

    Necessary is what departed slots held and what the others held above the fair share: of P partitions and N slots
    after, the P mod N that held most may keep one more than ⌊P/N⌋. A deleted partition does not move.
    """
    owned = {place for held in after.values() for place in held}
    counts = {slot: len(owned.intersection(held)) for slot, held in before.items()}
    kept_counts = sorted((count for slot, count in counts.items() if slot in same), reverse=True)
    departed = sum(counts.values()) - sum(kept_counts)
    share, extra = divmod(len(owned), len(after)) if after else (0, 0)
    surplus = sum(max(0, count - share - (place < extra)) for place, count in enumerate(kept_counts))
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
        stickiness=None if not sum(kept_counts) else max(0.0, 1 - avoidable / sum(kept_counts)),
    )


def is_divergent(members: Iterable[MemberFacts]) -> bool | None:
    """True if members subscribe to different topics; None while one subscription is not known."""
    found = {None if member.topics is None else frozenset(member.topics) for member in members}
    return None if None in found else len(found) > 1


def _same(before: Held, after: Held) -> dict[str, str]:
    return {slot: slot for slot in before if slot in after}


def _owners(held: Held) -> dict[TopicPartition, str] | None:
    found = {place: slot for slot, places in held.items() for place in places}
    return found if len(found) == sum(len(set(places)) for places in held.values()) else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
