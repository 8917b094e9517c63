"""Logical rebalances of a group as known at the end of a window, how much of its time they take, and storms of them.

A row of `rebalances` is written up to ten minutes after its end; until then its generations, whose rows come at once,
stand for it. Rows of history read while catching up (`live_read` false) are never evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeAlias

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.rebalance.counters import RATIO_RANGE
from laggard.rebalance.parameters import DEFAULTS
from laggard.rebalance.times import union_seconds

Spans: TypeAlias = Sequence[tuple[datetime, datetime]]

REBALANCING = frozenset({"sync", "empty", "epoch"})  # kinds of generations that a rebalance ends with
_READ = timedelta(days=1)  # rebalances that a frame has
# as laggard.rebalance joins generations
_MERGE_SECONDS = fixed("merge_seconds", DEFAULTS.merge_seconds, "s between two generations of one rebalance")
_MERGE_SYNC_TIMES = fixed("merge_sync_times", DEFAULTS.merge_sync_times, "sync phases, where those are longer")
# one long join is a straggler, no storm
_RATIO_MIN_GENERATIONS = fixed("ratio_min_generations", 3, "generations")
# members of one start do not all join in the same second
_TOGETHER_SECONDS = fixed("together_seconds", 120.0, "s in which the members of a group that was empty have started")


@dataclass(frozen=True, slots=True)
class Logical:
    """One logical rebalance; `row` is None until it is written."""

    started_at: datetime | None
    ended_at: datetime
    generations: int  # interrupted ones included
    cause: str  # "" until it is written
    row: Row | None = None
    is_first: bool = False  # it brought an empty group to life: nobody had to stop
    interrupted: int = 0  # generations that got no assignment before the one that did

    @property
    def rebalance_id(self) -> str:
        return "" if self.row is None else str(self.row["rebalance_id"])

    @property
    def seconds(self) -> float | None:
        return None if self.started_at is None else (self.ended_at - self.started_at).total_seconds()

    def is_within(self, spans: Spans) -> bool:
        """True if it took place, or began, in one of the spans."""
        started_at = self.started_at or self.ended_at
        return any(begin <= self.ended_at and started_at <= end for begin, end in spans)


@dataclass(frozen=True, slots=True)
class Storm:
    """Rebalances of the last ten minutes; `because` names the limits they passed, none of which means no storm."""

    rebalances: int
    generations: int
    ratio: float  # share of the time, NaN unknown
    mtbr_seconds: float  # mean time between two ends, NaN below two
    median_seconds: float  # lower median duration, NaN unknown
    causes: Mapping[str, int]
    because: tuple[str, ...]


def ended_at(generation: Row) -> datetime:
    """Return when a generation was complete: its record's time, of an epoch when it was Stable."""
    found: datetime = generation.get("stable_at") or generation["record_timestamp"]
    return found


def logical_rebalances(frame: GroupFrame) -> tuple[Logical, ...]:
    """Rebalances by their ends: the rows, then what generations tell of those whose row is still to come."""
    written = [
        Logical(
            row["started_est"],
            row["ended_at"],
            len(row["generations"]) + (row["interrupted"] or 0),
            row["cause"],
            row,
            is_first=row["members_before"] == 0,
            interrupted=row["interrupted"] or 0,
        )
        for row in frame.rebalances
        if row.get("live_read")
    ]
    written.sort(key=lambda each: each.ended_at)
    newest = max((row["ended_at"] for row in frame.rebalances), default=None)
    fresh = [
        row
        for row in frame.live_generations
        if row["kind"] in REBALANCING
        and (newest is None or ended_at(row) > newest)
        # of the rebalance before those of the day, only the generation that it left is read
        and frame.now - row["record_timestamp"] <= _READ
    ]
    return (*written, *_merge(fresh, frame.fact.get("rebalancing_since")))


def recent(rebalances: Iterable[Logical], until: datetime, seconds: float) -> list[Logical]:
    """Those that ended in the last seconds before a time."""
    return [each for each in rebalances if 0 <= (until - each.ended_at).total_seconds() < seconds]


def time_in_rebalance(frame: GroupFrame, known: Sequence[Logical], explained: Spans = ()) -> float:
    """Share of the last ten minutes inside a rebalance, the one under way included; NaN unknown.

    Rebalances in the spans that explain them are left out.
    """
    if frame.fact.get("time_in_rebalance_ratio", 0.0) is None:
        return float("nan")  # not watched for so long
    end = frame.now
    begin = end - RATIO_RANGE
    near = [each for each in known if each.ended_at > begin and not each.is_within(explained)]
    intervals = [(each.started_at, each.ended_at) for each in near if each.started_at is not None]
    if len(intervals) < len(near):
        return float("nan")
    since = frame.fact.get("rebalancing_since")
    if since is not None and not any(each.ended_at >= since for each in known):
        intervals.append((since, end))
    return union_seconds(intervals, begin, end) / RATIO_RANGE.total_seconds()


