"""Net changes of the number of members that are no deploy, no eviction and no restart.

A change that is undone at once is a restart and no scaling.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.deploys import Deploy
from laggard.diagnosis.signals.rosters import RETURN_SECONDS, Change, Eviction, pattern

STEP_SECONDS = fixed("step_seconds", 120.0, "s")
_SWING_SECONDS = fixed("swing_seconds", 3600.0, "s in which members are added and removed in turn")


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A net change of members without replacement."""

    at: datetime  # of its last record
    before: int
    after: int
    joined: tuple[str, ...]  # places
    left: tuple[str, ...]


def find_scale_events(
    changes: Sequence[Change], deploys: Sequence[Deploy], evictions: Iterable[Eviction]
) -> tuple[ScaleEvent, ...]:
    """Oldest first; deploys, evictions and restarts are no scaling."""
    known = [
        each
        for each in changes
        if each.generation is not None
        and each.before
        and each.after
        and not any(deploy.started_at <= each.at <= deploy.ended_at for deploy in deploys)
    ]
    steps = [each for each in known if each.after != each.before]
    restarted = restarts(steps, {each.at for each in evictions})
    found: list[ScaleEvent] = []
    for each in steps:
        if each.at in restarted:
            continue
        last = found[-1] if found else None
        is_same_way = last is not None and (each.after > each.before) == (last.after > last.before)
        if last is not None and is_same_way and (each.at - last.at).total_seconds() <= STEP_SECONDS:
            joined, left = (*last.joined, *each.joined), (*last.left, *each.left)
            found[-1] = ScaleEvent(each.at, last.before, each.after, joined, left)
        else:
            found.append(ScaleEvent(each.at, each.before, each.after, each.joined, each.left))
    return tuple(found)


def alternations(events: Sequence[ScaleEvent], until: datetime) -> list[ScaleEvent]:
    """The newest net changes of the last seconds that alternate in sign, oldest first."""
    found: list[ScaleEvent] = []
    for each in reversed([each for each in events if 0 <= (until - each.at).total_seconds() < _SWING_SECONDS]):
        if found and (each.after > each.before) == (found[0].after > found[0].before):
            break
        found.insert(0, each)
    return found


def restarts(steps: Sequence[Change], evicted: Iterable[datetime]) -> set[datetime]:
    """Times of the changes by which members left and soon rejoined, or whose members were evicted."""
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
    """True if one of the same kind comes as one had gone, or goes as one had come before: it was restarted.

    Where the very member that had come goes again, the number itself was changed and changed back.
    """
    step = first.after - first.before
    if abs(step) != 1 or step != back.before - back.after:
        return False
    gone, come = (first.left, back.joined) if step < 0 else (back.left, first.joined)
    is_the_same = step > 0 and bool(set(gone) & set(come))
    return Counter(map(pattern, gone)) == Counter(map(pattern, come)) and not is_the_same
