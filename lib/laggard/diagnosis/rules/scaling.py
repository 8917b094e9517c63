"""Rules D60 and D70 to D73: deploys, scaling and idle members.

They find deploys that cost lag, and scaling that does not help, swings or sleeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

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
    guard,
    has_assignments,
    has_members,
    known,
    no_deploy,
    outranks,
    passes,
    suppresses,
)
from laggard.diagnosis.signals.change_effects import (
    DeployCost,
    elasticity,
    find_cold_start,
    group_sum,
    idle_replica_hours,
    measure_deploy,
)
from laggard.diagnosis.signals.deploys import (
    RUNNING,
    SUSPECTED,
    SWING_SECONDS,
    Deploy,
    ScaleEvent,
    alternations,
)
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.rebalances import longest_pause
from laggard.diagnosis.signals.statistics import known_sum, lower_median

_DEPLOY_ARRIVAL_RATIO = fixed("deploy_arrival_ratio", 1.5, "of the arrival rate before")
_DEPLOY_SLO_TIMES = fixed(
    "deploy_slo_times", 10.0, "times the time-lag objective, of lag in seconds times seconds"
)
_DEPLOY_FLOOR_TIMES = fixed(
    "deploy_floor_times", 5.0, "times the floor, of the highest lag at a commit"
)
_FUTILE_AFTER_SECONDS = fixed("futile_after_seconds", 300.0, "s after the scale-out")
_FUTILE_UNTIL_SECONDS = fixed("futile_until_seconds", 1800.0, "s after the scale-out")
_FUTILE_WINDOWS = fixed("futile_windows", 3, "windows, of which the median lag is taken")
_HELPED_SHARE = fixed(
    "helped_share", 0.9, "of the lag before: if the lag is below it, the members helped"
)
_SWINGS = fixed("swings", 4, "changes in alternating directions")
_COLD_SECONDS = fixed("cold_seconds", 600.0, "s without members")
_DECLARED_COLD_SECONDS = fixed(
    "declared_cold_seconds", 60.0, "s without members, where scale_to_zero is declared"
)
_LOOK_WINDOWS = fixed("look_windows", 60, "windows between two reads of data that is slow to read")
_BUSY_SHARE = fixed("busy_share", 0.1, "share of the windows")
_BUSY_HOURS = fixed("busy_hours", 20.0, "h that must be recorded")


@Rule(
    "D60",
    "DEPLOY_LAG_SPIKE",
    CAUSE,
    says="Lag rose because a rolling deploy replaced the members one batch after the other.",
    is_not=(
        "a shortage: the lag began with the deploy and drains after it. If arrivals rose at the "
        "same time, it is not reported."
    ),
    advice=(
        (
            "use static membership: give each member a group.instance.id that stays the same after "
            "a restart"
        ),
        "set the session timeout above the time that a restart takes",
        "use the cooperative-sticky assignor, so that only moved partitions stop",
        "deploy in smaller batches, with a pause between them",
    ),
    not_more=("do not add consumers for lag that a deploy caused: it drains by itself",),
    falsifier="lag had begun to rise before the first member was replaced",
    thresholds=("deploy_horizon_seconds", "deploy_share", "deploy_batch", "deploy_limit_seconds"),
    rank=200,
    open_after=1,
)
def deploy_lag_spike(signals: Signals) -> Iterator[Observation]:
    """Lag rose during a rolling deploy.

    A deploy whose restarts static membership absorbed does not count.
    """
    deploy = _newest_deploy(signals) if has_assignments(signals) else None
    if deploy is None:
        return
    cost = measure_deploy(signals, deploy)
    is_over = (
        deploy.state != RUNNING and math.isfinite(cost.recovery_seconds) and signals.deploy is None
    )
    if cost.is_spike and not is_over:
        is_known = not math.isnan(cost.arrival_ratio)
        is_steady = cost.arrival_ratio < _DEPLOY_ARRIVAL_RATIO
        severity = WARN if _is_costly(signals, cost) else INFO
        yield Observation(
            "DEPLOY_LAG_SPIKE",
            severity,
            evidence=_cost_evidence(signals, deploy, cost),
            evidence_text={"state": deploy.state, "rebalance_mode": deploy.mode},
            guards={"steady_arrivals": passes(is_steady if is_known else None)},
        )


def _newest_deploy(signals: Signals) -> Deploy | None:
    """Return the newest deploy if it is recent, certain and made members rebalance; else None.

    Certain means more than a suspicion.
    """
    now, limit = signals.frame.now, signals.parameters.deploy_limit_seconds
    near = [
        each
        for each in signals.membership.deploys
        if (now - each.started_at).total_seconds() <= limit
    ]
    return near[-1] if near and near[-1].state != SUSPECTED and near[-1].rebalances else None


def _is_costly(signals: Signals, cost: DeployCost) -> bool:
    slo = signals.policy.slo_time_lag_seconds
    floor = sum(known_sum(topic.floor) for topic in signals.topics)
    return (0 < slo < cost.lag_seconds / _DEPLOY_SLO_TIMES) or (
        floor > 0 and cost.peak_envelope >= _DEPLOY_FLOOR_TIMES * floor
    )


def _cost_evidence(signals: Signals, deploy: Deploy, cost: DeployCost) -> dict[str, float]:
    rows = [row for row in signals.frame.rebalances if row["rebalance_id"] in deploy.rebalance_ids]
    numbers = {
        "lag_before_records": cost.lag_before,
        "peak_lag_records": cost.peak_lag,
        "lag_record_seconds": cost.lag_record_seconds,
        "lag_seconds": cost.lag_seconds,
        "recovery_seconds": cost.recovery_seconds,
        "longest_pause_p95_seconds": longest_pause(rows),
        "rebalances": deploy.rebalances,
        "batches": deploy.batches,
        "replaced_slots": deploy.replaced,
        "slots": deploy.slots,
        "static_share": deploy.static_share,
    }
    return known(numbers)


@Rule(
    "D70",
    "SCALE_OUT_FUTILE",
    CAUSE,
    says="Members were added, and the lag did not fall.",
    is_not="a scale-out that still drains the backlog as forecast.",
    advice=("look at the other open findings of the group: they say why more members do not help",),
    not_more=("do not add more members",),
    falsifier="the lag falls by 10 % without another change",
    thresholds=("elasticity_min", "busy_windows", "busy_min_windows"),
    rank=320,
)
def scale_out_futile(signals: Signals) -> Iterator[Observation]:
    """Members were added, and the lag has not fallen.

    Found within half an hour after it; then it lasts until the lag falls or the number of members
    changes again.
    """
    event = _latest_scale_out(signals)
    if event is None:
        yield from _goes_on(signals)
        return
    ends = signals.frame.windows / 1000 + signals.frame.window_seconds
    lag = group_sum(signals, "envelope")
    before = lower_median(lag[ends <= event.at.timestamp()][-_FUTILE_WINDOWS:].tolist())
    now = lower_median(lag[-_FUTILE_WINDOWS:].tolist())
    fresh = [
        each
        for slot, each in signals.members.items()
        if signals.membership.place(slot) in event.joined
    ]
    with_lag = sum(bool(each.material) for each in fresh)
    change = elasticity(signals, event)
    is_futile = change.value < signals.parameters.elasticity_min or (fresh and not with_lag)
    if signals.is_material and now > _HELPED_SHARE * before > 0 and is_futile:
        numbers = {
            "members_before": event.before,
            "members_after": event.after,
            "lag_before_records": before,
            "lag_records": now,
            "new_members_with_lag": with_lag,
            "elasticity": change.value,
            "consume_rate_before": change.before,
            "consume_rate_after": change.after,
        }
        is_draining = None if signals.worst is None else signals.worst.trend.name == "draining"
        yield Observation(
            "SCALE_OUT_FUTILE", evidence=known(numbers), guards={"not_draining": guard(is_draining)}
        )


def _latest_scale_out(signals: Signals) -> ScaleEvent | None:
    """Return the newest net change of members if it added members and is old enough; else None.

    It must be old enough to show an effect.
    """
    events = signals.membership.scale_events if has_assignments(signals) else []
    if not events or events[-1].after < events[-1].before:
        return None
    age = (signals.frame.now - events[-1].at).total_seconds()
    return events[-1] if _FUTILE_AFTER_SECONDS <= age <= _FUTILE_UNTIL_SECONDS else None


def _goes_on(signals: Signals) -> Iterator[Observation]:
    """Repeat the observation after the scale-out until lag falls or the members change again."""
    worst = signals.worst
    if (
        not signals.memory.is_open("SCALE_OUT_FUTILE")
        or not signals.is_material
        or worst is None
        or worst.trend.name == "draining"
    ):
        return
    events = signals.membership.scale_events if has_assignments(signals) else []
    if not events or events[-1].after >= events[-1].before:
        effect = None if signals.scaled is None else signals.scaled.elasticity
        yield Observation(
            "SCALE_OUT_FUTILE", evidence=known({"lag_records": signals.lag, "elasticity": effect})
        )


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
def scale_oscillation(signals: Signals) -> Iterator[Observation]:
    """Members are added and removed in turn.

    Members that crash repeatedly or exceed the poll timeout do not count.

    A member that is evicted by its poll timeout is alive and rejoins: nobody removed or added it.
    """
    membership = signals.membership
    evictions = membership.evicted("poll_timeout", SWING_SECONDS)
    own = membership.looping | {membership.place(each.slot) for each in evictions}
    events = [each for each in membership.scale_events if not {*each.joined, *each.left} <= own]
    found = alternations(events, signals.frame.now) if has_members(signals) else []
    if len(found) >= _SWINGS:
        sizes = [size for each in found for size in (each.before, each.after)]
        times = [f"{each.at:%H:%M:%S} {each.before}→{each.after}" for each in found[-10:]]
        yield Observation(
            "SCALE_OSCILLATION",
            evidence=known(
                {
                    "net_changes": len(found),
                    "fewest_members": min(sizes),
                    "most_members": max(sizes),
                }
            ),
            evidence_text={"times": ", ".join(times)},
            guards={"no_deploy": no_deploy(signals)},
        )


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
def scale_zero_cold_start(signals: Signals) -> Iterator[Observation]:
    """A group that had no members has members again and drains what arrived in the meantime."""
    is_declared = signals.policy.scale_to_zero
    found = find_cold_start(signals, _DECLARED_COLD_SECONDS if is_declared else _COLD_SECONDS)
    if found is None or found.is_caught_up or not has_assignments(signals):
        return
    if found.backlog_records > sum(known_sum(topic.floor) for topic in signals.topics):
        severity = WARN if burns_slo(signals.frame, signals.policy.slo_objective) else INFO
        yield Observation(
            "SCALE_ZERO_COLD_START",
            severity,
            evidence={
                "cold_seconds": found.waited_seconds,
                "empty_seconds": (found.returned_at - found.empty_at).total_seconds(),
                "backlog_records": found.backlog_records,
                "catch_up_seconds": found.catch_up_seconds,
            },
            evidence_text={"scale_to_zero": "declared" if is_declared else "not declared"},
            guards={"draining": passes(signals.lag < found.backlog_records)},
        )


@Rule(
    "D73",
    "OVERPROVISIONED_IDLE",
    HYGIENE,
    says="The members have nothing to do nearly all the time.",
    is_not="proof that there are too many members: they may be needed for peaks or as a reserve.",
    advice=("scale on lag: fewer members, or none while nothing arrives",),
    avoid=("do not scale on CPU: members that wait for a sink use none either",),
    falsifier="more than a tenth of the windows of that day have consumed records or lag above the "
    "floor",
    open_after=1,
    close_after=2 * _LOOK_WINDOWS,
    looks_every=_LOOK_WINDOWS,
)
def overprovisioned_idle(signals: Signals) -> Iterator[Observation]:
    """Members wait for work nearly all the time."""
    members = signals.member_count or 0
    if not has_assignments(signals) or members < 2:
        return
    if signals.frame.now_ms % (1000 * _LOOK_WINDOWS * signals.frame.window_seconds):
        return  # a day of windows is read for it, so it is asked once an hour
    total, idle, share = idle_replica_hours(signals)
    if share < _BUSY_SHARE and not total / members < _BUSY_HOURS:
        yield Observation(
            "OVERPROVISIONED_IDLE",
            INFO,
            evidence={"replica_hours": total, "idle_replica_hours": idle, "busy_share": share},
            guards={"no_hot_standby": guard(signals.policy.hot_standby)},
        )
