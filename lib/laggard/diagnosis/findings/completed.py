"""Rows of `deploys` and `scale_events`: each is written once, by the window in which it is complete."""

from __future__ import annotations

from datetime import datetime, timedelta

from laggard.diagnosis.history.frames import Row
from laggard.diagnosis.signals.deploy_cost import deploy_row
from laggard.diagnosis.signals.deploys import OVER, find_deploys
from laggard.diagnosis.signals.rebalances import now_of
from laggard.diagnosis.signals.scaling import scale_events, scale_row
from laggard.diagnosis.signals.view import View

_AFTER = timedelta(minutes=30)  # lag has had its time to come down, and busy windows are there to compare


def completed(view: View) -> dict[str, list[Row]]:
    """Rows by table."""
    deploys = [
        deploy_row(view, each)
        for each in find_deploys(view.frame, view.parameters)
        if each.state == OVER and _is_now(view, max(each.quiet_at, each.ended_at + _AFTER))
    ]
    events = [
        scale_row(view, each) for each in scale_events(view.frame, view.parameters) if _is_now(view, each.at + _AFTER)
    ]
    return {
        "deploys": [row | {"date": row["started_at"].date(), "status": "ok"} for row in deploys],
        "scale_events": [row | {"date": row["event_at"].date(), "status": "ok"} for row in events],
    }


def _is_now(view: View, at: datetime) -> bool:
    """Whether a moment lies in the judged window."""
    end = now_of(view.frame)
    return end - timedelta(seconds=view.frame.window_seconds) <= at < end
