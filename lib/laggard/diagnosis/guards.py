"""What several rules guard against, and how guards and evidence are put."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan

from laggard.diagnosis.observation import FAIL, FAILS, HOLDS, PASS, UNKNOWN
from laggard.diagnosis.view import TopicView, View

CONFIDENCE, MISSING = 0.9, 0.8  # of a rule, and the factor for each input that it lacks


def guard(is_bad: bool | None) -> str:  # noqa: FBT001 -- it is what is judged
    """Result of a guard by whether what it guards against is so; None is not known."""
    return UNKNOWN if is_bad is None else FAIL if is_bad else PASS


def state_by(guards: Mapping[str, str]) -> str:
    """A guard that fails is a veto."""
    return FAILS if FAIL in guards.values() else HOLDS


def fact(view: View, name: str) -> bool | None:
    """Whether a pattern was found in the group's rebalances; None where nobody looked."""
    return bool(view.facts[name]) if name in view.facts else None


def happened(view: View, kinds: frozenset[str], seconds: float) -> bool:
    """Whether an event of these kinds lies in the last `seconds`."""
    since = view.frame.now_ms / 1000 - seconds
    return any(event.get("kind") in kinds and event["event_at"].timestamp() >= since for event in view.frame.events)


def is_compacted(topic: TopicView) -> bool:
    """Whether its offsets have holes; False also where the configuration is not known."""
    return "compact" in str(topic.frame.facts.get("cleanup_policy") or "")


def known(numbers: Mapping[str, float | None]) -> dict[str, float]:
    """Evidence without what is not known."""
    return {name: float(value) for name, value in numbers.items() if value is not None and not isnan(value)}


def assignor(view: View) -> str:
    """Name of the group's assignor, "" unknown."""
    return str(view.frame.fact.get("assignor") or "")
