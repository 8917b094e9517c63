"""Rules D70 to D73: scaling that did not help, swings or sleeps, and members without work."""

from __future__ import annotations

import math

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAPACITY,
    CAUSE,
    EVENT,
    HYGIENE,
    INFO,
    REBALANCING,
    WARN,
    WHILE_REBALANCING,
    Observation,
    Rule,
    burns_slo,
    has_assignments,
    has_members,
    outranks,
    passes,
    suppresses,
)
from laggard.diagnosis.signals.deploys import ScaleEvent, alternations
from laggard.diagnosis.signals.effects import elasticity, find_cold_start, group_lag, idle_replica_hours
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.statistics import known_sum, lower_median

_FUTILE_AFTER_SECONDS = fixed("futile_after_seconds", 300.0, "s after the scale-out")
_FUTILE_UNTIL_SECONDS = fixed("futile_until_seconds", 1800.0, "s after the scale-out")
_FUTILE_WINDOWS = fixed("futile_windows", 3, "windows, of which the median lag is taken")
_HELPED_SHARE = fixed("helped_share", 0.9, "of the lag before: if the lag is below it, the members helped")
_SWINGS = fixed("swings", 4, "changes in alternating directions")
_COLD_SECONDS = fixed("cold_seconds", 600.0, "s without members")
_DECLARED_COLD_SECONDS = fixed("declared_cold_seconds", 60.0, "s without members, where scale_to_zero is declared")
_LOOK_WINDOWS = fixed("look_windows", 60, "windows between two reads of data that is slow to read")
_BUSY_SHARE = fixed("busy_share", 0.1, "share of the windows")
_BUSY_HOURS = fixed("busy_hours", 20.0, "h that must be recorded")


@Rule(
    "D70",
    "SCALE_OUT_FUTILE",
    CAUSE,
    says="Members were added, and the lag did not fall.",
    is_not="a scale-out that still drains the backlog as forecast.",
    advice=("look at the other open findings of the group: they say why more members do not help",),
    avoid=("do not add more members",),
    falsifier="the lag falls by 10 % without another change",
    thresholds=("elasticity_min", "busy_windows", "busy_min_windows"),
    rank=320,
)
def scale_out_futile(signals: Signals) -> list[Observation]:
    """Members were added, and the lag has not fallen.

    Found within half an hour after it; then it lasts until the lag falls or the number of members changes again.
    """
    event = _latest_scale_out(signals)
    if event is None:
        return _goes_on(signals)
    ends = signals.frame.windows / 1000 + signals.frame.window_seconds
    lag = group_lag(signals, "envelope")
    before = lower_median(lag[ends <= event.at.timestamp()][-_FUTILE_WINDOWS:].tolist())
    now = lower_median(lag[-_FUTILE_WINDOWS:].tolist())
    if not (signals.is_material and now > _HELPED_SHARE * before > 0):
        return []
    fresh = [each for slot, each in signals.members.items() if signals.membership.place(slot) in event.joined]
    has_nothing_to_do = bool(fresh) and not any(each.material for each in fresh)
    change = elasticity(signals, event)
    if not has_nothing_to_do and not change.value < signals.parameters.elasticity_min:
        return []
    worst = signals.worst
    numbers = {"elasticity": change.value, "consume_rate_before": change.before, "consume_rate_after": change.after}
    return [
        Observation(
            "SCALE_OUT_FUTILE",
            evidence={
                "members_before": float(event.before),
                "members_after": float(event.after),
                "lag_before_records": before,
                "lag_records": now,
                "new_members_with_lag": float(sum(bool(each.material) for each in fresh)),
                **{name: value for name, value in numbers.items() if math.isfinite(value)},
            },
            guards={"draining": passes(None if worst is None else worst.trend.name != "draining")},
        )
    ]


def _goes_on(signals: Signals) -> list[Observation]:
    """Repeat what was found soon after the scale-out until the lag falls or the members change again."""
    is_open = any(each.code == "SCALE_OUT_FUTILE" and each.opened_ms is not None for each in signals.memory.tracks)
    worst = signals.worst
    if not is_open or not signals.is_material or worst is None or worst.trend.name == "draining":
        return []
    events = signals.membership.scale_events if has_assignments(signals) else []
    if events and events[-1].after < events[-1].before:
        return []
    evidence = {"lag_records": signals.lag} | (
        {} if signals.scaled is None else {"elasticity": signals.scaled.elasticity}
    )
    return [Observation("SCALE_OUT_FUTILE", evidence=evidence)]


