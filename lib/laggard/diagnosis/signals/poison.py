"""The record that evicts every member that reads it: the partition that stalled first, in the hands of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.membership import Membership
from laggard.diagnosis.signals.rosters import EVICTION_REASONS

_EVICTED_POSTERIOR = fixed("evicted_posterior", 0.5, "probability of these reasons together")
_UNRELATED_RATIO = fixed("unrelated_ratio", 0.5, "evictions of members that never had it, per eviction of an owner")


@dataclass(frozen=True, slots=True)
class PutOut:
    """A member that was evicted, and the partitions it had then; None if its assignment is not known."""

    slot: str
    at: datetime
    held: frozenset[tuple[str, int]] | None


@dataclass(frozen=True, slots=True)
class Suspects:
    """Partitions of one topic, as rows of its arrays, stalled since before members that had them were evicted."""

    topic: TopicSignals
    rows: tuple[int, ...]
    evictions: tuple[PutOut, ...]
    frozen_seconds: float  # longest
    share: float  # of the topics' partitions, these


def find_suspects(signals: Signals, slack_seconds: float) -> Suspects | None:
    """The partitions that stood first, within the slack, if one owner of them after the other was evicted since.

    A member that never had them may leave for a reason of its own. Where many of those that leave had other partitions
    it is a trouble of the whole group, and no record's. Those that the same members had all the time cannot be
    distinguished: they are named together until one moves on.
    """
    stalled = [
        (float(each.frame["frozen"][row, -1]), number, int(row))
        for number, each in enumerate(signals.topics)
        for row in np.flatnonzero(each.is_stalled)
    ]
    if not stalled:
        return None
    longest = max(seconds for seconds, _, _ in stalled)
    first = [(number, row) for seconds, number, row in stalled if seconds >= longest - slack_seconds]
    since = signals.frame.now - timedelta(seconds=longest)
    evictions = tuple(each for each in put_out(signals.membership) if each.at >= since)
    owners = {place: _owners(evictions, _place(signals.topics[place[0]], place[1])) for place in first}
    most = max(map(len, owners.values()))
    suspects = [place for place in first if len(owners[place]) == most]
    known = owners[suspects[0]]
    is_contrast = len(evictions) - most <= _UNRELATED_RATIO * most and all(owners[place] == known for place in suspects)
    if not is_contrast or not any(each.held for each in known) or len({number for number, _ in suspects}) > 1:
        return None
    topic = signals.topics[suspects[0][0]]
    partitions = sum(len(each.frame.partitions) for each in signals.topics)
    return Suspects(topic, tuple(row for _, row in suspects), known, longest, len(first) / partitions)


def _owners(evictions: Sequence[PutOut], place: tuple[str, int]) -> tuple[PutOut, ...]:
    """Evictions of members that had a partition, or of which it is not known what they had."""
    return tuple(each for each in evictions if each.held is None or place in each.held)


def put_out(membership: Membership) -> Iterator[PutOut]:
    """Members that the group lost because they did not poll, did not answer, or died."""
    for row in membership.frame.rebalances:
        reasons = dict(row["cause_posterior"] or {})
        if not row.get("live_read") or sum(reasons.get(name, 0.0) for name in EVICTION_REASONS) < _EVICTED_POSTERIOR:
            continue
        before = [each for each in membership.rosters if each.generation < min(row["generations"])]
        members: Sequence[Row] = before[-1].rows if before else ()
        held = {member["slot"]: member["assigned"] for member in members}
        for slot in sorted({*(row["left"] or ()), *(row["replaced"] or ())} & held.keys() if held else row["left"]):
            places = held.get(slot)
            yield PutOut(
                slot,
                row["ended_at"],
                None if places is None else frozenset((place["topic"], place["partition"]) for place in places),
            )


def _place(topic: TopicSignals, row: int) -> tuple[str, int]:
    return topic.frame.topic, int(topic.frame.partitions[row])
