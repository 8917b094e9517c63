"""Counters of a group's rebalances in `group_status`, from tick to tick; they never fall."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from laggard.rebalance.analytics.result import Closed
from laggard.rebalance.analytics.state import OpenRebalance
from laggard.rebalance.analytics.times import union_seconds
from laggard.rebalance.facts import columns_of

Row = dict[str, Any]
# upper bounds of the buckets; one more for the rest
SECOND_BOUNDS = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
RATIO_RANGE = timedelta(minutes=10)
KEPT_RANGE = timedelta(hours=1)
COUNTS = (
    "interrupted_generations_total", "static_restarts_absorbed_total", "partitions_moved_total",
    "partitions_moved_avoidable_total",
)  # fmt: skip
MAPS = ("rebalances_total", "member_changes_total")
HISTOGRAMS = ("rebalance_duration", "rebalance_pause")
STATE = (*COUNTS, *MAPS, *(f"{name}_{part}" for name in HISTOGRAMS for part in ("buckets", "sum")),
    "recent_rebalances",
         "last_rebalance_at")  # fmt: skip


def count_rebalances(
    before: Mapping[str, Any],
    closed: Iterable[Closed],
    generations: Iterable[Row],
    replacements: int,
    under_way: OpenRebalance | None,
    now: datetime,
) -> Row:
    """Return columns `STATE` after a tick.

    `closed` are rebalances written in it, `generations` its rows of that table.

    `under_way` is the one whose row is still to come.
    """
    row = _counted(before)
    for generation in generations:
        gap = generation.get("generation_gap") or 1
        row["interrupted_generations_total"] += max(0, gap - 1)
    row["static_restarts_absorbed_total"] += replacements
    recent = [
        entry
        for entry in row["recent_rebalances"] or ()
        if entry["is_written"] and entry["ended_at"] > now - KEPT_RANGE
    ]
    for rebalance in closed:
        _count(row, rebalance)
        recent.append(
            _recent(
                rebalance.row.started_est,
                rebalance.row.ended_at,
                len(rebalance.moves),
                rebalance.returned,
            )
        )
    if under_way is not None:
        recent.append(_recent(under_way.start.est, under_way.ended_at, None, None))
    row["recent_rebalances"] = recent or None
    return row


def _counted(before: Mapping[str, Any]) -> Row:
    """Return the columns as the base for sums; 0 and empty for a group that has none yet."""
    row: Row = columns_of(before, STATE)
    for name in COUNTS:
        row[name] = row[name] or 0
    for name in MAPS:
        row[name] = dict(row[name] or {})
    for name in HISTOGRAMS:
        row[f"{name}_buckets"] = list(row[f"{name}_buckets"] or [0] * (len(SECOND_BOUNDS) + 1))
        row[f"{name}_sum"] = row[f"{name}_sum"] or 0.0
    return row


def measure_recent(
    recent: Sequence[Mapping[str, Any]], watched_since: datetime | None, now: datetime
) -> Row:
    """Return columns time_in_rebalance_ratio and ping_pong.

    The ratio covers the last 10 minutes, or the time since the group is watched.
    """
    moved = sum(entry["moved"] or 0 for entry in recent)
    returned = sum(entry["returned"] or 0 for entry in recent)
    ratio, ping_pong = None, None
    if watched_since is not None:
        ratio = _time_ratio(recent, max(now - RATIO_RANGE, watched_since), now)
    if moved:
        ping_pong = returned / moved
    return {"time_in_rebalance_ratio": ratio, "ping_pong": ping_pong}


def _time_ratio(
    recent: Sequence[Mapping[str, Any]], begin: datetime, now: datetime
) -> float | None:
    if begin >= now:
        return None
    times = []
    for rebalance in recent:
        ended_at = rebalance["ended_at"] or now
        if ended_at > begin:
            if rebalance["started_at"] is None:
                return None
            times.append((rebalance["started_at"], ended_at))
    return union_seconds(times, begin, now) / (now - begin).total_seconds()


def _count(row: Row, closed: Closed) -> None:
    rebalance = closed.row
    row["rebalances_total"][rebalance.cause] = row["rebalances_total"].get(rebalance.cause, 0) + 1
    for change in ("joined", "left", "replaced"):
        slots = getattr(rebalance, change) or ()
        row["member_changes_total"][change] = row["member_changes_total"].get(change, 0) + len(
            slots
        )
    row["partitions_moved_total"] += rebalance.moved or 0
    row["partitions_moved_avoidable_total"] += rebalance.avoidable or 0
    row["last_rebalance_at"] = max(filter(None, (row["last_rebalance_at"], rebalance.ended_at)))
    _observe(row, "rebalance_duration", rebalance.rebalance_seconds)
    for seconds in closed.pause_seconds:
        _observe(row, "rebalance_pause", seconds)


def _observe(row: Row, name: str, seconds: float | None) -> None:
    if seconds is not None:
        row[f"{name}_buckets"][bisect_left(SECOND_BOUNDS, seconds)] += 1
        row[f"{name}_sum"] += seconds


def _recent(
    started_at: datetime | None, ended_at: datetime | None, moved: int | None, returned: int | None
) -> Row:
    return {
        "started_at": started_at,
        "ended_at": ended_at,
        "is_written": moved is not None,
        "moved": moved,
        "returned": returned,
    }
