"""The truth as logical rebalances: what belongs together in the eyes of who can only read records.

A coordinator knows of each round. Rounds of one logical rebalance are those of a cooperative
hand-over, the epochs up to the one that became stable, and classic rounds whose join phase ended
within ten seconds, or two sync phases, of the end of the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from simulator.moves import Moves, count_moves
from simulator.records import TopicPartition
from simulator.truth import Epoch, Generation, Rebalance, Truth

Record = Generation | Epoch
MERGE_MS, MERGE_SYNCS = 10_000, 2
ROUNDS = ("sync", "empty", "epoch")


@dataclass(frozen=True)
class Logical:
    """One logical rebalance. `records` are its own in order, `prior` is the group's last one before
    them.
    """

    group: str
    parts: tuple[Rebalance, ...]
    records: tuple[Record, ...]
    prior: Record | None
    # by slot; in KIP-848 groups by member id where no instance id is set
    before: Mapping[str, list[TopicPartition]]
    after: Mapping[str, list[TopicPartition]]
    # each: from, to the first record after
    pauses: Mapping[TopicPartition, list[tuple[int, int | None]]]

    @property
    def is_classic(self) -> bool:
        return isinstance(self.records[-1], Generation)

    @property
    def is_over(self) -> bool:
        return self.parts[-1].is_over

    @property
    def start_ms(self) -> int:
        return self.parts[0].start_ms

    @property
    def end_ms(self) -> int:
        return self.parts[-1].end_ms or 0

    @property
    def numbers(self) -> list[int]:
        return [number_of(each) for each in self.records]

    @property
    def causes(self) -> set[str]:
        return {cause for part in self.parts for cause in part.causes}

    @property
    def joined(self) -> set[str]:
        """Slots that came, also those that went again."""
        return {slot for part in self.parts for slot in part.joined}

    @property
    def left(self) -> list[tuple[str, str]]:
        return [each for part in self.parts for each in part.left]

    @property
    def interrupted(self) -> int:
        """Rounds that left no record."""
        numbers = [*([] if self.prior is None else [number_of(self.prior)]), *self.numbers]
        return sum(two - one - 1 for one, two in pairwise(numbers)) if self.is_classic else 0

    @property
    def sync_ms(self) -> int | None:
        found = [sync_of(each) for each in self.records if each.kind == "sync"]
        known = [each for each in found if each is not None]
        return sum(known) if known and len(known) == len(found) else None

    @property
    def movement(self) -> Moves | None:
        """None if members of the first or the last roster subscribe to different topics."""
        rosters = [
            each.members for each in (self.prior, self.records[-1]) if isinstance(each, Generation)
        ]
        is_same = all(
            len({tuple(row["topics"]) for row in roster.values()}) <= 1 for roster in rosters
        )
        return count_moves(self.before, self.after) if is_same and self.is_over else None


def number_of(record: Record) -> int:
    return record.epoch if isinstance(record, Epoch) else record.generation or 0


def sync_of(record: Record) -> int | None:
    """Length of a generation's sync phase in ms; None without one."""
    if not isinstance(record, Generation) or record.kind != "sync" or record.state_ms is None:
        return None
    return record.record_ms - record.state_ms


def roster(record: Record | None) -> dict[str, str]:
    """Member id -> slot."""
    members = {} if record is None else record.members
    return {
        member_id: each if isinstance(each, str) else each["slot"]
        for member_id, each in members.items()
    }


def name_of(member_id: str, slot: str) -> str:
    """A static member under another id is the same one."""
    return member_id if "@" in slot else slot


def find_logical(truth: Truth) -> list[Logical]:
    """All that left a record, by group and time; the last one of a group may not be over."""
    found = []
    for group in sorted({each.group for each in truth.rebalances}):
        records = sorted(
            (each for each in (*truth.generations, *truth.epochs) if each.group == group),
            key=lambda each: (each.source_partition, each.source_offset),
        )
        found += [
            _logical(truth, group, parts, own, records)
            for parts, own in _joined(truth, group, records)
        ]
    return found


