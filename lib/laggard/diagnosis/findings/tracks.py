"""Tracks of findings: conditions open and close findings.

A condition opens a finding after some windows in a row, and closes it after some without the
condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from laggard.diagnosis.history.frames import Track
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.rules.rule import ABSTAINS, HOLDS, Observation, Rule

CLEARED, FALSIFIED, RETIRED, UNKNOWN = "cleared", "falsified", "retired", "unknown"
# why a window does not show an open finding: its condition does not hold, or an input is missing
GONE, LACKING = "gone", "unknown"
_FALSIFIED_WINDOWS = fixed(
    "falsified_windows", 2, "windows in a row in which the falsifier was true"
)


@dataclass(frozen=True, slots=True)
class Step:
    """Change of a track in a window: the track after it, the observation, the reason of closing.

    The reason is there only if the track closed.
    """

    track: Track
    observed: Observation | None
    closed: str = ""
    unseen: str = ""  # of an open one that the window does not show: GONE or LACKING


def advance_tracks(
    tracks: Sequence[Track],
    observations: Sequence[Observation],
    rules: Mapping[str, Rule],
    window_ms: int,
    end_ms: int,
    parameters: Parameters,
) -> list[Step]:
    """Return all tracks after the window from `window_ms` to `end_ms`, ended tracks included."""
    holding = sorted((each for each in observations if each.state == HOLDS), key=_scope_of)
    abstaining = [each for each in observations if each.state == ABSTAINS]
    steps = []
    for track in tracks:
        if track.code not in rules:  # of a newer version, before this one was put back
            continue
        found = next((each for each in holding if _is_of(track, each)), None)
        if found is not None:
            holding.remove(found)
        is_abstaining = any(_is_unknown(track, each) for each in abstaining)
        step = _step(
            track, found, rules[track.code], parameters, end_ms, is_abstaining=is_abstaining
        )
        if step is not None:
            steps.append(step)
    for each in holding:
        track = Track(
            each.code, each.topic, tuple(sorted(each.partitions)), each.subject, window_ms
        )
        step = _step(track, each, rules[each.code], parameters, end_ms, is_abstaining=False)
        if step is not None:
            steps.append(step)
    return steps


def _step(
    track: Track,
    found: Observation | None,
    rule: Rule,
    parameters: Parameters,
    end_ms: int,
    *,
    is_abstaining: bool,
) -> Step | None:
    """Return the track after the window.

    Return None when a condition that never became a finding is forgotten.
    """
    if found is not None:
        falsified = track.falsified + 1 if found.is_falsified else 0
        track = replace(track, held=track.held + 1, missed=0, abstained=0, falsified=falsified)
        is_false = falsified >= _FALSIFIED_WINDOWS
        if (
            track.opened_ms is None
            and track.held >= (rule.open_after or parameters.open_after)
            and not is_false
        ):
            track = replace(track, opened_ms=end_ms)
        if is_false:
            return Step(track, found, FALSIFIED) if track.opened_ms is not None else None
        return Step(track, found)
    if is_abstaining:
        track = replace(track, abstained=track.abstained + 1)
        if track.abstained < parameters.abstain_after:
            return Step(track, None, unseen=LACKING)
        return Step(track, None, UNKNOWN) if track.opened_ms is not None else None
    if track.opened_ms is None:
        return None
    track = replace(track, missed=track.missed + 1, held=0)
    is_over = track.missed >= (rule.close_after or parameters.close_after)
    is_gone = not is_over and track.missed >= rule.looks_every
    closed = CLEARED if is_over else ""
    return Step(track, None, closed, GONE if is_gone else "")


def _is_of(track: Track, each: Observation) -> bool:
    """Return True if an observation is of the track's condition.

    Its partitions may change as long as one partition stays.
    """
    if (track.code, track.topic, track.subject) != (each.code, each.topic, each.subject):
        return False
    if bool(track.partitions) != bool(each.partitions):
        return False
    return not track.partitions or not set(track.partitions).isdisjoint(each.partitions)


def _is_unknown(track: Track, each: Observation) -> bool:
    """Return True if an abstention is about this condition.

    An abstention without a scope is about all of its rule.
    """
    is_of_all = not (each.topic or each.partitions or each.subject)
    return _is_of(track, each) or (is_of_all and track.code == each.code)


def _scope_of(each: Observation) -> tuple[Any, ...]:
    return each.code, each.topic, each.subject, tuple(sorted(each.partitions))
