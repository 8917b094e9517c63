"""Rules D14, D47 to D49, D51, D52 and D60: who gets how much of what arrives, what moves, and what a deploy costs."""

from __future__ import annotations

import math
from math import ceil, nan

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    HYGIENE,
    INFO,
    LAG_CAUSE,
    WARN,
    Observation,
    Rule,
    assignor,
    guard,
    has_assignments,
    known,
    no_deploy,
    passes,
)
from laggard.diagnosis.signals.deploys import RUNNING, SUSPECTED, Deploy
from laggard.diagnosis.signals.effects import DeployCost, measure_deploy
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.hot import share, skewed_places
from laggard.diagnosis.signals.moves import find_avoidable, find_ping_pong
from laggard.diagnosis.signals.rebalances import recent
from laggard.diagnosis.signals.statistics import known_sum, lower_median

SKEW_SECONDS = fixed("skew_seconds", 1800.0, "s")
IDLE_MEMBER_SECONDS = fixed("idle_member_seconds", 600.0, "s without a partition")
IMBALANCE_PARTITIONS = fixed("imbalance_partitions", 2, "partitions between the fullest and the emptiest member")
IMBALANCE_RATIO = fixed("imbalance_ratio", 1.5, "of the mean arrival rate, beyond what the best assignment gives")


@Rule(
    "D14",
    "ARRIVAL_SKEW",
    HYGIENE,
    says="Some partitions get several times as many records as the others, without lag so far.",
    is_not="lag: nothing has to be done today.",
    advice=("Look at how keys are spread before arrivals grow.",),
    falsifier="the arrival rates become more even",
    thresholds=("hot_ratio",),
    groups=(LAG_CAUSE,),
    open_after=1,
)
def arrival_skew(signals: Signals) -> list[Observation]:
    """For a long time some partitions have got several times as many records as the others; they do not lag yet."""
    found = []
    for topic in signals.topics:
        places = [place for place in skewed_places(signals, topic, SKEW_SECONDS) if not topic.is_material[place]]
        if not places:
            continue
        others = topic.arrival[[place for place in range(len(topic.arrival)) if place not in places]]
        evidence = {
            "arrival_share_ratio": share(topic.arrival, places),
            "largest_arrival_rate": float(topic.arrival[places].max()),
            "median_other_rate": lower_median(others.tolist()),
        }
        partitions = tuple(topic.frame.partitions[places].tolist())
        found.append(Observation("ARRIVAL_SKEW", INFO, topic.frame.topic, partitions, evidence=known(evidence)))
    return found


@Rule(
    "D51",
    "IDLE_MEMBERS",
    HYGIENE,
    says="Some members have no partition, as there are more members than partitions to assign.",
    is_not="spare capacity, unless `hot_standby` says so: an idle member does not reduce lag.",
    advice=(
        "Run no more than members_ceiling members.",
        "With the range assignor and several topics, change to an assignor that counts all topics together.",
        "If they are meant as a standby, declare hot_standby.",
    ),
    falsifier="each member has a partition",
    open_after=1,
)
def idle_members(signals: Signals) -> list[Observation]:
    """There are more members than could get a partition, and some have had none for ten minutes."""
    count = ceil(IDLE_MEMBER_SECONDS / signals.frame.window_seconds)
    rows = signals.frame.facts[-count:]
    idle = [(row or {}).get("idle_members") for row in rows]
    if signals.member_count is None or not 0 < signals.ceiling < signals.member_count:  # ceiling 0: no topic is known
        return []
    if len(idle) < count or any(each is None for each in idle):
        return [Observation("IDLE_MEMBERS", INFO, abstains=True)]
    if not all(idle):
        return []
    guards = {"no_hot_standby": guard(signals.policy.hot_standby)}
    evidence = {"idle_members": idle[-1], "members": signals.member_count, "members_ceiling": signals.ceiling}
    text = {"assignor": assignor(signals)}
    return [Observation("IDLE_MEMBERS", INFO, evidence=known(evidence), evidence_text=text, guards=guards)]


@Rule(
    "D52",
    "ASSIGNMENT_IMBALANCE",
    HYGIENE,
    says="The assignment gives some members much more to do than others.",
    is_not="a slow member: it was assigned more. Members with different subscriptions cannot be compared.",
    advice=(
        "Run a number of members that divides the number of partitions.",
        "With the range assignor and several topics, change to an assignor that counts all topics together.",
    ),
    avoid=("Do not look for a fault in the fullest member first: it was assigned more.",),
    falsifier="the loads become more even without a change of the assignment",
)
def assignment_imbalance(signals: Signals) -> list[Observation]:
    """Members have different numbers of partitions, or different arrivals; IDLE_MEMBERS counts those with none."""
    spare = signals.member_count is not None and signals.member_count > signals.ceiling
    members = [member for member in signals.members.values() if member.partitions or not spare]
    if len(members) < 2:
        return []
    counts, arrivals = [len(member.partitions) for member in members], [member.arrival for member in members]
    mean = sum(arrivals) / len(arrivals)
    ratio = max(arrivals) / mean if mean > 0 else nan
    # 12 partitions of 9 members are 2 or 1 under the best assignment, and 2 are 1.5 times the mean
    forced = ceil(sum(counts) / len(members)) * len(members) / max(1, sum(counts))
    if max(counts) - min(counts) < IMBALANCE_PARTITIONS and not ratio >= IMBALANCE_RATIO * forced:
        return []
    guards = {"same_subscription": guard(signals.membership.subscriptions_differ)}
    evidence = {"most_partitions": max(counts), "fewest_partitions": min(counts), "imbalance_ratio": ratio}
    fullest = max(members, key=lambda member: (member.arrival, len(member.partitions), member.slot))
    found = Observation(
        "ASSIGNMENT_IMBALANCE",
        WARN if signals.is_material else INFO,
        evidence=known(evidence),
        evidence_text={"fullest_member": fullest.slot, "assignor": assignor(signals)},
        guards=guards,
    )
    return [found]


