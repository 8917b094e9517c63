"""The change that is asked about, applied to the signals of a group: all that sizes a group then sizes it changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.signals.compute import ceiling_of
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.statistics import known_sum, lower_median


@dataclass(frozen=True, slots=True)
class Change:
    """A question; what is not said stays as it is."""

    members: int | None = None
    assignor: str | None = None
    partitions: int | None = None
    topic: str | None = None  # that gets them
    rate: float = 1.0  # times the records that arrive

    @property
    def is_any(self) -> bool:
        """True if anything is to change."""
        return self.members is not None or self.rate != 1 or not self.keeps_owners

    @property
    def keeps_owners(self) -> bool:
        """True if with as many members as now each would keep its partitions."""
        return self.assignor is None and self.partitions is None


def apply(signals: Signals, change: Change, *, is_one_key: bool = False) -> Signals:
    """Return the group as if the change had been made.

    Records that are unread stay where they are. More partitions share evenly what arrives; or, if the busiest one gets
    all its records by one key, that one keeps its rate and the others share the rest.
    """
    fact = dict(signals.frame.fact)
    topics = list(signals.topics)
    if change.partitions is not None:
        topics = [
            _repartitioned(each, change, partition_count(signals, each), is_one_key=is_one_key) for each in topics
        ]
        counts = {each.frame.topic: int(each.frame.partitions.max(initial=-1)) + 1 for each in topics}
        fact["topic_partitions"] = dict(fact.get("topic_partitions") or {}) | counts
    if change.assignor is not None:
        fact["assignor"] = change.assignor
    topics = [replace(each, arriving=each.arriving * change.rate) for each in topics]
    facts: Sequence[dict[str, object] | None] = [*signals.frame.facts[:-1], fact]
    frame = replace(signals.frame, facts=facts, topics=[each.frame for each in topics])
    # of another load, or another share of it, no size was published before
    is_same = change.rate == 1 and change.keeps_owners
    memory = signals.memory if is_same else replace(signals.memory, sizes=())
    return replace(signals, frame=frame, topics=topics, ceiling=ceiling_of(frame), memory=memory)


def partition_count(signals: Signals, topic: TopicSignals) -> int:
    """Partitions of a topic, also if some have no rows."""
    recorded = (signals.frame.fact.get("topic_partitions") or {}).get(topic.frame.topic) or 0
    return max(int(recorded), int(topic.frame.partitions.max(initial=-1)) + 1)


def _repartitioned(topic: TopicSignals, change: Change, before: int, *, is_one_key: bool) -> TopicSignals:
    """More partitions, with the numbers after those of before; a partition without rows stays without them."""
    if topic.frame.topic != change.topic or (change.partitions or 0) <= before:
        return topic
    added = np.arange(before, change.partitions)
    more, count = len(added), len(topic.frame.partitions) + len(added)
    known = np.where(np.isnan(topic.arriving), lower_median(topic.arriving.tolist()), topic.arriving)
    total = known_sum(known) if not np.isnan(known).any() else nan
    arrival = np.full(count, total / count)
    if is_one_key and count > 1:
        hottest = int(np.argmax(known))
        arrival = np.full(count, (total - known[hottest]) / (count - 1))
        arrival[hottest] = known[hottest]
    empty: Floats = np.zeros(more)
    return replace(
        topic,
        frame=replace(topic.frame, partitions=np.concatenate([topic.frame.partitions, added])),
        arriving=arrival,
        lag=np.concatenate([topic.lag, empty]),
        envelope=np.concatenate([topic.envelope, empty]),
    )
