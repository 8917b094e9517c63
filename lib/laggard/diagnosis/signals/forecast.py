"""When a backlog is gone, when records or offsets are lost, when a service level breaks.

Seconds from now on; +inf is "never at this pace", NaN "not known". A forecast holds while the arrival rate stays
within a quarter of what it was, the generation stays and the status is ok.
"""

from __future__ import annotations

from math import ceil, inf, isnan, nan

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.signals.measures import rolling_mean
from laggard.diagnosis.signals.view import TopicView

OFFSETS_RETENTION_MINUTES = 10_080.0  # offsets.retention.minutes where a broker does not say otherwise


def drain_seconds(lag: float, arrival: float, consume: float, parameters: Parameters) -> float:
    """Until the lag is gone at today's rates, in records/s."""
    return _drain(lag, consume - arrival, parameters.drain_min_share * arrival)


def slowest_drain_seconds(topic: TopicView, window_seconds: int, parameters: Parameters) -> float:
    """Until the last of a topic's members has worked off its lag: what one has spare is of no use to another.

    Members whose lag is only rhythm, and partitions that stand still, count with the topic as a whole alone.
    """
    consume = _consume_of_now(topic, window_seconds, parameters)
    slots = topic.frame.named("slot")[:, -1]
    known = topic.is_ok & ~topic.is_stalled & (slots != "")
    chosen = [topic.is_ok] + [known & (slots == slot) for slot in sorted(set(slots[known & topic.is_material]))]
    sums = [[float(each[rows].sum()) for each in (topic.lag, topic.arrival, consume)] for rows in chosen]
    drains = [drain_seconds(lag, arrival, consume, parameters) for lag, arrival, consume in sums]
    return nan if any(isnan(each) for each in drains) else max(drains)


def _consume_of_now(topic: TopicView, window_seconds: int, parameters: Parameters) -> Floats:
    """Consume rates, [partitions], of whole windows since the partitions have their owners and none of them hung.

    But of as many windows as two commits of each partition need; and of all where owners have only just changed, as
    they do all the time in a storm.
    """
    recent = slice(-parameters.rate_windows - 1, None)  # one more: the first of now may be among those that count
    owners = topic.frame.named("owner")[topic.is_ok, recent]
    before = np.flatnonzero((owners != owners[:, -1:]).any(axis=0) | _somebody_hung(topic)[recent])
    # neither the last window of before nor the first of now
    whole = owners.shape[1] - int(before[-1]) - 2 if before.size else 0
    if whole < 1:
        return topic.consume
    longest = float(np.nanmax(topic.interval, initial=0.0))
    windows = min(parameters.rate_windows, max(whole, ceil(2 * longest / window_seconds)))
    return rolling_mean(topic.frame["consume"][:, recent], windows)[:, -1]


def _somebody_hung(topic: TopicView) -> npt.NDArray[np.bool_]:
    """In which windows, [windows], an owner of lag that counts read nothing of all its partitions."""
    slots, consume = topic.frame.named("slot")[:, -1], topic.frame["consume"]
    owning = sorted(set(slots[topic.is_ok & topic.is_material & (slots != "")]))
    each = [consume[topic.is_ok & (slots == slot)].sum(axis=0) == 0 for slot in owning]
    return np.any(each, axis=0) if each else np.zeros(consume.shape[1], bool)


def drain_range(
    lag: float, arrival: float, slope_low: float, slope_high: float, parameters: Parameters
) -> tuple[float, float]:
    """The soonest and the latest end of the drain by the interval of the trend's slope, in records/s."""
    least = parameters.drain_min_share * arrival
    return _drain(lag, -slope_low, least), _drain(lag, -slope_high, least)


def drain_at_capacity_seconds(lag: float, arrival: float, capacity: float, members: float) -> float:
    """Until the lag is gone if every member did what it can, `capacity` in records/s per member."""
    return nan if isnan(capacity) else _drain(lag, members * capacity - arrival, 0.0)


def _drain(lag: float, speed: float, least: float) -> float:
    if lag <= 0:
        return 0.0
    if isnan(lag + speed + least):
        return nan
    return lag / speed if speed > least else inf


def catch_up_ratio(arrival: float, consume: float) -> float:
    """Records consumed per record that arrives; NaN while nothing arrives."""
    return consume / arrival if arrival > 0 else nan


def loss_seconds(
    *,
    committed: float,
    log_start: float,
    log_start_speed: float,
    consume: float,
    retention_seconds: float,
    time_lag: float,
    arrival_at_read: float,
) -> float:
    """Until retention deletes a record that was not read yet, 0 when it already does.

    By offsets: the log start moves at `log_start_speed` (records/s, a mean over 3 jumps or more, as it moves by whole
    segments) and overtakes the committed offset. By time: the oldest unread record reaches `retention_seconds` (inf
    without limit), `arrival_at_read` being the rate at which the records at the read position were written. The
    earlier one that is known counts; never takes all inputs.
    """
    by_offsets = _overtaken(committed - log_start, log_start_speed - consume)
    speed = 1 - consume / arrival_at_read if arrival_at_read > 0 else (nan if isnan(arrival_at_read + consume) else 0.0)
    by_time = _overtaken(retention_seconds - time_lag, speed)
    soonest = min((each for each in (by_offsets, by_time) if not isnan(each)), default=nan)
    return nan if soonest == inf and isnan(by_offsets + by_time) else soonest


def _overtaken(headroom: float, speed: float) -> float:
    if isnan(headroom + speed):
        return nan
    return max(0.0, headroom) / speed if speed > 0 else inf


def slo_breach_seconds(slo_seconds: float, time_lag: float, slope: float) -> float:
    """Until the time lag passes the service level; `slope` in seconds per second, NaN where it is not significant."""
    if slo_seconds <= 0 or isnan(time_lag):
        return nan
    return 0.0 if time_lag >= slo_seconds else _overtaken(slo_seconds - time_lag, slope)


def offsets_expiry_ms(since_ms: float, retention_minutes: float = OFFSETS_RETENTION_MINUTES) -> float:
    """When the broker may delete committed offsets, in ms since the epoch; its sweep comes up to ten minutes later.

    `since_ms` is when a classic group became empty. For simple and KIP-848 groups it is the commit of the partition,
    and only topics that no live member subscribes to expire.
    """
    return since_ms + 60_000 * retention_minutes
