"""Series of lag at commits: where they begin, their slopes, and the trends of partitions and topics."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, TopicFrame
from laggard.diagnosis.order import known_sum, lower_median
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals import trend
from laggard.diagnosis.signals.floor import TICK_SHARE
from laggard.diagnosis.signals.group import Trend
from laggard.diagnosis.signals.trend import TrendState

_FRESH_INTERVALS = fixed("fresh_intervals", 2, "commit intervals for which the lag at a commit stands")
_QUIET_STRETCHES = fixed("quiet_stretches", 2, "times the longest stretch without a commit before: they have ended")


def since_break(frame: TopicFrame) -> Floats:
    """Lag at commits, unknown before the newest rewind of each partition."""
    found = frame["envelope"].copy()
    rewound = frame["rewound"] > 0
    for row in np.flatnonzero(rewound.any(axis=1)):
        found[row, : int(np.flatnonzero(rewound[row])[-1]) + 1] = np.nan
    return found


def newest_at_commits(frame: TopicFrame, seconds: Floats, envelopes: Floats, window_seconds: int) -> Floats:
    """Lag at the newest commit up to each window, NaN if that is older than two commit intervals.

    Between two rare commits plain lag tells when each member commits, and not how the lag lies.
    """
    if not np.isnan(envelopes).any():
        return envelopes
    interval = frame["interval"][:, -1]
    known = np.where(np.isnan(interval), window_seconds, interval)
    return _carried(envelopes, seconds, np.maximum(_FRESH_INTERVALS * known, window_seconds))


def partition_slopes(seconds: Floats, envelopes: Floats, parameters: Parameters) -> Floats:
    """Slopes of the partitions; what never had a backlog is flat, and need not be fitted."""
    known = ~np.isnan(envelopes)
    found = np.where(known.sum(axis=1) >= parameters.trend_min_points, 0.0, np.nan)
    rows = np.flatnonzero(np.where(known, envelopes, 0.0).max(axis=1, initial=0.0) > parameters.min_lag_records)
    found[rows] = trend.slopes(seconds, envelopes[rows], parameters)
    return found


def partition_trends(
    frame: TopicFrame,
    seconds: Floats,
    envelopes: Floats,
    slopes: Floats,
    arrival: Floats,
    group: GroupFrame,
    parameters: Parameters,
) -> list[Trend]:
    """Trends of partitions; only where lag and slope could matter is the whole test worth its time."""
    points = (~np.isnan(envelopes)).sum(axis=1)
    numbers = list(zip(points.tolist(), slopes.tolist(), strict=True))
    plain = {  # most partitions are alike
        (count, slope): Trend(trend.ABSTAIN if count < parameters.trend_min_points else trend.FLAT, count, slope)
        for count, slope in set(numbers)
    }
    found = [plain[each] for each in numbers]
    matters = (np.abs(slopes) > parameters.trend_effect * arrival) & (frame["lag"][:, -1] > parameters.min_lag_records)
    rows = np.flatnonzero(matters)
    if not len(rows):
        return found
    judged = trend.judge_trends(
        seconds,
        envelopes[rows],
        frame["lag_max"][rows],
        arrival[rows],
        frame["interval"][rows, -1],
        group.window_seconds * TICK_SHARE,
        [TrendState()] * len(rows),
        parameters,
    )
    for row, (each, _) in zip(rows, judged, strict=True):
        found[row] = each
    return found


def topic_trend(
    frame: TopicFrame,
    seconds: Floats,
    envelopes: Floats,
    newest: Floats,
    arrival: Floats,
    before: TrendState,
    group: GroupFrame,
    parameters: Parameters,
) -> tuple[Trend, TrendState]:
    """The trend of the sum over the partitions that are known now, of their lag as `newest_at_commits` gives it.

    A partition without a fresh lag at a commit comes with its plain lag; a window counts when somebody committed in
    it, for a repeated value is no point of its own. Where nobody commits at all, every window does.
    """
    is_ok = frame.named("status")[:, -1] == "ok"
    if not is_ok.any():
        return Trend(trend.ABSTAIN), TrendState()
    rows = slice(None) if is_ok.all() else is_ok  # most often all, and then nothing is copied
    own = envelopes[rows]
    interval = frame["interval"][rows, -1]
    total = newest[rows].sum(axis=0)
    has_point = np.logical_or.reduce(~np.isnan(own), axis=0)
    if np.isnan(interval).all():  # between commits whose interval is not known yet lag rises in the healthiest group
        total = np.where(has_point, total, np.nan)
    elif has_point.any():
        total = np.where(has_point | _quiet_end(has_point), total, np.nan)
    peaks = frame["lag_max"][rows].sum(axis=0)
    return trend.judge_trend(
        seconds,
        total,
        peaks,
        known_sum(arrival[rows]),
        lower_median(interval.tolist()),
        group.window_seconds * TICK_SHARE,
        before,
        parameters,
    )


def _quiet_end(has_point: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Newest windows without a commit, when they last longer than any such stretch before: the commits have ended."""
    last = len(has_point) - 1 - int(np.argmax(has_point[::-1]))
    places = np.flatnonzero(has_point)
    longest = int(np.diff(places).max(initial=1))
    is_end = np.arange(len(has_point)) > last
    return is_end & (len(has_point) - 1 - last > _QUIET_STRETCHES * longest)


def _carried(values: Floats, seconds: Floats, reach: Floats) -> Floats:
    """Each unknown value [n, w] as the newest known one that is no older than reach [n] seconds."""
    places = np.maximum.accumulate(np.where(np.isnan(values), -1, np.arange(values.shape[1])), axis=1)
    is_fresh = (places >= 0) & (seconds - seconds[places] <= reach[:, None])
    return np.where(is_fresh, np.take_along_axis(values, np.maximum(places, 0), axis=1), np.nan)
