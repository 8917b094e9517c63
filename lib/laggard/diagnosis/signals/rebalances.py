"""Logical rebalances of a group at the end of a window, their share of its time, and storms.

A row of `rebalances` is written up to ten minutes after its end; until then its generations, whose
rows come at once, stand for it. Rows of history read while catching up (`live_read` false) are
never evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from math import nan
from typing import TypeAlias

from laggard.diagnosis.history.frames import GroupFrame, Row
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.rosters import Roster
from laggard.diagnosis.signals.statistics import lower_median
from laggard.rebalance.analytics.counters import RATIO_RANGE
from laggard.rebalance.analytics.times import union_seconds
from laggard.rebalance.parameters import DEFAULTS

Spans: TypeAlias = Sequence[tuple[datetime, datetime]]

# kinds of generations that a rebalance ends with
REBALANCING = frozenset({"sync", "empty", "epoch"})
_READ = timedelta(days=1)  # rebalances that a frame has
# as laggard.rebalance joins generations
_MERGE_SECONDS = fixed(
    "merge_seconds", DEFAULTS.merge_seconds, "s between two generations of one rebalance"
)
_MERGE_SYNC_TIMES = fixed(
    "merge_sync_times", DEFAULTS.merge_sync_times, "sync phases, where those are longer"
)
# one long join is a straggler, no storm
_RATIO_MIN_GENERATIONS = fixed("ratio_min_generations", 3, "generations")
# the coordinator evicts a member that has not revoked within its rebalance timeout
_EXPIRED_SHARE = fixed("expired_share", 0.9, "of the rebalance timeout")
_ASSIGNOR_SECONDS = fixed("assignor_seconds", 3600.0, "s in which the assignor changed")
# members of one start do not all join in the same second
_TOGETHER_SECONDS = fixed(
    "together_seconds", 120.0, "s in which the members of a group that was empty have started"
)


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
    def seconds(self) -> float:
        """Duration, NaN unknown."""
        return nan if self.started_at is None else (self.ended_at - self.started_at).total_seconds()

    def is_within(self, spans: Spans) -> bool:
        """Return True if the rebalance took place, or began, in one of the spans."""
        started_at = self.started_at or self.ended_at
        return any(begin <= self.ended_at and started_at <= end for begin, end in spans)


@dataclass(frozen=True, slots=True)
class Storm:
    """Rebalances of the last ten minutes.

    `because` names the limits that they passed; no limit means no storm.
    """

    rebalances: int
    generations: int
    ratio: float  # share of the time, NaN unknown
    mtbr_seconds: float  # mean time between two ends, NaN below two
    median_seconds: float  # lower median duration, NaN unknown
    causes: Mapping[str, int]
    because: tuple[str, ...] = ()


def ended_at(generation: Row) -> datetime:
    """Return when a generation was complete: its record's time, of an epoch when it was Stable."""
    found: datetime = generation.get("stable_at") or generation["record_timestamp"]
    return found


def logical_rebalances(frame: GroupFrame) -> tuple[Logical, ...]:
    """Return rebalances by end time.

    First come rebalances with a row, then those known only from generations so far.
    """
    written = [_written(row) for row in frame.live_rebalances]
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


def _written(row: Row) -> Logical:
    interrupted = row["interrupted"] or 0
    return Logical(
        row["started_est"],
        row["ended_at"],
        len(row["generations"]) + interrupted,
        row["cause"],
        row,
        is_first=row["members_before"] == 0,
        interrupted=interrupted,
    )


def recent(rebalances: Iterable[Logical], until: datetime, seconds: float) -> list[Logical]:
    """Return the rebalances that ended in the last seconds before a time."""
    return [each for each in rebalances if 0 <= (until - each.ended_at).total_seconds() < seconds]


def time_in_rebalance(frame: GroupFrame, known: Sequence[Logical], explained: Spans = ()) -> float:
    """Return the share of the last ten minutes spent in a rebalance; NaN if unknown.

    The present rebalance is included.

    Rebalances in the spans that explain them are left out.
    """
    if frame.fact.get("time_in_rebalance_ratio", 0.0) is None:
        return nan  # not watched for so long
    end = frame.now
    begin = end - RATIO_RANGE
    near = [each for each in known if each.ended_at > begin and not each.is_within(explained)]
    intervals = [(each.started_at, each.ended_at) for each in near if each.started_at is not None]
    if len(intervals) < len(near):
        return nan
    since = frame.fact.get("rebalancing_since")
    if since is not None and not any(each.ended_at >= since for each in known):
        intervals.append((since, end))
    return union_seconds(intervals, begin, end) / RATIO_RANGE.total_seconds()


