"""What is kept of a group's rebalances between two batches, and its one column of text.

The text is JSON, by the fields of the dataclasses.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from laggard.rebalance.departures import Departure
from laggard.rebalance.facts import Generation, MemberFacts
from laggard.rebalance.pauses import PartitionPause
from laggard.rebalance.times import Start

GONE = "gone"  # the generation kind of a group that was deleted or has changed its protocol


_SHARED = "before_is_standing"


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
    """The state as JSON; what was before an open rebalance is most often where the group stands, and written once."""
    is_shared = state.open is not None and state.open.before is not None and state.open.before is state.standing
    if state.open is not None and is_shared:
        state = replace(state, open=replace(state.open, before=None))
    written = _codec(RebalanceState).write(state)
    if is_shared:
        written[_SHARED] = True
    return json.dumps(written, separators=(",", ":"))


def from_text(text: str | None) -> RebalanceState:
    """The state that `to_text` was given; a new one for None."""
    if text is None:
        return RebalanceState()
    written = json.loads(text)
    is_shared = written.pop(_SHARED, False)
    found: RebalanceState = _codec(RebalanceState).read(written)
    if found.open is not None and is_shared:
        found = replace(found, open=replace(found.open, before=found.standing))
    return found


@dataclass(frozen=True, slots=True)
class _Codec:
    """How values of one type become JSON and back; None: as they are."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@cache
def _codec(kind: Any) -> _Codec:
    """Made once per type: a group of a thousand members has ten thousands of values."""
    if get_origin(kind) in (types.UnionType, Union):
        return _optional(_codec(next(each for each in get_args(kind) if each is not type(None))))
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return _struct(kind)
    return _Codec(datetime.isoformat, datetime.fromisoformat) if kind is datetime else _PLAIN


def _as_it_is(value: Any) -> Any:
    return value


_PLAIN = _Codec(_as_it_is, _as_it_is)


def _optional(inner: _Codec) -> _Codec:
    if inner is _PLAIN:
        return _PLAIN
    write, read = inner.write, inner.read
    return _Codec(
        lambda value: None if value is None else write(value), lambda value: None if value is None else read(value)
    )


def _tuple(kinds: tuple[Any, ...]) -> _Codec:
    """Of any length with one type, or one type for each place."""
    inner = [_codec(each) for each in kinds if each is not Ellipsis]
    if all(each is _PLAIN for each in inner):
        return _Codec(list, tuple)
    if kinds[-1] is Ellipsis:
        write, read = inner[0].write, inner[0].read
        return _Codec(
            lambda value: [write(each) for each in value], lambda value: tuple([read(each) for each in value])
        )
    raise TypeError(f"no JSON for a tuple of {kinds}")


def _struct(kind: Any) -> _Codec:
    """An object by the names of the fields; what is None is left out."""
    hints = get_type_hints(kind)
    codecs = [(each.name, _codec(hints[each.name])) for each in fields(kind)]
    # what an older job did not keep is as at the begin
    defaults = {each.name: each.default for each in fields(kind) if each.default is not MISSING}

    def write(value: Any) -> dict[str, Any]:
        found = {name: getattr(value, name) for name, _ in codecs}
        return {name: codec.write(found[name]) for name, codec in codecs if found[name] is not None}

    def read(value: Any) -> Any:
        return kind(*[codec.read(value[name]) if name in value else defaults.get(name) for name, codec in codecs])

    return _Codec(write, read)
