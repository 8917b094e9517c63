"""Rules D53 to D57: different subscriptions, and instance ids that fail.

Such ids expire, clash, do not last or are not used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from laggard.diagnosis.history.frames import Row
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
    guard,
    has_assignments,
    has_members,
    known,
    no_deploy,
    outranks,
    suppresses,
)
from laggard.diagnosis.signals.change_effects import deploy_row
from laggard.diagnosis.signals.deploys import OVER
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.identity import (
    Absence,
    absence_p95_seconds,
    absences,
    find_flips,
    find_successors,
)

_DIVERGENT_SECONDS = fixed("divergent_seconds", 1800.0, "s")
_ID_FLIPS = fixed("id_flips", 3, "times that an id moved to another member")
_ID_HOSTS = fixed("id_hosts", 2, "hosts")
_NEW_IDS = fixed("new_ids", 3, "restarts with a new id")
_COSTLY_DEPLOYS = fixed("costly_deploys", 2, "deploys")
_COSTLY_DEPLOYS_SECONDS = fixed("costly_deploys_seconds", 604_800.0, "s looked back for them")
_NEVER_BACK_CONFIDENCE = fixed(
    "never_back_confidence", 0.6, "confidence while an id was on each host once"
)


@Rule(
    "D53",
    "SUBSCRIPTION_DIVERGENT",
    HYGIENE,
    says="Members of one group subscribe to different topics: each rebalance stops them all, and "
    "the balance is lost.",
    is_not="a rolling upgrade, during which this is normal.",
    advice=("use a separate group for each set of topics",),
    falsifier="in a generation of that half hour all members subscribe to the same topics",
    open_after=1,
)
def subscription_divergent(signals: Signals) -> Iterator[Observation]:
    """Members of one group have read different topics for half an hour."""
    since = signals.membership.subscriptions_differ_since if has_assignments(signals) else None
    seconds = 0.0 if since is None else (signals.frame.now - since).total_seconds()
    if seconds > _DIVERGENT_SECONDS:
        sets = sorted(
            {
                ", ".join(sorted(row["topics"]))
                for row in signals.membership.current
                if row.get("topics")
            }
        )
        yield Observation(
            "SUBSCRIPTION_DIVERGENT",
            INFO,
            evidence={"differ_seconds": seconds, "subscriptions": float(len(sets))},
            evidence_text={"topics": " | ".join(sets)},
            guards={"no_deploy": no_deploy(signals)},
        )


@Rule(
    "D54",
    "STATIC_EXPIRED",
    CAUSE,
    says="A static member was away for longer than its session timeout, so the group rebalanced "
    "twice.",
    is_not="a member that was removed on purpose, which does not rejoin.",
    advice=(
        "set session.timeout.ms to at least 1.5 × the 95th percentile of its absences",
        "or make the restart shorter",
    ),
    avoid=(
        (
            "do not set the session timeout far above what restarts need: a dead member's "
            "partitions wait that long"
        ),
    ),
    falsifier="commits of the member are recorded during its absence",
    rank=180,
    open_after=1,
)
def static_expired(signals: Signals) -> Iterator[Observation]:
    """A static member was away for longer than its session timeout.

    That makes one rebalance without it, and one when it rejoined.

    A member that is away twice in half an hour, outside a deploy, is evicted again and again, not
    restarted: then absences outside a deploy do not count.
    """
    away = absences(signals.membership) if has_members(signals) else []
    usual = absence_p95_seconds(away)
    for each in _expired(signals, away):
        numbers = {"absence_seconds": each.seconds, "session_timeout_seconds": each.session_seconds}
        evidence = known(numbers | {"absence_p95_seconds": usual})
        yield Observation("STATIC_EXPIRED", subject=each.instance_id, evidence=evidence)


def _expired(signals: Signals, away: Sequence[Absence]) -> Collection[Absence]:
    """Return each member's newest expired absence of the last half hour.

    Members that are evicted are left out.
    """
    now, horizon = signals.frame.now, signals.parameters.deploy_horizon_seconds
    expired = [
        each
        for each in away
        if each.is_expired and 0 <= (now - each.back_at).total_seconds() < horizon
    ]
    faults = [each for each in expired if not signals.membership.is_in_deploy(each.back_at)]
    if len({each.instance_id for each in faults}) < len(faults):
        expired = [each for each in expired if each not in faults]
    return {each.instance_id: each for each in expired}.values()


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
    inhibits=(
        suppresses("CRASH_LOOP", "SESSION_EVICTION", "STATIC_EXPIRED"),
        outranks(REBALANCING),
        WHILE_REBALANCING,
    ),
    rank=90,
    blocks_scaling=True,
    open_after=1,
)
def static_duplicate(signals: Signals) -> Iterator[Observation]:
    """Two processes use one instance id and fence each other.

    A rolling restart changes the member once.
    """
    for each in find_flips(signals.membership) if has_members(signals) else ():
        hosts = len(set(each.hosts))
        if each.flips >= _ID_FLIPS and hosts >= _ID_HOSTS:
            severity = PAGE if signals.is_material else WARN
            yield Observation(
                "STATIC_DUPLICATE",
                severity,
                subject=each.instance_id,
                confidence=CONFIDENCE if each.returns else _NEVER_BACK_CONFIDENCE,
                evidence={"flips": float(each.flips), "hosts": float(hosts)},
                evidence_text={"hosts": ", ".join(each.hosts[:20])},
            )


@Rule(
    "D56",
    "STATIC_ID_UNSTABLE",
    CAUSE,
    says="Instance ids change with each restart. This is worse than no ids: the old id blocks its "
    "partitions.",
    is_not="a one-off change of the naming scheme.",
    advice=(
        "take the id from a name that stays the same after a restart: the ordinal of a StatefulSet",
        "if there is no such name, remove group.instance.id",
    ),
    avoid=(
        "do not use pod addresses, random names or names of ReplicaSet pods as group.instance.id",
    ),
    falsifier="one of the old ids appears in a later generation",
    inhibits=(outranks(REBALANCING), WHILE_REBALANCING),
    rank=100,
    blocks_scaling=True,
    open_after=1,
)
def static_id_unstable(signals: Signals) -> Iterator[Observation]:
    """Restarted members have new instance ids.

    The old ids block their partitions for a session timeout.
    """
    found = find_successors(signals.membership) if has_members(signals) else []
    if len(found) >= _NEW_IDS:
        sessions = [each.session_seconds for each in found]
        yield Observation(
            "STATIC_ID_UNSTABLE",
            evidence={
                "restarts": float(len(found)),
                "unread_seconds_each": max(sessions),
                "unread_seconds": sum(sessions),
            },
            evidence_text={"ids": ", ".join(f"{each.old} → {each.new}" for each in found[-10:])},
            guards={"not_renamed_once": guard(all(each.is_renamed for each in found))},
        )


@Rule(
    "D57",
    "STATIC_NOT_USED",
    HYGIENE,
    says="Each deploy causes lag, and static membership, which would absorb the restarts, is not "
    "used.",
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
def static_not_used(signals: Signals) -> Iterator[Observation]:
    """Deploys cause lag again and again, and no member has an instance id."""
    members = signals.membership.current
    if (
        not has_assignments(signals)
        or not members
        or any(row.get("group_instance_id") for row in members)
    ):
        return
    spikes = _costly_deploys(signals)
    if len(spikes) >= _COSTLY_DEPLOYS:
        lag = sum(
            row["lag_record_seconds"] for row in spikes if row.get("lag_record_seconds") is not None
        )
        evidence = {"deploys": float(len(spikes)), "lag_record_seconds": float(lag)}
        yield Observation("STATIC_NOT_USED", INFO, evidence=evidence)


def _costly_deploys(signals: Signals) -> list[Row]:
    """Return rows of last week's deploys that caused lag and had non-static members."""
    now = signals.frame.now
    own = [deploy_row(signals, each) for each in signals.membership.deploys if each.state == OVER]
    # what was written while the deploy lay in the frame's windows knows its cost better
    rows = {row["started_at"]: row for row in [*own, *signals.frame.deploys]}.values()
    spikes = [row for row in rows if row.get("is_spike") and not row.get("static_share")]
    return [
        row for row in spikes if (now - row["ended_at"]).total_seconds() <= _COSTLY_DEPLOYS_SECONDS
    ]
