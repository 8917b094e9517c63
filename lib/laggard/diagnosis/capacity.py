"""Conditions of D10 to D12, D14, D51 and D52: a group as a whole against what arrives, and who has how much of it."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isnan, nan

import numpy as np

from laggard.diagnosis.frames import Floats
from laggard.diagnosis.hot import share, skewed_places
from laggard.diagnosis.observation import ABSTAINS, FAIL, FAILS, HOLDS, INFO, PASS, UNKNOWN, WARN, Observation
from laggard.diagnosis.sizing import drain_seconds
from laggard.diagnosis.view import TopicView, View

CALM = 0.05  # share of the time in rebalances above which capacity is not judged
EVEN = ("spread", "single")  # lag that lies on all partitions alike; one partition is all of them
BURST_RATIO, BURST_SECONDS = 3.0, 1800.0  # of the baseline; a longer one is no burst
SKEW_SECONDS, IDLE_SECONDS = 1800.0, 600.0
IMBALANCE_PARTITIONS, IMBALANCE_RATIO = 2, 1.5
BASE_CONFIDENCE, MISSING = 0.9, 0.8
CATCHING_UP = frozenset({"members_returned", "group_created", "offset_rewind"})  # kinds of events


def state_by(guards: Mapping[str, str]) -> str:
    """A guard that fails is a veto."""
    return FAILS if FAIL in guards.values() else HOLDS


def verdict_of(is_bad: bool | None) -> str:  # noqa: FBT001 -- it is what is judged
    """Result of a guard: whether what it guards against is so, None not known."""
    return UNKNOWN if is_bad is None else FAIL if is_bad else PASS


def happened(view: View, kinds: frozenset[str], seconds: float) -> bool:
    """Whether an event of these kinds lies in the last `seconds`."""
    since = view.frame.now_ms / 1000 - seconds
    return any(event.get("kind") in kinds and event["event_at"].timestamp() >= since for event in view.frame.events)


def deploying(view: View) -> str:
    """Guard: no deploy is running."""
    return verdict_of(bool(view.facts["deploy"]) if "deploy" in view.facts else None)


def known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """Evidence without what is not known."""
    return {name: float(value) for name, value in numbers.items() if value is not None and not isnan(value)}


def capacity_shortage(view: View) -> list[Observation]:
    """D10: lag alike on all partitions grows because less is consumed than arrives, with the group at rest."""
    topic = view.worst
    if topic is None or not view.is_material or topic.shape.name not in EVEN or view.member_count == 0:
        return []
    arrival, consume = _total(topic.arrival), _total(topic.consume)
    if topic.trend.name == "abstain" or isnan(arrival + consume):
        return [Observation("CAPACITY_SHORTAGE", ABSTAINS)]
    if topic.trend.name != "growing" or consume >= arrival or view.time_in_rebalance >= CALM:
        return []
    guards = {
        "no_deploy": deploying(view),
        "no_catch_up": verdict_of(happened(view, CATCHING_UP, view.parameters.trend_short_seconds)),
        "group_at_rest": verdict_of(None if isnan(view.time_in_rebalance) else False),
    }
    evidence = {
        "arrival_rate": arrival,
        "consume_rate": consume,
        "capacity_rate": view.capacity,
        "slope_rate": topic.trend.slope,
        "slope_iqr_ratio": topic.slope_iqr,
        "members": view.member_count,
        "lag_records": view.lag,
        "time_in_rebalance_ratio": view.time_in_rebalance,
    }
    in_step = "" if topic.in_step is None else "yes" if topic.in_step else "no"
    missing = isnan(view.capacity) + (not view.sub_cause) + isnan(view.time_in_rebalance)
    found = Observation(
        "CAPACITY_SHORTAGE",
        state_by(guards),
        confidence=BASE_CONFIDENCE * MISSING**missing,
        evidence=known(evidence),
        evidence_text={"topic": topic.frame.topic, "sub_cause": view.sub_cause, "in_step": in_step},
        guards=guards,
        explained=_explained(view, topic),
    )
    return [found]


def at_partition_ceiling(view: View) -> list[Observation]:
    """D12: as D10, and every partition that a member could get has one."""
    found = []
    for short in capacity_shortage(view):
        if view.member_count is None or view.member_count < view.ceiling:
            continue
        partitions = sum(len(topic.frame.partitions) for topic in view.topics)
        assignor = str(view.frame.fact.get("assignor") or "")
        divergent = view.facts.get("divergent_subscriptions")
        guards = dict(short.guards) | {"same_subscription": verdict_of(None if divergent is None else bool(divergent))}
        if short.state == ABSTAINS:
            found.append(Observation("AT_PARTITION_CEILING", ABSTAINS))
            continue
        numbers = {"partitions": partitions, "members_ceiling": view.ceiling}
        is_range = assignor == "range" and view.ceiling < partitions
        ceiling = "largest topic, by range" if is_range else "all partitions"
        found.append(
            Observation(
                "AT_PARTITION_CEILING",
                state_by(guards),
                confidence=short.confidence,
                evidence=dict(short.evidence) | numbers,
                evidence_text=dict(short.evidence_text) | {"assignor": assignor, "ceiling": ceiling},
                guards=guards,
                explained=short.explained,
            )
        )
    return found


def capacity_burst(view: View) -> list[Observation]:
    """D11: arrivals were several times the baseline for a while, and the backlog is being worked off."""
    topic = view.worst
    if topic is None or not view.is_material or topic.shape.name not in EVEN or topic.trend.name != "draining":
        return []
    base = baseline_arrival(view, topic)
    if isnan(base):
        return [Observation("CAPACITY_BURST", ABSTAINS, INFO, guards={"baseline_known": UNKNOWN})]
    arrivals = topic.frame["arrival"].sum(axis=0)
    above = np.flatnonzero(arrivals >= BURST_RATIO * base)
    seconds = len(above) * view.frame.window_seconds
    if base <= 0 or not 0 < seconds <= BURST_SECONDS:
        return []
    evidence = {
        "baseline_rate": base,
        "peak_rate": float(arrivals[above].max()),
        "burst_seconds": seconds,
        "burst_records": float((arrivals[above] - base).sum()) * view.frame.window_seconds,
        "drain_seconds": drain_seconds(view.lag, _total(topic.arrival), _total(topic.consume), view.parameters),
    }
    found = Observation(
        "CAPACITY_BURST",
        severity=INFO,
        evidence=known(evidence),
        evidence_text={"topic": topic.frame.topic},
        guards={"baseline_known": PASS},
        explained=_explained(view, topic),
    )
    return [found]


def baseline_arrival(view: View, topic: TopicView) -> float:
    """Median arrival rate of the topic over the last day in records/s, the newest minutes left out; NaN if too few."""
    until = view.frame.now_ms / 1000 - view.parameters.baseline_skip_seconds
    rows = view.frame.baseline.get(topic.frame.topic, ())
    rates = [row.get("arrival_rate") for row in rows if row["window_start"].timestamp() < until]
    found = sorted(rate for rate in rates if rate is not None and not isnan(rate))
    return found[(len(found) - 1) // 2] if len(found) >= view.parameters.baseline_min_windows else nan


def arrival_skew(view: View) -> list[Observation]:
    """D14: some partitions have long been getting several times what the others get, and do not lag yet."""
    found = []
    for topic in view.topics:
        places = [place for place in skewed_places(view, topic, SKEW_SECONDS) if not topic.is_material[place]]
        if not places:
            continue
        others = topic.arrival[[place for place in range(len(topic.arrival)) if place not in places]]
        evidence = {
            "arrival_share_ratio": share(topic.arrival, places),
            "largest_arrival_rate": float(topic.arrival[places].max()),
            "median_other_rate": float(np.nanmedian(others)) if len(others) else nan,
        }
        partitions = tuple(topic.frame.partitions[places].tolist())
        found.append(Observation("ARRIVAL_SKEW", HOLDS, INFO, topic.frame.topic, partitions, evidence=known(evidence)))
    return found


def idle_members(view: View) -> list[Observation]:
    """D51: more members than could get a partition, and some have had none for ten minutes."""
    count = ceil(IDLE_SECONDS / view.frame.window_seconds)
    rows = view.frame.facts[-count:]
    idle = [(row or {}).get("idle_members") for row in rows]
    if view.member_count is None or view.member_count <= view.ceiling:
        return []
    if len(idle) < count or any(each is None for each in idle):
        return [Observation("IDLE_MEMBERS", ABSTAINS, INFO)]
    if not all(idle):
        return []
    guards = {"no_hot_standby": verdict_of(view.policy.hot_standby)}
    evidence = {"idle_members": idle[-1], "members": view.member_count, "members_ceiling": view.ceiling}
    text = {"assignor": str(view.frame.fact.get("assignor") or "")}
    return [
        Observation("IDLE_MEMBERS", state_by(guards), INFO, evidence=known(evidence), evidence_text=text, guards=guards)
    ]


def assignment_imbalance(view: View) -> list[Observation]:
    """D52: members have unlike numbers of partitions, or unlike arrivals."""
    counts = {slot: len(member.partitions) for slot, member in view.members.items()}
    arrivals = {slot: member.arrival for slot, member in view.members.items()}
    if len(counts) < 2 or not any(counts.values()):
        return []
    mean = sum(arrivals.values()) / len(arrivals)
    ratio = max(arrivals.values()) / mean if mean > 0 else nan
    spare = view.member_count is not None and view.member_count > view.ceiling  # that is D51's
    is_unlike = max(counts.values()) - min(counts.values()) >= IMBALANCE_PARTITIONS
    if not is_unlike and (spare or not ratio >= IMBALANCE_RATIO):
        return []
    divergent = view.facts.get("divergent_subscriptions")
    guards = {"same_subscription": verdict_of(None if divergent is None else bool(divergent))}
    evidence = {
        "most_partitions": max(counts.values()),
        "fewest_partitions": min(counts.values()),
        "imbalance_ratio": ratio,
    }
    fullest = max(sorted(arrivals), key=lambda slot: (arrivals[slot], counts[slot]))
    return [
        Observation(
            "ASSIGNMENT_IMBALANCE",
            state_by(guards),
            WARN if view.is_material else INFO,
            evidence=known(evidence),
            evidence_text={"fullest_member": fullest, "assignor": str(view.frame.fact.get("assignor") or "")},
            guards=guards,
        )
    ]


def _total(values: Floats) -> float:
    """Sum over partitions, NaN where none is known."""
    return float(np.nansum(values)) if not np.isnan(values).all() else nan


def _explained(view: View, topic: TopicView) -> float:
    """Share of the group's material lag that lies on the topic."""
    return (
        min(1.0, float(np.nansum(topic.lag[topic.is_material])) / view.material_lag) if view.material_lag > 0 else 0.0
    )
