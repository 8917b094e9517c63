"""How often a group rebalances and what share of its time that takes, over a range of time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from laggard.rebalance.movement import Move, count_returns
from laggard.rebalance.result import Rebalance
from laggard.rebalance.times import seconds_between


@dataclass(frozen=True, slots=True)
class Rates:
    """Metrics of a range; None where a record of history leaves them open."""

    generations_per_hour: float
    rebalances_per_hour: float
    mtbr_seconds: float | None  # mean time between the ends of two rebalances
    time_in_rebalance_ratio: float | None
    churn: float | None  # slots that joined or left, per member
    interrupted: int | None
    distinct_leaders: int
    ping_pong: float | None  # moves that took a partition back where it came from, of all moves


def measure_rates(
    rebalances: Iterable[Rebalance],
    moves: Sequence[Move],
    begin: datetime,
    end: datetime,
    *,
    mean_members: float | None,
    open_since: datetime | None = None,
) -> Rates:
    """Metrics of (begin, end]; `moves` are those of the range in time, `open_since` the begin of one not over yet.

    Rebalances that end after the range count for their time within it only.
    """
    known = sorted(rebalances, key=lambda each: each.ended_at)
    ended = [each for each in known if begin < each.ended_at <= end]
    hours = (end - begin).total_seconds() / 3600
    gaps = [(later.ended_at - earlier.ended_at).total_seconds() for earlier, later in pairwise(ended)]
    interrupted = [each.interrupted for each in ended if each.interrupted is not None]
    return Rates(
        generations_per_hour=sum(len(each.generations) for each in ended) / hours,
        rebalances_per_hour=len(ended) / hours,
        mtbr_seconds=sum(gaps) / len(gaps) if gaps else None,
        time_in_rebalance_ratio=_time_ratio(known, begin, end, open_since),
        churn=_churn(ended, mean_members),
        interrupted=sum(interrupted) if len(interrupted) == len(ended) else None,
        distinct_leaders=len({each.leader for each in ended if each.leader}),
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


def _time_ratio(
    rebalances: Sequence[Rebalance], begin: datetime, end: datetime, open_since: datetime | None
) -> float | None:
    near = [each for each in rebalances if each.ended_at > begin and (each.started_est or begin) < end]
    intervals = [(each.started_est, each.ended_at) for each in near if each.started_est is not None]
    if len(intervals) < len(near):
        return None
    if open_since is not None:
        intervals.append((open_since, end))
    whole = seconds_between(end, begin)
    return union_seconds(intervals, begin, end) / whole if whole else None


def _churn(rebalances: Sequence[Rebalance], mean_members: float | None) -> float | None:
    slots: set[str] = set()
    for each in rebalances:
        if each.joined is None or each.left is None:
            return None
        slots |= {*each.joined, *each.left}
    return len(slots) / mean_members if mean_members else None
