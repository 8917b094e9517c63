"""The change in question, applied to the signals of a group, and the rebalances that lead to it.

All that sizes a group then sizes it changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Annotated, Any

import numpy as np

from laggard.answers.plan.outcome import HIGH, LOW, Plan, Span
from laggard.answers.schema.types import Unsure
from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.signals.compute import ceiling_of
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.statistics import known_sum, lower_median, percentile
from laggard.rebalance.assignors import ASSIGNORS, Member, assign

_ORDERS = 100  # of members, drawn
_EAGER = frozenset({"range", "roundrobin", "sticky"})  # under the classic protocol


@dataclass(frozen=True, slots=True)
class Change:
    """A question; what is not said stays as it is."""

    members: Annotated[int | None, "members to have; null: as many as now"] = None
    assignor: Annotated[str | None, "assignor to have; null: that of now"] = None
    partitions: Annotated[
        int | None, "partitions that the topic is to have; null: as many as now"
    ] = None
    topic: Annotated[str | None, "topic that gets partitions; null: none"] = None
    rate: Annotated[float, "times the records that arrive"] = 1.0

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

    Records that are unread stay where they are. More partitions share evenly what arrives; or, if
    the busiest one gets all its records by one key, that one keeps its rate and the others share
    the rest.
    """
    fact = dict(signals.frame.fact)
    topics = list(signals.topics)
    if change.partitions is not None:
        topics = [
            _repartitioned(topic, change, partition_count(signals, topic), is_one_key=is_one_key)
            for topic in topics
        ]
        counts = {
            topic.frame.topic: int(topic.frame.partitions.max(initial=-1)) + 1 for topic in topics
        }
        fact["topic_partitions"] = dict(fact.get("topic_partitions") or {}) | counts
    if change.assignor is not None:
        fact["assignor"] = change.assignor
    topics = [replace(topic, arriving=topic.arriving * change.rate) for topic in topics]
    facts: Sequence[dict[str, object] | None] = [*signals.frame.facts[:-1], fact]
    frame = replace(signals.frame, facts=facts, topics=[topic.frame for topic in topics])
    # of another load, or another share of it, no size was published before
    is_same = change.rate == 1 and change.keeps_owners
    memory = signals.memory if is_same else replace(signals.memory, sizes=())
    return replace(signals, frame=frame, topics=topics, ceiling=ceiling_of(frame), memory=memory)


def partition_count(signals: Signals, topic: TopicSignals) -> int:
    """Return the number of partitions of a topic, counting those without rows."""
    recorded = (signals.frame.fact.get("topic_partitions") or {}).get(topic.frame.topic) or 0
    return max(int(recorded), int(topic.frame.partitions.max(initial=-1)) + 1)


def _repartitioned(
    topic: TopicSignals, change: Change, before: int, *, is_one_key: bool
) -> TopicSignals:
    """Return the topic with partitions added, numbered after the present partitions.

    Partitions without rows get none.
    """
    if topic.frame.topic != change.topic or (change.partitions or 0) <= before:
        return topic
    added = np.arange(before, change.partitions)
    more, count = len(added), len(topic.frame.partitions) + len(added)
    known = np.where(
        np.isnan(topic.arriving), lower_median(topic.arriving.tolist()), topic.arriving
    )
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


@dataclass(frozen=True, slots=True)
class Cost:
    """Rebalances on the way to a change; NaN is unknown."""

    rebalances: Annotated[int | None, "on the way, at least; null: the members of now are unknown"]
    rebalances_most: Annotated[int | None, "if members join, leave or restart one by one"]
    moved_partitions: Annotated[Span, "partitions that change their owner"]
    # all of an eager group, else those that move
    paused_partitions: Annotated[Unsure, "partitions that each rebalance pauses; null: unknown"]
    pause_max_seconds: Annotated[Span, "longest pause of a partition in a recorded rebalance"]
    rebalances_recorded: Annotated[int, "rebalances with a known pause"]
    records_delayed: Annotated[Span, "records that arrive in the pauses of one rebalance"]