_PING_PONG_SHARE = fixed("ping_pong_share", 0.3, "share of the moves that go back")
_PING_PONG_MOVES = fixed("ping_pong_moves", 3, "moves")
_PING_PONG_REBALANCES = fixed("ping_pong_rebalances", 2, "rebalances in which partitions went back")
_AVOIDABLE_SHARE = fixed("avoidable_share", 0.2, "share of the moves")
_AVOIDABLE_REBALANCES = fixed("avoidable_rebalances", 3, "rebalances")
_LARGE_PARTITIONS = fixed("large_partitions", 100, "partitions")
_LARGE_MEMBERS = fixed("large_members", 10, "members")
_LARGE_SECONDS = fixed("large_seconds", 86_400.0, "s looked back for a rebalance")
_DEPLOY_ARRIVAL_RATIO = fixed("deploy_arrival_ratio", 1.5, "of the arrival rate before")
_DEPLOY_SLO_TIMES = fixed("deploy_slo_times", 10.0, "times the time-lag objective, of lag in seconds times seconds")
_DEPLOY_FLOOR_TIMES = fixed("deploy_floor_times", 5.0, "times the floor, of the highest lag at a commit")


@Rule(
    "D47",
    "PING_PONG",
    HYGIENE,
    says="Partitions move back and forth between members.",
    is_not="one restart, after which partitions return once, nor a deploy that is rolled back.",
    advice=(
        "stop what evicts members",
        "use static membership and the cooperative-sticky assignor, so that returning members take nothing from others",
    ),
    falsifier="the member ids show that these partitions had the same owner all the time",
)
def ping_pong(signals: Signals) -> list[Observation]:
    """Partitions move back to a former owner; those that return once, after one member's restart, do not count."""
    if not has_assignments(signals):
        return []
    found = find_ping_pong(signals.membership)
    if found.moves < _PING_PONG_MOVES or found.index < _PING_PONG_SHARE or found.rebalances < _PING_PONG_REBALANCES:
        return []
    return [
        Observation(
            "PING_PONG",
            evidence={
                "ping_pong_ratio": found.index,
                "moved_partitions": float(found.moves),
                "returned_partitions": float(found.returns),
                "rebalances": float(found.rebalances),
            },
            evidence_text={"partitions": ", ".join(f"{topic}-{number}" for topic, number in found.partitions[:20])},
            guards={"deploy": no_deploy(signals)},
        )
    ]


@Rule(
    "D48",
    "NON_STICKY_MOVES",
    HYGIENE,
    says="Rebalances move partitions that could have stayed where they were.",
    is_not="moves that a departure or the balance needs, nor those that range makes when members are added.",
    advice=(
        "use static membership and the cooperative-sticky assignor",
        "or use the consumer protocol of KIP-848, whose assignors do not move what can stay",
    ),
    falsifier="no other assignment to the members after each rebalance is as even and moves fewer partitions",
)
def non_sticky_moves(signals: Signals) -> list[Observation]:
    """Rebalances move more partitions than departures and balance need."""
    if not has_assignments(signals):
        return []
    found = find_avoidable(signals.frame)
    if found.rebalances < _AVOIDABLE_REBALANCES or not found.moved or found.share < _AVOIDABLE_SHARE:
        return []
    is_one_way = set(found.causes) in ({"member_join"}, {"member_left"})
    return [
        Observation(
            "NON_STICKY_MOVES",
            severity=WARN if found.is_stateful else INFO,
            evidence={
                "moved_partitions": float(found.moved),
                "necessary_partitions": float(found.moved - found.avoidable),
                "avoidable_ratio": found.share,
                "rebalances": float(found.rebalances),
            },
            evidence_text={"assignor": found.assignor},
            guards={"scaling_under_range": passes(not (found.assignor == "range" and is_one_way))},
        )
    ]


