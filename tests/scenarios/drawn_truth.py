"""Answers that are right about a drawn group at a moment, from its capacity, arrivals, owners and
faults alone.

Nothing of the diagnosis is used. Where physics leaves two answers open, both are right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from scenarios.drawn import CHURN, CRASHES, Fault, Plan
from scenarios.drawn_runs import Sample
from scenarios.labels import CALM, TURMOIL, only
from scenarios.scoring import Opened

DRAINING = CALM | only("NOT_NEEDED_DRAINING")
YES = only("YES", "YES_PARTIAL")
# a backlog that is gone by then needs nobody: what the product promises by default
DRAIN_SECONDS = 900.0
LONGEST_BATCH_SECONDS = 2.5
MAX_POLL_RECORDS = 500
LOOKS_HUNG_SECONDS = 60.0  # a batch that takes longer looks like a hang until it is done
NEAR = 1.3  # factor within which such a limit leaves both answers open
# a member may be in its batch, or in its last back-off, for five more
SETTLING_MINUTES, AFTER_MINUTES = 4.0, {"poison": 9.0, "crash_loop_all": 9.0}
# times the mean of the others: arrivals that are nearer are those of a group that is short as a
# whole
SKEWED = 2.0
PARTIAL = 0.1  # share of partitions with deleted unread records, above which no lag is stated
# of the lag, from which a cause decides; both answers are right so near to it
SHARE, NEAR_SHARE = 0.5, 0.15
LAST_MINUTES = 15.0  # that a finding may still open after its fault, from what is left of it


def answers(plan: Plan, sample: Sample) -> frozenset[str]:
    """Verdicts that are right at this moment."""
    small, large = _limits(plan, sample)
    now = [fault for fault in plan.faults if fault.holds(sample.minute)]
    # none is alive, whatever stopped them
    found = set[str]() if sample.capacities else {"NO_MEMBERS"}
    if not large:
        found |= DRAINING if any(fault.begin <= sample.minute for fault in plan.faults) else CALM
    if small and not any(fault.is_wrong for fault in now):
        return frozenset(found)
    kinds = {fault.kind for fault in now}
    if not sample.capacities:
        return frozenset(found | (_passing(plan, sample, kinds) if "stop" not in kinds else set()))
    found |= _passing(plan, sample, kinds)
    return (
        frozenset(found) if "poison" in kinds else frozenset(found | _causes(plan, sample, kinds))
    )


def _passing(plan: Plan, sample: Sample, kinds: set[str]) -> set[str]:
    """Answers that are right while members come and go, a burst passes, or records that were not
    read are deleted.
    """
    lately = {fault.kind for fault in plan.faults if fault.begin <= sample.minute < _settled(fault)}
    found = {"NO_REBALANCE_FIRST"} if lately & CHURN else set[str]()
    if "poison" in lately:
        found.add("NO_STALLED")
    if "stop" in kinds:
        found.add("NO_MEMBERS")
    if kinds & {"burst", "batches"}:  # gone before anybody could act
        found |= DRAINING | YES | {"UNKNOWN", "NO_IDLE"}
    if sum(sample.behind_start) > PARTIAL * len(sample.behind_start):
        found.add("UNKNOWN_INPUT")
    return found


def _settled(fault: Fault) -> float:
    """The minute in which members that came or went have settled."""
    return fault.end + AFTER_MINUTES.get(fault.kind, SETTLING_MINUTES)


def longest_gap_seconds(plan: Plan) -> float:
    """Longest time between two commits of a member that keeps up: its interval, and a batch."""
    return plan.commit_seconds * (1 + plan.jitter) + LONGEST_BATCH_SECONDS


def _limits(plan: Plan, sample: Sample) -> tuple[bool, bool]:
    """True if lag is no more than commits make of it, and true if it is clearly more."""
    usual = longest_gap_seconds(plan)
    waits = [
        lag / rate for lag, rate in zip(sample.backlog, sample.arrival, strict=True) if rate > 0
    ]
    longest, total = max(waits, default=0.0), sum(sample.backlog)
    return longest < 2 * usual + 30 or total < 100, longest > 4 * usual + 60 and total > 400


def _causes(plan: Plan, sample: Sample, kinds: set[str]) -> set[str]:
    """Answers by what holds the lag back, in the order in which one makes the next pointless."""
    found = set[str]()
    total = sum(sample.backlog) or 1
    stalled = sum(sample.backlog[part] for part in sample.stalled) / total
    if sample.stalled and stalled >= SHARE - NEAR_SHARE:
        found.add("NO_STALLED")
        if stalled > SHARE + NEAR_SHARE:
            return found
    arriving = [0.0 if part in sample.stalled else rate for part, rate in enumerate(sample.arrival)]
    highest, others = max(arriving), sum(arriving) - max(arriving)
    if highest > plan.capacity and len(arriving) > 1:
        found |= {"NO_HOT_PARTITION"} | ({"UNKNOWN"} if "wander" in kinds else set())
        if highest > SKEWED * others / (len(arriving) - 1):
            return found
    return found | _by_load(plan, sample, arriving)


def _by_load(plan: Plan, sample: Sample, arriving: Sequence[float]) -> set[str]:
    """Answers from what each member has to read, and what it can."""
    loads, lags = defaultdict[str, float](float), defaultdict[str, float](float)
    for part, owner in enumerate(sample.owners):
        if part not in sample.stalled:
            loads[owner] += arriving[part]
            lags[owner] += sample.backlog[part]
    at_ceiling = len(sample.capacities) >= plan.partitions
    behind = {
        owner for owner in loads if loads[owner] >= sample.capacities.get(owner, 0.0) and owner
    }
    slow = {
        owner for owner, capacity in sample.capacities.items() if capacity < 0.95 * plan.capacity
    } & behind
    more = only("NO_IDLE") if at_ceiling else YES
    # with a member for each partition it would not drain
    if max(arriving, default=0.0) >= plan.capacity / NEAR:
        more |= {"NO_IDLE"}
    spares = {
        owner: sample.capacities[owner] - loads[owner]
        for owner in loads
        if owner and owner not in behind
    }
    drain = max((lags[owner] / spare for owner, spare in spares.items()), default=0.0)
    is_long = drain > DRAIN_SECONDS / NEAR
    if slow:
        # is it that partition, or its owner?
        alone = any(sample.owners.count(owner) == 1 for owner in slow)
        found = {"NO_UNHEALTHY_MEMBER"} | ({"NO_COSTLY_PARTITION"} if alone else set())
        return found | (more if behind - slow or is_long else set())
    if behind:
        return set(more)
    draining = set(DRAINING) if drain <= DRAIN_SECONDS * NEAR else set()
    return draining | (set(more) if is_long else set())


@dataclass(frozen=True)
class Alarm:
    """A finding that a fault must bring, with its exact scope and how long its own definition
    takes.
    """

    code: str
    begin: float  # minute of the run
    end: float
    topic: str
    partitions: frozenset[int] = frozenset()  # empty: the whole group or a member
    subjects: frozenset[str] = frozenset()  # names of the member, empty if it is not about one
    needs: float = 0.0  # minutes that the finding's definition asks for
    limit: float = 5.0  # minutes beyond them that it may take
    after: float = 0.0  # minutes beyond its end in which it may be found again

    def covers(self, finding: Opened) -> bool:
        """True if a finding is about this scope or a part of it, and nothing else."""
        if finding.topic not in ("", self.topic) or not finding.partitions <= self.partitions:
            return False
        if finding.subject:
            return finding.subject.split("#")[0] in self.subjects
        return bool(finding.partitions) if self.partitions else not self.subjects

    def met_ms(self, findings: Sequence[Opened]) -> int | None:
        """When findings that it covers first name the whole scope at the same time; None if they
        never do.
        """
        fits = [each for each in findings if self.covers(each)]
        for now_ms in sorted(each.opened_ms for each in fits):
            now = [
                each for each in fits if each.opened_ms <= now_ms < (each.closed_ms or now_ms + 1)
            ]
            parts = frozenset[int]().union(*(each.partitions for each in now))
            if now and (
                parts == self.partitions
                or any(each.subject and not each.partitions for each in now)
            ):
                return now_ms
        return None


@dataclass(frozen=True)
class Alarms:
    """Findings of a group: what must open, and what may, from when to when."""

    must: list[Alarm] = field(default_factory=list)
    may: list[tuple[str, float, float]] = field(default_factory=list)


_MAY = {
    "overload": only("CAPACITY_SHORTAGE", "AT_PARTITION_CEILING", "CAPACITY_BURST"),
    "stop": only("SESSION_EVICTION", "OFFSETS_EXPIRY_FORECAST", "DEPLOY_LAG_SPIKE"),
    "crash_loop": TURMOIL | only("SESSION_EVICTION"),
    "crash_loop_all": TURMOIL | only("SESSION_EVICTION", "EMPTY_WITH_LAG"),
    "poison": TURMOIL
    | only("POLL_TIMEOUT_EVICTION", "PARTITION_STALLED", "CRASH_LOOP", "COMMITS_STOPPED"),
    "wander": only("HOT_PARTITION_ARRIVAL"),
    "deploy": only("DEPLOY_LAG_SPIKE"),
    "burst": only("CAPACITY_BURST", "CAPACITY_SHORTAGE", "AT_PARTITION_CEILING"),
    "batches": only("CAPACITY_BURST"),
    "rewind": only("DEPLOY_LAG_SPIKE"),
}
_CODES = {
    "overload": "CAPACITY_SHORTAGE",
    "hot": "HOT_PARTITION_ARRIVAL",
    "slow": "SLOW_MEMBER",
    "hang": "PARTITION_STALLED",
    "pause": "PARTITION_STALLED",
    "stop": "EMPTY_WITH_LAG",
    "crash_loop": "CRASH_LOOP",
    "crash_loop_all": "CRASH_LOOP",
    "poison": "POISON_PILL_SUSPECT",
    "commits_refused": "COMMITS_STOPPED",
}
_NEEDS = {
    "stop": 10.0,
    "commits_refused": 5.0,
    "crash_loop": 3.0,
    "crash_loop_all": 3.0,
    "poison": 4.0,
}  # minutes by definition


def alarms(plan: Plan, samples: Sequence[Sample], topic: str) -> Alarms:
    """Findings that a group must and may have; scopes are known once the cluster was simulated."""
    found, kinds = Alarms(), {fault.kind for fault in plan.faults}
    limit = max(5.0, 3 * plan.commit_seconds / 60)
    for number, fault in enumerate(plan.faults):
        until = fault.end + LAST_MINUTES
        found.may.extend(
            (code, fault.begin - 1, until) for code in sorted(_MAY.get(fault.kind, ()))
        )
        if fault.kind == "slow" and _longest_batch_seconds(fault, samples) > LOOKS_HUNG_SECONDS:
            found.may.append(("PARTITION_STALLED", fault.begin - 1, until))
        code, scope = _CODES.get(fault.kind), plan.scopes.get(number, frozenset())
        if code is None:
            continue
        if fault.kind == "overload" and plan.members >= plan.partitions:
            code = "AT_PARTITION_CEILING"
        alone_at = _alone_at(fault, samples) if fault.kind == "poison" else fault.begin
        if alone_at is None or not _is_certain(plan, fault, kinds, scope):
            found.may.append((code, fault.begin - 1, until))
            if fault.kind == "slow":
                found.may.append(("COSTLY_PARTITION", fault.begin - 1, until))
            continue
        parts = scope if fault.kind in ("hot", "hang", "pause", "poison") else frozenset[int]()
        if fault.kind == "commits_refused" and plan.partitions == 1:  # as if that one stood
            found.may.append(("PARTITION_STALLED", fault.begin - 1, until))
        names, needs = (
            plan.names.get(number, frozenset()),
            max(_NEEDS.get(fault.kind, 0.0), alone_at - fault.begin),
        )
        if fault.kind == "pause":
            names = _with_nothing_else(fault, samples)
        # its last reader is still in the record
        after = AFTER_MINUTES["poison"] if fault.kind == "poison" else 0.0
        found.must.append(
            Alarm(code, fault.begin, fault.end, topic, parts, names, needs, limit, after)
        )
    found.may.extend(_losses(plan, samples, limit))
    return found


def _longest_batch_seconds(fault: Fault, samples: Sequence[Sample]) -> float:
    """How long the slowest member needs for a full batch during a fault."""
    speeds = [
        each
        for sample in samples
        if fault.holds(sample.minute)
        for each in sample.capacities.values()
    ]
    return MAX_POLL_RECORDS / min(speeds, default=inf)


def _is_certain(plan: Plan, fault: Fault, kinds: set[str], scope: frozenset[int]) -> bool:
    """True if the finding is the only right one: another fault, or too few partitions, may leave it
    open.
    """
    match fault.kind:
        case "overload":
            even = plan.partitions % plan.members == 0 and fault.strength * min(plan.rates) > sum(
                plan.rates
            ) / len(plan.rates)
            return (
                even
                and not kinds & {"crash_loop", "slow", "deploy", "hang"}
                and fault.end - fault.begin > 15
            )
        case "hot":
            others = [rate for part, rate in enumerate(plan.rates) if part not in scope]
            return fault.strength * plan.capacity >= 3.5 * sum(others) / len(others)
        case "slow":
            # one partition: is it that, or its owner?
            return len(scope) > 1 and not kinds & {"overload", "restart"}
        case "hang":
            # its paused partitions stand already, and without one that moves the group stands as a
            # whole
            paused = {
                part for other in plan.faults if other.kind == "pause" for part in other.partitions
            }
            return bool(scope - paused) and len(scope | paused) < plan.partitions
        case "crash_loop" | "crash_loop_all":  # that all have crashed is known only after a session
            return plan.protocol != "static" and (
                fault.kind == "crash_loop" or fault.strength >= CRASHES
            )
        case _:
            return True


def _with_nothing_else(fault: Fault, samples: Sequence[Sample]) -> frozenset[str]:
    """Names of members of which all partitions stood at some time in a fault: these, and their
    owner, are the same.

    A member that hangs has others that stand, and its own name then stands for all of them.
    """
    found = set[str]()
    for each in samples:
        if fault.holds(each.minute):
            stand = {*fault.partitions, *each.stalled}
            others = {name for part, name in enumerate(each.subjects) if part not in stand}
            found |= set(each.subjects) - others - {""}
    return frozenset(found)


def _alone_at(fault: Fault, samples: Sequence[Sample]) -> float | None:
    """Return the minute from which only the partition of a record stands; None if others do as long
    as it does.

    Owners of several partitions are evicted with all of them: until the others move, the record may
    be on any of them.
    """
    held, stand = [each for each in samples if fault.holds(each.minute)], fault.partitions[0]
    moves = [
        (
            now.minute,
            {part for part, at in enumerate(now.committed) if at != before.committed[part]},
        )
        for before, now in pairwise(held)
    ]
    stood = max((minute for minute, parts in moves if stand in parts), default=fault.begin)
    left = set(range(len(held[0].committed))) - {stand}
    for minute, parts in moves:
        if minute > stood:
            left -= parts
        if not left:
            return minute
    return None


def _losses(
    plan: Plan, samples: Sequence[Sample], limit: float
) -> Iterator[tuple[str, float, float]]:
    """Forecasts and losses are right from when something is wrong, if retention takes anything at
    all.

    A burst and a skew are no fault, and may lose records as well: from the first one that is lost.
    While a burst lasts, nothing tells that it ends before the log is full.
    """
    if plan.retention_records is None:
        return
    end = samples[-1].minute + 1
    wrong = [fault.begin for fault in plan.faults if fault.is_wrong or fault.kind == "rewind"]
    lost = [each.minute for each in samples if any(each.behind_start)]
    if wrong or lost:
        yield "DATA_LOST", min(*wrong, *lost[:1], end), end
    if wrong:
        yield "DATA_LOSS_FORECAST", min(wrong), end
    for fault in plan.faults:
        if fault.kind == "burst":
            yield "DATA_LOSS_FORECAST", fault.begin, fault.end + limit
