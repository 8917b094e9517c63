"""Rules D53 to D57: subscriptions that differ, and instance ids that expire, clash, do not last or are not used."""

from __future__ import annotations

import math

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    CONFIDENCE,
    HYGIENE,
    INFO,
    PAGE,
    REBALANCING,
    WARN,
    WHILE_REBALANCING,
    Observation,
    Rule,
    has_assignments,
    has_members,
    outranks,
    passes,
    suppresses,
)
from laggard.diagnosis.signals.deploys import OVER
from laggard.diagnosis.signals.effects import deploy_row
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.moves import absence_p95_seconds, absences, find_flips, find_successors

_DIVERGENT_SECONDS = fixed("divergent_seconds", 1800.0, "s")
_ID_FLIPS = fixed("id_flips", 3, "times that an id moved to another member")
_ID_HOSTS = fixed("id_hosts", 2, "hosts")
_NEW_IDS = fixed("new_ids", 3, "restarts with a new id")
_COSTLY_DEPLOYS = fixed("costly_deploys", 2, "deploys")
_COSTLY_DEPLOYS_SECONDS = fixed("costly_deploys_seconds", 604_800.0, "s looked back for them")
_NEVER_BACK_CONFIDENCE = fixed("never_back_confidence", 0.6, "confidence while an id was on each host once")


@Rule(
    "D53",
    "SUBSCRIPTION_DIVERGENT",
    HYGIENE,
    says="Members of one group subscribe to different topics: each rebalance stops them all, and the balance is lost.",
    is_not="a rolling upgrade, during which this is normal.",
    advice=("use a separate group for each set of topics",),
    falsifier="in a generation of that half hour all members subscribe to the same topics",
    open_after=1,
)
def subscription_divergent(signals: Signals) -> list[Observation]:
    """Members of one group have read different topics for half an hour."""
    since = signals.membership.subscriptions_differ_since if has_assignments(signals) else None
    if since is None or (signals.frame.now - since).total_seconds() <= _DIVERGENT_SECONDS:
        return []
    sets = sorted({", ".join(sorted(row["topics"])) for row in signals.membership.current if row.get("topics")})
    return [
        Observation(
            "SUBSCRIPTION_DIVERGENT",
            severity=INFO,
            evidence={
                "differ_seconds": (signals.frame.now - since).total_seconds(),
                "subscriptions": float(len(sets)),
            },
            evidence_text={"topics": " | ".join(sets)},
            guards={"deploy": passes(signals.deploy is None)},
        )
    ]


@Rule(
    "D54",
    "STATIC_EXPIRED",
    CAUSE,
    says="A static member was away for longer than its session timeout, so the group rebalanced twice.",
    is_not="a member that was removed on purpose, which does not rejoin.",
    advice=(
        "set session.timeout.ms to at least 1.5 × the 95th percentile of its absences",
        "or make the restart shorter",
    ),
    avoid=("do not set the session timeout far above what restarts need: a dead member's partitions wait that long",),
    falsifier="commits of the member are recorded during its absence",
    rank=180,
    open_after=1,
)
def static_expired(signals: Signals) -> list[Observation]:
    """A static member was away for longer than its session timeout: one rebalance without it, one when it rejoined.

    A member that is away twice in half an hour, outside a deploy, is evicted again and again, not restarted: then
    absences outside a deploy do not count.
    """
    if not has_members(signals):
        return []
    known = absences(signals.membership)
    now = signals.frame.now
    horizon = signals.parameters.deploy_horizon_seconds
    expired = [each for each in known if each.is_expired and 0 <= (now - each.back_at).total_seconds() < horizon]
    usual = absence_p95_seconds(known)
    faults = [each for each in expired if not signals.membership.is_in_deploy(each.back_at)]
    if len({each.instance_id for each in faults}) < len(faults):
        expired = [each for each in expired if each not in faults]
    return [
        Observation(
            "STATIC_EXPIRED",
            severity=WARN,
            subject=each.instance_id,
            evidence={
                "absence_seconds": each.seconds or math.nan,
                "session_timeout_seconds": each.session_seconds,
                **({} if usual is None else {"absence_p95_seconds": usual}),
            },
        )
        for each in {each.instance_id: each for each in expired}.values()
    ]


