"""Alerts that repeat findings, and the page of the documentation that says what to do about a finding.

conf/rules makes its expressions of the codes here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CODES: Mapping[str, tuple[str, ...]] = MappingProxyType({  # of each alert that holds while such a finding is open
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
_ALERT_OF = {code: alert for alert, codes in CODES.items() for code in codes}


def alert_of(code: str) -> str | None:
    """The alert that repeats a finding; None if there is none."""
    return _ALERT_OF.get(code)


def runbook_of(code: str) -> str:
    """Path of the alert's runbook in the repository; without an alert, of the code's entry in the diagnosis."""
    alert = alert_of(code)
    return f"docs/runbooks/{alert}.md" if alert else f"docs/diagnosis.md#{code.lower()}"
