"""What a scenario says about its own run: which findings must, may and must not open, and what
would help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules import rule
from laggard.diagnosis.rules.registry import BY_CODE
from scenarios.cluster import ScenarioCluster

CODES = frozenset(BY_CODE)
META, CAUSES = (
    frozenset(code for code in CODES if BY_CODE[code].kind == kind)
    for kind in (rule.META, rule.CAUSE)
)
# those that a healthy run must not open
ALARMS = frozenset(
    code for code in CODES if BY_CODE[code].kind in {rule.META, rule.SYMPTOM, rule.CAUSE}
)

EVICTIONS = frozenset({"POLL_TIMEOUT_EVICTION", "SESSION_EVICTION", "CRASH_LOOP"})
TURMOIL = frozenset({"REBALANCE_STORM", "REBALANCE_STRAGGLER", "REBALANCE_INCOMPLETE"})

YES = frozenset({"YES", "YES_PARTIAL"})
CALM = frozenset({"NOT_NEEDED"})
FIRST = frozenset({"NO_REBALANCE_FIRST"})
VERDICTS = YES | CALM | {
    "UNKNOWN_INPUT", "UNKNOWN", "NO_MEMBERS", "NO_REBALANCE_FIRST", "NO_STALLED", "NO_BROKER",
    "NO_HOT_PARTITION",
    "NO_COSTLY_PARTITION", "NO_UNHEALTHY_MEMBER", "NOT_NEEDED_DRAINING", "NO_IDLE", "NO_DOWNSTREAM",
}  # fmt: skip


@dataclass(frozen=True)
class Must:
    """A finding that has to open once its condition is true; `within` windows is what the
    specification allows.
    """

    code: str
    minute: float  # of the run, when the condition has become true
    within: int = 10
    partitions: frozenset[int] = frozenset()  # of the finding; empty: not looked at
    group: str = ""  # "": any group of the run
    subject: str = ""  # member, host or broker; "": not looked at


@dataclass(frozen=True)
class Expect:
    """Verdicts that are right between two minutes of the run."""

    begin: float
    end: float
    verdicts: frozenset[str]
    group: str = ""


@dataclass(frozen=True)
class Labels:
    """The answers to one run; `may` opens without being right or wrong, what is in neither is
    wrong.
    """

    minutes: float  # length of the run
    must: tuple[Must, ...] = ()
    may: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()  # also counts where the code is no alarm
    # any of these at the end of the fault; empty: no cause at all
    primary: frozenset[str] = frozenset()
    primary_minutes: tuple[float, float] | None = None  # when it is looked at; None: the last ten
    expects: tuple[Expect, ...] = ()
    decide: float | None = None  # minute from which another number of members is tried
    policies: Mapping[str, Policy] = field(default_factory=dict)  # what is declared, by group


def only(*codes: str) -> frozenset[str]:
    """These codes and no other."""
    return frozenset(codes)


@dataclass(frozen=True)
class Scenario:
    """A fault, or a look-alike of one, and what its workload says about it."""

    name: str
    says: str
    workload: Callable[[ScenarioCluster], Labels]
    groups: int = 1
    poll_ahead_ms: int = 0  # of the poller's clock before the brokers'
    # minute at which the job begins; what was written before is history to it
    watched_from: float = 0.0

    @property
    def is_healthy(self) -> bool:
        return self.name.startswith("LA")
