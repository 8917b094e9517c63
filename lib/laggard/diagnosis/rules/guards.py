"""Guards and evidence that several rules share, and the kinds of groups that a rule may evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isnan

from laggard.diagnosis.history.frames import GroupFrame
from laggard.diagnosis.order import known_sum
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import FAIL, FAILS, HOLDS, PASS, UNKNOWN, Observation
from laggard.diagnosis.signals.group import Signals, TopicSignals

MISSING = fixed("missing", 0.8, "of the confidence, for each input that a rule lacks")
MIN_MATURED_RECORDS = fixed("min_matured_records", 100, "records old enough to be late; a share of fewer says nothing")
_BURN_SHORT_WINDOWS = fixed("burn_short_windows", 5, "windows")
_BURN_LONG_WINDOWS = fixed("burn_long_windows", 60, "windows")


def passes(fine: bool | None) -> str:  # noqa: FBT001 -- the name of the function is the question
    """Result of a guard; None is not known."""
    return UNKNOWN if fine is None else PASS if fine else FAIL


def guard(is_bad: bool | None) -> str:  # noqa: FBT001 -- it is what is evaluated
    """Result of a guard by whether what it guards against is so."""
    return passes(None if is_bad is None else not is_bad)


def state_by(guards: Mapping[str, str]) -> str:
    """A guard that fails is a veto."""
    return FAILS if FAIL in guards.values() else HOLDS


def guarded(observation: Observation) -> list[Observation]:
    """The observation, which does not hold if one of its guards fails."""
    is_vetoed = state_by(observation.guards) == FAILS
    return [replace(observation, state=FAILS) if is_vetoed else observation]


def no_deploy(signals: Signals) -> str:
    """Result of the guard against rolling deploys, and against maintenance that was declared."""
    return passes(signals.deploy is None and not signals.policy.in_maintenance)


def happened(signals: Signals, kinds: frozenset[str], seconds: float) -> bool:
    """True if an event of these kinds lies in the last `seconds`."""
    since = signals.frame.now_ms / 1000 - seconds
    return any(event.get("kind") in kinds and event["event_at"].timestamp() >= since for event in signals.frame.events)


def is_compacted(topic: TopicSignals) -> bool:
    """True if its offsets have holes; False also where the configuration is not known."""
    return "compact" in str(topic.frame.facts.get("cleanup_policy") or "")


def known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """Evidence without what is not known."""
    return {name: float(value) for name, value in numbers.items() if value is not None and not isnan(value)}


def assignor(signals: Signals) -> str:
    """Name of the group's assignor, "" unknown."""
    return str(signals.frame.fact.get("assignor") or "")


def share_of_lag(signals: Signals, lag: float) -> float:
    """Share of the group's significant lag, 1 at most; 0 without any."""
    return min(1.0, lag / signals.material_lag) if signals.material_lag > 0 else 0.0


def group_kind(frame: GroupFrame) -> str:
    """Group type, of a classic group its protocol type: consumers of both protocols are `consumer`; "" unknown."""
    newest = frame.generations[-1] if frame.generations else {}
    group_type = frame.fact.get("group_type") or newest.get("group_type") or ""
    if group_type == "classic":
        return frame.fact.get("protocol_type") or newest.get("protocol_type") or "consumer"
    return str(group_type)


def has_members(signals: Signals) -> bool:
    """True if rebalances and members of the group can be evaluated."""
    return group_kind(signals.frame) not in {"share", "simple"}


def has_assignments(signals: Signals) -> bool:
    """True if its members own partitions: not so Connect workers, nor tasks of the streams protocol."""
    return group_kind(signals.frame) in {"consumer", ""}


def burns_slo(frame: GroupFrame, objective: float) -> bool:
    """True if too many records were late, both of late and for long; under 100 matured ones say nothing."""
    for count in (_BURN_SHORT_WINDOWS, _BURN_LONG_WINDOWS):
        matured, late = (
            sum(known_sum(topic[name][:, -count:]) for topic in frame.topics) for name in ("matured", "late")
        )
        if matured < MIN_MATURED_RECORDS or late <= (1 - objective) * matured:
            return False
    return True
