"""Lag on some partitions only: the coarsest factor that explains it.

The factors are broker, host, member or partition.

Stalled partitions are set aside before. Each cause that is found is set aside too and the rest is
searched again, so that two causes at once are two findings. Where none is found, what drains soon
by itself is set aside as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.signals.draining import drains_soon
from laggard.diagnosis.signals.group import Cause, Fit, Flags, Signals, Slowness, TopicSignals
from laggard.diagnosis.signals.hot import hot_places, is_hot_ratio
from laggard.diagnosis.signals.slow import costly_places, slowness
from laggard.diagnosis.signals.stall import BELOW_LOG_START
from laggard.diagnosis.signals.statistics import known_sum, lower_median

EXACT_SUBSETS = fixed("exact_subsets", 5_000, "subsets; of more, as many less one are drawn")
_SUBSETS_AT_ONCE = fixed("subsets_at_once", 500, "subsets drawn at once")


def rank_p(
    lags: tuple[float, ...], chosen: tuple[int, ...], seed: str, enough: float = 1.0
) -> float:
    """Return (1 + other subsets of that size with at least the lag of `chosen`) / subsets.

    `chosen` indexes `lags`.

    Where the subsets are drawn, drawing ends when p has passed `enough` and cannot return.
    """
    values = np.asarray(lags)
    # sums of fractions differ by their order
    reached = float(values[list(chosen)].sum()) * (1 - 1e-12)
    size, count = len(lags), len(chosen)
    if comb(size, count) <= EXACT_SUBSETS:
        sums = values[_subsets(size, count)].sum(axis=1)
        return float((sums >= reached).sum()) / len(sums)  # chosen is one of them
    random = np.random.default_rng(int.from_bytes(sha256(seed.encode()).digest()[:8], "big"))
    as_much, left = 0, EXACT_SUBSETS - 1
    while left and (1 + as_much) / EXACT_SUBSETS <= enough:
        drawn = random.random((min(_SUBSETS_AT_ONCE, left), size)).argpartition(count, axis=1)[
            :, :count
        ]
        as_much += int((values[drawn].sum(axis=1) >= reached).sum())
        left -= len(drawn)
    return (1 + as_much) / EXACT_SUBSETS


def least_p(size: int, count: int) -> float:
    """Return the smallest p-value that any data could give."""
    return 1 / comb(size, count)


@lru_cache(maxsize=16)
def _subsets(size: int, count: int) -> npt.NDArray[np.intp]:
    return np.array(list(combinations(range(size), count)), np.intp)


BROKER, HOST, MEMBER, HOT, COSTLY = "broker", "host", "member", "hot", "costly"  # labels
MORE_CAUSES = fixed("more_causes", 3, "causes of the lag of a topic, beside the first")
UNEVEN = ("concentrated", "mixed")  # shapes of lag that have somebody to blame
# then nobody holds it back
_MORE_THAN_EVER = fixed("more_than_ever", 1.1, "times what was read when nothing lagged")
_SMALL_WINDOWS = fixed(
    "small_windows", 2, "windows before that must agree where few partitions prove little"
)
_DRAIN_SHARE = fixed(
    "drain_share",
    0.1,
    "of what arrives, by which lag falls while nothing holds its partitions back",
)
_ATTRIBUTED_PARTITIONS = fixed(
    "attributed_partitions", 2, "partitions of one value of a factor, at least"
)
_ATTRIBUTED_SHARE = fixed("attributed_share", 0.5, "share of the partitions, at most")


def attribute(signals: Signals) -> tuple[Cause, ...]:
    """Return the causes of concentrated or mixed lag of all topics.

    Within a topic they are in the order in which they were found.
    """
    return tuple(cause for topic in signals.topics for cause in attribute_topic(signals, topic))


def attribute_topic(signals: Signals, topic: TopicSignals) -> list[Cause]:
    """Return the causes of the lag of one topic; none unless its shape is uneven."""
    found: list[Cause] = []
    if not signals.is_material or topic.shape.name not in UNEVEN:
        return found
    active, is_whole = searchable(topic), True
    while topic.is_material[active].any() and len(found) <= MORE_CAUSES:
        cause = next(_causes(signals, topic, active), None)
        if cause is not None:
            found.append(cause)
            active[list(cause.fit.places)] = False
        elif is_whole:  # what a fault that is over has left: without it another cause may be found
            active, is_whole = active & ~(topic.is_material & drains_soon(signals, topic)), False
        else:
            break
    return found


def searchable(topic: TopicSignals) -> Flags:
    """Return a mask of the partitions that are not stalled and whose lag is known."""
    return topic.is_ok & ~topic.is_stalled & ~np.isnan(topic.lag)


def _causes(signals: Signals, topic: TopicSignals, active: Flags) -> Iterator[Cause]:
    slow = [*_slow(signals, topic, active, HOST), *_slow(signals, topic, active, MEMBER)]
    for broker, fit in _broker_fits(signals, topic, active):
        twin = next((each for each in slow if each.fit.places == fit.places), None)
        if twin is not None:  # one group cannot tell them apart, and a slow member is the likelier
            yield replace(twin, alternatives={"broker": broker}, is_proven=False)
        if not _had_one_owner(topic, fit.places):  # else it is what that owner left
            yield _cause(BROKER, topic, fit, broker)
    yield from slow
    hot = hot_places(signals, topic, active)
    if hot:
        yield _cause(HOT, topic, _measure(topic, active, hot), "")
    costly, is_proven = costly_places(signals, topic, active)
    if costly and len(costly) <= _ATTRIBUTED_SHARE * active.sum():
        cause = _cause(COSTLY, topic, _measure(topic, active, costly), "")
        owners = ", ".join(topic.frame.named("slot")[list(costly), -1])
        if cause.fit.contrast <= 1:
            yield (
                cause
                if is_proven
                else replace(cause, alternatives={"member": owners}, is_proven=False)
            )


def _broker_fits(signals: Signals, topic: TopicSignals, active: Flags) -> Iterator[tuple[str, Fit]]:
    brokers = np.array(
        [
            "" if np.isnan(each) or each < 0 else f"{each:.0f}"
            for each in topic.frame["broker"][:, -1]
        ]
    )
    for name, fit in _fits(signals, topic, active, brokers):
        if any(
            is_hot_ratio(signals, topic, place) for place in fit.places
        ) or _reads_more_than_ever(signals, topic):
            continue  # their lag needs no broker
        behind = [place for place in fit.places if topic.is_material[place]]
        if (topic.consume[behind] > 0).all() and not _drains(topic, fit.places):
            yield name, fit  # else it is what a stall, or the time before, has left


def _had_one_owner(topic: TopicSignals, places: tuple[int, ...]) -> bool:
    """Return True if one member has all of these partitions.

    It is also true if it had them before the newest commit to any of them.
    """
    slots, commits = topic.frame.named("slot")[list(places)], topic.frame["commits"][list(places)]
    with_commits = np.flatnonzero((commits > 0).any(axis=0))
    first = max(0, int(with_commits[-1]) - 1) if len(with_commits) else slots.shape[1] - 1
    return any(
        slots[0, at] != "" and (slots[:, at] == slots[0, at]).all()
        for at in range(first, slots.shape[1])
    )


def _drains(topic: TopicSignals, places: tuple[int, ...]) -> bool:
    """Return True if these partitions together are read faster than records arrive.

    The rates are those between their newest commits.
    """
    fallen, arrived = 0.0, 0.0
    for row in places:
        left = topic.frame["envelope"][row]
        at = np.flatnonzero(~np.isnan(left))[-2:]
        fallen += float(left[at[0]] - left[at[-1]]) if len(at) else 0.0
        arrived += (
            known_sum(topic.frame["produced"][row, at[0] + 1 : at[-1] + 1]) if len(at) else 0.0
        )
    return fallen > _DRAIN_SHARE * arrived


def _reads_more_than_ever(signals: Signals, topic: TopicSignals) -> bool:
    """Return True if more is read than in any window without lag of the last day.

    Return False if no such window is known.
    """
    floor = known_sum(topic.floor)
    calm = [
        row["arrival_rate"]
        for row in signals.frame.baseline().get(topic.frame.topic, ())
        if None not in (row["arrival_rate"], row["lag_known"]) and row["lag_known"] <= floor
    ]
    return bool(calm) and known_sum(topic.consume) > _MORE_THAN_EVER * max(calm)


def _slow(signals: Signals, topic: TopicSignals, active: Flags, label: str) -> Iterator[Cause]:
    """Yield slow members or hosts.

    Each is measured without the others, so that none hides the next.
    """
    names = topic.frame.named("host" if label == HOST else "slot")[:, -1]
    known = {
        name: each
        for name in sorted({*names[active]} - {""})
        if (each := _slowness(signals, topic, active & (names == name), label))
    }
    aside = active & np.isin(names, [*known])
    for name, found in known.items():
        for other, fit in _fits(signals, topic, active & (~aside | (names == name)), names):
            if other == name:
                yield replace(_cause(label, topic, fit, name), slowness=found)


def _slowness(signals: Signals, topic: TopicSignals, places: Flags, label: str) -> Slowness | None:
    """Return how far a member or host with these lagging partitions falls behind; else None."""
    if (
        places.sum() < _ATTRIBUTED_PARTITIONS
        or _purity(topic, places) < signals.parameters.attr_purity
    ):
        return None
    slots = sorted({*topic.frame.named("slot")[places, -1]} - {""})
    if label == HOST and len(slots) < 2:
        return None  # a host with one member is that member
    return slowness(signals, topic, slots, np.flatnonzero(places).tolist())


def _fits(
    signals: Signals, topic: TopicSignals, active: Flags, values: np.ndarray
) -> Iterator[tuple[str, Fit]]:
    """Yield the values of a factor that pass every test, the one that explains most first."""
    parameters, found, count = signals.parameters, [], int(active.sum())
    for name in sorted({str(each) for each in values[active]} - {""}):
        places = tuple(np.flatnonzero(active & (values == name)).tolist())
        if not _ATTRIBUTED_PARTITIONS <= len(places) <= _ATTRIBUTED_SHARE * count:
            continue
        fit = _measure(topic, active, places)
        if (
            fit.explained >= parameters.attr_explained
            and fit.purity >= parameters.attr_purity
            and fit.contrast <= 1
        ):
            fit = _ranked(signals, topic, active, fit)
            is_rare = fit.p <= max(parameters.attr_p, least_p(count, len(places)))
            if is_rare and (
                not fit.is_small or _lasted(topic, active, fit, parameters.attr_explained)
            ):
                found.append((name, fit))
    yield from sorted(found, key=lambda each: (-each[1].explained, each[0]))


def _measure(topic: TopicSignals, active: Flags, places: tuple[int, ...]) -> Fit:
    chosen = np.zeros_like(active)
    chosen[list(places)] = True
    lags = _lags(topic)
    total, others = float(lags[active].sum()), (lags / topic.floor)[active & ~chosen]
    contrast = lower_median(others.tolist()) if len(others) else 0.0
    explained = float(lags[chosen].sum()) / total if total > 0 else 0.0
    return Fit(places, explained, _purity(topic, chosen), contrast)


def _purity(topic: TopicSignals, chosen: Flags) -> float:
    """Return the share of the chosen partitions' arrivals whose lag counts.

    A slow owner reads a quiet partition in time.
    """
    arrival, is_material = topic.arrival[chosen], topic.is_material[chosen]
    total = known_sum(arrival)
    return known_sum(arrival[is_material]) / total if total > 0 else float(is_material.mean())


def _ranked(signals: Signals, topic: TopicSignals, active: Flags, fit: Fit) -> Fit:
    rows = np.flatnonzero(active)
    chosen = tuple(np.searchsorted(rows, fit.places).tolist())
    frame, parameters = signals.frame, signals.parameters
    seed = "\0".join((frame.cluster, frame.group, topic.frame.topic, str(int(frame.windows[-1]))))
    p = rank_p(tuple(_lags(topic)[rows].tolist()), chosen, seed, parameters.attr_p)
    return replace(fit, p=p, is_small=least_p(len(rows), len(chosen)) > parameters.attr_p)


def _lasted(topic: TopicSignals, active: Flags, fit: Fit, least: float) -> bool:
    """Return True if the same partitions explained as much in the windows before."""
    windows = slice(-1 - _SMALL_WINDOWS, -1)
    # at commits: that of the others is what lies between them; where unread records were deleted,
    # what was left
    is_lost = topic.frame.named("status")[:, windows] == BELOW_LOG_START
    retained = topic.frame["end"][:, windows] - topic.frame["start"][:, windows]
    lags = np.where(is_lost, retained, topic.least[:, windows])
    total, mine = np.nansum(lags[active], axis=0), np.nansum(lags[list(fit.places)], axis=0)
    return bool(
        lags.shape[1] == _SMALL_WINDOWS and (total > 0).all() and (mine >= least * total).all()
    )


def _lags(topic: TopicSignals) -> np.ndarray:
    """Return the lag at the newest commit, else the lag.

    The lag at the newest commit does not depend on the commit interval.
    """
    return np.where(np.isnan(topic.envelope), topic.lag, topic.envelope)


def _cause(label: str, topic: TopicSignals, fit: Fit, subject: str) -> Cause:
    partitions = tuple(topic.frame.partitions[list(fit.places)].tolist())
    return Cause(label, topic.frame.topic, partitions, subject, fit)
