"""Declaration of a rule, and its report on a window.

A rule is one object beside its check: its texts, its thresholds, which findings it hides, how
strong a cause it is and whether it makes more consumers useless. Suppression, ranking, the verdict,
the page and the labels of the scenarios are derived from it by `registry`, so that a new rule is
one function with `@Rule(...)` in one file of this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import wraps
from math import isnan
from typing import Any, TypeAlias

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Signals, TopicSignals
from laggard.diagnosis.signals.statistics import known_sum

CONFIDENCE = fixed("confidence", 0.9, "confidence of a rule that lacks nothing")
HOLDS, FAILS, ABSTAINS = "holds", "fails", "abstains"
PAGE, WARN, INFO = "page", "warn", "info"
META, SYMPTOM, CAUSE, HYGIENE, EVENT = "meta", "symptom", "cause", "hygiene", "event"
PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"  # results of guards

# Names for several rules together, which a rule joins by `groups` and others use in `suppresses`
# and `outranks`.
CAPACITY = "all that members together are too slow for"
SLOW = "all that a slow member or host does"
LAG_CAUSE = "all that explains lag of partitions that are read"
REBALANCING = "all that is a rebalance gone wrong"

# Names of states of a group that suppress findings without being one, see `conditions`.
DEPLOY, NEW_GROUP, LONG_REBALANCE, LARGE_REWIND = (
    "(deploy)",
    "(new group)",
    "(long rebalance)",
    "(large rewind)",
)


@dataclass(frozen=True, slots=True)
class Observation:
    """A rule's condition at the end of a window, for one scope.

    `topic`, `partitions` and `subject` (a member's slot, host or broker) make the scope: what is ""
    or empty is the whole group. A scope that a rule is silent about does not hold.
    """

    code: str
    severity: str = WARN
    topic: str = ""
    partitions: tuple[int, ...] = ()
    subject: str = ""
    confidence: float = CONFIDENCE
    # numbers, with the unit in the name
    evidence: Mapping[str, float] = field(default_factory=dict)
    evidence_text: Mapping[str, str] = field(default_factory=dict)
    # by what was checked to be so: pass, fail or unknown; a fail vetoes
    guards: Mapping[str, str] = field(default_factory=dict)
    # share of the group's significant lag that this explains, 0 if it names none
    explained: float = 0.0
    is_falsified: bool = False
    abstains: bool = False  # inputs are missing

    @property
    def state(self) -> str:
        """It holds, fails by a guard, or abstains."""
        if FAIL in self.guards.values():
            return FAILS
        return ABSTAINS if self.abstains else HOLDS


@dataclass(frozen=True, slots=True)
class Inhibition:
    """Findings that a rule hides or outranks while it is open."""

    targets: tuple[str, ...]  # codes, and names of groups of rules
    hides: bool  # False: they only contribute
    stall_kinds: tuple[str, ...] = ()  # limits it to stalls of these kinds
    needs: str = ""  # a state of the group that must hold too
    same_partitions: bool = False


def suppresses(
    *targets: str, stall_kinds: tuple[str, ...] = (), needs: str = "", same_partitions: bool = False
) -> Inhibition:
    """Hide these findings: they follow from the one that is open."""
    return Inhibition(
        targets, hides=True, stall_kinds=stall_kinds, needs=needs, same_partitions=same_partitions
    )


def outranks(*targets: str) -> Inhibition:
    """Keep these findings as contributing ones: they are true, and not the cause to act on."""
    return Inhibition(targets, hides=False)


# a group that spends its time in rebalances has no time to show what its members can do
WHILE_REBALANCING = suppresses(
    CAPACITY, SLOW, "HOT_PARTITION_ARRIVAL", "SCALE_OUT_FUTILE", needs=LONG_REBALANCE
)

Check: TypeAlias = Callable[[Any], list[Observation]]  # of the signals of a group
ClusterCheck: TypeAlias = Callable[
    [Any, Sequence[Row], Parameters], list[Observation]
]  # of a frame and the signals of all groups


def nothing(*_: object) -> list[Observation]:
    """Stand for the check that a rule does not have."""
    return []


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: all that decides, explains, ranks and documents it.

    Called with its check, as a decorator, it has the check.
    """

    number: str  # D10
    code: str
    kind: str  # META ... EVENT
    _: KW_ONLY
    says: str  # one sentence: what it means
    is_not: str  # what looks alike
    how: str = ""  # how it is found; "": the docstring of the check
    # what to do, first thing first; "kind: ..." where one kind in the evidence needs it
    advice: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()  # what not to do
    # why not to add members: left out where the verdict is that more of them help
    not_more: tuple[str, ...] = ()
    falsifier: str  # the recorded observation that would prove a finding wrong
    thresholds: tuple[str, ...] = ()  # names of parameters
    inhibits: tuple[Inhibition, ...] = ()
    groups: tuple[str, ...] = ()  # names under which other rules inhibit it
    # among causes, the lowest is the strongest; None: weaker than all that have one
    rank: int | None = None
    # the group is busy with itself, and more members would mean more of it
    blocks_scaling: bool = False
    open_after: int | None = None  # windows; None: the parameter
    close_after: int | None = None
    # windows from one look to the next: in between nothing is known to have changed
    looks_every: int = 1
    version: int = 1  # raise it when the check decides otherwise with the same thresholds
    check: Check = nothing
    check_all: ClusterCheck = nothing  # looks at all groups of the cluster together

    @property
    def mistakes(self) -> tuple[str, ...]:
        """All that is not to be done, whatever the verdict is."""
        return (*self.not_more, *self.avoid)

    def __call__(self, check: Callable[[Any], Iterable[Observation]]) -> Rule:
        """Attach the check of one group."""
        return replace(self, check=_listing(check), how=self.how or _docstring(check))

    def over_all(
        self, check: Callable[[Any, Sequence[Row], Parameters], Iterable[Observation]]
    ) -> Rule:
        """Attach the check of all groups together."""
        return replace(self, check_all=_listing(check), how=self.how or _docstring(check))


def _listing(check: Callable[..., Iterable[Observation]]) -> Callable[..., list[Observation]]:
    """Return the check with its observations in a list: all of them, or the error that ended it."""

    @wraps(check)
    def all_of(*inputs: object) -> list[Observation]:
        return list(check(*inputs))

    return all_of


def _docstring(check: Callable[..., object]) -> str:
    return " ".join((check.__doc__ or "").split())


MISSING = fixed("missing", 0.8, "of the confidence, for each input that a rule lacks")
MIN_MATURED_RECORDS = fixed(
    "min_matured_records", 100, "records old enough to be late; a share of fewer says nothing"
)
_BURN_SHORT_WINDOWS = fixed("burn_short_windows", 5, "windows")
_BURN_LONG_WINDOWS = fixed("burn_long_windows", 60, "windows")


def passes(fine: bool | None) -> str:  # noqa: FBT001 -- the name of the function is the question
    """Return the result of a guard: pass, fail, or unknown for None."""
    if fine is None:
        return UNKNOWN
    return PASS if fine else FAIL


def guard(is_bad: bool | None) -> str:  # noqa: FBT001 -- it is what is evaluated
    """Return the result of a guard: fail if the guarded condition holds, unknown for None."""
    return passes(None if is_bad is None else not is_bad)


def no_deploy(signals: Signals) -> str:
    """Return the result of the guard against rolling deploys."""
    return guard(signals.deploy is not None)


def no_maintenance(signals: Signals) -> str:
    """Return the result of the guard against declared maintenance."""
    return guard(signals.policy.in_maintenance)


def happened(signals: Signals, kinds: frozenset[str], seconds: float) -> bool:
    """Return True if an event of these kinds lies in the last `seconds`."""
    since = signals.frame.now_ms / 1000 - seconds
    return any(
        event.get("kind") in kinds and event["event_at"].timestamp() >= since
        for event in signals.frame.events
    )


def is_compacted(topic: TopicSignals) -> bool:
    """Return True if the topic is compacted and its offsets have gaps.

    Return False also if its configuration is unknown.
    """
    return "compact" in str(topic.frame.facts.get("cleanup_policy") or "")


def known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """Return the evidence without unknown values."""
    return {
        name: float(value)
        for name, value in numbers.items()
        if value is not None and not isnan(value)
    }


def assignor(signals: Signals) -> str:
    """Name of the group's assignor, "" unknown."""
    return str(signals.frame.fact.get("assignor") or "")


def share_of_lag(signals: Signals, lag: float) -> float:
    """Return the share of the group's significant lag, 1 at most; 0 without any."""
    return min(1.0, lag / signals.material_lag) if signals.material_lag > 0 else 0.0


def group_kind(frame: GroupFrame) -> str:
    """Return the group type, for a classic group its protocol type; "" if unknown.

    The result is `consumer` for consumers of both kinds.
    """
    newest = frame.generations[-1] if frame.generations else {}
    group_type = frame.fact.get("group_type") or newest.get("group_type") or ""
    if group_type == "classic":
        return frame.fact.get("protocol_type") or newest.get("protocol_type") or "consumer"
    return str(group_type)


def has_members(signals: Signals) -> bool:
    """Return True if rebalances and members of the group can be evaluated."""
    return group_kind(signals.frame) not in {"share", "simple"}


def has_assignments(signals: Signals) -> bool:
    """Return True if members own partitions.

    Connect workers and tasks of the streams protocol own none.
    """
    return group_kind(signals.frame) in {"consumer", ""}


def burns_slo(frame: GroupFrame, objective: float) -> bool:
    """Return True if too many records were late, recently and for long.

    Under 100 matured records do not count.
    """
    for count in (_BURN_SHORT_WINDOWS, _BURN_LONG_WINDOWS):
        matured, late = (
            sum(known_sum(topic[name][:, -count:]) for topic in frame.topics)
            for name in ("matured", "late")
        )
        if matured < MIN_MATURED_RECORDS or late <= (1 - objective) * matured:
            return False
    return True
