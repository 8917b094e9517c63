"""How many partitions changed hands between two assignments, and how many had to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Moves:
    """Partitions that changed hands, those that had to for a balanced result, and the rest."""

    moved: int
    necessary: int

    @property
    def avoidable(self) -> int:
        return max(0, self.moved - self.necessary)


def count_moves(
    before: Mapping[str, Sequence[TopicPartition]], after: Mapping[str, Sequence[TopicPartition]]
) -> Moves:
    """Moves between two complete assignments by slot; necessary are those of departed slots and
    above the fair share.

    With P partitions and N slots after, the P mod N kept slots that held most may keep one above
    ⌊P/N⌋.
    """
    owner_before = {place: slot for slot, held in before.items() for place in held}
    owner_after = {place: slot for slot, held in after.items() for place in held}
    moved = sum(
        owner_after[place] != slot for place, slot in owner_before.items() if place in owner_after
    )
    departed = sum(
        slot not in after and place in owner_after for place, slot in owner_before.items()
    )
    share, extra = divmod(len(owner_after), len(after)) if after else (0, 0)
    kept = sorted((len(held) for slot, held in before.items() if slot in after), reverse=True)
    surplus = sum(max(0, count - share - (place < extra)) for place, count in enumerate(kept))
    return Moves(moved, departed + surplus)
