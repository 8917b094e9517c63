"""The verdict once the cluster has been looked at, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.rules.rule import Observation
from laggard.diagnosis.verdict.decisions import MOST, Verdict
from laggard.diagnosis.verdict.sizing import Sizing

# a condition of the cluster decides before all rows of the verdict with a higher number
_BLIND_ROW, _BROKER_ROW, _DOWNSTREAM_ROW = 1, 6, 12


def with_cluster(verdict: Verdict, shared: Sequence[Observation]) -> Verdict:
    """The verdict of a group that conditions of the cluster reach."""
    row = verdict.numbers.get("row", 0.0)
    codes = {each.code: each for each in shared}
    if "MONITOR_BLIND" in codes and row > _BLIND_ROW:
        return Verdict("UNKNOWN_INPUT", {"row": float(_BLIND_ROW)}, None)
    if verdict.code.startswith("NOT_NEEDED"):
        return verdict
    members = verdict.numbers.get("members")
    stay = None if members is None else round(members)
    broker = codes.get("BROKER_CORRELATED")
    if broker is not None and broker.explained >= MOST and row > _BROKER_ROW:
        numbers = {**verdict.numbers, "row": float(_BROKER_ROW), "explained_ratio": broker.explained}
        return replace(verdict, code="NO_BROKER", numbers=numbers, members_desired=stay)
    if "SHARED_SINK" in codes and row > _DOWNSTREAM_ROW:
        numbers = {**verdict.numbers, "row": float(_DOWNSTREAM_ROW)}
        return replace(verdict, code="NO_DOWNSTREAM", numbers=numbers, members_desired=stay)
    return verdict


def verdict_columns(verdict: Verdict, sizing: Sizing) -> Row:
    """The columns of `group_windows` that say whether more consumers would help."""
    return {
        "scale_verdict": verdict.code,
        "scale_reason": {name: float(value) for name, value in sorted(verdict.numbers.items())},
        "members_desired": verdict.members_desired,
        "members_packed": sizing.members_packed,
        "members_lower_bound": sizing.members_lower_bound,
    }
