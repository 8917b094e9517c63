"""Cost of a deploy: how far lag rose and how long it took to fall again; the row of `deploys`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from laggard.diagnosis.history.frames import Floats, Row
from laggard.diagnosis.order import known_sum, lower_median
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.deploys import Deploy
from laggard.diagnosis.signals.group import Flags, Signals
from laggard.diagnosis.signals.scaling import group_lag

_COST_BEFORE_WINDOWS = fixed("cost_before_windows", 10, "windows before a deploy")
# commits let lag rise and fall by themselves
_SPIKE_RATIO = fixed("spike_ratio", 1.25, "of the highest lag before")


@dataclass(frozen=True, slots=True)
class DeployCost:
    """Numbers in records but for the last three; NaN if windows around the deploy are unknown."""

    lag_before: float  # highest of the ten windows before
    peak_lag: float
    peak_envelope: float
    lag_record_seconds: float  # area of lag above the lower median of before
    lag_seconds: float  # the same over the arrival rate: time lag times how long it lasted
    recovery_seconds: float  # from the last change until lag is down again, NaN not yet
    arrival_ratio: float  # arrival rate in the deploy over the one before
    is_spike: bool  # beyond its trend lag rose by a quarter, and by what counts as lag, if only between two polls


def measure_deploy(signals: Signals, deploy: Deploy) -> DeployCost:
    """Cost by the windows of the frame, from the ten before the deploy up to its quiet or the evaluated one."""
    frame = signals.frame
    starts = frame.windows / 1000
    ends = starts + frame.window_seconds
    begin, end = deploy.started_at.timestamp(), deploy.ended_at.timestamp()
    before = np.flatnonzero(ends <= begin)[-_COST_BEFORE_WINDOWS:]
    during = (ends > begin) & (starts <= deploy.quiet_at.timestamp())
    highest, lag, envelope, arrival = (group_lag(signals, name) for name in ("lag_max", "lag", "envelope", "arrival"))
    usual = lower_median(lag[before].tolist())
    highest_before, peak = _max(highest[before]), _max(highest[during] - _growth(lag[before], during))
    excess = np.where(ends > begin, np.clip(lag - usual, 0.0, None), 0.0)
    after = np.flatnonzero((starts >= end) & (highest <= _SPIKE_RATIO * highest_before))
    recovered = float(ends[after[0]]) if len(after) else math.nan
    counted = excess[(ends > begin) & ~(ends > recovered)]
    area = known_sum(counted) * frame.window_seconds if math.isfinite(usual) else math.nan
    # pauses of seconds lie between two polls, but each rebalance tells what it kept waiting
    risen = np.fmax(peak - highest_before, _most_delayed(signals, deploy))
    rates = lower_median(arrival[before].tolist()), lower_median(arrival[during].tolist())
    return DeployCost(
        lag_before=highest_before,
        peak_lag=_max(highest[during]),
        peak_envelope=_max(envelope[during]),
        lag_record_seconds=area,
        lag_seconds=area / rates[0] if rates[0] > 0 else math.nan,
        recovery_seconds=recovered - end,
        arrival_ratio=rates[1] / rates[0] if rates[0] > 0 else math.nan,
        is_spike=bool(risen >= max((_SPIKE_RATIO - 1) * highest_before, signals.parameters.min_group_lag_records)),
    )


def deploy_row(signals: Signals, deploy: Deploy) -> Row:
    """Row of `deploys`; None is unknown."""
    cost = measure_deploy(signals, deploy)
    return {
        "cluster": signals.frame.cluster,
        "group": signals.frame.group,
        "started_at": deploy.started_at,
        "ended_at": deploy.ended_at,
        "batches": deploy.batches,
        "slots": deploy.slots,
        "replaced": deploy.replaced,
        "rebalances": deploy.rebalances,
        "rebalance_ids": list(deploy.rebalance_ids),
        "rebalance_mode": deploy.mode or None,
        "static_share": deploy.static_share,
        "lag_before": _known(cost.lag_before),
        "peak_lag": _known(cost.peak_lag),
        "lag_record_seconds": _known(cost.lag_record_seconds),
        "lag_seconds": _known(cost.lag_seconds),
        "recovery_seconds": _known(cost.recovery_seconds),
        "is_spike": cost.is_spike,
    }


def _most_delayed(signals: Signals, deploy: Deploy) -> float:
    """Records that waited in the worst of its rebalances; NaN if none is known."""
    rows = [row for row in signals.frame.rebalances if row["rebalance_id"] in deploy.rebalance_ids]
    delayed = [row.get("records_delayed") for row in rows]
    return max((float(each) for each in delayed if each is not None), default=math.nan)


def _growth(before: Floats, during: Flags) -> Floats:
    """By how much lag would have risen by each window of the deploy if it went on growing as in most windows before."""
    step = lower_median(np.diff(before).tolist())
    return max(0.0, step if math.isfinite(step) else 0.0) * np.arange(1.0, np.count_nonzero(during) + 1)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _max(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else math.nan
