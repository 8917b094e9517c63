"""Reasons of a verdict, in the order in which they are tried. The first that applies is the answer.

A reason makes those below it pointless: nobody should size a group that spends its time in rebalances.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict."""

    name: str
    verdict: str  # the code that users see
    row: int  # of the table in docs/diagnosis.md, and of `scale_reason`


INPUT_UNKNOWN = Reason("input_unknown", "UNKNOWN_INPUT", 1)
NO_LAG = Reason("no_lag", "NOT_NEEDED", 2)
NO_MEMBERS = Reason("no_members", "NO_MEMBERS", 3)
REBALANCES = Reason("rebalances", "NO_REBALANCE_FIRST", 4)
STALLED = Reason("stalled", "NO_STALLED", 5)
TRANSACTION_OPEN = Reason("transaction_open", "NO_BROKER", 6)
BROKER = Reason("broker", "NO_BROKER", 6)
READER_UNKNOWN = Reason("reader_unknown", "UNKNOWN", 13)  # offsets are committed, by whom is not known
HOT_PARTITION = Reason("hot_partition", "NO_HOT_PARTITION", 7)
HOT_WANDERS = Reason("hot_wanders", "NO_HOT_PARTITION", 7)  # one after the other gets more than an owner can do
COSTLY_PARTITION = Reason("costly_partition", "NO_COSTLY_PARTITION", 8)
UNHEALTHY_MEMBER = Reason("unhealthy_member", "NO_UNHEALTHY_MEMBER", 9)
DRAINING = Reason("draining", "NOT_NEEDED_DRAINING", 10)
AT_CEILING = Reason("at_ceiling", "NO_IDLE", 11)
PARTITIONS_TOO_FEW = Reason("partitions_too_few", "NO_IDLE", 11)  # not even with all that could get a partition
DOWNSTREAM = Reason("downstream", "NO_DOWNSTREAM", 12)
LOAD_UNKNOWN = Reason("load_unknown", "UNKNOWN", 13)  # what a member can do, or how the lag lies, is not known
HOT_UNKNOWN = Reason("hot_unknown", "UNKNOWN", 13)  # a partition seems hot, and was not seen for long enough
DRAINING_SOON = Reason("draining_soon", "NOT_NEEDED_DRAINING", 10)  # by the newest windows, before there is a trend
TARGET_MISSED = Reason("target_missed", "YES_PARTIAL", 14)
TOO_FEW_MEMBERS = Reason("too_few_members", "YES", 15)
ENOUGH_MEMBERS = Reason("enough_members", "NOT_NEEDED", 16)

REASONS = (
    INPUT_UNKNOWN,
    NO_MEMBERS,  # above the floor or below it: who has no member does not keep up
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
    AT_CEILING,
    DOWNSTREAM,
    LOAD_UNKNOWN,
    DRAINING_SOON,
    HOT_UNKNOWN,
    PARTITIONS_TOO_FEW,
    TARGET_MISSED,
    TOO_FEW_MEMBERS,
    ENOUGH_MEMBERS,
)
VERDICTS = tuple(dict.fromkeys(each.verdict for each in sorted(REASONS, key=lambda each: each.row)))
