"""What is known of a group beside its findings: states that inhibit as findings do, and facts that rules share."""

from __future__ import annotations

import math
from datetime import timedelta

from laggard.diagnosis.frames import Row
from laggard.diagnosis.losses import breach_seconds, losses
from laggard.diagnosis.memory import Scaled
from laggard.diagnosis.observation import WARN
from laggard.diagnosis.order import known_sum
from laggard.diagnosis.patterns_deploys import vetoing_deploy
from laggard.diagnosis.patterns_moves import subscriptions_differ_since
from laggard.diagnosis.patterns_rebalances import now_of
from laggard.diagnosis.patterns_scaling import elasticity, scale_events
from laggard.diagnosis.ranking import DEPLOY, LARGE_REWIND, LONG_REBALANCE, NEW_GROUP
from laggard.diagnosis.rules_offsets import offset_rewind
from laggard.diagnosis.view import View

_CATCH_UP = timedelta(hours=2)  # a new group that takes longer to work off the past is a group like any other
_REWIND = timedelta(hours=1)
_SCALED = timedelta(hours=1)
_OUTGROWN = 1.2  # times what all members together did: then the limit they had in common is no more


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
        "scaled": _scaled(view),
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


def _scaled(view: View) -> Scaled | None:
    """What the newest scale-out brought; None where nothing is known.

    It leaves the recorded hour, but what limits the members does not go by itself: it is remembered until the lag is
    gone, the members change in number, or they do more than they then did.
    """
    since = now_of(view.frame) - _SCALED
    recent = [each for each in scale_events(view.frame, view.parameters) if each.at >= since]
    newest = next((each for each in reversed(recent) if each.after > each.before > 0), None)
    known = view.memory.scaled
    if newest is not None:
        at_ms, found = round(newest.at.timestamp() * 1000), elasticity(view, newest)
        if not math.isnan(found.value):
            return Scaled(at_ms, found.value, found.after)
        known = known if known is not None and known.at_ms == at_ms else None
    elif recent:
        return None
    if known is None or not view.is_material:
        return None
    consumed = sum(known_sum(each.consume) for each in view.topics)
    return known if consumed <= _OUTGROWN * known.consume_rate else None
