"""Rules D43 to D46 and D50: rebalances that come too often, do not finish, or wait for somebody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CAUSE,
    CONFIDENCE,
    PAGE,
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
    no_maintenance,
    outranks,
    passes,
    suppresses,
)
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.rebalances import (
    assignor_changes,
    find_behind,
    find_storm,
    interrupted_rebalances,
    longest_rebalance_timeout,
    recent,
    stragglers,
    without_common_assignor,
)
from laggard.diagnosis.signals.rosters import HEARTBEAT_SECONDS
from laggard.diagnosis.signals.statistics import is_most, percentile

_NOT_STABLE_SECONDS = fixed("not_stable_seconds", 120.0, "s beyond the rebalance timeout")
_RECURRING = fixed("recurring", 2, "interrupted rebalances in half an hour")
_MIN_INTERRUPTED = fixed("min_interrupted", 2, "interrupted generations")
_INCOMPLETE_REST_WINDOWS = fixed(
    "incomplete_rest_windows", 2, "windows at rest, after which one rebalance is over"
)
_ASSIGNOR_CHANGES = fixed("assignor_changes", 2, "changes of the assignor")
_UNNAMED_CONFIDENCE = fixed("unnamed_confidence", 0.6, "confidence while the member is not known")
_COMMIT_GAP_PERCENT = fixed("commit_gap_percent", 95, "percentile of the commit intervals")
_SCALING = {"member_join", "member_left"}
_LOG_LINES = (
    "logs to read: Java 'sending LeaveGroup request' and 'Attempt to heartbeat failed since group "
    "is rebalancing', Go clients 'maybe rebalancing'"
)


@Rule(
    "D43",
    "REBALANCE_STORM",
    CAUSE,
    says="The group rebalances too often.",
    is_not="a deploy, nor the restart of a coordinator: both end by themselves.",
    advice=(
        "remove the dominant cause that the evidence names",
        "use static membership and the cooperative-sticky assignor",
        "move to the consumer protocol of KIP-848, whose rebalances cost least",
        (
            "if the rate stays high, decouple reading from processing: fewer members, or a queue "
            "behind them"
        ),
        _LOG_LINES,
    ),
    not_more=("do not add consumers: each one that joins starts another rebalance",),
    falsifier="the rows of rebalances, once written, combine these generations into fewer "
    "rebalances than the limit",
    thresholds=("storm_count", "storm_seconds", "storm_ratio", "storm_mtbr"),
    inhibits=(WHILE_REBALANCING,),
    groups=(REBALANCING,),
    rank=210,
    blocks_scaling=True,
    open_after=2,
)
def rebalance_storm(signals: Signals) -> Iterator[Observation]:
    """Rebalances follow each other so closely that members spend much of their time in them."""
    if not has_members(signals) or not signals.member_count:
        return
    membership = signals.membership
    storm = find_storm(
        signals.frame, membership.logical_rebalances, signals.parameters, membership.deploy_spans
    )
    if not storm.because:
        return
    causes = storm.causes
    text = {
        "because": ", ".join(storm.because),
        "cause": min(causes, key=lambda each: (-causes[each], each), default="unknown"),
    }
    if _is_static(membership.current) and signals.frame.fact.get("rebalance_mode") in {
        "cooperative",
        "incremental",
    }:
        text["escalation"] = (
            "the group is static and cooperative already: only decoupling lowers the rate"
        )
    numbers = {
        "rebalances": storm.rebalances,
        "generations": storm.generations,
        "time_in_rebalance_ratio": storm.ratio,
        "mtbr_seconds": storm.mtbr_seconds,
        "median_rebalance_seconds": storm.median_seconds,
    }
    failovers = causes.get("coordinator_failover", 0)
    yield Observation(
        "REBALANCE_STORM",
        PAGE if burns_slo(signals.frame, signals.policy.slo_objective) else WARN,
        evidence=known(
            numbers | {f"cause_{cause}_rebalances": count for cause, count in causes.items()}
        ),
        evidence_text=text,
        guards={
            "no_deploy": no_deploy(signals),
            "no_maintenance": no_maintenance(signals),
            "no_autoscaler": guard(bool(signals.policy.max_consumers) and set(causes) <= _SCALING),
            "few_failovers": guard(is_most(failovers, max(1, storm.rebalances))),
        },
    )


def _is_static(members: Sequence[Row]) -> bool:
    """Return True if there are members, and all have instance ids."""
    return bool(members) and all(row.get("group_instance_id") for row in members)


@Rule(
    "D44",
    "REBALANCE_INCOMPLETE",
    CAUSE,
    says="Rebalances start but do not end with an assignment.",
    is_not=(
        "a long rebalance: this one assigns no partitions. Generations missing from history read "
        "at a catch-up do not count."
    ),
    advice=(
        (
            "read the log of the leader: its assignor may fail, or it may leave before it has "
            "assigned partitions"
        ),
        "look for members that leave while others join",
        _LOG_LINES,
    ),
    falsifier="each of these generations has a record with an assignment",
    thresholds=("storm_seconds", "deploy_horizon_seconds"),
    inhibits=(suppresses("DEPLOY_LAG_SPIKE"),),
    groups=(REBALANCING,),
    rank=170,
    blocks_scaling=True,
)
def rebalance_incomplete(signals: Signals) -> Iterator[Observation]:
    """The group does not become Stable, or two generations within ten minutes got no assignment.

    These count until the group has been at rest for two windows, and longer if half an hour has
    another such rebalance: a single one that has ended is over, however many generations it took.
    """
    if not has_members(signals):
        return
    now, is_under_way = (
        signals.frame.now,
        signals.state in {"PreparingRebalance", "CompletingRebalance"},
    )
    interrupted = interrupted_rebalances(
        signals.membership.logical_rebalances, now, signals.parameters
    )
    generations = sum(
        each.interrupted for each in recent(interrupted, now, signals.parameters.storm_seconds)
    )
    rest_seconds = _INCOMPLETE_REST_WINDOWS * signals.frame.window_seconds
    goes_on = (
        is_under_way
        or bool(recent(interrupted, now, rest_seconds))
        or len(interrupted) >= _RECURRING
    )
    timeout = longest_rebalance_timeout(signals.membership.current)
    since = signals.frame.fact.get("state_since") if is_under_way else None
    waits = 0.0 if since is None else (now - since).total_seconds()
    is_late = timeout is not None and waits > timeout + _NOT_STABLE_SECONDS
    if is_late or (generations >= _MIN_INTERRUPTED and goes_on):
        numbers = {
            "interrupted_generations": generations,
            "interrupted_rebalances": len(interrupted),
            "not_stable_seconds": waits,
            "rebalance_timeout_seconds": timeout,
        }
        yield Observation(
            "REBALANCE_INCOMPLETE",
            evidence=known(numbers),
            evidence_text={"group_state": signals.state},
            guards={"no_deploy": no_deploy(signals), "no_maintenance": no_maintenance(signals)},
        )


@Rule(
    "D45",
    "REBALANCE_STRAGGLER",
    CAUSE,
    says="A rebalance waited for one member until its rebalance timeout ran out, and all members "
    "stopped meanwhile.",
    is_not="a rebalance that is slow for all members: one member joined last, and late.",
    advice=(
        "shorten that member's batches: lower max.poll.records, or make its work cheaper",
        "lower max.poll.interval.ms to what its longest batch needs: all members wait that long",
        "use cooperative-sticky, so that the others continue to read",
    ),
    falsifier="the named member is not in the next join phase that lasts as long",
    thresholds=("deploy_horizon_seconds",),
    groups=(REBALANCING,),
    rank=160,
    blocks_scaling=True,
    open_after=1,
)
def rebalance_straggler(signals: Signals) -> Iterator[Observation]:
    """A join phase waited for one member until its rebalance timeout ran out."""
    now, horizon = signals.frame.now, signals.parameters.deploy_horizon_seconds
    waited = (
        stragglers(signals.membership.logical_rebalances, now, horizon)
        if has_members(signals)
        else []
    )
    if not waited:
        return
    healthy = HEARTBEAT_SECONDS + _commit_gap_p95(signals)
    moved_at = signals.frame.fact.get("coordinator_changed_at")
    is_settled = moved_at is None or (now - moved_at).total_seconds() > horizon
    newest = {slot: (seconds, rebalance_id) for slot, seconds, rebalance_id in waited}
    for slot, (seconds, rebalance_id) in sorted(newest.items()):
        yield Observation(
            "REBALANCE_STRAGGLER",
            subject=slot,
            evidence={"join_seconds": seconds, "healthy_join_seconds": healthy},
            evidence_text={"rebalance_id": rebalance_id},
            guards={
                "longer_than_a_batch": passes(seconds > healthy),
                "coordinator_settled": passes(is_settled),
            },
        )


@Rule(
    "D46",
    "RECONCILE_STUCK",
    CAUSE,
    says="A member does not give up partitions that it has to revoke, and others wait for them.",
    is_not=(
        "a stuck broker: a member does not confirm what it has to give up. Only KIP-848 groups "
        "have it."
    ),
    advice=(
        (
            "look at what that member does when partitions are revoked: its callback or its batch "
            "blocks"
        ),
        "lower max.poll.records, so that it polls in time",
    ),
    falsifier="the member's next record shows that it gave up the partitions within its rebalance "
    "timeout",
    thresholds=("deploy_horizon_seconds",),
    rank=150,
    blocks_scaling=True,
    open_after=1,
)
def reconcile_stuck(signals: Signals) -> Iterator[Observation]:
    """A KIP-848 member does not give up its partitions, so that its epoch never becomes Stable."""
    if not has_assignments(signals):
        return
    membership, horizon = signals.membership, signals.parameters.deploy_horizon_seconds
    for each in find_behind(signals.frame, membership.rosters, horizon):
        numbers = {
            "reconciling_seconds": each.seconds,
            "rebalance_timeout_seconds": each.timeout_seconds,
        }
        yield Observation(
            "RECONCILE_STUCK",
            subject=each.slot,
            # it is named only when its epoch is over
            confidence=CONFIDENCE if each.slot else _UNNAMED_CONFIDENCE,
            evidence=numbers | {"pending_revocation_partitions": float(each.pending)},
            evidence_text={"member_state": each.member_state},
        )


@Rule(
    "D50",
    "ASSIGNOR_FLAP",
    CAUSE,
    says="Members do not agree for long on one assignor.",
    is_not="one planned change of the assignor.",
    advice=(
        "finish the rolling upgrade: all members need the same list of assignors",
        (
            "from eager to cooperative in two rolling restarts: first add cooperative-sticky, then "
            "remove the rest"
        ),
    ),
    avoid=("do not mix eager and cooperative assignors in one step",),
    falsifier="all generations after the first change name the new assignor, and all members list "
    "it",
    inhibits=(outranks(REBALANCING), WHILE_REBALANCING),
    rank=140,
    blocks_scaling=True,
    open_after=1,
)
def assignor_flap(signals: Signals) -> Iterator[Observation]:
    """Members agree first on one assignor, then on another, or on none at all."""
    changes = assignor_changes(signals.frame)
    split = without_common_assignor(signals.membership.current)
    if not has_assignments(signals) or (len(changes) < _ASSIGNOR_CHANGES and not split):
        return
    names = sorted({name for _, old, new in changes for name in (old, new)})
    names += sorted({name for row in split for name in row["classic_protocols"]})
    slots = [row["slot"] for row in split]
    yield Observation(
        "ASSIGNOR_FLAP",
        evidence=known(
            {"assignor_changes": len(changes), "members_without_common_assignor": len(split)}
        ),
        evidence_text={"assignors": ", ".join(dict.fromkeys(names)), "slots": ", ".join(slots)},
    )


def _commit_gap_p95(signals: Signals) -> float:
    """Return the 95th percentile of partitions' commit intervals in seconds; 0 if unknown.

    The percentile is by nearest rank.
    """
    gaps = [each for topic in signals.topics for each in topic.interval.tolist() if isfinite(each)]
    return percentile(gaps, _COMMIT_GAP_PERCENT) if gaps else 0.0
