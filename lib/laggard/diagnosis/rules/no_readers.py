"""Rules about commits that stop, come from outside, or never came."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import numpy as np

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    EVENT,
    HYGIENE,
    INFO,
    LAG_CAUSE,
    WARN,
    Observation,
    Rule,
    guard,
    known,
    passes,
    suppresses,
)
from laggard.diagnosis.signals.forecast import is_read_by_others
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.stall import DEFAULT_POLL_SECONDS, is_lost
from laggard.diagnosis.signals.statistics import known_sum

EMPTY = ("Empty", "Dead")
_SILENT_INTERVALS = fixed("silent_intervals", 5, "commit intervals")


@Rule(
    "D23",
    "EMPTY_WITH_LAG",
    CAUSE,
    says="Records wait and the group has no member.",
    is_not=(
        "a stall, nor a problem of sizing. A reader that commits without being a member shows by "
        "its commits."
    ),
    advice=("start the consumers",),
    avoid=("do not size the group before it runs",),
    falsifier="an offset of the group is committed",
    thresholds=("quiet_seconds",),
    inhibits=(suppresses(LAG_CAUSE, "PARTITION_STALLED", "COMMITS_STOPPED", "PARTITION_UNOWNED"),),
    rank=60,
    open_after=1,
)
def empty_with_lag(signals: Signals) -> Iterator[Observation]:
    """Records wait, and the group has had no member for ten minutes.

    Nobody commits at the interval seen so far.
    """
    if signals.state not in EMPTY or not _is_behind(signals) or not _has_no_members(signals):
        return
    # where commits are not counted, an offset that moved on says that somebody commits
    is_counted = _counts_commits(signals)
    by = "commits" if is_counted else "consumed"
    # commits may be further apart than ten minutes
    if is_read_by_others(signals) or _sum_newest(signals, by, signals.parameters.quiet_seconds) > 0:
        return
    arrival = _arrival(signals)
    yield Observation(
        "EMPTY_WITH_LAG",
        INFO if signals.policy.scale_to_zero or arrival == 0 else WARN,
        evidence={"lag_records": signals.lag, "arrival_rate": arrival},
        evidence_text={"empty_since": str(signals.frame.fact.get("empty_since") or "unknown")},
        guards={"no_commits": passes(is_counted or None)},
        explained=1.0,
    )


@Rule(
    "D24",
    "COMMITS_STOPPED",
    CAUSE,
    says="The group has members and records arrive, but no partition is committed.",
    is_not="one stalled partition: all are affected. A group that never committed keeps its "
    "offsets elsewhere.",
    advice=(
        "look for a hang or an outage of the system that they write to",
        "look for failed commits in the members' logs",
    ),
    not_more=("do not add consumers",),
    falsifier="a commit arrives",
    inhibits=(suppresses(LAG_CAUSE, "PARTITION_STALLED"),),
    rank=70,
    open_after=1,
)
def commits_stopped(signals: Signals) -> Iterator[Observation]:
    """The group has members and records arrive, but no partition is committed any more."""
    is_consumer = signals.frame.fact.get("group_type") not in ("share", "streams")
    # where commits are not counted, a group that commits the same offsets again looks alike
    if (
        not signals.member_count
        or not _is_behind(signals)
        or not is_consumer
        or not _counts_commits(signals)
    ):
        return
    seconds = _silence_seconds(signals)
    arrival = _arrival(signals)
    span = seconds + signals.frame.window_seconds
    if arrival <= 0 or not _covers(signals, span) or _sum_newest(signals, "commits", span) > 0:
        return
    has_committed = any(
        known_sum(each.frame["commits"]) or np.isfinite(each.frame["committed"][:, -1]).any()
        for each in signals.topics
    )
    yield Observation(
        "COMMITS_STOPPED",
        evidence={
            "seconds": seconds,
            "arrival_rate": arrival,
            "members": float(signals.member_count),
        },
        guards={
            "has_committed": passes(has_committed),
            "no_rebalance_since": guard(_has_rebalanced(signals, span)),
        },
        explained=1.0,
    )


def _silence_seconds(signals: Signals) -> float:
    """Return the silence in seconds after which commits have stopped.

    It is made of commit intervals and the longest poll interval.

    A checkpoint may come every ten minutes: without an interval only a long silence says anything.
    """
    intervals = [
        float(value)
        for each in signals.topics
        for value in each.interval[np.isfinite(each.interval)]
    ]
    whole = (signals.parameters.look_back_windows - 1) * signals.frame.window_seconds
    silence = _SILENT_INTERVALS * max(intervals) if intervals else whole
    timeouts = [
        row["rebalance_timeout_ms"]
        for row in signals.frame.members
        if row.get("rebalance_timeout_ms")
    ]
    longest = max(timeouts) / 1000 if timeouts else DEFAULT_POLL_SECONDS
    return max(silence, longest, signals.frame.window_seconds)


@Rule(
    "D31",
    "TOPIC_LEFT_BEHIND",
    HYGIENE,
    says="The group keeps offsets of a topic that no member subscribes to any more.",
    is_not="a stall: no member tries to read it. Its lag is no reason to scale, and does not count "
    "in the verdict.",
    advice=(
        (
            "if the topic was dropped from the subscription by mistake, subscribe to it again "
            "before its offsets expire"
        ),
        "if not, delete its offsets: kafka-consumer-groups.sh --delete-offsets",
    ),
    falsifier="a member subscribes to the topic, or its offsets are deleted",
    thresholds=("offsets_retention_minutes",),
)
def topic_left_behind(signals: Signals) -> Iterator[Observation]:
    """The group has members, but none subscribes to the topic, and its offsets are still there."""
    observed = signals.frame.offsets_retention_minutes
    retention = signals.parameters.offsets_retention_minutes if observed is None else observed
    for each in signals.left_topics:
        quiet = each.frame["frozen"][each.is_ok, -1]
        since = float(np.nanmin(quiet, initial=np.inf))
        evidence = {"lag_records": known_sum(each.lag[each.is_ok])}
        if np.isfinite(since):  # the broker forgets an offset so long after it was committed
            evidence |= {"quiet_seconds": since, "expiry_seconds": max(0.0, 60 * retention - since)}
        yield Observation("TOPIC_LEFT_BEHIND", INFO, each.frame.topic, evidence=evidence)


def _is_behind(signals: Signals) -> bool:
    """Return True if lag is significant, or unknown because unread records were deleted.

    In that case there is more to read.
    """
    return signals.is_material or any(is_lost(each.frame).any() for each in signals.topics)


def _counts_commits(signals: Signals) -> bool:
    """Return True if commits of a partition were counted in the newest window.

    Polled commits are not counted.
    """
    return any(np.isfinite(each.frame["commits"][:, -1]).any() for each in signals.topics)


def _has_no_members(signals: Signals) -> bool:
    """Return True if the group had no member at any time in the last ten minutes.

    This is at the end of a window or in between.
    """
    windows = max(1, round(signals.parameters.quiet_seconds / signals.frame.window_seconds))
    facts = signals.frame.facts[-windows:]
    if len(facts) < windows or any(row is None or row.get("members") for row in facts):
        return False
    # the last member left in the first of these windows, or before
    since = signals.frame.now - timedelta(seconds=(windows - 1) * signals.frame.window_seconds)
    recent = [row for row in signals.frame.generations if row["record_timestamp"] > since]
    return not any(row["member_count"] or row["left"] for row in recent)


def _has_rebalanced(signals: Signals, seconds: float) -> bool:
    """Return True if members joined in the last `seconds`.

    Silence counts from then, and a late poller leaves again.
    """
    since = signals.frame.now - timedelta(seconds=seconds)
    return any(row["record_timestamp"] >= since for row in signals.frame.live_generations)


@Rule(
    "D25",
    "EXTERNAL_COMMITTER",
    EVENT,
    says="A client that is not a member commits offsets.",
    is_not="a fault: Flink and some tools commit this way.",
    advice=("compare the lag with the interval of these commits",),
    falsifier="a generation of these ten minutes has members",
    thresholds=("quiet_seconds",),
    open_after=1,
)
def external_committer(signals: Signals) -> Iterator[Observation]:
    """A client that is not a member commits offsets: the lag depends on its commit interval."""
    if not _has_no_members(signals):
        return
    intervals = [
        float(value) for each in signals.topics for value in each.interval if np.isfinite(value)
    ]
    # the last member may have committed in the window it left in, the first of these
    commits = _sum_newest(
        signals, "commits", signals.parameters.quiet_seconds - signals.frame.window_seconds
    )
    if commits:
        numbers = {"commits": commits, "commit_interval_seconds": max(intervals, default=None)}
        yield Observation("EXTERNAL_COMMITTER", INFO, evidence=known(numbers))


@Rule(
    "D26",
    "NO_COMMITTED_OFFSET",
    HYGIENE,
    says="An assigned partition was never committed; its reset policy decides where a restart "
    "begins to read.",
    is_not="lag: the number of unread records is unknown, so it is not counted.",
    advice=("check auto.offset.reset, and whether the member commits the partition at all",),
    falsifier="the offsets topic has an older commit of the partition",
    thresholds=("quiet_seconds",),
    open_after=1,
)
def no_committed_offset(signals: Signals) -> Iterator[Observation]:
    """A member has the partition and records arrive, but no offset was ever committed."""
    windows = max(1, round(signals.parameters.quiet_seconds / signals.frame.window_seconds))
    for each in signals.topics:
        status = each.frame.named("status")[:, -windows:]
        if status.shape[1] < windows or not (status[:, -1] == "no_commit").any():
            continue
        owned = (each.frame.named("owner")[:, -windows:] != "").all(axis=1)
        grew = np.nansum(each.frame["produced"][:, -windows:], axis=1) > 0
        rows = (status == "no_commit").all(axis=1) & owned & grew
        if rows.any():
            yield Observation(
                "NO_COMMITTED_OFFSET",
                INFO,
                each.frame.topic,
                tuple(each.frame.partitions[rows].tolist()),
                evidence={"partitions": float(rows.sum())},
            )


def _arrival(signals: Signals) -> float:
    return float(sum(known_sum(each.arrival) for each in signals.topics))


def _sum_newest(signals: Signals, name: str, seconds: float) -> float:
    windows = max(1, round(seconds / signals.frame.window_seconds))
    return float(sum(known_sum(each.frame[name][:, -windows:]) for each in signals.topics))


def _covers(signals: Signals, seconds: float) -> bool:
    """Return True if the recorded history of some partition reaches back that far."""
    windows = max(1, round(seconds / signals.frame.window_seconds))
    status = [each.frame.named("status") for each in signals.topics]
    return any(each.shape[1] >= windows and (each[:, -windows] != "").any() for each in status)
