"""How often a group rebalances and what share of its time that takes, over a range of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from laggard.rebalance.movement import Move, count_returns

Row = Mapping[str, Any]
COUNTED_KINDS = {"sync", "empty", "epoch"}  # of generations: those that a rebalance ends in


@dataclass(frozen=True, slots=True)
class Rates:
    """Metrics of a range; None where a row of history, or one that lacks a value, leaves them open."""

    rebalances: int | None
    generations: int | None
    rebalances_per_hour: float | None
    generations_per_hour: float | None
    mtbr_seconds: float | None  # mean time between the ends of two rebalances
    time_in_rebalance_ratio: float | None
    churn: float | None  # slots that joined or left, per member
    interrupted: int | None
    distinct_leaders: int | None
    ping_pong: float | None  # moves that took a partition back where it came from, of all moves


def measure_rates(
    rebalances: Iterable[Row],
    generations: Iterable[Row],
    begin: datetime,
    end: datetime,
    *,
    mean_members: float | None,
    open_since: datetime | None = None,
    moves: Sequence[Move] = (),
) -> Rates:
    """Metrics of one group in [begin, end), from its rows of the tables `rebalances` and `generations`.

    A rebalance counts in the range it ends in, its time wherever it passes; `open_since` is the begin of one without a
    row yet. `moves` are those of the range in time. Of history read before the live end records may be missing: then
    nothing is counted.
    """
    known = sorted(rebalances, key=lambda row: row["ended_at"])
    ended = [row for row in known if begin <= row["ended_at"] < end]
    recorded = [row for row in generations if begin <= row["record_timestamp"] < end and row["kind"] in COUNTED_KINDS]
    is_live = all(row["live_read"] for row in (*ended, *recorded))
    count, count_generations = (len(ended), len(recorded)) if is_live else (None, None)
    gaps = [(later["ended_at"] - earlier["ended_at"]).total_seconds() for earlier, later in pairwise(ended)]
    interrupted = [row["interrupted"] for row in ended]
    hours = (end - begin).total_seconds() / 3600
    return Rates(
        rebalances=count,
        generations=count_generations,
        rebalances_per_hour=None if count is None else count / hours,
        generations_per_hour=None if count_generations is None else count_generations / hours,
        mtbr_seconds=sum(gaps) / len(gaps) if gaps and is_live else None,
        time_in_rebalance_ratio=_time_ratio(known, begin, end, open_since),
        churn=_churn(ended, mean_members) if is_live else None,
        interrupted=sum(interrupted) if is_live and None not in interrupted else None,
        distinct_leaders=len({row["leader"] for row in ended if row["leader"]}) if is_live else None,
        ping_pong=ping_pong(moves),
    )


def ping_pong(moves: Sequence[Move]) -> float | None:
    """Share of moves, in time, that bring a partition back to the slot its last move took it from."""
    return count_returns(moves, {}) / len(moves) if moves else None


def union_seconds(intervals: Iterable[tuple[datetime, datetime]], begin: datetime, end: datetime) -> float:
    """Length of the union of intervals within a range."""
    total, covered = 0.0, begin
    for start, stop in sorted(intervals):
        first, last = max(start, covered), min(stop, end)
        total += max(0.0, (last - first).total_seconds())
        covered = max(covered, last)
    return total


def _time_ratio(rebalances: Iterable[Row], begin: datetime, end: datetime, open_since: datetime | None) -> float | None:
    near = [row for row in rebalances if row["ended_at"] > begin and (row["started_est"] or begin) < end]
    if any(row["started_est"] is None or not row["live_read"] for row in near):
        return None
    intervals = [(row["started_est"], row["ended_at"]) for row in near]
    if open_since is not None:
        intervals.append((open_since, end))
    return union_seconds(intervals, begin, end) / (end - begin).total_seconds()


def _churn(rebalances: Iterable[Row], mean_members: float | None) -> float | None:
    slots: set[str] = set()
    for row in rebalances:
        if row["joined"] is None or row["left"] is None:
            return None
        slots |= {*row["joined"], *row["left"]}
    return len(slots) / mean_members if mean_members else None
