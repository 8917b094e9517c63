"""Cost of a rebalance: how long each partition paused, by the gaps between its commits.

Commits and generations of a group lie in one partition of the offsets topic, so their order is
exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from typing import Any

from laggard.lag.arrays import MAX_LONG
from laggard.rebalance.analytics.times import known, seconds_between
from laggard.rebalance.assignors import TopicPartition
from laggard.rebalance.facts import Commit, PartitionFacts, time_of


@dataclass(frozen=True, slots=True)
class PartitionPause:
    """One partition from its last commit before a rebalance to its first one after."""

    topic: str
    partition: int
    has_traffic: bool | None
    arrival_rate: float | None
    consume_rate: float | None
    commit_interval_seconds: float | None
    last_before: Commit | None
    newest: Commit | None
    progressed_at: datetime | None = None
    material: bool | None = None
    resumed_at: datetime | None = None  # first commit since the rebalance ended
    excess_seconds: float = 0.0  # gaps beyond the commit interval so far
    # the commits since then moved nothing although there was something to read
    still_since: datetime | None = None
    # of the gap under way: from giving up to the generation that gave it away again
    stopped_seconds: float = 0.0
    rewound_records: int = 0
    lag_after: int | None = None

    @property
    def place(self) -> TopicPartition:
        return (self.topic, self.partition)

    @property
    def is_over(self) -> bool:
        return self.resumed_at is not None

    @property
    def is_awaited(self) -> bool:
        """True if a later commit can still show the length of the pause."""
        return not self.is_over and self._is_measurable

    @property
    def seconds(self) -> float | None:
        """Return the pause; None while not over, or if nothing was to be read.

        The result is None too if the commit interval is not known.
        """
        if self.is_over and self._is_measurable:
            return self.excess_seconds
        return None

    @property
    def _is_measurable(self) -> bool:
        return (
            bool(self.has_traffic)
            and self.last_before is not None
            and self.commit_interval_seconds is not None
        )

    def is_longer_than_interval(self, until: datetime) -> bool:
        """Return True if a pause without a commit up to a time exceeds the commit interval."""
        seconds = self.excess_seconds
        if not self.is_over:
            seconds += self._excess(until)
        return self.commit_interval_seconds is not None and seconds > self.commit_interval_seconds

    @property
    def _since(self) -> datetime | None:
        return self.still_since or time_of(self.newest)

    def _excess(self, at: datetime, unseen: int = 0) -> float:
        """Return the seconds by which the gaps to a commit exceed one interval each.

        `unseen` commits lie in between.
        """
        gap, interval = seconds_between(at, self._since), self.commit_interval_seconds
        if gap is None or interval is None:
            return 0.0
        return max(self.stopped_seconds, gap - (unseen + 1) * interval)

    def _stands_still(self, commit: Commit) -> bool:
        """Return True if a commit repeats the offset though too many records wait: nobody reads.

        More records wait than can have arrived since.

        A commit interval is the longest that a commit waits for; a member that gives up commits
        sooner.
        """
        rate, interval = self.arrival_rate, self.commit_interval_seconds
        if self.newest is None or rate is None or interval is None or commit.lag is None:
            return False
        seconds = min(interval, (commit.at - self.newest.at).total_seconds())
        return (
            commit.committed_offset == self.newest.committed_offset and commit.lag > rate * seconds
        )

    def after(self, commit: Commit, *, is_after_end: bool) -> PartitionPause:
        """Return the pause after one more commit, in log order."""
        if self._stands_still(commit):
            return replace(self, newest=commit, still_since=self._since)
        if self.is_over:
            return replace(self, newest=commit, still_since=None)  # kept: the rebalance may go on
        rewound = 0
        if self.newest is not None:
            rewound = max(0, self.newest.committed_offset - commit.committed_offset)
        resumed_at, lag_after = None, None
        if is_after_end:
            resumed_at, lag_after = commit.at, commit.lag
        return replace(
            self,
            newest=commit,
            resumed_at=resumed_at,
            excess_seconds=self.excess_seconds + self._excess(commit.at, commit.unseen),
            still_since=None,
            stopped_seconds=0.0,
            rewound_records=self.rewound_records + rewound,
            lag_after=lag_after,
        )

    def going_on(self, given_at: datetime | None, recorded_at: datetime) -> PartitionPause:
        """Return the pause after another generation, recorded at a time, has joined the rebalance.

        `given_at` is when an eager group had it from the generation before, None in another group.
        The commit timer restarts then (ConsumerCoordinator.onJoinComplete), so a commit before an
        interval is over is the one with which the member gave the partition up.
        """
        since = seconds_between(time_of(self.newest), given_at)
        stopped = seconds_between(recorded_at, self._since)
        interval, stopped_seconds = self.commit_interval_seconds, self.stopped_seconds
        if since is not None and interval is not None and 0 <= since < interval:
            stopped_seconds = max(stopped_seconds, stopped or 0.0)
        return replace(self, resumed_at=None, lag_after=None, stopped_seconds=stopped_seconds)


@dataclass(frozen=True, slots=True)
class Cost:
    """Pauses of the partitions stopped by the rebalance.

    A sum or rank that needs an unknown pause is None.
    """

    paused_partitions: int | None = None
    pause_p50_seconds: float | None = None
    pause_p95_seconds: float | None = None
    pause_max_seconds: float | None = None
    paused_partition_seconds: float | None = None
    records_delayed: int | None = None
    records_replayed: int | None = None
    replay_bound: int | None = None
    lag_before: int | None = None
    lag_after: int | None = None
    seconds: tuple[float, ...] = ()  # the single pauses, as far as they are known
    is_complete: bool = True


def begin_pause(
    partition: TopicPartition, facts: PartitionFacts, began_at: datetime
) -> PartitionPause:
    """Return a partition's pause as a rebalance starts.

    A commit after the start is too late to be the last before.
    """
    commit = facts.commit
    if commit is not None and commit.at > began_at:
        commit = None
    return PartitionPause(
        *partition,
        has_traffic=facts.has_traffic,
        arrival_rate=facts.arrival_rate,
        consume_rate=facts.consume_rate,
        commit_interval_seconds=facts.commit_interval_seconds,
        last_before=commit,
        newest=commit,
        progressed_at=facts.progressed_at,
        material=facts.material,
    )


def measure_cost(
    pauses: Sequence[PartitionPause],
    *,
    moved: frozenset[TopicPartition] | None,
    rebalance_mode: str | None,
    started_est: datetime | None,
    closed_at: datetime,
) -> Cost:
    """Measure pauses of all partitions of an eager rebalance, else of moved or stopped ones.

    A stop counts if it lasted an interval.
    """
    busy = [pause for pause in pauses if pause.has_traffic is not False]
    flowing = [pause for pause in busy if pause.has_traffic]
    if not flowing:
        return Cost(is_complete=not busy)
    stopped = _find_stopped(flowing, moved, rebalance_mode, closed_at=closed_at)
    seconds = [pause.seconds for pause in stopped]
    return Cost(
        paused_partitions=len(stopped),
        pause_p50_seconds=nearest_rank(seconds, 0.50),
        pause_p95_seconds=nearest_rank(seconds, 0.95),
        pause_max_seconds=nearest_rank(seconds, 1.0),
        paused_partition_seconds=_total(seconds),
        **_count_records(stopped, busy, started_est),
        seconds=tuple(sorted(known(seconds))),
        is_complete=None not in seconds and len(busy) == len(flowing),
    )


def nearest_rank(seconds: Iterable[float | None], share: float) -> float | None:
    """Return the nearest-rank percentile; an unknown pause counts as longest, 0 if none stopped."""
    pauses = list(seconds)
    if not pauses:
        return 0.0
    ordered = sorted(known(pauses))
    rank = max(1, ceil(share * len(pauses)))
    if rank <= len(ordered):
        return ordered[rank - 1]
    return None


def _find_stopped(
    pauses: Sequence[PartitionPause],
    moved: frozenset[TopicPartition] | None,
    rebalance_mode: str | None,
    *,
    closed_at: datetime,
) -> Sequence[PartitionPause]:
    if rebalance_mode == "eager":
        return pauses
    moved = moved or frozenset()
    return [p for p in pauses if p.place in moved or p.is_longer_than_interval(closed_at)]


def _count_records(
    stopped: Sequence[PartitionPause], busy: Sequence[PartitionPause], started_est: datetime | None
) -> dict[str, Any]:
    """Return record columns of the stopped partitions, and the lag of all that have traffic."""
    return {
        "records_delayed": _total_records(map(_delayed, stopped)),
        "records_replayed": _total_records(map(_replayed, stopped)),
        "replay_bound": _total_records(_replay_bound(pause, started_est) for pause in stopped),
        "lag_before": _total_records(map(_lag_before, busy)),
        "lag_after": _total_records(map(_lag_after, busy)),
    }


def _replayed(pause: PartitionPause) -> int | None:
    if not pause.is_over:
        return None
    return pause.rewound_records


def _lag_before(pause: PartitionPause) -> int | None:
    if pause.last_before is None:
        return None
    return pause.last_before.lag


def _lag_after(pause: PartitionPause) -> int | None:
    if not pause.is_over:
        return None
    return pause.lag_after


def _delayed(pause: PartitionPause) -> float | None:
    seconds = pause.seconds
    if seconds is None or pause.arrival_rate is None:
        return None
    return pause.arrival_rate * seconds


def _replay_bound(pause: PartitionPause, started_est: datetime | None) -> float | None:
    """Return the number of records read since the last commit, which the next owner reads again."""
    gap = seconds_between(started_est, time_of(pause.last_before))
    if gap is None or pause.consume_rate is None:
        return None
    return pause.consume_rate * max(0.0, gap)


def _total(values: Iterable[float | None]) -> float | None:
    """Return the sum; None if any value is unknown."""
    parts = list(values)
    known_parts = known(parts)
    if len(known_parts) != len(parts):
        return None
    return sum(known_parts)


def _total_records(values: Iterable[float | None]) -> int | None:
    total = _total(values)
    # commits at any int64, of many partitions
    if total is None:
        return None
    return min(round(total), MAX_LONG)