@Rule(
    "D71",
    "SCALE_OSCILLATION",
    CAUSE,
    says="Members are added and removed in turn, and each change costs a rebalance.",
    is_not="a deploy, in which members leave and rejoin once.",
    advice=(
        "set the autoscaler's cooldown to at least 3 × the 95th percentile of the rebalance pauses",
        "set its lag threshold to the time-lag objective × the capacity of a member",
        "scale in only when utilisation has been low for an hour",
    ),
    avoid=("do not lower the threshold: the number of members would change even more often",),
    falsifier="each member that left rejoined under its own client id and host: it was restarted",
    inhibits=(outranks(REBALANCING), WHILE_REBALANCING),
    rank=190,
    blocks_scaling=True,
    open_after=1,
)
def scale_oscillation(signals: Signals) -> list[Observation]:
    """Members are added and removed in turn; those that crash again and again do not count."""
    if not has_members(signals):
        return []
    looping = signals.membership.looping
    events = [each for each in signals.membership.scale_events if not {*each.joined, *each.left} <= looping]
    found = alternations(events, signals.frame.now)
    if len(found) < _SWINGS:
        return []
    return [
        Observation(
            "SCALE_OSCILLATION",
            evidence={
                "net_changes": float(len(found)),
                "fewest_members": float(min(min(each.before, each.after) for each in found)),
                "most_members": float(max(max(each.before, each.after) for each in found)),
            },
            evidence_text={
                "times": ", ".join(f"{each.at:%H:%M:%S} {each.before}→{each.after}" for each in found[-10:])
            },
            guards={"deploy": passes(signals.deploy is None)},
        )
    ]


@Rule(
    "D72",
    "SCALE_ZERO_COLD_START",
    EVENT,
    says="A group that had no members has members again and drains what arrived in the meantime.",
    is_not="a shortage: the backlog arrived while the group had no members.",
    advice=(
        "if this takes too long, start the group at a lower lag",
        "or keep at least one replica",
    ),
    falsifier="commits are recorded in the time in which the group had no members",
    inhibits=(suppresses(CAPACITY, "HOT_PARTITION_ARRIVAL"),),
    open_after=1,
    close_after=1,
)
def scale_zero_cold_start(signals: Signals) -> list[Observation]:
    """A group that had no members has members again and drains what arrived in the meantime."""
    if not has_assignments(signals):
        return []
    found = find_cold_start(signals, _DECLARED_COLD_SECONDS if signals.policy.scale_to_zero else _COLD_SECONDS)
    if found is None or found.is_caught_up:
        return []
    if found.backlog_records <= sum(known_sum(topic.floor) for topic in signals.topics):
        return []
    return [
        Observation(
            "SCALE_ZERO_COLD_START",
            severity=WARN if burns_slo(signals.frame, signals.policy.slo_objective) else INFO,
            evidence={
                "cold_seconds": found.waited_seconds,
                "empty_seconds": (found.returned_at - found.empty_at).total_seconds(),
                "backlog_records": found.backlog_records,
                "catch_up_seconds": found.catch_up_seconds,
            },
            evidence_text={"scale_to_zero": "declared" if signals.policy.scale_to_zero else "not declared"},
            guards={"draining": passes(_is_below(signals, found.backlog_records))},
        )
    ]


@Rule(
    "D73",
    "OVERPROVISIONED_IDLE",
    HYGIENE,
    says="The members have nothing to do nearly all the time.",
    is_not="proof that there are too many members: they may be needed for peaks or as a reserve.",
    advice=("scale on lag: fewer members, or none while nothing arrives",),
    avoid=("do not scale on CPU: members that wait for a sink use none either",),
    falsifier="more than a tenth of the windows of that day have consumed records or lag above the floor",
    open_after=1,
    close_after=2 * _LOOK_WINDOWS,
)
def overprovisioned_idle(signals: Signals) -> list[Observation]:
    """Members wait for work nearly all the time."""
    if not has_assignments(signals) or (signals.member_count or 0) < 2:
        return []
    if signals.frame.now_ms % (1000 * _LOOK_WINDOWS * signals.frame.window_seconds):
        return []  # a day of windows is read for it, so it is asked once an hour
    total, idle, share = idle_replica_hours(signals)
    hours = total / (signals.member_count or 1)
    if not share < _BUSY_SHARE or hours < _BUSY_HOURS:
        return []
    return [
        Observation(
            "OVERPROVISIONED_IDLE",
            severity=INFO,
            evidence={"replica_hours": total, "idle_replica_hours": idle, "busy_share": share},
            guards={"hot_standby": passes(not signals.policy.hot_standby)},
        )
    ]


def _latest_scale_out(signals: Signals) -> ScaleEvent | None:
    """The newest net change, if it added members and is old enough to have shown."""
    events = signals.membership.scale_events if has_assignments(signals) else []
    if not events or events[-1].after < events[-1].before:
        return None
    age = (signals.frame.now - events[-1].at).total_seconds()
    return events[-1] if _FUTILE_AFTER_SECONDS <= age <= _FUTILE_UNTIL_SECONDS else None


def _is_below(signals: Signals, backlog: float) -> bool | None:
    return None if math.isnan(signals.lag) else signals.lag < backlog
