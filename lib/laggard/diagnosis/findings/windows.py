"""Rows of a window: a view as columns of `group_windows`, and `deploys` and `scale_events` that it completes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import numpy as np

from laggard.diagnosis.history.frames import Floats, Row
from laggard.diagnosis.order import known_sum, lower_median
from laggard.diagnosis.signals import forecast
from laggard.diagnosis.signals.deploy_cost import deploy_row
from laggard.diagnosis.signals.deploys import OVER, find_deploys
from laggard.diagnosis.signals.rebalances import logical_rebalances, now_of
from laggard.diagnosis.signals.scaling import scale_events, scale_row
from laggard.diagnosis.signals.view import Flags, Shape, TopicView, View


def group_rows(view: View) -> list[Row]:
    """One row per topic; what is not known is None. The verdict's columns are not in them."""
    group = _group_columns(view)
    return [_topic_columns(view, each) | group for each in view.topics]


def _topic_columns(view: View, each: TopicView) -> Row:
    frame = each.frame
    status = frame.named("status")[:, -1]
    committed = (status != "no_commit") & (status != "")
    is_whole = bool((status[committed] == "ok").all()) and bool(committed.any())
    known = each.lag[each.is_ok]
    ages = frame["time_lag"][each.is_ok, -1]
    arrival, consume = (_total(rates, committed) for rates in (each.arrival, each.consume))
    lag = float(known.sum()) if len(known) else math.nan
    trend = each.trend
    drain = forecast.slowest_drain_seconds(each, view.frame.window_seconds, view.parameters)
    soonest, latest = forecast.drain_range(lag, arrival, trend.slope_low, trend.slope_high, view.parameters)
    return {
        "date": _time(int(view.frame.windows[-1])).date(),
        "cluster": view.frame.cluster,
        "group": view.frame.group,
        "topic": frame.topic,
        "window_start": _time(int(view.frame.windows[-1])),
        "window_end": _time(view.frame.now_ms),
        "status": "ok" if is_whole else "partial",
        "lag": _integer(lag) if is_whole else None,
        "lag_known": _integer(lag),
        "lag_max": _integer(float(known.max())) if len(known) else None,
        "lag_envelope": _integer(known_sum(each.envelope[each.is_ok])) if len(known) else None,
        "floor_records": _number(_total(each.floor, committed)),
        "partitions_total": int((status != "").sum()),
        "partitions_ok": int(each.is_ok.sum()),
        "partitions_no_commit": int((status == "no_commit").sum()),
        "partitions_unknown": int((committed & ~each.is_ok).sum()),
        "partitions_material": int(each.is_material.sum()),
        "partitions_stalled": int(each.is_stalled.sum()),
        "produced": _integer(_total(frame["produced"][:, -1], committed)),
        "consumed": _integer(_total(frame["consumed"][:, -1], committed)),
        "arrival_rate": _number(arrival),
        "consume_rate": _number(consume),
        "catch_up_ratio": _number(forecast.catch_up_ratio(arrival, consume)),
        "commits": _sum_known(frame["commits"][:, -1]),
        "noop_commits": _sum_known(frame["noops"][:, -1]),
        "matured_records": _sum_known(frame["matured"][:, -1]),
        "late_records": _sum_known(frame["late"][:, -1]),
        "lost_records": _sum_known(frame["lost"][:, -1]),
        "max_time_lag_seconds": _number(float(np.nanmax(ages))) if np.isfinite(ages).any() else None,
        "p50_time_lag_seconds": _number(lower_median(ages.tolist())),
        "time_lag_censored": _is_censored(each),
        **_shape_columns(each.shape),
        "arrival_shape": each.arrival_shape.name,
        "growth_shape": each.growth_shape.name,
        "trend": trend.name,
        "slope": _number(trend.slope),
        "slope_low": _number(trend.slope_low),
        "slope_high": _number(trend.slope_high),
        "trend_p": _number(trend.p),
        "trend_points": trend.points,
        "in_step": each.in_step,
        "slope_iqr": _number(each.slope_iqr),
        "drain_seconds": _number(drain),
        "drain_low_seconds": _number(soonest),
        "drain_high_seconds": _number(latest),
        "drain_at_capacity_seconds": _number(
            forecast.drain_at_capacity_seconds(lag, arrival, view.capacity, view.member_count or math.nan)
        ),
        "loss_seconds": _number(_loss(view, frame.topic)),
        "slo_breach_seconds": _number(view.breach_seconds.get(frame.topic, math.nan)),
    }


def _group_columns(view: View) -> Row:
    has_members = view.member_count is not None
    busy = [each for each in view.members.values() if each.is_busy]
    return {
        "sub_cause": view.sub_cause or None,
        "group_state": view.frame.fact.get("group_state"),
        "members": view.member_count,
        "idle_members": view.frame.fact.get("idle_members"),
        "capacity": _number(view.capacity),
        "capacity_members": sum(not math.isnan(each.capacity) for each in view.members.values()),
        "busy_share": len(busy) / len(view.members) if view.members else None,
        **_changes(view),
        "time_in_rebalance_ratio": _number(view.time_in_rebalance),
        "members_ceiling": view.ceiling if has_members else None,
        "flags": sorted(view.flags),
    }


def _shape_columns(shape: Shape) -> Row:
    numbers = ("gini", "n_eff", "rho", "top1_share", "top_decile_share", "entropy")
    return {name: _number(getattr(shape, name)) for name in numbers} | {
        "top_partitions": list(shape.top),
        "shape_raw": shape.raw,
        "shape": shape.name,
    }


def _is_censored(each: TopicView) -> bool | None:
    """True if the largest time lag is only a lower bound: it has no error bound."""
    ages = np.where(each.is_ok, each.frame["time_lag"][:, -1], np.nan)
    if np.isnan(ages).all():
        return None
    return bool(np.isnan(each.frame["time_lag_error"][int(np.nanargmax(ages)), -1]))


def _loss(view: View, topic: str) -> float:
    loss = view.losses.get(topic)
    return math.nan if loss is None else float(loss.seconds)


def _changes(view: View) -> Row:
    """Return what the generations of this window changed."""
    begin, end = int(view.frame.windows[-1]), view.frame.now_ms
    rows = [
        row
        for row in view.frame.generations
        if row["live_read"] and begin <= row["record_timestamp"].timestamp() * 1000 < end
    ]
    ended = [each.ended_at.timestamp() * 1000 for each in logical_rebalances(view.frame)]
    slots = {slot for row in rows for name in ("joined", "left") for slot in row[name] or ()}
    return {
        "rebalances": sum(begin <= at < end for at in ended),
        "generations": len(rows),
        "churn": len(slots) / view.member_count if view.member_count else None,
    }


def _total(values: Floats, wanted: Flags) -> float:
    """Sum over the wanted partitions; NaN where one is not known or none is wanted."""
    return float(values[wanted].sum()) if wanted.any() else math.nan


def _sum_known(values: Floats) -> int | None:
    return None if np.isnan(values).all() else int(known_sum(values))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _integer(value: float) -> int | None:
    return None if math.isnan(value) else round(value)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


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
    """True if a moment lies in the evaluated window."""
    end = now_of(view.frame)
    return end - timedelta(seconds=view.frame.window_seconds) <= at < end
