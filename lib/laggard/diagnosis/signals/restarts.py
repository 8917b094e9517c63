"""Changes of the number of members that are undone at once: somebody started anew, nobody scaled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from laggard.diagnosis.signals.rosters import RETURN_SECONDS, Change, pattern

STEP_SECONDS = 120.0  # members of one step do not all start in the same second


def restarts(steps: Sequence[Change], evicted: Iterable[datetime]) -> set[datetime]:
    """Times of the changes by which places were left and soon taken again, or whose members were put out."""
    found = set(evicted)
    for index, first in enumerate(steps):
        is_open = len(first.left) == 1 or first.at in found
        for back in steps[index + 1 :]:
            seconds = (back.at - first.at).total_seconds()
            if seconds > RETURN_SECONDS:
                break
            if back.at in found:
                continue
            is_same_place = is_open and bool(set(first.left) & set(back.joined))
            if is_same_place or (first.at not in found and seconds <= STEP_SECONDS and _is_undone(first, back)):
                found |= {first.at, back.at}
                break
    return found


def _is_undone(first: Change, back: Change) -> bool:
    """Whether one of the same kind comes as one had gone, or goes as one had come before: it was started anew.

    Where the very member that had come goes again, the number itself was changed and changed back.
    """
    step = first.after - first.before
    if abs(step) != 1 or step != back.before - back.after:
        return False
    gone, come = (first.left, back.joined) if step < 0 else (back.left, first.joined)
    is_the_same = step > 0 and bool(set(gone) & set(come))
    return Counter(map(pattern, gone)) == Counter(map(pattern, come)) and not is_the_same
