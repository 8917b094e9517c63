"""What each member did: its load, how busy it was, and the capacity it has shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from laggard.diagnosis.frames import Floats, GroupFrame
from laggard.diagnosis.measures import rolling_mean, sums_by_name
from laggard.diagnosis.order import percentile
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.view import Flags, MemberView, TopicView

Busy = Mapping[str, tuple[tuple[int, float], ...]]  # slot -> (begin of the window in ms, records/s)
_CAPACITY_PERCENT = 75  # of what a busy member did: commits and windows do not beat together


def member_views(frame: GroupFrame, topics: Sequence[TopicView], before: Busy, parameters: Parameters) -> tuple[
    dict[str, MemberView], dict[str, tuple[tuple[int, float], ...]]
]:  # fmt: skip
    """Members by slot, and the newest windows in which each was busy, this one included."""
    found: dict[str, MemberView] = {}
    busy_now: dict[str, tuple[tuple[int, float], ...]] = {}
    oldest = frame.now_ms - parameters.capacity_lookback_hours * 3_600_000
    slots = sorted({slot for each in topics for slot in each.frame.named("slot")[:, -1] if slot})
    has_settled = _same_generation(frame)
    for slot in slots:
        mine = {each.frame.topic: each.frame.named("slot")[:, -1] == slot for each in topics}
        consumed = _sum_over(topics, slot, "consume")
        is_busy = has_settled and _is_busy(topics, slot, mine)
        samples = tuple(each for each in before.get(slot, ()) if each[0] >= oldest)
        if is_busy and not math.isnan(consumed[-1]):
            samples = (*samples, (int(frame.windows[-1]), float(consumed[-1])))[-parameters.busy_windows :]
        if samples:
            busy_now[slot] = samples
        rates = [rate for _, rate in samples]
        enough = len(rates) >= parameters.busy_min_windows
        means = rolling_mean(consumed[None, :], parameters.rate_windows)[0]
        first = next(each for each in topics if mine[each.frame.topic].any())
        row = int(np.flatnonzero(mine[first.frame.topic])[0])
        found[slot] = MemberView(
            slot,
            first.frame.named("client_id")[row, -1],
            first.frame.named("host")[row, -1],
            tuple(
                (each.frame.topic, int(partition))
                for each in topics
                for partition in each.frame.partitions[mine[each.frame.topic]]
            ),
            float(sum(each.arrival[mine[each.frame.topic]].sum() for each in topics)),
            float(sum(each.consume[mine[each.frame.topic]].sum() for each in topics)),
            percentile(rates, _CAPACITY_PERCENT) if enough else math.nan,
            float(np.nanmax(means)) if not np.isnan(means).all() else math.nan,
            is_busy,
            int(sum(each.is_material[mine[each.frame.topic]].sum() for each in topics)),
            float(sum(np.nansum(each.lag[mine[each.frame.topic]]) for each in topics)),
        )
    gone = {slot: kept for slot, kept in before.items() if slot not in found}
    still = {slot: tuple(each for each in kept if each[0] >= oldest) for slot, kept in gone.items()}
    return found, busy_now | {slot: kept for slot, kept in still.items() if kept}


def partition_capacities(topics: Sequence[TopicView], parameters: Parameters) -> dict[tuple[str, int], float]:
    """Records/s that a partition got done in its newest busy windows, of partitions that were busy often enough."""
    found = {}
    for each in topics:
        is_busy = each.frame["lag_min"] > each.floor[:, None]
        for row, partition in enumerate(each.frame.partitions):
            rates = each.frame["consume"][row, is_busy[row]][-parameters.busy_windows :]
            if (~np.isnan(rates)).sum() >= parameters.busy_min_windows:
                found[each.frame.topic, int(partition)] = percentile(rates, _CAPACITY_PERCENT)
    return found


def _sum_over(topics: Sequence[TopicView], slot: str, name: str) -> Floats:
    """A number summed over all partitions a slot had in each window, [windows]; NaN where one is not known."""
    sums = [sums_by_name(each.frame[name], each.frame.named("slot"), slot) for each in topics]
    has = [(each.frame.named("slot") == slot).any(axis=0) for each in topics]
    total = np.zeros_like(sums[0])
    for one, mine in zip(sums, has, strict=True):
        total = total + np.where(mine, one, 0.0)
    return np.where(np.any(has, axis=0), total, np.nan)


def _same_generation(frame: GroupFrame) -> bool:
    """No generation began in this window or the one before."""
    newest = frame.facts[-3:]
    numbers = {(row["generation"], row["group_epoch"]) for row in newest if row is not None}
    return len(newest) == 3 and None not in newest and len(numbers) == 1


def _is_busy(topics: Sequence[TopicView], slot: str, mine: Mapping[str, Flags]) -> bool:
    """The same partitions all the time, and never a moment without more to read than its commits' rhythm."""
    smallest = floor = 0.0
    for each in topics:
        rows = mine[each.frame.topic]
        if not (each.frame.named("slot")[:, -3:] == slot)[rows].all() or (
            (each.frame.named("slot")[:, -3:] == slot)[~rows].any()
        ):
            return False
        smallest += float(each.frame["lag_min"][rows, -1].sum())
        floor += float(each.floor[rows].sum())
    return smallest > floor  # not where one is NaN
