"""What really happened: generations, rebalances with their causes, and where each partition really
stands.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from simulator.moves import count_moves
from simulator.records import TopicPartition
from simulator.work import Batch, Gap, GivenUp, find_gaps, find_lasting

Held = Mapping[str, Sequence[TopicPartition]]  # by slot


@dataclass
class Generation:
    """One group record: what it says, and where and when it was written."""

    group: str
    kind: str  # sync, empty, create, tombstone, downgrade (of a modern group), replacement
    record_ms: int
    source_partition: int
    source_offset: int
    generation: int | None = None
    protocol_type: str | None = None
    assignor: str | None = None
    leader: str | None = None
    state_ms: int | None = None
    members: dict[str, dict[str, Any]] = field(default_factory=dict)  # by member id


@dataclass
class Epoch:
    """One epoch of a KIP-848 group: from its type 3 record to the last member that reached it, or
    to the next one.
    """

    group: str
    epoch: int
    start_ms: int
    causes: list[str]
    kind: str = "epoch"  # epoch, empty, or upgrade: the generation that a classic group leaves
    source_partition: int = 0
    source_offset: int = 0
    end_ms: int | None = None
    is_superseded: bool = False
    members: dict[str, str] = field(default_factory=dict)  # member id -> slot
    # by member id, when it ended
    assigned: dict[str, list[TopicPartition]] = field(default_factory=dict)


@dataclass
class Rebalance:
    """A logical rebalance; the follow-up rounds of cooperative members belong to it. Partitions are
    held by slot.
    """

    group: str
    start_ms: int
    # In order; the first one started it. Members: join, leave, poll_interval, session_expiry,
    # static_expiry, static_return, leader_rejoin. Timeouts: rebalance_timeout, sync_timeout.
    # Changes: subscription_change, topic_change, assignor_change, coordinator_move.
    causes: list[str] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)  # slot, why
    joined: list[str] = field(default_factory=list)  # slots
    generations: list[int] = field(default_factory=list)
    end_ms: int | None = None  # of the last round so far
    is_over: bool = False
    before: dict[str, list[TopicPartition]] = field(default_factory=dict)
    after: dict[str, list[TopicPartition]] = field(default_factory=dict)
    # each from, to
    pauses: dict[TopicPartition, tuple[int, int | None]] = field(default_factory=dict)

    @property
    def cause(self) -> str:
        return self.causes[0] if self.causes else "unknown"

    @property
    def moved_partitions(self) -> list[TopicPartition]:
        """Those that another slot owns now."""
        owner = {place: slot for slot, held in self.after.items() for place in held}
        return sorted(
            place
            for slot, held in self.before.items()
            for place in held
            if owner.get(place, slot) != slot
        )

    @property
    def moved(self) -> int:
        return count_moves(self.before, self.after).moved

    @property
    def necessary(self) -> int:
        return count_moves(self.before, self.after).necessary


@dataclass
class Position:
    """One partition of one group at a poll, as the coordinator and the members know it."""

    committed_offset: int | None
    visible_offset: int | None  # of the commits that no open transaction hides
    processed: int | None
    log_start_offset: int
    log_end_offset: int
    time_lag_ms: int | None  # age of the first record not processed


class Processed(NamedTuple):
    """A batch as it was done; one of a member that had been evicted does not count."""

    done_ms: int
    end: int
    began_ms: int
    start: int
    owner: str
    counts: bool


# a batch of several partitions: group, owner, began at, done at, whether it counts; of each its
# first and next offset
Done = tuple[str, str, int, int, bool, list[tuple[TopicPartition, int, int]]]


class Truth:
    """Filled in while the simulation runs."""

    def __init__(self) -> None:
        self.generations: list[Generation] = []
        self.epochs: list[Epoch] = []
        self.rebalances: list[Rebalance] = []
        # static members that rejoined without a rebalance
        self.replacements: list[dict[str, Any]] = []
        self.members: dict[str, dict[str, Any]] = {}  # member id -> slot, host, why it went
        self.configs: dict[str, list[Any]] = {}  # settings of every member that a group ever had
        self.positions: list[dict[tuple[str, str, int], Position]] = []  # one per poll
        self.faults: list[dict[str, Any]] = []  # what the workload did, and when
        # of what counts, what was not done again
        self.work: dict[tuple[str, TopicPartition], list[Batch]] = {}
        self.gaps: dict[tuple[str, TopicPartition], list[Gap]] = {}  # both of them when all is over
        self._given_up: dict[tuple[str, TopicPartition], list[GivenUp]] = {}
        self._open: dict[str, Rebalance] = {}
        self._processed: dict[tuple[str, TopicPartition], list[Processed]] = {}
        self._batches: list[Done] = []  # not among the processed yet: most runs ask for none

    # rebalances

    def trigger(self, group: str, now_ms: int, cause: str, before: Held) -> Rebalance:
        """A rebalance begins, or another reason joins the one under way."""
        if group not in self._open:
            self._open[group] = Rebalance(
                group, now_ms, before={slot: list(held) for slot, held in before.items()}
            )
            self.rebalances.append(self._open[group])
        if cause not in ("follow_up", *self._open[group].causes):
            self._open[group].causes.append(cause)
        return self._open[group]

    def round_ended(
        self, group: str, now_ms: int, generation: int, after: Held, *, is_complete: bool
    ) -> None:
        rebalance = self._open[group]
        rebalance.generations.append(generation)
        rebalance.end_ms = now_ms
        rebalance.after = {slot: list(held) for slot, held in after.items()}
        if is_complete:
            rebalance.is_over = True
            del self._open[group]

    def left(self, group: str, slot: str, why: str) -> None:
        """A member that did not rejoin in time, in the middle of the rebalance."""
        if group in self._open:
            self._open[group].left.append((slot, why))

    def abandon(self, group: str) -> None:
        """The coordinator moved, and nobody has asked again: what was under way will never end."""
        self._open.pop(group, None)

    # partitions

    def batch_done(self, done: Done) -> None:
        self._batches.append(done)

    @property
    def processed(self) -> dict[tuple[str, TopicPartition], list[Processed]]:
        """By group and partition all batches in order."""
        for group, owner, began_ms, done_ms, counts, spans in self._batches:
            for place, start, end in spans:
                done = Processed(done_ms, end, began_ms, start, owner, counts)
                self._processed.setdefault((group, place), []).append(done)
        self._batches.clear()
        return self._processed

    def given_up(self, group: str, places: Sequence[TopicPartition], given_up: GivenUp) -> None:
        for place in places:
            self._given_up.setdefault((group, place), []).append(given_up)

    def topic_deleted(self, topic: str) -> None:
        """What comes under the same name later has nothing to do with it."""
        for key in [key for key in self.processed if key[1][0] == topic]:
            self._settle(key)
            self.gaps[key] = [gap for gap in self.gaps[key] if gap.first_ms is not None]
            del self.processed[key]
            self._given_up.pop(key, None)

    def _settle(self, key: tuple[str, TopicPartition]) -> None:
        counted = [each for each in self.processed[key] if each.counts]
        work = find_lasting(
            [
                Batch(each.owner, each.began_ms, each.done_ms, each.start, each.end)
                for each in counted
            ]
        )
        self.gaps.setdefault(key, []).extend(find_gaps(work, self._given_up.get(key, ())))
        self.work.setdefault(key, []).extend(work)

    def processed_at(self, group: str, place: TopicPartition, now_ms: int) -> int | None:
        done = self.processed.get((group, place), [])
        at = bisect.bisect_right(done, now_ms, key=attrgetter("done_ms"))
        return done[at - 1].end if at else None

    def finish(self) -> None:
        """Give each gap to the rebalances whose time it touches; a move within a cooperative one
        has its own gap.
        """
        for key in self.processed:
            self._settle(key)
        for rebalance in self.rebalances:
            end = rebalance.end_ms
            for (group, place), gaps in self.gaps.items():
                for gap in gaps:
                    begins_in_time = end is None or gap.given_up.at_ms <= end
                    lasts_into_it = gap.first_ms is None or gap.first_ms >= rebalance.start_ms
                    if group == rebalance.group and begins_in_time and lasts_into_it:
                        rebalance.pauses.setdefault(place, (gap.begin_ms, gap.first_ms))
