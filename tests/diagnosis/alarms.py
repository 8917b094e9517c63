"""Tracks of one rule over the windows of a group's life, in which each window sees only what was
before its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from diagnosis.rebalance_rows import BEGIN, Life
from laggard.diagnosis.findings.tracks import advance_tracks
from laggard.diagnosis.history.frames import Track
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.registry import BY_CODE

# seconds, slots, columns of the generation
Event: TypeAlias = tuple[float, Sequence[str], dict[str, Any]]


def alarms(
    code: str,
    events: Sequence[Event],
    until: float,
    begin: float = 3000.0,
    make: Callable[[], Life] = Life,
) -> list[tuple[float, str, str]]:
    """When findings opened and why they closed: seconds, subject, "" for opened."""
    tracks: list[Track] = []
    found = []
    zero = round(BEGIN.timestamp() * 1000)
    now = begin
    while now <= until:
        history, slots = make(), ()
        for second, slots_then, columns in events:
            if second <= now:
                slots = tuple(slots_then)
                history.generation(second, *slots, **columns)
        signals = history.signals(
            now=now, member_count=len(slots), state="Stable" if slots else "Empty"
        )
        end_ms = zero + round(1000 * now)
        steps = advance_tracks(
            tracks, BY_CODE[code].check(signals), BY_CODE, end_ms - 60_000, end_ms, Parameters()
        )
        found += [(now, each.track.subject, "") for each in steps if each.track.opened_ms == end_ms]
        found += [(now, each.track.subject, each.closed) for each in steps if each.closed]
        tracks = [each.track for each in steps if not each.closed]
        now += 60.0
    return found