@Rule(
    "D49",
    "EAGER_LARGE_GROUP",
    HYGIENE,
    says="Each rebalance of this large group stops every partition.",
    is_not="a fault: it is the cost of each rebalance. Joins over several topics may need the range assignor.",
    advice=(
        "change to cooperative-sticky in two rolling restarts: first add it to the assignors, then remove the rest",
        "or change to the consumer protocol of KIP-848",
    ),
    avoid=("do not change the assignor in one step: eager and cooperative members cannot share a group",),
    falsifier="partitions that did not move are committed during a rebalance",
    open_after=1,
)
def eager_large_group(signals: Signals) -> list[Observation]:
    """Every rebalance stops many partitions of many members."""
    if not has_assignments(signals):
        return []
    fact = signals.frame.fact
    members = signals.member_count or 0
    partitions = sum(len(topic.lag) for topic in signals.topics)
    day = recent(signals.membership.logical_rebalances, signals.frame.now, _LARGE_SECONDS)
    day = [each for each in day if not each.is_first]
    is_eager = fact.get("rebalance_mode") == "eager"
    if not is_eager or partitions < _LARGE_PARTITIONS or members < _LARGE_MEMBERS or not day:
        return []
    pauses = [float(each.row["pause_p95_seconds"]) for each in day if each.row and each.row.get("pause_p95_seconds")]
    return [
        Observation(
            "EAGER_LARGE_GROUP",
            severity=INFO,
            evidence={
                "partitions": float(partitions),
                "members": float(members),
                "rebalances_per_day": float(len(day)),
                **({"longest_pause_p95_seconds": max(pauses)} if pauses else {}),
            },
            evidence_text={"assignor": str(fact.get("assignor") or "")},
        )
    ]


@Rule(
    "D60",
    "DEPLOY_LAG_SPIKE",
    CAUSE,
    says="Lag rose because a rolling deploy replaced the members one batch after the other.",
    is_not=(
        "a shortage: the lag began with the deploy and drains after it. If arrivals rose at the same time, it"
        " is not reported."
    ),
    advice=(
        "use static membership: give each member a group.instance.id that stays the same after a restart",
        "set the session timeout above the time that a restart takes",
        "use the cooperative-sticky assignor, so that only moved partitions stop",
        "deploy in smaller batches, with a pause between them",
    ),
    avoid=("do not add consumers for lag that a deploy caused: it drains by itself",),
    falsifier="lag had begun to rise before the first member was replaced",
    thresholds=("deploy_horizon_seconds", "deploy_share", "deploy_batch", "deploy_limit_seconds"),
    rank=200,
    open_after=1,
)
def deploy_lag_spike(signals: Signals) -> list[Observation]:
    """Lag rose during a rolling deploy; a deploy whose restarts static membership absorbed does not count."""
    if not has_assignments(signals):
        return []
    deploys = signals.membership.deploys
    now = signals.frame.now
    near = [
        each for each in deploys if (now - each.started_at).total_seconds() <= signals.parameters.deploy_limit_seconds
    ]
    if not near or near[-1].state == SUSPECTED or not near[-1].rebalances:
        return []
    deploy, cost = near[-1], measure_deploy(signals, near[-1])
    if not cost.is_spike:
        return []
    is_over = deploy.state != RUNNING and math.isfinite(cost.recovery_seconds) and signals.deploy is None
    if is_over:
        return []
    return [
        Observation(
            "DEPLOY_LAG_SPIKE",
            severity=WARN if _is_costly(signals, cost) else INFO,
            evidence=_evidence(signals, deploy, cost),
            evidence_text={"state": deploy.state, "rebalance_mode": deploy.mode},
            guards={
                "arrivals": passes(
                    None if math.isnan(cost.arrival_ratio) else cost.arrival_ratio < _DEPLOY_ARRIVAL_RATIO
                ),
            },
        )
    ]


def _is_costly(signals: Signals, cost: DeployCost) -> bool:
    slo = signals.policy.slo_time_lag_seconds
    floor = sum(known_sum(topic.floor) for topic in signals.topics)
    return (0 < slo < cost.lag_seconds / _DEPLOY_SLO_TIMES) or (
        floor > 0 and cost.peak_envelope >= _DEPLOY_FLOOR_TIMES * floor
    )


def _evidence(signals: Signals, deploy: Deploy, cost: DeployCost) -> dict[str, float]:
    rows = [row for row in signals.frame.rebalances if row["rebalance_id"] in deploy.rebalance_ids]
    pauses = [float(row["pause_p95_seconds"]) for row in rows if row.get("pause_p95_seconds") is not None]
    known = {
        "lag_before_records": cost.lag_before,
        "peak_lag_records": cost.peak_lag,
        "lag_record_seconds": cost.lag_record_seconds,
        "lag_seconds": cost.lag_seconds,
        "recovery_seconds": cost.recovery_seconds,
        "longest_pause_p95_seconds": max(pauses, default=math.nan),
    }
    return {
        "rebalances": float(deploy.rebalances),
        "batches": float(deploy.batches),
        "replaced_slots": float(deploy.replaced),
        "slots": float(deploy.slots),
        "static_share": deploy.static_share,
        **{name: value for name, value in known.items() if math.isfinite(value)},
    }
