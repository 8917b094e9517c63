"""Trends of lag at commits: a robust slope, a test that may abstain, and hysteresis.

The test abstains when it cannot decide.

Series are [partitions, windows], the newest window last, NaN if a window has no point. A caller
whose series broke (rewind, skip, re-creation, new generation, gap) passes NaN for everything
before the break: a line across it is no trend. Then there are too few points for a while, and the
trend abstains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats, GroupFrame, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Trend
from laggard.diagnosis.signals.significance import ENVELOPE_INTERVALS, ENVELOPE_TICKS, TICK_SHARE
from laggard.diagnosis.signals.statistics import Fits, fit, known_sum, lower_median, median_slopes

GROWING, FLAT, DRAINING, SAWTOOTH, ABSTAIN = "growing", "flat", "draining", "sawtooth", "abstain"
_TREND_LEAVE_WINDOWS = fixed(
    "trend_leave_windows", 2, "windows in a row that do not bear a trend out"
)
_TREND_SHORT_STEPS = fixed(
    "trend_short_steps", 6, "commit intervals or windows, of the short range at least"
)
_TREND_LONG_STEPS = fixed(
    "trend_long_steps", 12, "commit intervals or windows, of the long range at least"
)
_SWING_INTERVALS = fixed(
    "swing_intervals", 0.5, "commit intervals of arrivals between high and low of a sawtooth"
)
_SWING_RECORDS = fixed("swing_records", 10, "records between them at least")


@dataclass(frozen=True, slots=True)
class TrendState:
    """Memory of a trend from one window to the next."""

    name: str = ""  # growing or draining, "" neither
    unconfirmed: int = 0  # newest windows in a row that did not bear it out


def slopes(seconds: Floats, values: Floats, parameters: Parameters) -> Floats:
    """Return the Theil–Sen slope of each row of `values` [n, w] in records/s.

    The slope is NaN below `trend_min_points` points.
    """
    return median_slopes(seconds, values, parameters.trend_min_points)


def in_step(slopes: Floats, arrival: Floats, parameters: Parameters) -> tuple[bool | None, float]:
    """Return True if lag grows alike in relation to arrivals, and the ratio's spread.

    The spread is the interquartile range of that ratio.

    (None, NaN) when fewer than two partitions have both a slope and arrivals.
    """
    is_usable = ~np.isnan(slopes) & (arrival > 0)
    ratios = np.sort(slopes[is_usable] / arrival[is_usable])
    n = len(ratios)
    if n < 2:
        return None, np.nan
    spread = float(ratios[-(-3 * n // 4) - 1] - ratios[-(-n // 4) - 1])  # nearest ranks
    return spread <= parameters.homogeneity_iqr, spread


def trend_of(
    seconds: Floats,
    envelope: Floats,
    lag_max: Floats,
    arrival: float,
    interval: float,
    tick_seconds: float,
    before: TrendState,
    parameters: Parameters,
) -> tuple[Trend, TrendState]:
    """Return the trend of one series [w] at the end of its newest window; see `trends_of`."""
    rates = np.array([arrival]), np.array([interval])
    return trends_of(
        seconds, envelope[None], lag_max[None], *rates, tick_seconds, [before], parameters
    )[0]


def trends_of(
    seconds: Floats,
    envelope: Floats,
    lag_max: Floats,
    arrival: Floats,
    interval: Floats,
    tick_seconds: float,
    before: Sequence[TrendState],
    parameters: Parameters,
) -> list[tuple[Trend, TrendState]]:
    """Return the trend of each series at the newest window's end, and the memory for the next.

    `seconds` [w] are window ends, `arrival` [n] records/s, `interval` [n] commit intervals in
    seconds, NaN unknown. The numbers are those of the short range, six commit intervals or windows
    but ten minutes at least.
    """
    # np.nan_to_num takes ten times as long
    known_interval = np.where(np.isnan(interval), 0.0, interval)
    window = float(seconds[-1] - seconds[-2]) if len(seconds) > 1 else 0.0
    step = np.fmax(known_interval, window)  # between two points
    reach = np.fmax(parameters.trend_short_seconds, _TREND_SHORT_STEPS * step)
    short = _fit_newest(seconds, envelope, reach, parameters)
    least = np.fmax(
        arrival * np.fmax(ENVELOPE_TICKS * tick_seconds, ENVELOPE_INTERVALS * known_interval),
        parameters.min_lag_records,
    )
    direction = _direction(short, arrival, least, parameters)
    turned = np.flatnonzero(direction)
    if len(turned):  # the long range only says no
        long_reach = np.fmax(parameters.trend_long_seconds, _TREND_LONG_STEPS * step[turned])
        long = _fit_newest(seconds, envelope[turned], long_reach, parameters)
        against = _direction(long, arrival[turned], least[turned], parameters) == -direction[turned]
        direction[turned[against]] = 0
        turned = np.flatnonzero(direction)
        rest = _without_greatest_step(seconds, envelope[turned], reach[turned])
        lasts = _lasting(
            _fit_newest(seconds, rest, reach[turned], parameters), arrival[turned], parameters
        )
        direction[turned[lasts != direction[turned]]] = 0
    lasting = _lasting(short, arrival, parameters)
    is_swinging = _swings(lag_max - envelope, seconds, reach) >= np.maximum(
        _SWING_INTERVALS * arrival * interval, _SWING_RECORDS
    )

    evaluated = []
    for i, state in enumerate(before):
        points, slope = int(short.points[i]), float(short.slope[i])
        after = _remember(state, _NAMES[direction[i]], _NAMES[lasting[i]])
        if np.isnan(slope) or np.isnan(arrival[i]):
            evaluated.append((Trend(ABSTAIN, points), after))
            continue
        name = after.name or (SAWTOOTH if is_swinging[i] else FLAT)
        trend = Trend(
            name, points, slope, float(short.low[i]), float(short.high[i]), float(short.p[i])
        )
        evaluated.append((trend, after))
    return evaluated


def _fit_newest(seconds: Floats, envelope: Floats, reach: Floats, parameters: Parameters) -> Fits:
    """Return the fit of each row over its newest `reach` [n] seconds, both ends included."""
    age = seconds[-1] - seconds
    first = int(np.argmax(age <= reach.max(initial=0.0)))
    values = np.where(age[first:] <= reach[:, None], envelope[:, first:], np.nan)
    return fit(seconds[first:], values, parameters.trend_min_points)


def _direction(fits: Fits, arrival: Floats, least: Floats, parameters: Parameters) -> Floats:
    """Return 1 for up, -1 for down, 0 if the slope is not significant.

    A slope is not significant by chance, or if too small to count.
    """
    change = np.abs(fits.slope)
    is_significant = (
        (fits.p < parameters.trend_p)
        & (change > parameters.trend_effect * arrival)
        & (change * fits.span > least)  # a gate on what changed, not on how much lag there is
    )
    return np.where(is_significant, np.sign(fits.slope), 0.0)


def _lasting(fits: Fits, arrival: Floats, parameters: Parameters) -> Floats:
    """Return 1 for up, -1 for down, 0 if the slope fails even the weaker test.

    A trend lasts by that test.
    """
    is_borne_out = (fits.p < parameters.trend_exit_p) & (
        np.abs(fits.slope) > parameters.trend_exit_effect * arrival
    )
    return np.where(is_borne_out, np.sign(fits.slope), 0.0)


def _without_greatest_step(seconds: Floats, envelope: Floats, reach: Floats) -> Floats:
    """Return rows [n, w] without the greatest change between two points.

    The points compared are within `reach` [n].

    Lag that changed once, as where commits are made or seen later from now on, ranks like a line:
    half of its points are above the others. What goes on changes without that step as well.
    """
    values = np.where(seconds[-1] - seconds <= reach[:, None], envelope, np.nan)
    # known ones first, in order of time
    order = np.argsort(np.isnan(values), axis=1, kind="stable")
    steps = np.nan_to_num(np.diff(np.take_along_axis(values, order, axis=1), axis=1))
    greatest = np.argmax(np.abs(steps), axis=1)[:, None]
    is_after = np.arange(values.shape[1]) > np.take_along_axis(order, greatest, axis=1)
    found: Floats = values - np.where(is_after, np.take_along_axis(steps, greatest, axis=1), 0.0)
    return found


_NAMES = {1.0: GROWING, -1.0: DRAINING, 0.0: ""}


def _remember(before: TrendState, entered: str, lasting: str) -> TrendState:
    """Enter a trend at once and leave it after two windows that do not confirm it.

    Unknown windows count among them.
    """
    if before.name and lasting == before.name:
        return TrendState(before.name)
    if before.name and before.unconfirmed + 1 < _TREND_LEAVE_WINDOWS:
        return TrendState(before.name, before.unconfirmed + 1)
    return TrendState(entered)


def _swings(heights: Floats, seconds: Floats, reach: Floats) -> Floats:
    """Return the lower median per row of the heights [n, w] within reach [n] seconds.

    It is NaN if none is known.
    """
    ordered = np.sort(
        np.where(seconds[-1] - seconds <= reach[:, None], heights, np.nan), axis=1
    )  # unknown ones go last
    known = np.count_nonzero(~np.isnan(ordered), axis=1)
    middles: Floats = ordered[np.arange(len(ordered)), np.maximum(known - 1, 0) // 2]
    return middles


_FRESH_INTERVALS = fixed(
    "fresh_intervals", 2, "commit intervals for which the lag at a commit stands"
)
_QUIET_STRETCHES = fixed(
    "quiet_stretches", 2, "times the longest stretch without a commit before: they have ended"
)


def since_break(frame: TopicFrame) -> Floats:
    """Return the lag at commits, unknown before the newest rewind of each partition."""
    found = frame["envelope"].copy()
    rewound = frame["rewound"] > 0
    for row in np.flatnonzero(rewound.any(axis=1)):
        found[row, : int(np.flatnonzero(rewound[row])[-1]) + 1] = np.nan
    return found


def newest_at_commits(
    frame: TopicFrame, seconds: Floats, envelopes: Floats, window_seconds: int
) -> Floats:
    """Return the lag at the newest commit up to each window.

    It is NaN if the commit is older than two commit intervals.

    Between two rare commits plain lag tells when each member commits, and not how the lag lies.
    """
    if not np.isnan(envelopes).any():
        return envelopes
    interval = frame["interval"][:, -1]
    known = np.where(np.isnan(interval), window_seconds, interval)
    return _carried(envelopes, seconds, np.maximum(_FRESH_INTERVALS * known, window_seconds))


def partition_slopes(seconds: Floats, envelopes: Floats, parameters: Parameters) -> Floats:
    """Return slopes of the partitions; one that never had a backlog is flat without a fit."""
    known = ~np.isnan(envelopes)
    found = np.where(known.sum(axis=1) >= parameters.trend_min_points, 0.0, np.nan)
    rows = np.flatnonzero(
        np.where(known, envelopes, 0.0).max(axis=1, initial=0.0) > parameters.min_lag_records
    )
    found[rows] = slopes(seconds, envelopes[rows], parameters)
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
    """Return trends of partitions.

    The whole test runs only if lag and slope could be significant.
    """
    points = (~np.isnan(envelopes)).sum(axis=1)
    numbers = list(zip(points.tolist(), slopes.tolist(), strict=True))
    plain = {  # most partitions are alike
        (count, slope): Trend(
            ABSTAIN if count < parameters.trend_min_points else FLAT, count, slope
        )
        for count, slope in set(numbers)
    }
    found = [plain[each] for each in numbers]
    matters = (np.abs(slopes) > parameters.trend_effect * arrival) & (
        frame["lag"][:, -1] > parameters.min_lag_records
    )
    rows = np.flatnonzero(matters)
    if not len(rows):
        return found
    evaluated = trends_of(
        seconds,
        envelopes[rows],
        frame["lag_max"][rows],
        arrival[rows],
        frame["interval"][rows, -1],
        group.window_seconds * TICK_SHARE,
        [TrendState()] * len(rows),
        parameters,
    )
    for row, (each, _) in zip(rows, evaluated, strict=True):
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
    """Return the trend of the summed lag of the presently known partitions.

    The lag is as `newest_at_commits` gives it.

    A partition without a fresh lag at a commit comes with its plain lag; a window counts when
    somebody committed in it, for a repeated value is no point of its own. Where nobody commits at
    all, every window does.
    """
    is_ok = frame.named("status")[:, -1] == "ok"
    if not is_ok.any():
        return Trend(ABSTAIN), TrendState()
    rows = slice(None) if is_ok.all() else is_ok  # most often all, and then nothing is copied
    own = envelopes[rows]
    interval = frame["interval"][rows, -1]
    total = newest[rows].sum(axis=0)
    has_point = np.logical_or.reduce(~np.isnan(own), axis=0)
    # between commits whose interval is not known yet lag rises in the healthiest group
    if np.isnan(interval).all():
        total = np.where(has_point, total, np.nan)
    elif has_point.any():
        total = np.where(has_point | _quiet_end(has_point), total, np.nan)
    peaks = frame["lag_max"][rows].sum(axis=0)
    return trend_of(
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
    """Return the newest windows without a commit if commits have ended.

    Commits have ended if these windows last longer than any such stretch before.
    """
    last = len(has_point) - 1 - int(np.argmax(has_point[::-1]))
    places = np.flatnonzero(has_point)
    longest = int(np.diff(places).max(initial=1))
    is_end = np.arange(len(has_point)) > last
    return is_end & (len(has_point) - 1 - last > _QUIET_STRETCHES * longest)


def _carried(values: Floats, seconds: Floats, reach: Floats) -> Floats:
    """Return the values [n, w] with unknown values replaced by the newest known value.

    The known value lies within reach [n] seconds.
    """
    places = np.maximum.accumulate(
        np.where(np.isnan(values), -1, np.arange(values.shape[1])), axis=1
    )
    is_fresh = (places >= 0) & (seconds - seconds[places] <= reach[:, None])
    return np.where(is_fresh, np.take_along_axis(values, np.maximum(places, 0), axis=1), np.nan)
