"""What to tell an autoscaler that is driven by lag."""

from __future__ import annotations

from math import nan

from laggard.diagnosis.signals.view import View

_COOLDOWN_PAUSES = 3  # cooldown over the p95 pause of a rebalance: shorter ones measure the rebalance


def autoscaler_settings(view: View) -> dict[str, float]:
    """Lag that a member works off within the SLO, and the wait between two steps; NaN where an input is not known."""
    slo = view.policy.slo_time_lag_seconds
    pauses = [row["pause_p95_seconds"] for row in view.frame.rebalances if row.get("pause_p95_seconds") is not None]
    return {
        "autoscaler_lag_per_member_records": slo * view.capacity if slo > 0 else nan,
        "autoscaler_cooldown_seconds": _COOLDOWN_PAUSES * max(pauses) if pauses else nan,
    }
