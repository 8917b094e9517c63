"""How soon each topic loses records to retention, or breaks its service level."""

from __future__ import annotations

import math

import numpy as np

from laggard.diagnosis.history.frames import Floats, Row, TopicFrame
from laggard.diagnosis.order import known_sum
from laggard.diagnosis.signals import forecast
from laggard.diagnosis.signals.trend import slopes
from laggard.diagnosis.signals.view import Loss, TopicView, View

FEW_JUMPS = 3  # of the log start, which moves by whole segments: below it a speed is a guess


def losses(view: View) -> dict[str, Loss]:
    """By topic."""
    return {each.frame.topic: _loss(view, each) for each in view.topics}


def _loss(view: View, each: TopicView) -> Loss:
    frame = each.frame
    retention = retention_seconds(frame.facts)
    # lag that is only the rhythm of commits is read long before it is deleted: behind a reader at the end of the log
    # retention removes what a busier hour had brought, faster than anything is read now
    matters = each.is_ok & (each.is_material | each.is_stalled)
    if not matters.any():
        return Loss(math.nan if math.isnan(retention) or not each.is_ok.any() else math.inf)
    found = Loss(math.nan)
    speeds, jumps = start_speeds(frame, view.frame.window_seconds)
    for row in np.flatnonzero(matters):
        seconds = forecast.loss_seconds(
            committed=float(frame["committed"][row, -1]),
            log_start=float(frame["start"][row, -1]),
            log_start_speed=float(speeds[row]),
            consume=float(each.consume[row]),
            retention_seconds=retention,
            time_lag=float(frame["time_lag"][row, -1]),
            arrival_at_read=_arrival_at_read(frame, int(row), view.frame.window_seconds),
        )
        if not math.isnan(seconds) and (math.isnan(found.seconds) or seconds < found.seconds):
            found = Loss(float(seconds), int(frame.partitions[row]), int(jumps[row]))
    return found


def start_speeds(frame: TopicFrame, window_seconds: int) -> tuple[Floats, Floats]:
    """Records/s by which each log start rose over the recorded windows, and in how many jumps; NaN where unknown."""
    start = frame["start"]
    rises = np.diff(start, axis=1)
    jumps = (rises > 0).sum(axis=1).astype(float)
    known = ~np.isnan(rises)
    seconds = known.sum(axis=1) * window_seconds
    return np.where(seconds > 0, np.where(known, rises, 0.0).sum(axis=1) / np.maximum(seconds, 1), np.nan), jumps


def retention_seconds(facts: Row) -> float:
    """The topic's retention: inf without a limit, NaN where the configuration could not be read."""
    if not facts.get("config_known"):
        return math.nan
    limit = facts.get("retention_seconds")
    return math.inf if limit is None or "delete" not in (facts.get("cleanup_policy") or "delete") else float(limit)


def _arrival_at_read(frame: TopicFrame, row: int, window_seconds: int) -> float:
    """Records/s that arrived when the first unread record did; where history does not reach back, the mean of it."""
    back = frame["time_lag"][row, -1] / window_seconds
    rates = frame["arrival"][row]
    if math.isnan(back):
        return math.nan
    place = len(rates) - 1 - int(back)
    near = rates[max(0, place - 2) : max(1, place + 3)]
    count = np.count_nonzero(~np.isnan(near))
    return known_sum(near) / count if count else math.nan


def breach_seconds(view: View) -> dict[str, float]:
    """Seconds until each topic's time lag passes the SLO, NaN while it does not clearly grow; empty without an SLO."""
    slo = view.policy.slo_time_lag_seconds
    if not slo:
        return {}
    seconds = view.frame.windows / 1000.0
    found = {}
    for each in view.topics:
        ages = each.frame["time_lag"]
        largest = np.where(np.isnan(ages).all(axis=0), np.nan, np.fmax.reduce(ages, axis=0))
        slope = float(slopes(seconds[-15:], largest[None, -15:], view.parameters)[0])
        grows = each.trend.name == "growing"
        found[each.frame.topic] = forecast.slo_breach_seconds(slo, float(largest[-1]), slope if grows else math.nan)
    return found
