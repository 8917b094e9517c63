"""Rows of a window: signals as columns of `group_windows`, and completed deploys and scalings.

These are `deploys` and `scale_events`.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

import numpy as np

from laggard.diagnosis.history.frames import LEFT, Floats, Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals import forecast
from laggard.diagnosis.signals.change_effects import deploy_row, scale_row
from laggard.diagnosis.signals.deploys import OVER
from laggard.diagnosis.signals.group import Flags, Loss, Shape, Signals, TopicSignals
from laggard.diagnosis.signals.rosters import slots_in
from laggard.diagnosis.signals.statistics import known_sum, lower_median


def group_rows(signals: Signals) -> list[Row]:
    """Return one row per topic, with None for unknown values and without the verdict's columns."""
    group = _group_columns(signals)
    left = {"flags": sorted({*signals.flags, LEFT})}
    rows = [_topic_columns(signals, each) | group for each in signals.topics]
    rows += [_topic_columns(signals, each) | group | left for each in signals.left_topics]
    return [_known(row) for row in rows]


def _topic_columns(signals: Signals, each: TopicSignals) -> Row:
    frame = each.frame
    status = frame.named("status")[:, -1]
    committed = (status != "no_commit") & (status != "")
    is_whole = forecast.is_whole(each)
    known = each.lag[each.is_ok]
    ages = frame["time_lag"][each.is_ok, -1]
    arrival, consume = (_total(rates, committed) for rates in (each.arrival, each.consume))
    lag = lag_max = envelope = math.nan
    if len(known):
        lag, lag_max = float(known.sum()), float(known.max())
        envelope = known_sum(each.envelope[each.is_ok])
    whole_lag = _integer(lag) if is_whole else None
    oldest = float(np.nanmax(ages)) if np.isfinite(ages).any() else None
    trend, loss = each.trend, signals.losses.get(frame.topic, Loss(math.nan))
    drain = forecast.topic_drain_seconds(signals, each)
    backlog = math.nan if math.isnan(drain) else forecast.backlog(signals, each)
    soonest, latest = forecast.drain_range(
        backlog, arrival, trend.slope_low, trend.slope_high, signals.parameters
    )
    return {
        "date": _time(int(signals.frame.windows[-1])).date(),
        "cluster": signals.frame.cluster,
        "group": signals.frame.group,
        "topic": frame.topic,
        "window_start": _time(int(signals.frame.windows[-1])),
        "window_end": _time(signals.frame.now_ms),
        "status": "ok" if is_whole else "partial",
        "lag": whole_lag,
        "lag_known": _integer(lag),
        "lag_max": _integer(lag_max),
        "lag_envelope": _integer(envelope),
        "floor_records": _total(each.floor, committed),
        "partitions_total": int((status != "").sum()),
        "partitions_ok": int(each.is_ok.sum()),
        "partitions_no_commit": int((status == "no_commit").sum()),
        "partitions_unknown": int((committed & ~each.is_ok).sum()),
        "partitions_material": int(each.is_material.sum()),
        "partitions_stalled": int(each.is_stalled.sum()),
        "produced": _integer(_total(frame["produced"][:, -1], committed)),
        "consumed": _integer(_total(frame["consumed"][:, -1], committed)),
        "arrival_rate": arrival,
        "consume_rate": consume,
        "catch_up_ratio": forecast.catch_up_ratio(arrival, consume),
        "commits": _sum_known(frame["commits"][:, -1]),
        "noop_commits": _sum_known(frame["noops"][:, -1]),
        "matured_records": _sum_known(frame["matured"][:, -1]),
        "late_records": _sum_known(frame["late"][:, -1]),
        "lost_records": _sum_known(forecast.known_losses(signals, each)),
        "max_time_lag_seconds": oldest,
        "p50_time_lag_seconds": lower_median(ages.tolist()),
        "time_lag_censored": _is_censored(each),
        **_shape_columns(each.shape),
        "arrival_shape": each.arrival_shape.name,
        "growth_shape": each.growth_shape.name,
        "trend": trend.name,
        "slope": trend.slope,
        "slope_low": trend.slope_low,
        "slope_high": trend.slope_high,
        "trend_p": trend.p,
        "trend_points": trend.points,
        "in_step": each.in_step,
        "slope_iqr": each.slope_iqr,
        "drain_seconds": drain,
        "drain_low_seconds": soonest,
        "drain_high_seconds": latest,
        "drain_at_capacity_seconds": forecast.drain_at_capacity_seconds(
            backlog, arrival, signals.capacity, signals.member_count or math.nan
        ),
        "loss_seconds": loss.seconds,
        "slo_breach_seconds": signals.breach_seconds.get(frame.topic, math.nan),
    }


