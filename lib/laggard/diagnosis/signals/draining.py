"""Forecasts of the lag by the present read rate.

Lag that drains soon needs no member, and no member is to blame for it.

Rates are those between the newest commits, so that a change shows before a trend does.
"""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.forecast import is_kept_up, topic_drain_seconds
from laggard.diagnosis.signals.group import Flags, Signals, TopicSignals
from laggard.diagnosis.signals.rates import rolling_mean
from laggard.diagnosis.signals.statistics import known_sum

FALLING_WINDOWS = fixed(
    "falling_windows", 2, "newest windows, or commits, in which more was read than came"
)


def drain_at_current_rates(signals: Signals) -> float:
    """Return the seconds until the last topic is drained at today's rates.

    Return NaN if the seconds of a topic are unknown.

    Of one that is kept up as far as is known, the few partitions that are not known do not count
    here either.
    """
    each = [
        topic_drain_seconds(signals, topic)
        for topic in signals.topics
        if not is_kept_up(signals, topic)
    ]
    return nan if any(isnan(seconds) for seconds in each) else max(each, default=0.0)


def drains_soon_in(signals: Signals) -> float:
    """Return the seconds until significant lag has drained; NaN without significant lag.

    The rates are those between the newest commits.

    An owner reads its partitions in turn: their lag counts together.
    """
    seconds = [
        owner_drains_in(topic, slot)
        for topic in signals.topics
        for slot in sorted(owners_of_lag(topic))
    ]
    return max(seconds, default=nan)


def owners_of_lag(topic: TopicSignals) -> set[str]:
    """Return slots of the owners of lag that counts, "" of nobody."""
    return set(topic.frame.named("slot")[topic.is_material, -1].tolist())


def drains_soon(signals: Signals, topic: TopicSignals) -> Flags:
    """Return a mask of the partitions of owners who soon have drained all their lag of a topic."""
    soon = [
        slot
        for slot in sorted(owners_of_lag(topic))
        if owner_drains_in(topic, slot) <= signals.policy.drain_target_seconds
    ]
    found: Flags = np.isin(topic.frame.named("slot")[:, -1], soon)
    return found


def owner_drains_in(topic: TopicSignals, slot: str) -> float:
    """Return the seconds in which an owner drains its lag of a topic.

    The rates are those between its newest commits.
    """
    own = topic.is_material & (topic.frame.named("slot")[:, -1] == slot)
    speed = known_sum(_spare(topic)[own])
    return known_sum(topic.lag[own]) / speed if speed > 0 else inf


def falls(signals: Signals) -> bool:
    """Return True if more is read than arrives, over at least a commit interval and two windows."""
    return (
        sum(
            known_sum(topic.positions.newest_rates(FALLING_WINDOWS) - _newest_arrival(topic))
            for topic in signals.topics
        )
        > 0
    )


def _newest_arrival(topic: TopicSignals) -> Floats:
    return rolling_mean(topic.frame["arrival"][:, -FALLING_WINDOWS:], FALLING_WINDOWS)[:, -1]


def partitions_drain_in(topic: TopicSignals) -> Floats:
    """Return seconds, [partitions], until a falling lag has drained; inf if it does not fall."""
    spare = _spare(topic)
    is_falling = spare > 0
    found: Floats = np.where(is_falling, topic.lag / np.where(is_falling, spare, 1.0), inf)
    return found


def _spare(topic: TopicSignals) -> Floats:
    """Return the records/s, [partitions], read beyond arrivals over a commit interval.

    The span is a commit interval and two windows at least.

    Or since its owner stood: no commit of before is in that.
    """
    read = np.fmax(topic.positions.newest_rates(FALLING_WINDOWS), topic.positions.resumed_rates())
    return read - _newest_arrival(topic)