@Rule(
    "D55",
    "STATIC_DUPLICATE",
    CAUSE,
    says="Two processes use the same group.instance.id and fence each other.",
    is_not="a rolling restart, in which an id moves to another member once.",
    advice=(
        "give each process its own id: the pod name of a StatefulSet, or its ordinal",
        "stop the process that should not run; its log says FencedInstanceIdException",
    ),
    falsifier="the id stays with one member for ten minutes",
    inhibits=(suppresses("CRASH_LOOP", "SESSION_EVICTION", "STATIC_EXPIRED"), outranks(REBALANCING), WHILE_REBALANCING),
    rank=90,
    blocks_scaling=True,
    open_after=1,
)
def static_duplicate(signals: Signals) -> list[Observation]:
    """Two processes use one instance id and fence each other; a rolling restart changes the member once."""
    if not has_members(signals):
        return []
    return [
        Observation(
            "STATIC_DUPLICATE",
            severity=PAGE if signals.is_material else WARN,
            subject=each.instance_id,
            confidence=CONFIDENCE if each.returns else _NEVER_BACK_CONFIDENCE,
            evidence={"flips": float(each.flips), "hosts": float(len(set(each.hosts)))},
            evidence_text={"hosts": ", ".join(each.hosts[:20])},
        )
        for each in find_flips(signals.membership)
        if each.flips >= _ID_FLIPS and len(set(each.hosts)) >= _ID_HOSTS
    ]


@Rule(
    "D56",
    "STATIC_ID_UNSTABLE",
    CAUSE,
    says="Instance ids change with each restart. This is worse than no ids: the old id blocks its partitions.",
    is_not="a one-off change of the naming scheme.",
    advice=(
        "take the id from a name that stays the same after a restart: the ordinal of a StatefulSet",
        "if there is no such name, remove group.instance.id",
    ),
    avoid=("do not use pod addresses, random names or names of ReplicaSet pods as group.instance.id",),
    falsifier="one of the old ids appears in a later generation",
    inhibits=(outranks(REBALANCING), WHILE_REBALANCING),
    rank=100,
    blocks_scaling=True,
    open_after=1,
)
def static_id_unstable(signals: Signals) -> list[Observation]:
    """Restarted members have new instance ids, and the old ids block their partitions for a session timeout."""
    found = find_successors(signals.membership) if has_members(signals) else []
    if len(found) < _NEW_IDS:
        return []
    return [
        Observation(
            "STATIC_ID_UNSTABLE",
            evidence={
                "restarts": float(len(found)),
                "unread_seconds_each": max(each.session_seconds for each in found),
                "unread_seconds": sum(each.session_seconds for each in found),
            },
            evidence_text={"ids": ", ".join(f"{each.old} → {each.new}" for each in found[-10:])},
            guards={"renamed_once": passes(not all(each.is_renamed for each in found))},
        )
    ]


@Rule(
    "D57",
    "STATIC_NOT_USED",
    HYGIENE,
    says="Each deploy causes lag, and static membership, which would absorb the restarts, is not used.",
    is_not="a fault: deploys cost more than necessary. Unstable instance ids would make it worse.",
    advice=(
        "give each member a group.instance.id that stays the same after a restart",
        "set the session timeout above the time that a restart takes",
        "use the cooperative-sticky assignor",
        "deploy in smaller batches",
    ),
    avoid=("do not take ids from pod addresses or random names",),
    falsifier="a deploy with instance ids causes as much lag as those without",
    open_after=1,
)
def static_not_used(signals: Signals) -> list[Observation]:
    """Deploys cause lag again and again, and no member has an instance id."""
    if not has_assignments(signals) or not signals.membership.current:
        return []
    if any(row.get("group_instance_id") for row in signals.membership.current):
        return []
    now = signals.frame.now
    own = [deploy_row(signals, each) for each in signals.membership.deploys if each.state == OVER]
    # what was written while the deploy lay in the frame's windows knows its cost better
    rows = {row["started_at"]: row for row in [*own, *signals.frame.deploys]}
    spikes = [
        row
        for row in rows.values()
        if (now - row["ended_at"]).total_seconds() <= _COSTLY_DEPLOYS_SECONDS
        and row.get("is_spike")
        and not row.get("static_share")
    ]
    if len(spikes) < _COSTLY_DEPLOYS:
        return []
    costs = [row["lag_record_seconds"] for row in spikes if row.get("lag_record_seconds") is not None]
    return [
        Observation(
            "STATIC_NOT_USED",
            severity=INFO,
            evidence={"deploys": float(len(spikes)), "lag_record_seconds": float(sum(costs))},
        )
    ]
