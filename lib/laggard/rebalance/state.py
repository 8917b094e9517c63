"""What is kept of a group's rebalances between two batches, and its one column of text.

The text is JSON, by the fields of the dataclasses.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from laggard.rebalance.departures import Departure
from laggard.rebalance.facts import Generation, MemberFacts
from laggard.rebalance.pauses import PartitionPause
from laggard.rebalance.times import Start


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the last rebalance left the group; complete: each partition it took from a member has a new owner."""

    generation_kind: str
    generation: int
    members: tuple[MemberFacts, ...]
    assignor: str | None
    ended_at: datetime
    is_complete: bool


def stand(generation: Generation, ended_at: datetime, *, is_complete: bool) -> Standing:
    """The group as a generation leaves it."""
    return Standing(
        generation_kind=generation.generation_kind,
        generation=generation.generation,
        members=generation.members,
        assignor=generation.assignor,
        ended_at=ended_at,
        is_complete=is_complete,
    )


@dataclass(frozen=True, slots=True)
class OpenRebalance:
    """A logical rebalance whose row is not written yet."""

    source_offset: int  # of its first generation
    opened_at: datetime  # record time of its first generation
    last: Generation
    generations: tuple[int, ...]
    before: Standing | None
    start: Start
    ended_at: datetime | None  # None: the epoch is not Stable
    sync_seconds: float | None
    interrupted: int | None
    live_read: bool
    is_complete: bool
    pauses: tuple[PartitionPause, ...]
    commit_gap_p95_seconds: float | None
    straggler_slot: str | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LastMove:
    """The newest move of a partition."""

    topic: str
    partition: int
    from_slot: str
    to_slot: str
    at: datetime


@dataclass(frozen=True, slots=True)
class RebalanceState:
    """Everything of one group; departures are those of the last half hour, moves those of the last hour."""

    standing: Standing | None = None
    open: OpenRebalance | None = None
    departures: tuple[Departure, ...] = ()
    last_ended_at: datetime | None = None
    moves: tuple[LastMove, ...] = ()


def to_text(state: RebalanceState) -> str:
    """The state as JSON."""
    return json.dumps(_plain(state), separators=(",", ":"))


def from_text(text: str | None) -> RebalanceState:
    """The state that `to_text` was given; a new one for None."""
    if text is None:
        return RebalanceState()
    found: RebalanceState = _build(RebalanceState, json.loads(text))
    return found


def _plain(value: Any) -> Any:
    """Lists, dicts and texts; what is not known is left out."""
    if is_dataclass(value):
        found = {name: getattr(value, name) for name in _hints(value.__class__)}
        return {name: _plain(each) for name, each in found.items() if each is not None}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _build(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if get_origin(kind) in (types.UnionType, Union):
        return _build(next(each for each in get_args(kind) if each is not type(None)), value)
    if get_origin(kind) is tuple:
        return tuple(_build(each, item) for each, item in zip(_items(kind, value), value, strict=True))
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _build(each, value.get(name)) for name, each in _hints(kind).items()})
    return datetime.fromisoformat(value) if kind is datetime else value


def _items(kind: Any, value: Iterable[Any]) -> list[Any]:
    """The type of each item, of a tuple of any length the same for all."""
    found = get_args(kind)
    return [found[0] for _ in value] if found[-1] is Ellipsis else list(found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}