def find_storm(
    frame: GroupFrame, known: Sequence[Logical], parameters: Parameters, explained: Spans = ()
) -> Storm:
    """Measure the density of rebalances and the reasons for a storm.

    Rebalances in the spans of deploys are left out.
    """
    near = recent(known, frame.now, parameters.storm_seconds)
    near = [each for each in near if not each.is_first and not each.is_within(explained)]
    generations = sum(each.generations for each in near)
    ratio = time_in_rebalance(frame, known, explained)
    median = lower_median(each.seconds for each in near)
    mtbr = (
        (near[-1].ended_at - near[0].ended_at).total_seconds() / (len(near) - 1)
        if len(near) > 1
        else nan
    )
    causes = dict(sorted(Counter(each.cause or "unknown" for each in near).items()))
    storm = Storm(len(near), generations, ratio, mtbr, median, causes)
    return replace(storm, because=_because(storm, parameters))


def _because(storm: Storm, parameters: Parameters) -> tuple[str, ...]:
    """Return names of the limits that rebalances pass."""
    is_thick = storm.mtbr_seconds < parameters.storm_mtbr * storm.median_seconds
    passed = {
        "count": storm.rebalances >= parameters.storm_count,
        "ratio": storm.ratio >= parameters.storm_ratio
        and storm.generations >= _RATIO_MIN_GENERATIONS,
        "mtbr": storm.rebalances >= parameters.storm_count - 1 and is_thick,
    }
    return tuple(name for name, is_so in passed.items() if is_so)


def interrupted_rebalances(
    known: Sequence[Logical], now: datetime, parameters: Parameters
) -> list[Logical]:
    """Return rebalances of half an hour with generations that got no assignment.

    They are known by the gap to the next record.

    Members that start one after another interrupt each other until all are there: that is how a
    group begins, but not one that begins again and again.
    """
    horizon = parameters.deploy_horizon_seconds
    starts = [each.ended_at for each in known if each.is_first]
    begins = starts[:1] + [
        at for before, at in pairwise(starts) if (at - before).total_seconds() >= horizon
    ]
    return [
        each
        for each in recent(known, now, horizon)
        if each.interrupted
        and not any(0 <= (each.ended_at - at).total_seconds() < _TOGETHER_SECONDS for at in begins)
    ]


def longest_rebalance_timeout(members: Iterable[Row]) -> float | None:
    """Return the longest rebalance timeout in seconds.

    A record without it (version 0) counts its session timeout.
    """
    found = [row.get("rebalance_timeout_ms") or row.get("session_timeout_ms") for row in members]
    known = [milliseconds for milliseconds in found if milliseconds]
    return max(known) / 1000 if known else None


def longest_pause(rows: Iterable[Row]) -> float:
    """Return the longest 95th percentile of the rebalances' pauses in seconds; NaN if unknown."""
    pauses = [row.get("pause_p95_seconds") for row in rows]
    return max((float(each) for each in pauses if each is not None), default=nan)


def stragglers(
    rebalances: Iterable[Logical], now: datetime, seconds: float
) -> list[tuple[str, float, str]]:
    """Return the slot awaited in vain in a join phase, the join seconds, and the rebalance id."""
    return [
        (each.row["straggler_slot"], float(each.row["join_seconds"]), each.rebalance_id)
        for each in recent(rebalances, now, seconds)
        if each.row is not None
        and each.row["straggler_slot"]
        and each.row["join_seconds"] is not None
    ]


def _merge(generations: list[Row], since: datetime | None) -> list[Logical]:
    """Merge generations that are close together, or complete one another, into rebalances."""
    runs: list[list[Row]] = []
    for row in generations:
        if runs and _goes_on(runs[-1][-1], row):
            runs[-1].append(row)
        else:
            runs.append([row])
    found = [_logical(run) for run in runs]
    if found and since is not None and since <= ended_at(runs[0][0]):
        found[0] = replace(found[0], started_at=since)
    return found


