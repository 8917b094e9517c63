"""Conditions of D10 to D12: a group as a whole against what arrives."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAPACITY,
    CAUSE,
    CONFIDENCE,
    INFO,
    LAG_CAUSE,
    MISSING,
    Observation,
    Rule,
    assignor,
    guard,
    happened,
    known,
    no_deploy,
    outranks,
    share_of_lag,
)
from laggard.diagnosis.signals.attribution import UNEVEN, searchable
from laggard.diagnosis.signals.forecast import topic_drain_seconds
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.hot import NEAR_BEST, hot_places, is_hot_unknown, wandering
from laggard.diagnosis.signals.statistics import known_sum, lower_median

STILL_SHARE = fixed(
    "still_share", 0.5, "share of the lag on stalled partitions, from which capacity is unknown"
)
EVEN = ("spread", "single")  # lag that lies on all partitions alike; one partition is all of them
RISING_WINDOWS = fixed(
    "rising_windows", 2, "newest windows, each of which left more than the one before"
)
BURST_RATIO = fixed("burst_ratio", 3.0, "of the baseline")
BURST_SECONDS = fixed("burst_seconds", 1800.0, "s, a longer one is no burst")
BURST_FALLS = fixed("burst_falls", 3, "windows in which the lag fell, before there is a trend")
# what partitions cost stands wherever more of them are advised
MORE_PARTITIONS = (
    "Add partitions only as a last step and once, for the expected peak with a margin: their "
    "number never goes down, each costs metadata and longer rebalances, and keys move to other "
    "partitions."
)
CATCHING_UP = frozenset({"members_returned", "group_created", "offset_rewind"})  # kinds of events


@Rule(
    "D10",
    "CAPACITY_SHORTAGE",
    CAUSE,
    says="All partitions fall behind together: the members consume less than arrives.",
    is_not=(
        "lag from a deploy, a rebalance, a replay or a new group that catches up, nor from one hot "
        "partition: these look the same in the sum, but differ by partition and over time."
    ),
    advice=(
        "Add members up to members_desired; never more than members_ceiling.",
        "Write to the sink in larger batches.",
        "Make the work per record cheaper.",
    ),
    falsifier="more is consumed than arrives while members and capacity stay the same",
    thresholds=(
        "pack_utilisation",
        "drain_target_seconds",
        "rate_windows",
        "trend_p",
        "trend_effect",
    ),
    groups=(CAPACITY, LAG_CAUSE),
    rank=330,
)
def capacity_shortage(signals: Signals) -> list[Observation]:
    """Less is consumed than arrives, on all partitions alike, or no member is free to take more.

    Not evaluated if a partition is hot, or was not seen for long enough to know. It does not open
    within `rate_windows` of a rebalance; what is open lasts through rebalances until no less is
    consumed than arrives.
    """
    topic = _short_topic(signals)
    if topic is None:
        return []
    arrival, consume = _total(topic.arrival), _total(topic.consume)
    # who was short of members is no less so in a deploy: it is over once more is consumed than
    # arrives
    is_open = signals.memory.is_open("CAPACITY_SHORTAGE")
    goes_on = is_open or rises(signals, topic)
    if (
        isnan(arrival + consume)
        or _may_be_hot(signals, topic)
        or (topic.trend.name == "abstain" and not goes_on)
    ):
        return [Observation("CAPACITY_SHORTAGE", abstains=True)]
    if (
        consume >= arrival
        or _stands_still(topic)
        or (topic.trend.name != "growing" and not goes_on)
    ):
        return []
    evidence = {
        "arrival_rate": arrival,
        "consume_rate": consume,
        "capacity_rate": signals.capacity,
        "slope_rate": topic.trend.slope,
        "slope_iqr_ratio": topic.slope_iqr,
        "members": signals.member_count,
        "lag_records": signals.lag,
        "time_in_rebalance_ratio": signals.time_in_rebalance,
    }
    in_step = ""
    if topic.in_step is not None:
        in_step = "yes" if topic.in_step else "no"
    missing = isnan(signals.capacity) + (not signals.sub_cause) + isnan(signals.time_in_rebalance)
    found = Observation(
        "CAPACITY_SHORTAGE",
        confidence=CONFIDENCE * MISSING**missing,
        evidence=known(evidence),
        evidence_text={
            "topic": topic.frame.topic,
            "sub_cause": signals.sub_cause,
            "in_step": in_step,
        },
        guards={} if is_open else _guards(signals),
        explained=share_of_lag(signals, known_sum(topic.lag[topic.is_material])),
    )
    return [found]


def _guards(signals: Signals) -> dict[str, str]:
    """Return the checks before a shortage opens; an open one lasts through them."""
    is_known = not isnan(signals.time_in_rebalance)
    return {
        "no_deploy": no_deploy(signals),
        "no_catch_up": guard(
            happened(signals, CATCHING_UP, signals.parameters.trend_short_seconds)
        ),
        "group_at_rest": guard(_has_changed(signals) if is_known else None),
    }


def _short_topic(signals: Signals) -> TopicSignals | None:
    """Return the worst topic if its lag counts and members are short of capacity.

    That is so if all its partitions are behind, or arrivals are more than all members can do.
    """
    topic = signals.worst
    if topic is None or not signals.is_material or signals.member_count == 0:
        return None
    return topic if topic.shape.name in EVEN or _is_beyond_all_members(signals) else None


def rises(signals: Signals, topic: TopicSignals) -> bool:
    """Return True if each of the newest windows left more records than the window before.

    The increase is at least that of a trend.

    A trend needs points of longer. Commits that are rarer than windows, or of which nothing is
    known yet, tell nothing.
    """
    seconds, least = (
        signals.frame.window_seconds,
        signals.parameters.trend_effect * _total(topic.arriving),
    )
    if not (topic.interval <= seconds).all():
        return False
    left = np.nansum(topic.least[:, -RISING_WINDOWS - 1 :], axis=0)
    return len(left) > RISING_WINDOWS and bool((np.diff(left) > least * seconds).all())


def _has_changed(signals: Signals) -> bool:
    """Return True if a generation began within the windows of the rates.

    The capacity of its members is then unknown.
    """
    rows = signals.frame.live_generations
    seconds = signals.parameters.rate_windows * signals.frame.window_seconds
    return (
        bool(rows) and (signals.frame.now - rows[-1]["record_timestamp"]).total_seconds() < seconds
    )


def _may_be_hot(signals: Signals, worst: TopicSignals) -> bool:
    """Return True if a hot partition accounts for the lag, or still may.

    The verdict then asks for no members.

    So does one that wanders: it leaves its lag on one partition after the other.
    """
    if len(wandering(signals, worst)) > 1:
        return True
    uneven = [topic for topic in signals.topics if topic.shape.name in UNEVEN]
    return any(is_hot_unknown(signals, topic, searchable(topic)) for topic in uneven) or (
        worst.shape.name in UNEVEN and bool(hot_places(signals, worst, searchable(worst)))
    )


def _is_beyond_all_members(signals: Signals) -> bool:
    """Return True if no other assignment would help.

    Then all members are behind, or more arrives than all can handle at best.

    Some members read a few of their partitions before the others, some are slower or were given
    more of them.
    """
    members = [member for member in signals.members.values() if member.partitions]
    if not members or signals.lag_causes:
        return False
    if all(member.is_busy for member in members):
        return True
    # what was only ever seen of members that were never busy is not all that they can do
    is_known = signals.capacity >= NEAR_BEST * signals.best_capacity
    return (
        is_known
        and sum(member.arrival for member in members) > len(members) * signals.best_capacity
    )


def _stands_still(topic: TopicSignals) -> bool:
    """Return True if half of the lag is on partitions that nobody reads.

    For these partitions the speed of members does not matter.
    """
    return known_sum(topic.lag[topic.is_stalled]) >= STILL_SHARE * known_sum(topic.lag)


@Rule(
    "D12",
    "AT_PARTITION_CEILING",
    CAUSE,
    says="The group falls behind and one more member would get no partition.",
    is_not="a reason to add members, nor by itself a reason to add partitions.",
    advice=(
        "Make the work per record cheaper, or batch the sink.",
        "Hand records to a pool of workers behind each consumer.",
        (
            "With the range assignor and several topics, change to an assignor that counts all "
            "topics together."
        ),
        MORE_PARTITIONS,
    ),
    not_more=("Do not add members: they would stay idle.",),
    falsifier="more is consumed than arrives while members and capacity stay the same",
    thresholds=("trend_p", "trend_effect"),
    inhibits=(outranks("CAPACITY_SHORTAGE"),),
    groups=(CAPACITY, LAG_CAUSE),
    rank=310,
)
def at_partition_ceiling(signals: Signals) -> list[Observation]:
    """The condition of CAPACITY_SHORTAGE, and one more member would get no partition."""
    found = []
    for short in capacity_shortage.check(signals):
        if signals.member_count is None or signals.member_count < signals.ceiling:
            continue
        partitions = sum(len(topic.frame.partitions) for topic in signals.topics)
        guards = dict(short.guards) | {
            "same_subscription": guard(signals.membership.subscriptions_differ)
        }
        if short.abstains:
            found.append(Observation("AT_PARTITION_CEILING", abstains=True))
            continue
        numbers = {"partitions": partitions, "members_ceiling": signals.ceiling}
        is_range = assignor(signals) == "range" and signals.ceiling < partitions
        ceiling = "largest topic, by range" if is_range else "all partitions"
        found.append(
            Observation(
                "AT_PARTITION_CEILING",
                confidence=short.confidence,
                evidence=dict(short.evidence) | numbers,
                evidence_text=dict(short.evidence_text)
                | {"assignor": assignor(signals), "ceiling": ceiling},
                guards=guards,
                explained=short.explained,
            )
        )
    return found


@Rule(
    "D11",
    "CAPACITY_BURST",
    CAUSE,
    says="Arrivals were far above normal for a short time; the backlog is draining.",
    is_not=(
        "a shortage: arrivals are back to normal and the lag falls. Without a baseline from the "
        "day before it is not reported."
    ),
    advice=("Wait for drain_seconds.", "Check whether the backlog breaks the time-lag objective."),
    not_more=("Do not add members for a burst that drains by itself.",),
    falsifier="arrivals rise again, or the lag stops falling",
    thresholds=("baseline_min_windows", "baseline_skip_seconds", "drain_min_share"),
    groups=(CAPACITY, LAG_CAUSE),
    rank=340,
)
def capacity_burst(signals: Signals) -> list[Observation]:
    """Arrivals were several times the baseline for a while, and the backlog is draining."""
    topic = signals.worst
    if topic is None or not signals.is_material or topic.shape.name not in EVEN:
        return []
    base = baseline_arrival(signals, topic)
    if isnan(base):
        return [Observation("CAPACITY_BURST", INFO, abstains=True)]
    arrivals = topic.frame["arrival"].sum(axis=0)
    above = np.flatnonzero(arrivals >= BURST_RATIO * base)
    seconds = len(above) * signals.frame.window_seconds
    if base <= 0 or not 0 < seconds <= BURST_SECONDS:
        return []
    if topic.trend.name != "draining" and not _has_fallen_since(topic, int(above[-1]) + 1):
        return []
    evidence = {
        "baseline_rate": base,
        "peak_rate": float(arrivals[above].max()),
        "burst_seconds": seconds,
        "burst_records": float((arrivals[above] - base).sum()) * signals.frame.window_seconds,
        "drain_seconds": topic_drain_seconds(signals, topic),
    }
    found = Observation(
        "CAPACITY_BURST",
        severity=INFO,
        evidence=known(evidence),
        evidence_text={"topic": topic.frame.topic},
        explained=share_of_lag(signals, known_sum(topic.lag[topic.is_material])),
    )
    return [found]


def _has_fallen_since(topic: TopicSignals, first: int) -> bool:
    """Return True if lag fell in each newest window since `first`.

    The total fall is more than the commit interval hides.
    """
    lag = topic.frame["envelope"][:, first:].sum(axis=0)[-BURST_FALLS - 1 :]
    return (
        len(lag) > BURST_FALLS
        and bool((np.diff(lag) < 0).all())
        and float(lag[0] - lag[-1]) > known_sum(topic.floor)
    )


def baseline_arrival(signals: Signals, topic: TopicSignals) -> float:
    """Return the topic's median arrival rate in records/s of the last day; NaN if too few.

    The newest minutes are left out.
    """
    until = signals.frame.now_ms / 1000 - signals.parameters.baseline_skip_seconds
    rows = signals.frame.baseline().get(topic.frame.topic, ())
    rates = [row.get("arrival_rate") for row in rows if row["window_start"].timestamp() < until]
    found = [rate for rate in rates if rate is not None and not isnan(rate)]
    return lower_median(found) if len(found) >= signals.parameters.baseline_min_windows else nan


def _total(values: Floats) -> float:
    """Sum over partitions, NaN if none is known."""
    return known_sum(values) if not np.isnan(values).all() else nan
