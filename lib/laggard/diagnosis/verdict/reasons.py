"""Reasons of a verdict, in the order in which they are tried, and the text for each.

A reason makes those below it pointless: nobody should size a group that spends its time in
rebalances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.rebalances import longest_pause
from laggard.diagnosis.verdict.sizing import Sizing

VERDICT_SHARE = fixed("verdict_share", 0.5, "share of the lag from which a cause decides")


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict."""

    name: str
    verdict: str  # the code that users see
    row: int  # of the table in docs/diagnosis.md, and of `scale_reason`


INPUT_UNKNOWN = Reason("input_unknown", "UNKNOWN_INPUT", 1)
NO_LAG = Reason("no_lag", "NOT_NEEDED", 2)
NO_MEMBERS = Reason("no_members", "NO_MEMBERS", 3)
# too little to say more than that while capacity is unknown
LITTLE_LAG = Reason("little_lag", "NOT_NEEDED", 2)
REBALANCES = Reason("rebalances", "NO_REBALANCE_FIRST", 4)
STALLED = Reason("stalled", "NO_STALLED", 5)
TRANSACTION_OPEN = Reason("transaction_open", "NO_BROKER", 6)
BROKER = Reason("broker", "NO_BROKER", 6)
# offsets are committed, by whom is not known
READER_UNKNOWN = Reason("reader_unknown", "UNKNOWN", 13)
HOT_PARTITION = Reason("hot_partition", "NO_HOT_PARTITION", 7)
# one after the other gets more than an owner can do
HOT_WANDERS = Reason("hot_wanders", "NO_HOT_PARTITION", 7)
COSTLY_PARTITION = Reason("costly_partition", "NO_COSTLY_PARTITION", 8)
UNHEALTHY_MEMBER = Reason("unhealthy_member", "NO_UNHEALTHY_MEMBER", 9)
DRAINING = Reason("draining", "NOT_NEEDED_DRAINING", 10)
AT_CEILING = Reason("at_ceiling", "NO_IDLE", 11)
# not even with all that could get a partition
PARTITIONS_TOO_FEW = Reason("partitions_too_few", "NO_IDLE", 11)
DOWNSTREAM = Reason("downstream", "NO_DOWNSTREAM", 12)
# what a member can do, or how the lag lies, is not known
LOAD_UNKNOWN = Reason("load_unknown", "UNKNOWN", 13)
# a partition seems hot, and was not seen for long enough
HOT_UNKNOWN = Reason("hot_unknown", "UNKNOWN", 13)
# by the newest windows, before there is a trend
DRAINING_SOON = Reason("draining_soon", "NOT_NEEDED_DRAINING", 10)
TARGET_MISSED = Reason("target_missed", "YES_PARTIAL", 14)
TOO_FEW_MEMBERS = Reason("too_few_members", "YES", 15)
ENOUGH_MEMBERS = Reason("enough_members", "NOT_NEEDED", 16)

