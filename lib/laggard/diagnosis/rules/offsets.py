"""Rules about offsets that jump or do not fit their log, and events reported unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import numpy as np

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    EVENT,
    INFO,
    WARN,
    Observation,
    Rule,
    known,
    share_of_lag,
    suppresses,
)
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.statistics import known_sum

# Kafka's default of transaction.max.timeout.ms: no honest one lasts longer
_TRANSACTION_SECONDS = fixed("transaction_seconds", 900.0, "s")
_TRANSACTION_WINDOWS = fixed("transaction_windows", 2, "windows at least, however long one is")
_REPLAYED_REBALANCES = fixed(
    "replayed_rebalances", 3, "newest rebalances that may replay what a rewind reads again"
)


@Rule(
    "D27",
    "OFFSET_REWIND",
    EVENT,
    says="The committed offset fell: records are read again.",
    is_not=(
        "a group that falls behind: the lag rose in one step. After a change of owner a short "
        "rewind is normal."
    ),
    advice=("ask who reset the offsets",),
    avoid=("do not size the group by this backlog",),
    falsifier="the next commit of the partition continues from the higher offset",
    open_after=1,
)
def offset_rewind(signals: Signals) -> Iterator[Observation]:
    """The committed offset fell in the window: a replay, or someone set it back."""
    bound = _replayed(signals)
    for topic, rows in _events(signals, "offset_rewind"):
        severity = WARN if _records(rows) > bound else INFO
        yield _event("OFFSET_REWIND", topic, rows, severity, {"replay_bound_records": bound})


def is_more_than_replayed(signals: Signals, span: timedelta) -> bool:
    """Return True if offsets of a topic were set back further than replays do.

    The time is a span up to the window's end.
    """
    return any(
        _records(rows) > _replayed(signals) for _, rows in _events(signals, "offset_rewind", span)
    )


def _replayed(signals: Signals) -> float:
    """Return how many records the newest rebalances replay at most."""
    return float(
        sum(row["replay_bound"] or 0 for row in signals.frame.rebalances[-_REPLAYED_REBALANCES:])
    )


def _records(rows: list[Row]) -> int:
    return sum(row["records"] or 0 for row in rows)


@Rule(
    "D28",
    "OFFSET_SKIP",
    EVENT,
    says="The committed offset jumped to the end: records were not processed.",
    is_not="a group that caught up: no member could have read so fast.",
    advice=("ask who reset the offsets, or what auto.offset.reset did",),
    falsifier="commits of offsets in between are recorded in the same window",
    open_after=1,
)
def offset_skip(signals: Signals) -> Iterator[Observation]:
    """The committed offset jumped to the end: records were not processed."""
    for topic, rows in _events(signals, "offset_skip"):
        yield _event("OFFSET_SKIP", topic, rows, INFO, {})


@Rule(
    "D29",
    "OFFSET_BEYOND_END",
    CAUSE,
    says="The group committed more than the log holds: the topic was truncated or recreated.",
    is_not="a commit that is only newer than the poll it is compared with.",
    advice=(
        "check whether the topic had an unclean leader election or was recreated",
        "reset the group's offsets",
    ),
    falsifier="the next poll finds the log end at or above the committed offset, under the same "
    "topic id",
    inhibits=(suppresses("PARTITION_STALLED", "OFFSET_REWIND", "DATA_LOST"),),
    rank=40,
    open_after=1,
)
def offset_beyond_end(signals: Signals) -> Iterator[Observation]:
    """Committed offsets lie beyond the end of the log: the topic was truncated or recreated."""
    for each in signals.topics:
        beyond = each.frame.named("status")[:, -1] == "committed_ahead"
        if beyond.any():
            ahead = each.frame["committed"][beyond, -1] - each.frame["end"][beyond, -1]
            yield Observation(
                "OFFSET_BEYOND_END",
                topic=each.frame.topic,
                partitions=tuple(each.frame.partitions[beyond].tolist()),
                evidence={"ahead_records": known_sum(ahead)},
                explained=float(beyond.mean()),
            )


@Rule(
    "D30",
    "LSO_STUCK",
    CAUSE,
    says="A transaction that hangs on the topic hides records from a group that reads committed "
    "records only.",
    is_not=(
        "a slow consumer: it has read all that it may read. A group that reads uncommitted ones "
        "is not affected."
    ),
    advice=(
        "find it on the partition's leader: kafka-transactions.sh find-hanging, then abort it",
    ),
    avoid=("do not change the consumers",),
    falsifier="the last stable offset moves",
    rank=250,
    open_after=1,
)
def lso_stuck(signals: Signals) -> Iterator[Observation]:
    """The group has read up to the last stable offset.

    An open transaction keeps that offset from moving.
    """
    for each in signals.topics:
        held = _held(
            each,
            max(_TRANSACTION_WINDOWS, round(_TRANSACTION_SECONDS / signals.frame.window_seconds)),
        )
        if held:
            lag = known_sum(each.lag[held])
            yield Observation(
                "LSO_STUCK",
                topic=each.frame.topic,
                partitions=tuple(each.frame.partitions[held].tolist()),
                evidence={"lag_records": lag, "seconds": _TRANSACTION_SECONDS},
                explained=share_of_lag(signals, lag),
            )


def _held(topic: TopicSignals, count: int) -> list[int]:
    """Return rows that are read up to a constant last stable offset while the log grew.

    The offset has stood for `count` windows.
    """
    frame, windows = topic.frame, topic.frame.facts.get("windows", {})
    held = []
    for row in np.flatnonzero(np.isin(frame.partitions, list(windows))).tolist():
        stable = _stuck_at(windows[int(frame.partitions[row])][-count:], count)
        if stable is not None and frame["committed"][row, -1] >= stable - topic.floor[row]:
            held.append(row)
    return held


def _stuck_at(log_ends: Sequence[Row], count: int) -> int | None:
    """Return the last stable offset of all these windows; else None.

    There must be enough windows, and the log must have grown meanwhile.
    """
    stable = {one["last_stable_offset"] for one in log_ends}
    ends = [one["log_end_offset"] for one in log_ends if one["log_end_offset"] is not None]
    is_stuck = len(log_ends) == count and len(stable) == 1 and bool(ends) and ends[-1] > ends[0]
    return stable.pop() if is_stuck else None


def _event(
    code: str, topic: str, rows: list[Row], severity: str, more: dict[str, float]
) -> Observation:
    return Observation(
        code,
        severity=severity,
        topic=topic,
        partitions=tuple(sorted({row["partition"] for row in rows})),
        evidence={
            "records": float(_records(rows)),
            "from_offset": float(rows[0]["from_offset"] or 0),
            "to_offset": float(rows[0]["to_offset"] or 0),
        }
        | more,
    )


def _events(
    signals: Signals, kind: str, span: timedelta | None = None
) -> list[tuple[str, list[Row]]]:
    """Return events of a kind in this window, or in a span up to its end, by topic."""
    found: dict[str, list[Row]] = {}
    end = signals.frame.now
    begin = end - (span or timedelta(seconds=signals.frame.window_seconds))
    for row in signals.frame.events:
        if row["kind"] == kind and begin <= row["event_at"] < end:
            found.setdefault(row["topic"] or "", []).append(row)
    return sorted(found.items())


@Rule(
    "D80",
    "GROUP_DELETED",
    EVENT,
    says="The group and its offsets were deleted.",
    is_not="a group that became empty, nor one that changed its protocol.",
    falsifier="a later record of the group continues the generation that it had",
    open_after=1,
    close_after=1,
)
def group_deleted(signals: Signals) -> Iterator[Observation]:
    """The event group_deleted in the window, from tombstones of all records of the group."""
    yield from _reported("GROUP_DELETED", "group_deleted", signals)


@Rule(
    "D80",
    "PARTITIONS_ADDED",
    EVENT,
    says="A topic that the group reads got more partitions; keys move to other partitions.",
    is_not="a fault, but it may cause one: every group that reads the topic rebalances, and keys "
    "move.",
    falsifier="a later poll finds the former number of partitions",
    open_after=1,
    close_after=1,
)
def partitions_added(signals: Signals) -> Iterator[Observation]:
    """The event partitions_added in the window, from the number of partitions at each poll."""
    yield from _reported("PARTITIONS_ADDED", "partitions_added", signals)


@Rule(
    "D80",
    "TOPIC_RECREATED",
    EVENT,
    says="The topic was recreated; committed offsets belong to the old one.",
    is_not="a rewind: offsets of the old topic mean nothing in the new one.",
    falsifier="a later poll finds the former topic id",
    inhibits=(suppresses("PARTITION_STALLED", "OFFSET_REWIND", "DATA_LOST"),),
    open_after=1,
    close_after=1,
)
def topic_recreated(signals: Signals) -> Iterator[Observation]:
    """The topic has another id: by its event, or by the id that the group had.

    The group's id counts if the change was not observed.
    """
    yield from _reported("TOPIC_RECREATED", "topic_recreated", signals)
    recreated = {row["topic"] for row in signals.frame.events if row["kind"] == "topic_recreated"}
    for each in signals.topics:
        is_new = bool(each.frame.facts.get("former_topic_id")) and each.frame.topic not in recreated
        if is_new and (each.frame.named("status") != "").any(axis=0).sum() == 1:
            yield Observation("TOPIC_RECREATED", INFO, each.frame.topic)


def _reported(code: str, kind: str, signals: Signals) -> Iterator[Observation]:
    """Return an observation per topic for the events of a kind in this window.

    The events are as they are in `group_events`.
    """
    for topic, rows in _events(signals, kind):
        numbers = {"events": len(rows), "records": rows[0].get("records")}
        yield Observation(code, INFO, topic, evidence=known(numbers))
