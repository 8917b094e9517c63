"""What is known of a group beside its findings: states that inhibit as findings do, and facts that rules share."""

from __future__ import annotations

from laggard.diagnosis.frames import Row
from laggard.diagnosis.losses import breach_seconds, losses
from laggard.diagnosis.ranking import LONG_REBALANCE
from laggard.diagnosis.view import View


def group_conditions(view: View) -> tuple[frozenset[str], Row]:
    """Names of conditions that hold, and the facts that rules and `group_windows` take from `View.facts`."""
    found = set()
    if view.time_in_rebalance >= view.parameters.storm_ratio:
        found.add(LONG_REBALANCE)
    facts: Row = {"losses": losses(view), "slo_breach_seconds": breach_seconds(view)}
    return frozenset(found), facts
