"""What to tell an autoscaler: thresholds, steps, when to scale in, and what scaling out brought last time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, log, nan

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.frames import Floats
from laggard.diagnosis.order import lower_median
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.sizing import Sizing
from laggard.diagnosis.view import View

COOLDOWN_PAUSES = 3  # cooldown over the p95 pause of a rebalance: shorter ones measure the rebalance


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """Settings for a scaler that is driven by lag; NaN and None where an input is not known."""

    lag_threshold_records: float  # per member: what it can do within the SLO
    step_members: int | None  # at least 1
    cooldown_seconds: float


def autoscaler(
    slo_seconds: float, capacity: float, pause_p95_seconds: float, desired: int | None, members: int | None
) -> Autoscaler:
    """Lag threshold = SLO x capacity (records/s), step = members_desired - members, cooldown from the p95 pause."""
    step = None if desired is None or members is None else max(1, desired - members)
    threshold = slo_seconds * capacity if slo_seconds > 0 else nan
    return Autoscaler(threshold, step, COOLDOWN_PAUSES * pause_p95_seconds)


def elasticity(before: Floats, members_before: int, after: Floats, members_after: int, parameters: Parameters) -> float:
    """How consumption followed the members: 1 in proportion, 0 not at all, NaN where a side was not busy.

    `before` and `after` are the group's consume rates (records/s) in busy windows, the newest last; those next to the
    change count.
    """
    near = before[-parameters.busy_windows :], after[: parameters.busy_windows]
    if min(map(len, near)) < parameters.busy_min_windows or members_before < 1 or members_after in (0, members_before):
        return nan
    low, high = (lower_median(rates.tolist()) for rates in near)
    if not (low > 0 and high > 0):
        return nan
    return (log(high) - log(low)) / (log(members_after) - log(members_before))


def may_scale_in(view: View, sizing: Sizing, open_codes: Iterable[str] = ()) -> bool | None:
    """Whether one member less does the work and it has been easy for `scale_in_seconds`; None where not known.

    `open_codes` are findings about rebalances: while there is one, the group is left as it is.
    """
    members, parameters = view.member_count, view.parameters
    if members is None or isnan(sizing.work) or not view.topics:
        return None
    if members <= max(1, view.policy.min_consumers) or any(open_codes) or sizing.work > sizing.room * (members - 1):
        return False
    count = round(parameters.scale_in_seconds / view.frame.window_seconds)
    arrivals = np.sum([np.sum(topic.frame["arrival"][:, -count:], axis=0) for topic in view.topics], axis=0)
    counts = [(fact or {}).get("members") for fact in view.frame.facts[-count:]]
    known = [(rate, many) for rate, many in zip(arrivals.tolist(), counts, strict=True) if many and not isnan(rate)]
    if len(known) < count:
        return None
    return all(rate <= parameters.scale_in_utilisation * many * view.capacity for rate, many in known)


def replica_hours(members: npt.ArrayLike, window_seconds: int) -> float:
    """Hours of all members together, from their number in each window."""
    return float(np.nansum(np.asarray(members, float))) * window_seconds / 3600


def idle_replica_hours(consume: Floats, is_below_floor: npt.NDArray[np.bool_], window_seconds: int) -> float:
    """Of these, hours in which a member consumed nothing and had no lag to speak of; arrays [members, windows].

    A window in which a member is not known (NaN) counts as neither.
    """
    return replica_hours(((consume == 0) & is_below_floor).sum(axis=0), window_seconds)
