"""State of a group's rebalances between two batches, and its one column of text.

The text is JSON by columns, the fields of the dataclasses: a group of a thousand members has ten
thousands of values, and few differ. A column is a list of one value each, or a single value that
all share. A struct is its columns by the names of its fields, a tuple of any length its lengths and
the column of all values.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, Union, get_args, get_origin, get_type_hints

from laggard.rebalance.analytics.departures import Departure
from laggard.rebalance.analytics.pauses import PartitionPause
from laggard.rebalance.analytics.times import Start, known
from laggard.rebalance.facts import Generation, MemberFacts

GONE = "gone"  # the generation kind of a group that was deleted or has changed its protocol
_SHARED = "before_is_standing"


@dataclass(frozen=True, slots=True)
class Standing:
    """Members and owners after the last rebalance.

    Complete: each partition that the rebalance took from a member has a new owner.
    """

    generation_kind: str
    generation: int
    members: tuple[MemberFacts, ...]
    assignor: str | None
    ended_at: datetime
    is_complete: bool


def members_of(standing: Standing | None) -> tuple[MemberFacts, ...]:
    """Return the members after the last rebalance; none if they are unknown."""
    if standing is None:
        return ()
    return standing.members


def stand(generation: Generation, ended_at: datetime, *, is_complete: bool) -> Standing:
    """Return the state of the group after a generation."""
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
    # of its generations but the last one:
    absent: tuple[str, ...] = ()  # instance ids of before that one lacks
    has_guests: bool = False  # one has a member that was not there before

    @property
    def is_at_rest(self) -> bool:
        """True if it has ended, and each partition that it took from a member has a new owner."""
        return self.is_complete and self.ended_at is not None


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
    """State of one group; departures of the last half hour, moves of the last hour."""

    standing: Standing | None = None
    open: OpenRebalance | None = None
    departures: tuple[Departure, ...] = ()
    last_ended_at: datetime | None = None
    moves: tuple[LastMove, ...] = ()


def to_text(state: RebalanceState) -> str:
    """Return the state as JSON.

    The state before an open rebalance is mostly the group's present state, and written once.
    """
    is_shared = (
        state.open is not None
        and state.open.before is not None
        and state.open.before is state.standing
    )
    if state.open is not None and is_shared:
        state = replace(state, open=replace(state.open, before=None))
    return json.dumps(
        codec_of(RebalanceState).write([state]) | {_SHARED: is_shared}, separators=(",", ":")
    )


def from_text(text: str | None) -> RebalanceState:
    """Return the state that `to_text` was given; a new one for None."""
    if text is None:
        return RebalanceState()
    written = json.loads(text)
    state: RebalanceState
    (state,) = codec_of(RebalanceState).read(written, 1)
    if state.open is not None and written[_SHARED]:
        state = replace(state, open=replace(state.open, before=state.standing))
    return state


def newest_generation(text: str | None) -> Standing | Generation | None:
    """Return the newest generation in the text, an open rebalance's included; None if none."""
    state = from_text(text)
    if state.open is None:
        return state.standing
    return state.open.last


Values = Sequence[Any]


@dataclass(frozen=True, slots=True)
class Codec:
    """Codec between values of one type and a column; the column lacks the number of values."""

    write: Callable[[Values], Any]
    read: Callable[[Any, int], list[Any]]


@cache
def codec_of(kind: Any) -> Codec:
    """Return the codec of str, numbers, bool, datetime, dataclasses, tuples of these.

    Each of them may be None.
    """
    if get_origin(kind) in (types.UnionType, Union):
        (inner,) = set(get_args(kind)) - {type(None)}
        return codec_of(inner) if _is_plain(inner) else _optional(codec_of(inner))
    if get_origin(kind) is tuple:
        if Ellipsis in get_args(kind):
            return _list(codec_of(get_args(kind)[0]))
        return _places(get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return _struct(kind)
    if kind is datetime:
        return _scalar(datetime.isoformat, datetime.fromisoformat)
    if not _is_plain(kind):
        raise TypeError(f"no JSON for {kind}")
    return _scalar(None, None)


def _is_plain(kind: Any) -> bool:
    return kind in (str, int, float, bool)


def _scalar(to_json: Callable[[Any], Any] | None, to_value: Callable[[Any], Any] | None) -> Codec:
    """Return a codec of plain values; without functions they are written as they are."""

    def write(values: Values) -> Any:
        if values and values.count(values[0]) == len(values):
            return to_json(values[0]) if to_json else values[0]
        return list(map(to_json, values)) if to_json else list(values)

    def read(column: Any, count: int) -> list[Any]:
        if not isinstance(column, list):
            return [to_value(column) if to_value else column] * count
        return list(map(to_value, column)) if to_value else column

    return Codec(write, read)


def _optional(inner: Codec) -> Codec:
    """Return a codec of values that may be None: a mask of the known ones, and their values."""

    def write(values: Values) -> Any:
        known_values = known(values)
        if not known_values:
            return None
        flags = [value is not None for value in values]
        return {"known": _FLAGS.write(flags), "values": inner.write(known_values)}

    def read(column: Any, count: int) -> list[Any]:
        if column is None:
            return [None] * count
        flags = _FLAGS.read(column["known"], count)
        known_values = iter(inner.read(column["values"], sum(flags)))
        return [next(known_values) if flag else None for flag in flags]

    return Codec(write, read)


def _list(inner: Codec) -> Codec:
    def write(values: Values) -> Any:
        whole = list(chain.from_iterable(values))
        return {"lengths": _COUNTS.write(list(map(len, values))), "values": inner.write(whole)}

    def read(column: Any, count: int) -> list[Any]:
        lengths = _COUNTS.read(column["lengths"], count)
        ends = list(accumulate(lengths))
        whole = tuple(inner.read(column["values"], sum(lengths)))
        return [whole[end - length : end] for end, length in zip(ends, lengths, strict=True)]

    return Codec(write, read)


def _places(kinds: Sequence[Any]) -> Codec:
    """Return a codec of tuples with one type for each position."""
    inner = list(map(codec_of, kinds))

    def write(values: Values) -> Any:
        columns = list(zip(*values, strict=True)) or [()] * len(inner)
        return [codec.write(column) for codec, column in zip(inner, columns, strict=True)]

    def read(column: Any, count: int) -> list[Any]:
        parts = zip(inner, column, strict=True)
        return list(zip(*(codec.read(part, count) for codec, part in parts), strict=True))

    return Codec(write, read)


def _struct(kind: Any) -> Codec:
    hints = get_type_hints(kind)
    codecs: dict[str, Codec] = {}
    defaults: dict[str, Any] = {}  # what an older job did not keep is as at the begin
    for part in fields(kind):
        codecs[part.name] = codec_of(hints[part.name])
        defaults[part.name] = None
        if part.default is not MISSING:
            defaults[part.name] = part.default

    def write(values: Values) -> Any:
        return {
            name: codec.write(list(map(attrgetter(name), values))) for name, codec in codecs.items()
        }

    def read(column: Any, count: int) -> list[Any]:
        columns = []
        for name, codec in codecs.items():
            values = [defaults[name]] * count
            if name in column:
                values = codec.read(column[name], count)
            columns.append(values)
        return list(map(kind, *columns))

    return Codec(write, read)


_FLAGS = _COUNTS = _scalar(None, None)
