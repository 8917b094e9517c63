"""All rules of this folder, group states that suppress findings, and the edges of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType, ModuleType

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.rules import (
    assignment,
    capacity,
    clients,
    cluster,
    evictions,
    identity,
    loss,
    no_readers,
    offsets,
    rebalances,
    scaling,
    skew,
    stalls,
)
from laggard.diagnosis.rules.offsets import is_more_than_replayed
from laggard.diagnosis.rules.rule import (
    CAPACITY,
    DEPLOY,
    LARGE_REWIND,
    LONG_REBALANCE,
    NEW_GROUP,
    SLOW,
    Inhibition,
    Observation,
    Rule,
    happened,
    suppresses,
)
from laggard.diagnosis.signals.cluster import ClusterFrame
from laggard.diagnosis.signals.group import UNKNOWN_KIND, Signals

# a new group that takes longer to drain the past is a group like any other
_CATCH_UP_SECONDS = fixed("catch_up_seconds", 7200.0, "s")
_REWIND_SECONDS = fixed("rewind_seconds", 3600.0, "s")
_CATCHES_UP = suppresses(CAPACITY, "HOT_PARTITION_ARRIVAL")


@dataclass(frozen=True, slots=True)
class Condition:
    """A state of a group, and the findings that it hides while it holds."""

    name: str
    holds: Callable[[Signals], bool]
    inhibits: tuple[Inhibition, ...] = ()


def group_conditions(signals: Signals) -> frozenset[str]:
    """Return names of the conditions that hold at the end of the window."""
    return frozenset(each.name for each in CONDITIONS if each.holds(signals))


def _is_busy_with_rebalances(signals: Signals) -> bool:
    return signals.time_in_rebalance >= signals.parameters.storm_ratio


def _is_deployed(signals: Signals) -> bool:
    return signals.deploy is not None


def _is_new(signals: Signals) -> bool:
    """Return True if the group was created recently and drains what was in its topics."""
    return happened(signals, frozenset({"group_created"}), _CATCH_UP_SECONDS) and _is_falling(
        signals
    )


def _was_set_back(signals: Signals) -> bool:
    """Return True if offsets were set back further than a rebalance replays.

    The group must also read the records again.
    """
    if not is_more_than_replayed(signals, timedelta(seconds=_REWIND_SECONDS)):
        return False
    newest = max(row["event_at"] for row in signals.frame.events if row["kind"] == "offset_rewind")
    windows = (signals.frame.now - newest).total_seconds() / signals.frame.window_seconds
    return bool(_is_falling(signals) or signals.parameters.trend_min_points > windows)


def _is_falling(signals: Signals) -> bool:
    return any(each.trend.name == "draining" for each in signals.topics)


CONDITIONS = (
    # what rules suppress by it they say themselves
    Condition(LONG_REBALANCE, _is_busy_with_rebalances),
    Condition(
        DEPLOY,
        _is_deployed,
        (
            suppresses(
                CAPACITY,
                SLOW,
                "REBALANCE_STORM",
                "SESSION_EVICTION",
                "CRASH_LOOP",
                "PING_PONG",
                "SCALE_OUT_FUTILE",
                "SCALE_OSCILLATION",
            ),
            suppresses("PARTITION_STALLED", stall_kinds=("silent", UNKNOWN_KIND)),
        ),
    ),
    Condition(NEW_GROUP, _is_new, (_CATCHES_UP,)),
    Condition(LARGE_REWIND, _was_set_back, (_CATCHES_UP,)),
)


_FAMILIES = (
    *(cluster, loss, capacity, skew, stalls, no_readers, offsets),
    *(rebalances, evictions, identity, clients, assignment, scaling),
)


def rules_of(family: ModuleType) -> tuple[Rule, ...]:
    """Return the rules that a module of this folder declares, in order."""
    return tuple(each for each in vars(family).values() if isinstance(each, Rule))


RULES: tuple[Rule, ...] = tuple(rule for family in _FAMILIES for rule in rules_of(family))
BY_CODE: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in RULES})
# codes of findings under which more members mean more of what keeps the group busy
BLOCKS_SCALING = frozenset(rule.code for rule in RULES if rule.blocks_scaling)


@dataclass(frozen=True, slots=True)
class Edge:
    """While `by` is open or holds, findings with these codes are suppressed, or only contribute."""

    by: str  # a code, or the name of a condition of the group
    codes: frozenset[str]
    inhibition: Inhibition


def _codes(inhibition: Inhibition) -> frozenset[str]:
    """Return the codes that an inhibition names, directly or by a group of rules."""
    named = set(inhibition.targets)
    return frozenset(rule.code for rule in RULES if rule.code in named or named & set(rule.groups))


_INHIBITING = (
    *((rule.code, rule.inhibits) for rule in RULES),
    *((condition.name, condition.inhibits) for condition in CONDITIONS),
)
EDGES: tuple[Edge, ...] = tuple(
    Edge(by, _codes(each), each) for by, inhibits in _INHIBITING for each in inhibits
)


def cluster_observations(
    cluster: ClusterFrame, groups: Sequence[Row], parameters: Parameters
) -> list[Observation]:
    """Run the checks that look at all groups together.

    Each observation names its groups in `evidence_text`.
    """
    return [each for rule in RULES for each in rule.check_all(cluster, groups, parameters)]


# codes of each alert that holds while such a finding is open; conf/rules makes its expressions of
# them
ALERT_CODES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "LaggardDataLost": ("DATA_LOST",),
    "LaggardDataLossNear": ("DATA_LOSS_FORECAST",),
    "LaggardOffsetsExpireSoon": ("OFFSETS_EXPIRY_FORECAST",),
    "LaggardPartitionStalled": ("PARTITION_STALLED",),
    "LaggardPoisonPill": ("POISON_PILL_SUSPECT",),
    "LaggardCommitsStopped": ("COMMITS_STOPPED",),
    "LaggardEmptyWithLag": ("EMPTY_WITH_LAG",),
    "LaggardCapacityShort": ("CAPACITY_SHORTAGE",),
    "LaggardSlowMember": ("SLOW_MEMBER", "SLOW_HOST"),
    "LaggardRebalanceStorm": ("REBALANCE_STORM",),
    "LaggardPollTimeoutEviction": ("POLL_TIMEOUT_EVICTION",),
    "LaggardCrashLoop": ("CRASH_LOOP",),
    "LaggardRebalanceStuck": ("REBALANCE_INCOMPLETE", "RECONCILE_STUCK"),
    "LaggardStaticDuplicate": ("STATIC_DUPLICATE",),
    "LaggardPartitionUnowned": ("PARTITION_UNOWNED",),
    "LaggardTransactionStuck": ("LSO_STUCK",),
    "LaggardStaticMemberExpired": ("STATIC_EXPIRED",),
    "LaggardCoordinatorTrouble": ("COORDINATOR_CORRELATED", "BROKER_CORRELATED"),
    "LaggardScaleOutFutile": ("SCALE_OUT_FUTILE",),
    "LaggardGroupsUnwatched": ("GROUP_QUARANTINED", "RULE_FAILED"),
})  # fmt: skip
_ALERT_OF = {code: alert for alert, codes in ALERT_CODES.items() for code in codes}


def alert_of(code: str) -> str | None:
    """Return the alert for a finding; None if there is none."""
    return _ALERT_OF.get(code)


def runbook_of(code: str) -> str:
    """Return the path of the alert's runbook.

    Without an alert, return the path of the code's entry in the diagnosis page.
    """
    alert = alert_of(code)
    return f"docs/runbooks/{alert}.md" if alert else f"docs/diagnosis.md#{code.lower()}"
