"""What is known of a group beside its findings: states that inhibit as findings do, and facts that rules share."""

from __future__ import annotations

import math
from datetime import timedelta

from laggard.diagnosis.frames import Row
from laggard.diagnosis.losses import breach_seconds, losses
from laggard.diagnosis.observation import WARN
from laggard.diagnosis.patterns_deploys import vetoing_deploy
from laggard.diagnosis.patterns_moves import subscriptions_differ_since
from laggard.diagnosis.patterns_rebalances import now_of
from laggard.diagnosis.patterns_scaling import elasticity, scale_events
from laggard.diagnosis.ranking import DEPLOY, LARGE_REWIND, LONG_REBALANCE, NEW_GROUP
from laggard.diagnosis.rules_offsets import offset_rewind
from laggard.diagnosis.view import View

_CATCH_UP = timedelta(hours=2)  # a new group that takes longer to work off the past is a group like any other
_REWIND = timedelta(hours=1)


def group_conditions(view: View) -> tuple[frozenset[str], Row]:
    """Names of conditions that hold, and the facts that rules and `group_windows` take from `View.facts`."""
    found = set()
    if view.time_in_rebalance >= view.parameters.storm_ratio:
        found.add(LONG_REBALANCE)
    if vetoing_deploy(view.frame, view.parameters) is not None:
        found.add(DEPLOY)
    if _happened(view, "group_created", _CATCH_UP) and _is_falling(view):
        found.add(NEW_GROUP)
    if _was_set_back(view) and (_is_falling(view) or view.parameters.trend_min_points > _windows_since_rewind(view)):
        found.add(LARGE_REWIND)
    differ = subscriptions_differ_since(view.frame)
    facts: Row = {
        "deploy": DEPLOY in found,
        "divergent_subscriptions": differ is not None,
        "losses": losses(view),
        "slo_breach_seconds": breach_seconds(view),
        "elasticity": _elasticity(view),
    }
    return frozenset(found), facts


def _is_falling(view: View) -> bool:
    return any(each.trend.name == "draining" for each in view.topics)


def _happened(view: View, kind: str, span: timedelta) -> bool:
    since = now_of(view.frame) - span
    return any(row["kind"] == kind and row["event_at"] >= since for row in view.frame.events)


def _was_set_back(view: View) -> bool:
    """Somebody set the offsets back, further than a rebalance replays."""
    return _happened(view, "offset_rewind", _REWIND) and any(
        each.severity == WARN for each in offset_rewind(view, _REWIND)
    )


def _windows_since_rewind(view: View) -> float:
    newest = max(row["event_at"] for row in view.frame.events if row["kind"] == "offset_rewind")
    return float((now_of(view.frame) - newest).total_seconds() / view.frame.window_seconds)


def _elasticity(view: View) -> float:
    """What the newest scale-out of the last hour brought; NaN without one, or where it shows nothing."""
    since = now_of(view.frame) - timedelta(hours=1)
    grown = [each for each in scale_events(view.frame, view.parameters) if each.after > each.before > 0]
    return elasticity(view, grown[-1]).value if grown and grown[-1].at >= since else math.nan