def _group_columns(signals: Signals) -> Row:
    has_members = signals.member_count is not None
    busy = [each for each in signals.members.values() if each.is_busy]
    busy_share = len(busy) / len(signals.members) if signals.members else None
    return {
        "sub_cause": signals.sub_cause or None,
        "group_state": signals.frame.fact.get("group_state"),
        "members": signals.member_count,
        "idle_members": signals.frame.fact.get("idle_members"),
        "capacity": signals.capacity,
        "capacity_members": sum(not math.isnan(each.capacity) for each in signals.members.values()),
        "busy_share": busy_share,
        **_changes(signals),
        "time_in_rebalance_ratio": signals.time_in_rebalance,
        "members_ceiling": signals.ceiling if has_members else None,
        "flags": sorted(signals.flags),
    }


def _shape_columns(shape: Shape) -> Row:
    numbers = ("gini", "n_eff", "rho", "top1_share", "top_decile_share", "entropy")
    return {name: getattr(shape, name) for name in numbers} | {
        "top_partitions": list(shape.top),
        "shape_raw": shape.raw,
        "shape": shape.name,
    }


def _is_censored(each: TopicSignals) -> bool | None:
    """Return True if the largest time lag is only a lower bound, without an error bound.

    Return None if no time lag is known.
    """
    ages = np.where(each.is_ok, each.frame["time_lag"][:, -1], np.nan)
    if np.isnan(ages).all():
        return None
    return bool(np.isnan(each.frame["time_lag_error"][int(np.nanargmax(ages)), -1]))


def _changes(signals: Signals) -> Row:
    """Return what the generations of this window changed."""
    begin, end = int(signals.frame.windows[-1]), signals.frame.now_ms
    live = signals.frame.live_generations
    rows = [row for row in live if begin <= row["record_timestamp"].timestamp() * 1000 < end]
    ended = [each.ended_at.timestamp() * 1000 for each in signals.membership.logical_rebalances]
    slots = set[str]().union(*(slots_in(row, "joined", "left") for row in rows))
    return {
        "rebalances": sum(begin <= at < end for at in ended),
        "generations": len(rows),
        "churn": len(slots) / signals.member_count if signals.member_count else None,
    }


def _total(values: Floats, wanted: Flags) -> float:
    """Sum over the wanted partitions; NaN if one is not known or none is wanted."""
    return float(values[wanted].sum()) if wanted.any() else math.nan


def _sum_known(values: Floats) -> int | None:
    return None if np.isnan(values).all() else int(known_sum(values))


def _known(row: Row) -> Row:
    """Return the row with None for each number that is NaN."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in row.items()
    }


def _integer(value: float) -> int | None:
    return None if math.isnan(value) else round(value)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, timezone.utc)


# lag has had its time to come down, and busy windows are there to compare
_COMPLETE_SECONDS = fixed("complete_seconds", 1800.0, "s after a deploy or a change of members")
_AFTER = timedelta(seconds=_COMPLETE_SECONDS)


def completed(signals: Signals) -> dict[str, list[Row]]:
    """Return the rows of deploys and scale events that are complete in this window, by table."""
    deploys = [
        deploy_row(signals, each)
        for each in signals.membership.deploys
        if each.state == OVER and _is_now(signals, max(each.quiet_at, each.ended_at + _AFTER))
    ]
    events = [
        scale_row(signals, each)
        for each in signals.membership.scale_events
        if _is_now(signals, each.at + _AFTER)
    ]
    return {
        "deploys": [row | {"date": row["started_at"].date(), "status": "ok"} for row in deploys],
        "scale_events": [row | {"date": row["event_at"].date(), "status": "ok"} for row in events],
    }


def _is_now(signals: Signals, at: datetime) -> bool:
    """Return True if a moment lies in the evaluated window."""
    end = signals.frame.now
    return end - timedelta(seconds=signals.frame.window_seconds) <= at < end
