"""State of a group's rebalances between two batches, and its one column of text.

The text is JSON by columns, the fields of the dataclasses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime

from laggard.rebalance.columns import codec_of
from laggard.rebalance.departures import Departure
from laggard.rebalance.facts import Generation, MemberFacts
from laggard.rebalance.pauses import PartitionPause
from laggard.rebalance.times import Start

GONE = "gone"  # the generation kind of a group that was deleted or has changed its protocol
_SHARED = "before_is_standing"


@dataclass(frozen=True, slots=True)
class Standing:
    """Members and owners after the last rebalance; complete: each partition it took from a member has a new owner."""

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
    return json.dumps(codec_of(RebalanceState).write([state]) | {_SHARED: is_shared}, separators=(",", ":"))


def from_text(text: str | None) -> RebalanceState:
    """The state that `to_text` was given; a new one for None."""
    if text is None:
        return RebalanceState()
    written = json.loads(text)
    found: RebalanceState
    (found,) = codec_of(RebalanceState).read(written, 1)
    if found.open is not None and written[_SHARED]:
        found = replace(found, open=replace(found.open, before=found.standing))
    return found


def newest_generation(text: str | None) -> Standing | Generation | None:
    """The newest generation in the text, the one of an open rebalance included; None if there is none."""
    state = from_text(text)
    return state.standing if state.open is None else state.open.last
