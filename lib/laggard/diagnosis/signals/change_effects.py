"""Cost of deploys, effects of changed member numbers, and groups that sleep and wake up."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from laggard.diagnosis.history.frames import Floats, Row, Scaled
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.deploys import Deploy, ScaleEvent
from laggard.diagnosis.signals.group import Flags, Signals
from laggard.diagnosis.signals.statistics import known_sum, lower_median

_SCALED_SECONDS = fixed("scaled_seconds", 3600.0, "s since the newest scale-out")
# then the limit that the members had in common is no more
_OUTGROWN = fixed("outgrown", 1.2, "times what all members together did")


@dataclass(frozen=True, slots=True)
class Elasticity:
    """Consumption on both sides of a scale event, medians of busy windows in records/s.

    It is NaN if the group was not busy.
    """

    before: float
    after: float
    value: float  # Δln μ / Δln N


@dataclass(frozen=True, slots=True)
class ColdStart:
    """A group without members that got some again."""

    empty_at: datetime
    returned_at: datetime
    waited_seconds: float  # from the first arrival without members to their return
    backlog_records: float  # at the return
    catch_up_seconds: float  # up to the end of the window where it has not caught up
    is_caught_up: bool


def elasticity(signals: Signals, event: ScaleEvent) -> Elasticity:
    """Return the effect of a change of members on consumption.

    It counts windows with enough to read on both sides.
    """
    parameters = signals.parameters
    busy, consume = busy_windows(signals)
    ends = signals.frame.windows / 1000 + signals.frame.window_seconds
    at = event.at.timestamp()
    before = consume[busy & (ends <= at)][-parameters.busy_windows :]
    after = consume[busy & (ends > at)][: parameters.busy_windows]
    least = parameters.busy_min_windows
    medians = [
        lower_median(each.tolist()) if len(each) >= least else math.nan for each in (before, after)
    ]
    grown = math.log(event.after / event.before)
    value = math.log(medians[1] / medians[0]) / grown if min(medians) > 0 and grown else math.nan
    return Elasticity(medians[0], medians[1], value)


def newest_scale_out(signals: Signals) -> Scaled | None:
    """Return what the newest scale-out brought; None if nothing is known.

    It leaves the recorded hour, but what limits the members does not go by itself: it is remembered
    until the lag has drained, the members change in number, or they do more than they then did.
    """
    since = signals.frame.now - timedelta(seconds=_SCALED_SECONDS)
    recent = [each for each in signals.membership.scale_events if each.at >= since]
    newest = next((each for each in reversed(recent) if each.is_up), None)
    known = signals.memory.scaled
    if newest is None:
        return None if recent else _still(signals, known)
    at_ms, found = round(newest.at.timestamp() * 1000), elasticity(signals, newest)
    if not math.isnan(found.value):
        return Scaled(at_ms, found.value, found.after)
    return _still(signals, known) if known is not None and known.at_ms == at_ms else None


def _still(signals: Signals, known: Scaled | None) -> Scaled | None:
    """Return the remembered effect.

    It is dropped if the lag has drained or the members do clearly more now.
    """
    if known is None or not signals.is_material:
        return None
    consumed = sum(known_sum(each.consume) for each in signals.topics)
    return known if consumed <= _OUTGROWN * known.consume_rate else None


def scale_row(signals: Signals, event: ScaleEvent) -> Row:
    """Return a row of `scale_events`, None for unknown values.

    The row is complete once ten busy windows have passed.
    """
    found = elasticity(signals, event)
    numbers = {
        "consume_rate_before": found.before,
        "consume_rate_after": found.after,
        "elasticity": found.value,
    }
    return {
        "cluster": signals.frame.cluster,
        "group": signals.frame.group,
        "event_at": event.at,
        "members_before": event.before,
        "members_after": event.after,
        **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
    }


def busy_windows(signals: Signals) -> tuple[Flags, Floats]:
    """Return the busy flag and the consumed records/s of each window.

    A window is busy if members always had more to read than a commit interval hides.

    A window with a generation change, or right after one, is not busy; nor is one with a partition
    unknown.
    """
    frame = signals.frame
    lowest, consume = (group_sum(signals, name) for name in ("lag_min", "consume"))
    floor = sum(known_sum(topic.floor) for topic in signals.topics)
    busy = np.isfinite(consume) & (lowest > floor)
    for row in frame.live_generations:
        at = row["record_timestamp"].timestamp() * 1000
        index = int((at - frame.windows[0]) // (1000 * frame.window_seconds))
        for each in (index, index + 1):
            if 0 <= each < len(busy):
                busy[each] = False
    return busy, consume


def find_cold_start(signals: Signals, min_empty_seconds: float) -> ColdStart | None:
    """Return the newest return of members to a group that was empty for `min_empty_seconds`.

    It must lie in the frame's windows.
    """
    frame = signals.frame
    rows = [row for row in frame.live_generations if row["kind"] in {"sync", "empty", "epoch"}]
    begin = frame.windows[0] / 1000
    for empty, back in reversed(list(pairwise(rows))):
        empty_at, returned_at = empty["record_timestamp"], back["record_timestamp"]
        is_return = not empty["member_count"] and back["member_count"]
        if not is_return or returned_at.timestamp() < begin:
            continue
        if (returned_at - empty_at).total_seconds() < min_empty_seconds:
            return None
        return _cold_start(signals, empty_at, returned_at)
    return None


def _cold_start(signals: Signals, empty_at: datetime, returned_at: datetime) -> ColdStart:
    frame = signals.frame
    ends = frame.windows / 1000 + frame.window_seconds
    at = returned_at.timestamp()
    backlog, first = 0.0, math.inf
    for topic in signals.topics:
        for end, committed in zip(topic.frame["end"], topic.frame["committed"], strict=True):
            known = np.isfinite(end)
            done = committed[np.isfinite(committed) & (ends <= at)]
            if not known.any() or not len(done):
                continue
            backlog += max(0.0, float(np.interp(at, ends[known], end[known]) - done[-1]))
        arrived = np.nansum(topic.frame["produced"], axis=0) > 0
        waits = arrived & (ends > empty_at.timestamp())
        if waits.any():
            first = min(first, float(ends[waits][0]) - frame.window_seconds)
    waited = max(0.0, at - max(first, empty_at.timestamp()))
    floor = sum(known_sum(topic.floor) for topic in signals.topics)
    lag = group_sum(signals, "lag")
    caught = np.flatnonzero((ends > at) & (lag <= floor))
    until = float(ends[caught[0]]) if len(caught) else frame.now_ms / 1000
    return ColdStart(
        empty_at, returned_at, waited, backlog, until - at, is_caught_up=bool(len(caught))
    )


def idle_replica_hours(signals: Signals) -> tuple[float, float, float]:
    """Return replica-hours of the baseline's time, idle replica-hours, and the busy share.

    The busy share is a share of the time.

    A window is idle if nothing was consumed and nothing lagged beyond the floor; NaN without a
    baseline.
    """
    floor = {topic.frame.topic: known_sum(topic.floor) for topic in signals.topics}
    hours: dict[datetime, float] = {}
    busy: set[datetime] = set()
    for topic, rows in signals.frame.baseline().items():
        for row in rows:
            members, consumed, begin = row.get("members"), row.get("consumed"), row["window_start"]
            if members is None or consumed is None:
                continue
            hours[begin] = members * (row["window_end"] - begin).total_seconds() / 3600
            if consumed > 0 or (row.get("lag_known") or 0) > floor.get(topic, 0.0):
                busy.add(begin)
    total = sum(hours.values())
    if not total:
        return math.nan, math.nan, math.nan
    return (
        total,
        sum(each for begin, each in hours.items() if begin not in busy),
        len(busy) / len(hours),
    )


def group_sum(signals: Signals, name: str) -> Floats:
    """Sum over partitions per window of one of the arrays; NaN if one of them is unknown."""
    total = np.full(len(signals.frame.windows), 0.0 if signals.topics else np.nan)
    for topic in signals.topics:
        total = total + topic.frame[name].sum(axis=0)
    return total


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
    # beyond its trend lag rose by a quarter, and by what counts as lag, if only between two polls
    is_spike: bool


def measure_deploy(signals: Signals, deploy: Deploy) -> DeployCost:
    """Return the cost by the frame's windows, from ten before the deploy to its end.

    The end is its quiet time or the evaluated window.
    """
    frame = signals.frame
    starts = frame.windows / 1000
    ends = starts + frame.window_seconds
    begin, end = deploy.started_at.timestamp(), deploy.ended_at.timestamp()
    before = np.flatnonzero(ends <= begin)[-_COST_BEFORE_WINDOWS:]
    during = (ends > begin) & (starts <= deploy.quiet_at.timestamp())
    highest, lag, envelope, arrival = (
        group_sum(signals, name) for name in ("lag_max", "lag", "envelope", "arrival")
    )
    usual = lower_median(lag[before].tolist())
    highest_before, peak = (
        _max(highest[before]),
        _max(highest[during] - _growth(lag[before], during)),
    )
    excess = np.where(ends > begin, np.clip(lag - usual, 0.0, None), 0.0)
    after = np.flatnonzero((starts >= end) & (highest <= _SPIKE_RATIO * highest_before))
    recovered = float(ends[after[0]]) if len(after) else math.nan
    counted = excess[(ends > begin) & ~(ends > recovered)]
    area = known_sum(counted) * frame.window_seconds if math.isfinite(usual) else math.nan
    # pauses of seconds lie between two polls, but each rebalance tells what it kept waiting
    risen = np.fmax(peak - highest_before, _most_delayed(signals, deploy))
    rates = lower_median(arrival[before].tolist()), lower_median(arrival[during].tolist())
    lag_seconds = arrival_ratio = math.nan
    if rates[0] > 0:
        lag_seconds, arrival_ratio = area / rates[0], rates[1] / rates[0]
    return DeployCost(
        lag_before=highest_before,
        peak_lag=_max(highest[during]),
        peak_envelope=_max(envelope[during]),
        lag_record_seconds=area,
        lag_seconds=lag_seconds,
        recovery_seconds=recovered - end,
        arrival_ratio=arrival_ratio,
        is_spike=bool(
            risen
            >= max((_SPIKE_RATIO - 1) * highest_before, signals.parameters.min_group_lag_records)
        ),
    )


def deploy_row(signals: Signals, deploy: Deploy) -> Row:
    """Return a row of `deploys`; None means unknown."""
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
    """Return the number of delayed records in the worst of the deploy's rebalances.

    Return NaN if no number is known.
    """
    rows = [row for row in signals.frame.rebalances if row["rebalance_id"] in deploy.rebalance_ids]
    delayed = [row.get("records_delayed") for row in rows]
    return max((float(each) for each in delayed if each is not None), default=math.nan)


def _growth(before: Floats, during: Flags) -> Floats:
    """Return the expected rise of lag by each window of the deploy.

    It is at the growth of most windows before it.
    """
    step = lower_median(np.diff(before).tolist())
    return max(0.0, step if math.isfinite(step) else 0.0) * np.arange(
        1.0, np.count_nonzero(during) + 1
    )


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _max(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else math.nan
