"""What a scenario says about its own run: which findings must, may and must not open, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from laggard.diagnosis.policy import Policy
from scenarios.ground import Ground

# classes of 6 of the specification; a code that is in none of them is hygiene or an event
META = frozenset({"MONITOR_BLIND", "SOURCE_BLOCKED", "GROUP_QUARANTINED"})
SYMPTOMS = frozenset({"TIME_LAG_SLO_BREACH", "DATA_LOST", "DATA_LOSS_FORECAST", "OFFSETS_EXPIRY_FORECAST"})
CAUSES = frozenset(
    {
        "CAPACITY_SHORTAGE", "CAPACITY_BURST", "AT_PARTITION_CEILING", "HOT_PARTITION_ARRIVAL", "COSTLY_PARTITION",
        "SLOW_MEMBER", "SLOW_HOST", "BROKER_CORRELATED", "SHARED_SINK", "PARTITION_STALLED", "POISON_PILL_SUSPECT",
        "PARTITION_UNOWNED", "EMPTY_WITH_LAG", "COMMITS_STOPPED", "OFFSET_BEYOND_END", "LSO_STUCK",
        "POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "CRASH_LOOP", "REBALANCE_STORM", "REBALANCE_INCOMPLETE",
        "REBALANCE_STRAGGLER", "RECONCILE_STUCK", "ASSIGNOR_FLAP", "STATIC_EXPIRED", "STATIC_DUPLICATE",
        "STATIC_ID_UNSTABLE", "DEPLOY_LAG_SPIKE", "COORDINATOR_CORRELATED", "SCALE_OUT_FUTILE", "SCALE_OSCILLATION",
    }
)  # fmt: skip
NOTES = frozenset(
    {
        "ARRIVAL_SKEW", "EXTERNAL_COMMITTER", "NO_COMMITTED_OFFSET", "OFFSET_REWIND", "OFFSET_SKIP", "PING_PONG",
        "NON_STICKY_MOVES", "EAGER_LARGE_GROUP", "IDLE_MEMBERS", "ASSIGNMENT_IMBALANCE", "SUBSCRIPTION_DIVERGENT",
        "STATIC_NOT_USED", "TIMEOUT_RATIO", "TIMEOUT_TIGHT", "SCALE_ZERO_COLD_START", "OVERPROVISIONED_IDLE",
        "COMMIT_IDLE_CHURN", "COMMIT_RATE_HIGH", "AUTOCOMMIT_PATTERN", "OFFSETS_TOPIC_CHANGED", "GROUP_DELETED",
        "PARTITIONS_ADDED", "TOPIC_RECREATED",
    }
)  # fmt: skip
CODES = META | SYMPTOMS | CAUSES | NOTES
ALARMS = META | SYMPTOMS | CAUSES  # those that a healthy run must not open

EVICTIONS = frozenset({"POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "CRASH_LOOP"})
TURMOIL = frozenset({"REBALANCE_STORM", "REBALANCE_STRAGGLER", "REBALANCE_INCOMPLETE"})

YES = frozenset({"YES", "YES_PARTIAL"})
CALM = frozenset({"NOT_NEEDED"})
FIRST = frozenset({"NO_REBALANCE_FIRST"})
VERDICTS = YES | CALM | {
    "UNKNOWN_INPUT", "UNKNOWN", "NO_MEMBERS", "NO_REBALANCE_FIRST", "NO_STALLED", "NO_BROKER", "NO_HOT_PARTITION",
    "NO_COSTLY_PARTITION", "NO_UNHEALTHY_MEMBER", "NOT_NEEDED_DRAINING", "NO_IDLE", "NO_DOWNSTREAM",
}  # fmt: skip


@dataclass(frozen=True)
class Must:
    """A finding that has to open once its condition is true; `within` windows is what the specification allows."""

    code: str
    minute: float  # of the run, when the condition has become true
    within: int = 10
    partitions: frozenset[int] = frozenset()  # of the finding; empty: not looked at
    group: str = ""  # "": any group of the run


@dataclass(frozen=True)
class Expect:
    """Verdicts that are right between two minutes of the run."""

    begin: float
    end: float
    verdicts: frozenset[str]
    group: str = ""


@dataclass(frozen=True)
class Labels:
    """The answers to one run; `may` opens without being right or wrong, what is in neither is wrong."""

    minutes: float  # length of the run
    must: tuple[Must, ...] = ()
    may: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()  # also counts where the code is no alarm
    primary: frozenset[str] = frozenset()  # any of these at the end of the fault; empty: no cause at all
    primary_minutes: tuple[float, float] | None = None  # when it is looked at; None: the last ten
    expects: tuple[Expect, ...] = ()
    decide: float | None = None  # minute from which another number of members is tried
    policies: Mapping[str, Policy] = field(default_factory=dict)  # what is declared, by group


def only(*codes: str) -> frozenset[str]:
    """These codes and no other."""
    return frozenset(codes)


@dataclass(frozen=True)
class Scenario:
    """A fault, or a look-alike of one, and what its story says about it."""

    name: str
    says: str
    story: Callable[[Ground], Labels]
    groups: int = 1
    poll_ahead_ms: int = 0  # of the poller's clock before the brokers'
    watched_from: float = 0.0  # minute at which the job begins; what was written before is history to it

    @property
    def is_healthy(self) -> bool:
        return self.name.startswith("LA")