def _joined(
    truth: Truth, group: str, records: list[Any]
) -> Iterator[tuple[list[Rebalance], list[Record]]]:
    parts: list[Rebalance] = []
    own: list[Record] = []
    for rebalance in truth.rebalances:
        if rebalance.group != group or rebalance.end_ms is None:
            continue
        fresh = [each for each in records if _is_round_of(each, rebalance) and each not in own]
        if not fresh:
            continue  # it ended in a record of another kind
        if own and not _goes_on(own[-1], fresh[0], records):
            yield parts, own
            parts, own = [], []
        parts, own = [*parts, rebalance], [*own, *fresh]
    if own:
        yield parts, own


def _is_round_of(record: Record, rebalance: Rebalance) -> bool:
    end = rebalance.end_ms or 0
    if record.kind not in ROUNDS or (
        isinstance(record, Generation) and record.generation not in rebalance.generations
    ):
        return False
    return rebalance.start_ms <= written_ms(record) <= end


def written_ms(record: Record) -> int:
    return record.start_ms if isinstance(record, Epoch) else record.record_ms


def _goes_on(last: Record, first: Record, records: list[Any]) -> bool:
    between = records[records.index(last) + 1 : records.index(first)]
    if (
        isinstance(last, Epoch)
        or isinstance(first, Epoch)
        or any(each.kind != "replacement" for each in between)
    ):
        return False
    sync = sync_of(last) or 0
    # an old record does not tell
    joined_ms = first.record_ms if first.state_ms is None else first.state_ms
    return joined_ms - last.record_ms < max(MERGE_SYNCS * sync, MERGE_MS)


def _logical(
    truth: Truth, group: str, parts: list[Rebalance], own: list[Record], records: list[Any]
) -> Logical:
    earlier = records[: records.index(own[0])]
    if earlier and earlier[-1].kind == "downgrade" and earlier[-1].record_ms == parts[0].start_ms:
        # the departure that ended the modern group began this rebalance: it is part of the change
        earlier = [each for each in earlier if written_ms(each) < parts[0].start_ms]
    prior = next((each for each in reversed(earlier) if each.kind != "tombstone"), None)
    if earlier and earlier[-1].kind == "tombstone":
        prior = None
    before, after = parts[0].before, parts[-1].after
    if isinstance(own[-1], Epoch):
        stable = [each for each in earlier if isinstance(each, Epoch) and not each.is_superseded]
        before, after = (
            _by_member(truth, stable[-1] if stable and prior else None),
            _by_member(truth, own[-1]),
        )
    start_ms, end_ms = parts[0].start_ms, parts[-1].end_ms or 0
    pauses = {
        place: _pauses(truth, group, place, start_ms, end_ms)
        for owner, place in truth.work
        if owner == group
    }
    return Logical(group, tuple(parts), tuple(own), prior, before, after, pauses)


def _pauses(
    truth: Truth, group: str, place: TopicPartition, start_ms: int, end_ms: int
) -> list[tuple[int, int | None]]:
    """Times without an owner; where it kept one, the time that this one was stalled, as in a long
    batch.
    """
    gaps = [
        (gap.begin_ms, gap.first_ms)
        for gap in truth.gaps.get((group, place), ())
        if gap.last_ms <= end_ms and (gap.first_ms is None or gap.first_ms >= start_ms)
    ]
    stands = [
        (last.done_ms, first.done_ms)
        for last, first in pairwise(truth.work[group, place])
        if last.done_ms <= end_ms and first.done_ms >= start_ms
    ]
    return gaps or [max(stands, key=lambda each: each[1] - each[0])] if stands or gaps else []


def _by_member(truth: Truth, epoch: Epoch | None) -> dict[str, list[TopicPartition]]:
    """A static member may have got another id since the epoch began."""
    held = {} if epoch is None else epoch.assigned
    return {
        name_of(member_id, truth.members[member_id]["slot"]): places
        for member_id, places in held.items()
    }
