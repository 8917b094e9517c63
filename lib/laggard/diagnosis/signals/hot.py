"""Partitions that get far more records than the others of their topic."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.forecast import may_be_past
from laggard.diagnosis.signals.group import Flags, MemberSignals, Signals, TopicSignals
from laggard.diagnosis.signals.stall import is_lost
from laggard.diagnosis.signals.statistics import is_most, known_sum, lower_median

# below it the ratio of a rate to others may be chance
HOT_RECORDS = fixed("hot_records", 100.0, "records within the windows of a rate")
# below it unlike arrivals are of no interest while nothing lags
SKEW_ARRIVAL = fixed("skew_arrival", 1.0, "records/s")
HOT_WINDOWS = fixed("hot_windows", 10, "windows for which a partition must have been seen")
# one may lie half and half before and after it went on
_STILL_WINDOWS = fixed(
    "still_windows", 2, "newest windows, one of which must show that a hot partition wanders on"
)
WANDER_PLACES = fixed("wander_places", 2, "partitions of a topic, for a hot one to wander")
NEAR_BEST = fixed("near_best", 0.8, "of what the best owner has shown")


def median_of_others(values: Floats, place: int) -> float:
    """Return the lower median of the known values of all other places; NaN without any."""
    return lower_median(np.delete(values, place).tolist())


def is_hot_ratio(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if a partition gets `hot_ratio` times the arrivals of the others.

    The rates are those of the newest windows.
    """
    records = topic.arrival[place] * signals.parameters.rate_windows * signals.frame.window_seconds
    return bool(
        _seen_windows(topic, place) >= HOT_WINDOWS and records >= HOT_RECORDS
    ) and _is_above_others(signals, topic, place)


def _seen_windows(topic: TopicSignals, place: int) -> int:
    return int(np.count_nonzero(~np.isnan(topic.frame["arrival"][place])))


def _is_above_others(signals: Signals, topic: TopicSignals, place: int) -> bool:
    others = median_of_others(topic.arriving, place)
    return bool(topic.arriving[place] >= signals.parameters.hot_ratio * others)


def is_hot_unknown(signals: Signals, topic: TopicSignals, active: Flags) -> bool:
    """Return True if a lagging partition would be hot at its present rate without proof yet.

    It was not observed for long enough, or its arrivals are unknown.
    """
    return any(
        _seen_windows(topic, place) < HOT_WINDOWS
        and (
            isnan(topic.arrival[place])
            or (
                _is_above_others(signals, topic, place)
                and is_beyond_an_owner(signals, topic, place)
            )
        )
        for place in np.flatnonzero(active & topic.is_material).tolist()
    )


def hot_places(signals: Signals, topic: TopicSignals, active: Flags) -> tuple[int, ...]:
    """Return rows of hot partitions that lag.

    More arrives than any owner handled, or the owner's capacity is near the best.
    """
    return tuple(
        place
        for place in np.flatnonzero(active & topic.is_material).tolist()
        if is_hot_ratio(signals, topic, place) and is_beyond_an_owner(signals, topic, place)
    )


def overtaken_places(signals: Signals, topic: TopicSignals) -> tuple[int, ...]:
    """Return rows of hot partitions that are read too slowly.

    Retention deletes their unread records.

    Their lag is not known, nor what is read of them: each commit is a jump over deleted records.
    """
    is_overtaken = is_lost(topic.frame) & ~may_be_past(signals, topic) & ~topic.is_stalled
    return tuple(
        place
        for place in np.flatnonzero(is_overtaken).tolist()
        if is_hot_ratio(signals, topic, place) and topic.arriving[place] > signals.best_capacity
    )


def wandering(signals: Signals, topic: TopicSignals) -> frozenset[int]:
    """Return rows that got `hot_ratio` times the arrivals of the others, one after the other.

    They also got more than an owner can do.

    Each window counts by itself: a mean over several has a place that wanders at none. Empty if it
    was not so in most of the newest windows; one row if it was the same place in all of them.
    """
    arrival = topic.frame["arrival"][:, -HOT_WINDOWS:]
    is_behind = topic.is_material | is_lost(topic.frame)
    if len(arrival) < WANDER_PLACES or isnan(signals.best_capacity) or not is_behind.any():
        return frozenset()
    highest = np.fmax.reduce(arrival, axis=0)
    at = np.flatnonzero(highest > signals.best_capacity)
    if not is_most(len(at), arrival.shape[1]) or arrival.shape[1] - at[-1] > _STILL_WINDOWS:
        return frozenset()
    return frozenset(
        int(place)
        for window, place in zip(
            at.tolist(), np.nanargmax(arrival[:, at], axis=0).tolist(), strict=True
        )
        if highest[window]
        >= signals.parameters.hot_ratio * median_of_others(arrival[:, window], place)
    )


def is_beyond_an_owner(signals: Signals, topic: TopicSignals, place: int) -> bool:
    """Return True if no member could handle this partition.

    Return False also if the capacity of members is unknown.
    """
    if topic.arriving[place] > signals.best_capacity:
        return True
    owner = owner_of(signals, topic, place)
    never_busy = owner is not None and isnan(owner.capacity) and not owner.is_busy
    return bool(never_busy and topic.consume[place] >= NEAR_BEST * signals.best_capacity)


def owner_of(signals: Signals, topic: TopicSignals, place: int) -> MemberSignals | None:
    """Return the member that owns the partition, None if unknown."""
    return signals.members.get(str(topic.frame.named("slot")[place, -1]))


def skewed_places(signals: Signals, topic: TopicSignals, seconds: float) -> tuple[int, ...]:
    """Return rows of partitions that got `hot_ratio` times the others' arrivals.

    The condition holds all through the last `seconds`.
    """
    count, block = round(seconds / signals.frame.window_seconds), signals.parameters.rate_windows
    arrivals = topic.frame["arrival"][:, -count:]
    if arrivals.shape[1] < count or len(arrivals) < 2:
        return ()
    skewed = np.full(len(arrivals), fill_value=True)
    for start in range(0, count, block):
        rates = _means(arrivals[:, start : start + block])
        if rates.max() < signals.parameters.hot_ratio * rates.min():
            # what is not as far above the lowest is not as far above the median of the others
            return ()
        skewed &= rates >= np.fmax(
            SKEW_ARRIVAL, signals.parameters.hot_ratio * medians_of_others(rates)
        )
        if not skewed.any():
            return ()
    return tuple(np.flatnonzero(skewed).tolist())


def medians_of_others(values: Floats) -> Floats:
    """Return `median_of_others` for all places at once."""
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    found = np.full(len(values), np.nan)
    if len(order):
        whole = (len(order) - 1) // 2
        found[:] = values[order[whole]]
    if len(order) > 1:
        middle = (len(order) - 2) // 2
        rank = np.arange(len(order))
        found[order] = values[order[np.where(rank <= middle, middle + 1, middle)]]
    elif len(order):
        found[order] = np.nan
    return found


def _means(rates: Floats) -> Floats:
    known = ~np.isnan(rates)
    with np.errstate(invalid="ignore"):
        means: Floats = np.where(known, rates, 0.0).sum(axis=1) / known.sum(axis=1)
    return means


def share(values: Floats, places: Sequence[int]) -> float:
    """Return the share of the sum of all known values that these places hold."""
    total = known_sum(values)
    return known_sum(values[list(places)]) / total if total > 0 else 0.0
