"""One step of a member towards its target (GC/modern/consumer/CurrentAssignmentBuilder).

First it must revoke what it is to lose, then it moves to the target's epoch, then it waits for what
others still hold.
"""

from __future__ import annotations

from simulator.modern_requests import STABLE, UNRELEASED, UNREVOKED, Mate
from simulator.records import TopicPartition

Places = set[TopicPartition]


def reconcile(
    mate: Mate,
    owned: frozenset[TopicPartition] | None,
    target: Places,
    target_epoch: int,
    taken: Places,
) -> bool:
    """True if the member's state changed; `owned` is what it says it has, `taken` what the others
    have.
    """
    was = (mate.epoch, mate.state, set(mate.assigned), set(mate.revoking))
    if mate.state == UNREVOKED:
        if owned is None or owned & mate.revoking:
            return False
        mate.revoking = set()
        _step(mate, target, target_epoch, taken)
    elif mate.epoch != target_epoch or mate.state == UNRELEASED:
        _step(mate, target, target_epoch, taken)
    has_changed = was != (mate.epoch, mate.state, mate.assigned, mate.revoking)
    if has_changed:
        mate.previous = was[0]  # the same epoch where the member only got what it waited for
    return has_changed


def _step(mate: Mate, target: Places, target_epoch: int, taken: Places) -> None:
    gone = mate.assigned - target
    mate.assigned &= target
    if gone:
        mate.revoking, mate.state = gone, UNREVOKED
    else:
        mate.assigned |= target - taken
        mate.epoch = target_epoch
        mate.state = UNRELEASED if target & taken else STABLE