def cost_of(
    now: Signals, plan: Plan, change: Change, members: int, rebalances: Sequence[dict[str, Any]]
) -> Cost:
    """Return the cost of going from the group as it is to `members`.

    `rebalances` are recorded rows of any age.
    """
    pause, recorded = pauses_of(rebalances)
    if now.member_count is None:
        return Cost(None, None, Span(nan), nan, pause, recorded, Span(nan))
    difference = abs(members - now.member_count)
    if not difference and change.keeps_owners:
        return Cost(0, 0, Span(0, 0, 0), 0, Span(0, 0, 0), recorded, Span(0, 0, 0))
    most = max(1, difference, _restarts(now, change, max(members, now.member_count)))
    moved = _moved(now, plan, members)
    mode = now.frame.fact.get("rebalance_mode")
    whole = sum(len(member.partitions) for member in now.members.values())
    if change.assignor is not None:  # each member is restarted and loses what it has
        most_moved = max(moved.value, whole)
        moved = Span(most_moved, most_moved, most_moved)
    # it is the eager one of both that all can do
    if change.assignor in _EAGER and mode != "incremental":
        mode = "eager"
    if mode == "eager":
        paused = float(whole)
    elif mode is None:
        paused = nan
    else:
        paused = moved.value
    return Cost(1, most, moved, paused, pause, recorded, _delayed(plan, pause, paused, whole))


def _delayed(plan: Plan, pause: Span, paused: float, whole: int) -> Span:
    """Count records that arrive in a pause of so many of all partitions."""
    arrival = sum(load.arrival for load in plan.loads.values())
    share = paused / whole if whole else nan
    return Span(*(seconds * share * arrival for seconds in pause))


def _restarts(now: Signals, change: Change, members: int) -> int:
    """Return the number of restarts to change the assignor.

    It is two per member towards cooperative-sticky (KIP-429).
    """
    if change.assignor is None:
        return 0
    is_leaving = now.frame.fact.get("assignor") != change.assignor == "cooperative-sticky"
    return 2 * members if is_leaving else members


def pauses_of(rebalances: Sequence[dict[str, Any]]) -> tuple[Span, int]:
    """Return the longest pause of a partition per rebalance and the number of known pauses.

    The pause is in seconds; the number counts the rebalances in which it is known.
    """
    pauses = [
        row["pause_max_seconds"] for row in rebalances if row["pause_max_seconds"] is not None
    ]
    return Span(lower_median(pauses), percentile(pauses, LOW), percentile(pauses, HIGH)), len(
        pauses
    )


def _moved(now: Signals, plan: Plan, members: int) -> Span:
    """Return the number of partitions that move, with bounds over the orders of members.

    The members' ids are random.
    """
    value = plan.replay.moved(members)
    if value is None:
        return Span(nan)
    assignor = plan.signals.frame.fact.get("assignor")
    if assignor == "uniform":
        return Span(value, value, value + members)
    if assignor not in ASSIGNORS:
        return Span(value)
    if "sticky" in assignor:
        return Span(value, value, value)
    moves = _drawn_moves(now, plan, members, assignor)
    return Span(value, min(value, percentile(moves, LOW)), max(value, percentile(moves, HIGH)))


def _drawn_moves(now: Signals, plan: Plan, members: int, assignor: str) -> list[float]:
    """Count partitions that move in each of some orders of members."""
    chance = np.random.default_rng(0)  # the same answer each time
    # as range deals them out: the first partitions are with the first member
    held = sorted(
        (member.partitions for member in now.members.values()),
        key=lambda partitions: min(partitions, default=("", 0)),
    )
    topics, counts = frozenset(plan.replay.counts), plan.replay.counts
    everybody = [Member(f"{number:05}", topics) for number in range(members)]
    given = [set(partitions) for partitions in assign(assignor, everybody, counts).values()]
    moves = []
    for _ in range(_ORDERS):
        stay = min(len(held), members)
        old = np.sort(chance.choice(len(held), stay, replace=False))
        new = np.sort(chance.choice(members, stay, replace=False))
        kept = sum(
            len(given[there].intersection(held[here])) for here, there in zip(old, new, strict=True)
        )
        moves.append(float(sum(map(len, held)) - kept))
    return moves


def is_known(span: Span) -> bool:
    """Return True if the span has a value."""
    return not isnan(span.value)