REASONS = (
    NO_MEMBERS,  # above the floor or below it, or not known: who has no member does not keep up
    INPUT_UNKNOWN,
    NO_LAG,
    REBALANCES,
    STALLED,
    TRANSACTION_OPEN,
    BROKER,
    READER_UNKNOWN,
    HOT_PARTITION,
    HOT_WANDERS,
    COSTLY_PARTITION,
    UNHEALTHY_MEMBER,
    DRAINING,
    ENOUGH_MEMBERS,
    DRAINING_SOON,
    LITTLE_LAG,
    AT_CEILING,
    DOWNSTREAM,
    LOAD_UNKNOWN,
    HOT_UNKNOWN,
    PARTITIONS_TOO_FEW,
    TARGET_MISSED,
    TOO_FEW_MEMBERS,
)
VERDICTS = tuple(dict.fromkeys(each.verdict for each in sorted(REASONS, key=lambda each: each.row)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: its reason, the deciding numbers with units, and the desired members.

    The unit is in the name of each number.
    """

    reason: Reason
    numbers: Mapping[str, float]
    members_desired: int | None  # None if the answer is unknown

    @property
    def code(self) -> str:
        """One of `VERDICTS`."""
        return self.reason.verdict


def members_to_have(reason: Reason, signals: Signals, sizing: Sizing) -> int | None:
    """Return the number of members to have: at least one with unread records, whatever the load."""
    code, members = reason.verdict, signals.member_count
    if code.startswith("YES"):
        return sizing.members_desired
    if code.startswith("UNKNOWN") or members is None:
        return None
    if not members and (signals.lag > 0 or reason is NO_MEMBERS):
        members = _had_members(signals) if reason is REBALANCES else 1
    # members that could not get a partition are not asked for, though they are there
    return members if signals.ceiling < 1 else min(members, signals.ceiling)


def _had_members(signals: Signals) -> int:
    """Return the last known member count of a group that evicts its members.

    Such a group has no members now and then; the result is 1 if none is recorded.
    """
    had = (row.get("members") for row in reversed(signals.frame.facts) if row is not None)
    return next((each for each in had if each), 1)


def numbers_of(signals: Signals, sizing: Sizing) -> dict[str, float]:
    """Return what a verdict says of a group whatever its reason; NaN if a number is not known."""
    numbers = {
        "members": signals.member_count,
        "members_ceiling": signals.ceiling,
        "members_lower_bound": sizing.members_lower_bound,
        "members_packed": sizing.members_packed,
        "members_desired": sizing.members_desired,
        "moved_partitions": sizing.moved_partitions,
        "partitions_estimated": sizing.partitions_estimated or None,
        "lag_records": signals.lag,
        "capacity_rate": signals.capacity,
        "work_rate": sizing.work,
        "drain_at_desired_seconds": sizing.drain_seconds,
        "drain_at_members_seconds": sizing.drain_now_seconds,
    }
    known = {name: nan if value is None else float(value) for name, value in numbers.items()}
    return known | autoscaler_settings(signals)


# shorter ones measure the rebalance
_COOLDOWN_PAUSES = fixed(
    "cooldown_pauses", 3, "times the 95th percentile of the pauses of a rebalance"
)


def autoscaler_settings(signals: Signals) -> dict[str, float]:
    """Return the lag that a member drains within the SLO, and the wait between two steps.

    The value is NaN for unknown inputs.
    """
    slo = signals.policy.slo_time_lag_seconds
    return {
        "autoscaler_lag_per_member_records": slo * signals.capacity if slo > 0 else nan,
        "autoscaler_cooldown_seconds": _COOLDOWN_PAUSES * longest_pause(signals.frame.rebalances),
    }


def with_cluster(verdict: Verdict, shared: Sequence[Observation]) -> Verdict:
    """Return the verdict of a group that cluster conditions reach.

    They decide before all later reasons.
    """
    row = verdict.reason.row
    codes = {each.code: each for each in shared}
    if "MONITOR_BLIND" in codes and row > INPUT_UNKNOWN.row:
        return Verdict(INPUT_UNKNOWN, {}, None)
    if verdict.code.startswith("NOT_NEEDED"):
        return verdict
    members = verdict.numbers.get("members")
    stay = None if members is None else round(members)
    broker = codes.get("BROKER_CORRELATED")
    if broker is not None and broker.explained >= VERDICT_SHARE and row > BROKER.row:
        return Verdict(BROKER, {**verdict.numbers, "explained_ratio": broker.explained}, stay)
    if "SHARED_SINK" in codes and row > DOWNSTREAM.row:
        return replace(verdict, reason=DOWNSTREAM, members_desired=stay)
    return verdict


def verdict_columns(verdict: Verdict, sizing: Sizing) -> Row:
    """Return the columns of `group_windows` that say whether more consumers would help."""
    numbers = {**verdict.numbers, "row": verdict.reason.row}
    return {
        "scale_verdict": verdict.code,
        "scale_reason": {name: float(value) for name, value in sorted(numbers.items())},
        "members_desired": verdict.members_desired,
        "members_packed": sizing.members_packed,
        "members_lower_bound": sizing.members_lower_bound,
    }
