"""The verdict once the cluster has been looked at, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.verdict.decisions import MOST, Verdict
from laggard.diagnosis.verdict.reasons import BROKER, DOWNSTREAM, INPUT_UNKNOWN
from laggard.diagnosis.verdict.sizing import Sizing


def with_cluster(verdict: Verdict, shared: Sequence[Observation]) -> Verdict:
    """Return the verdict of a group that conditions of the cluster reach; they decide before what comes after them."""
    row = verdict.reason.row
    codes = {each.code: each for each in shared}
    if "MONITOR_BLIND" in codes and row > INPUT_UNKNOWN.row:
        return Verdict(INPUT_UNKNOWN, {}, None)
    if verdict.code.startswith("NOT_NEEDED"):
        return verdict
    members = verdict.numbers.get("members")
    stay = None if members is None else round(members)
    broker = codes.get("BROKER_CORRELATED")
    if broker is not None and broker.explained >= MOST and row > BROKER.row:
        return Verdict(BROKER, {**verdict.numbers, "explained_ratio": broker.explained}, stay)
    if "SHARED_SINK" in codes and row > DOWNSTREAM.row:
        return replace(verdict, reason=DOWNSTREAM, members_desired=stay)
    return verdict


def verdict_columns(verdict: Verdict, sizing: Sizing) -> Row:
    """The columns of `group_windows` that say whether more consumers would help."""
    numbers = {**verdict.numbers, "row": verdict.reason.row}
    return {
        "scale_verdict": verdict.code,
        "scale_reason": {name: float(value) for name, value in sorted(numbers.items())},
        "members_desired": verdict.members_desired,
        "members_packed": sizing.members_packed,
        "members_lower_bound": sizing.members_lower_bound,
    }