def find_storm(frame: GroupFrame, known: Sequence[Logical], parameters: Parameters, explained: Spans = ()) -> Storm:
    """Measure how thick rebalances come, those in the spans of deploys left out, and why that is a storm."""
    near = recent(known, frame.now, parameters.storm_seconds)
    near = [each for each in near if not each.is_first and not each.is_within(explained)]
    generations = sum(each.generations for each in near)
    ratio = time_in_rebalance(frame, known, explained)
    durations = sorted(each.seconds for each in near if each.seconds is not None)
    median = durations[(len(durations) - 1) // 2] if durations else float("nan")
    span = (near[-1].ended_at - near[0].ended_at).total_seconds() if len(near) > 1 else float("nan")
    mtbr = span / (len(near) - 1) if len(near) > 1 else float("nan")
    because = {
        "count": len(near) >= parameters.storm_count,
        "ratio": ratio >= parameters.storm_ratio and generations >= _RATIO_MIN_GENERATIONS,
        "mtbr": len(near) >= parameters.storm_count - 1 and mtbr < parameters.storm_mtbr * median,
    }
    causes = Counter(each.cause or "unknown" for each in near)
    return Storm(
        len(near),
        generations,
        ratio,
        mtbr,
        median,
        dict(sorted(causes.items())),
        tuple(k for k, v in because.items() if v),
    )


def interrupted_rebalances(known: Sequence[Logical], now: datetime, parameters: Parameters) -> list[Logical]:
    """Rebalances of half an hour in which generations got no assignment, known by the gap to the next record.

    Members that start one after another interrupt each other until all are there: that is how a group begins, but not
    one that begins again and again.
    """
    horizon = parameters.deploy_horizon_seconds
    starts = [each.ended_at for each in known if each.is_first]
    begins = starts[:1] + [at for before, at in pairwise(starts) if (at - before).total_seconds() >= horizon]
    return [
        each
        for each in recent(known, now, horizon)
        if each.interrupted and not any(0 <= (each.ended_at - at).total_seconds() < _TOGETHER_SECONDS for at in begins)
    ]


def longest_rebalance_timeout(members: Iterable[Row]) -> float | None:
    """Seconds; a record without it (version 0) counts its session timeout, as the broker does."""
    found = [row.get("rebalance_timeout_ms") or row.get("session_timeout_ms") for row in members]
    known = [milliseconds for milliseconds in found if milliseconds]
    return max(known) / 1000 if known else None


def stragglers(rebalances: Iterable[Logical], now: datetime, seconds: float) -> list[tuple[str, float, str]]:
    """Slots that a join phase waited for in vain, seconds of the join, and the rebalance's id."""
    return [
        (each.row["straggler_slot"], float(each.row["join_seconds"]), each.rebalance_id)
        for each in recent(rebalances, now, seconds)
        if each.row is not None and each.row["straggler_slot"] and each.row["join_seconds"] is not None
    ]


def _merge(generations: list[Row], since: datetime | None) -> list[Logical]:
    """Generations that follow each other closely, or complete one another, as one rebalance."""
    runs: list[list[Row]] = []
    for row in generations:
        if runs and _goes_on(runs[-1][-1], row):
            runs[-1].append(row)
        else:
            runs.append([row])
    found: list[Logical] = []
    for run in runs:
        begin = run[0].get("state_timestamp")
        if run[0]["generation_kind"] == "epoch":
            begin = run[0]["record_timestamp"]
        if since is not None and since <= ended_at(run[0]) and not found:
            begin = since
        count = sum(max(1, row["generation_gap"] or 1) for row in run)
        is_first = not run[0]["left"] and len(run[0]["joined"] or ()) == run[0]["member_count"]
        # of an epoch every step is written: a gap there is a record not read
        interrupted = count - len(run) if run[0]["generation_kind"] == "classic" else 0
        found.append(Logical(begin, ended_at(run[-1]), count, "", is_first=is_first, interrupted=interrupted))
    return found


def _goes_on(before: Row, after: Row) -> bool:
    if before["generation_kind"] != after["generation_kind"]:
        return False
    if before["generation_kind"] == "epoch":
        return before["kind"] == "epoch" and before.get("stable_at") is None
    if before.get("partitions_unassigned") and before.get("rebalance_mode") == "cooperative":
        return True
    joined_at = after.get("state_timestamp") or after["record_timestamp"]
    gap = max(_MERGE_SYNC_TIMES * (before.get("sync_seconds") or 0.0), _MERGE_SECONDS)
    return bool((joined_at - before["record_timestamp"]).total_seconds() < gap)