def _logical(run: Sequence[Row]) -> Logical:
    """Return the rebalance of these generations."""
    first, is_epoch = run[0], run[0]["generation_kind"] == "epoch"
    begin = first["record_timestamp"] if is_epoch else first.get("state_timestamp")
    count = sum(max(1, row["generation_gap"] or 1) for row in run)
    is_first = not first["left"] and len(first["joined"] or ()) == first["member_count"]
    # of an epoch every step is written: a gap there is a record not read
    interrupted = count - len(run) if first["generation_kind"] == "classic" else 0
    return Logical(begin, ended_at(run[-1]), count, "", is_first=is_first, interrupted=interrupted)


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


@dataclass(frozen=True, slots=True)
class Behind:
    """A KIP-848 member that did not reach its epoch in time."""

    slot: str  # "" where no record names it yet
    seconds: float
    member_state: str
    pending: int  # partitions it has to give up
    timeout_seconds: float


def assignor_changes(frame: GroupFrame) -> list[tuple[datetime, str, str]]:
    """Return the times of changes of the assignor, with the one before and after."""
    end = frame.now
    found = []
    before: str | None = None
    for row in frame.live_generations:
        now = row.get("assignor")
        if not now or row["kind"] != "sync":
            continue
        if (
            before is not None
            and before != now
            and (end - row["record_timestamp"]).total_seconds() < _ASSIGNOR_SECONDS
        ):
            found.append((row["record_timestamp"], before, now))
        before = now
    return found


def without_common_assignor(members: Sequence[Row]) -> list[Row]:
    """Return the classic members of a KIP-848 group, if no assignor is supported by them all."""
    classic = [row for row in members if row.get("classic_protocols")]
    common = (
        set.intersection(*(set(row["classic_protocols"]) for row in classic)) if classic else {""}
    )
    return [] if common else classic


def find_behind(frame: GroupFrame, rosters: Sequence[Roster], seconds: float) -> list[Behind]:
    """Return members that kept an epoch from Stable for about their rebalance timeout.

    After that timeout they are evicted.

    The rows of an epoch come when it is over; before that only the group's state tells that
    somebody is behind.
    """
    own = [each for each in rosters if each.generation_kind == "epoch"]
    ended = _never_stable(frame)
    found: dict[str, Behind] = {}
    for roster in own:
        until = ended.get(roster.generation)
        if until is not None and (frame.now - until).total_seconds() < seconds:
            lasted = (until - roster.at).total_seconds()
            found |= {
                row["slot"]: _behind(row, lasted) for row in roster.rows if _blocks(row, lasted)
            }
    return [found[slot] for slot in sorted(found)] or _not_named_yet(frame, own)


def _never_stable(frame: GroupFrame) -> dict[int, datetime]:
    """Return the epochs that never were Stable, each with the begin of the next one."""
    epochs = [row for row in frame.live_generations if row["generation_kind"] == "epoch"]
    following = {row["generation"]: later["record_timestamp"] for row, later in pairwise(epochs)}
    unstable = {
        row["generation"]
        for row in epochs
        if row.get("stable_at") is None and row["kind"] == "epoch"
    }
    return {epoch: at for epoch, at in following.items() if epoch in unstable}


def _timeout_seconds(row: Row) -> float:
    return float(row.get("rebalance_timeout_ms") or 0) / 1000


def _blocks(row: Row, lasted: float) -> bool:
    """Return True if a member kept its epoch open until its eviction.

    A member that waits for others is not to blame.
    """
    own = _timeout_seconds(row)
    return (
        row.get("member_state") == "UnrevokedPartitions"
        and own > 0
        and lasted >= _EXPIRED_SHARE * own
    )


def _behind(row: Row, lasted: float) -> Behind:
    pending = len(row.get("pending_revocation") or ())
    return Behind(row["slot"], lasted, row["member_state"], pending, _timeout_seconds(row))


def _not_named_yet(frame: GroupFrame, rosters: Sequence[Roster]) -> list[Behind]:
    """Return a member without a name during a long reconciliation.

    The group has then been reconciling for longer than the longest timeout.
    """
    timeout = max((_timeout_seconds(row) for roster in rosters for row in roster.rows), default=0.0)
    since = frame.fact.get("rebalancing_since") or frame.fact.get("state_since")
    if frame.fact.get("group_state") != "Reconciling" or since is None or not timeout:
        return []
    lasted = (frame.now - since).total_seconds()
    return [Behind("", lasted, "Reconciling", 0, timeout)] if lasted > timeout else []
