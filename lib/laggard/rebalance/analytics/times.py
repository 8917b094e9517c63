"""Estimate when a rebalance began and how long its phases took.

A classic group's record states the end of the join phase and is written at the end of the sync
phase (GroupCoordinator), so only the begin is an estimate; a modern group records both ends
(KIP-848).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from laggard.rebalance.facts import Generation, MemberFacts
from laggard.rebalance.parameters import RebalanceParameters

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Start:
    """Bounds and estimate of the moment the rebalance began."""

    low: datetime | None = None
    high: datetime | None = None
    est: datetime | None = None
    is_seen: bool = True  # false: the estimate is the latest moment possible, for want of any sign

    @property
    def join_seconds(self) -> float | None:
        """Length of the join phase by the estimate."""
        return seconds_between(self.high, self.est)


def find_start(
    generation: Generation,
    before: Sequence[MemberFacts] | None,
    previous_at: datetime | None,
    last_commits: Iterable[datetime],
    parameters: RebalanceParameters,
) -> Start:
    """Begin of the rebalance that this generation ends.

    `previous_at` is the end of the one before, `last_commits` the newest commit of each member that
    stays: it hears of the rebalance, commits as it revokes, and joins. `before` is empty if the
    group is known to have had no member.
    """
    if generation.generation_kind == "epoch":
        return Start(generation.recorded_at, generation.recorded_at, generation.recorded_at)
    high = generation.state_timestamp
    if high is None or high < (previous_at or high):
        return Start()  # a coordinator that took over may state a time of long before
    low = _earliest(generation, before, previous_at, parameters)
    is_first = before is not None and not before
    if is_first:
        est = _first_join(generation, previous_at, parameters)
    else:
        est = _heard_at(last_commits, high)
    if None not in (low, est) and low <= est:  # type: ignore[operator]
        return Start(low, high, est)
    # a group is empty at the moment at which the last one leaves
    return Start(low, high, high, is_seen=low == high or not generation.members)


def sync_seconds(generation: Generation) -> float | None:
    """Return the sync phase in seconds; None without a state timestamp or with a clock set back."""
    if generation.generation_kind == "epoch" or generation.kind == "empty":
        return None
    seconds = seconds_between(generation.recorded_at, generation.state_timestamp)
    if seconds is None or seconds < 0:
        return None
    return seconds


def longest_rebalance_timeout(members: Iterable[MemberFacts]) -> float | None:
    """Return the longest timeout in seconds; None if one is unknown."""
    timeouts = [member.join_timeout_ms for member in members]
    known_timeouts = known(timeouts)
    if known_timeouts and len(known_timeouts) == len(timeouts):
        return max(known_timeouts) / 1000
    return None


def is_straggling(
    join_seconds: float | None,
    timeout_seconds: float | None,
    commit_gap_p95_seconds: float | None,
    parameters: RebalanceParameters,
) -> bool:
    """Return True if the join phase lasted about the longest rebalance timeout.

    It then waited for a member in vain.

    A join of one heartbeat and one batch is healthy, however short the timeout.
    """
    if join_seconds is None or timeout_seconds is None:
        return False
    if join_seconds <= parameters.heartbeat_seconds + (commit_gap_p95_seconds or 0.0):
        return False
    return abs(join_seconds - timeout_seconds) <= parameters.straggler_tolerance * timeout_seconds


def was_waited_for(
    join_seconds: float | None,
    silent_seconds: float | None,
    timeout_seconds: float | None,
    commit_gap_p95_seconds: float | None,
    parameters: RebalanceParameters,
) -> bool:
    """Return True if an absent member left at its poll interval, mostly in the join phase.

    The member did not join.

    It polled for the last time before the join phase began, so the join is shorter than the
    interval by as much.
    """
    if join_seconds is None or silent_seconds is None or timeout_seconds is None:
        return False
    slack, gap = parameters.straggler_tolerance * timeout_seconds, commit_gap_p95_seconds or 0.0
    is_long = join_seconds >= max(
        parameters.straggler_share * timeout_seconds, parameters.heartbeat_seconds + gap
    )
    return is_long and timeout_seconds - slack <= silent_seconds <= timeout_seconds + slack + gap


def lower_median(values: Iterable[datetime]) -> datetime | None:
    """Return the middle value, the earlier of two; None without any."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[(len(ordered) - 1) // 2]


def known(values: Iterable[Value | None]) -> list[Value]:
    """Return the values that are not None, in their order."""
    return [value for value in values if value is not None]


def seconds_between(later: datetime | None, earlier: datetime | None) -> float | None:
    """Return the difference in seconds; None while one end is unknown."""
    if later is None or earlier is None:
        return None
    return (later - earlier).total_seconds()


def length_seconds(ended_at: datetime | None, started_at: datetime | None) -> float | None:
    """Return the seconds from begin to end; None if a time is unknown or the end comes first.

    The end comes first if the times are from different clocks.
    """
    seconds = seconds_between(ended_at, started_at)
    if seconds is None or seconds < 0:
        return None
    return seconds


def union_seconds(
    intervals: Iterable[tuple[datetime, datetime]], begin: datetime, end: datetime
) -> float:
    """Return the length in seconds of the union of intervals within a range."""
    total, covered = 0.0, begin
    for start, stop in sorted(intervals):
        first, last = max(start, covered), min(stop, end)
        total += max(0.0, (last - first).total_seconds())
        covered = max(covered, last)
    return total


def _heard_at(last_commits: Iterable[datetime], joined_at: datetime) -> datetime | None:
    """Return the time at which members heard of the rebalance, from their commits.

    These are the commits before the end of the join phase.
    """
    return lower_median(at for at in last_commits if at <= joined_at)


def _first_join(
    generation: Generation, previous_at: datetime | None, parameters: RebalanceParameters
) -> datetime | None:
    """Return when the first member came into an empty group.

    A new group has its first record at that moment. Any other one waits for more members, at least
    as long as the initial delay (KIP-134).
    """
    if generation.generation == 1 and previous_at is not None:
        return previous_at
    timeout = longest_rebalance_timeout(generation.members)
    if timeout is None or generation.state_timestamp is None:
        return None
    return generation.state_timestamp - timedelta(
        seconds=min(parameters.initial_delay_seconds, timeout)
    )


def _earliest(
    generation: Generation,
    before: Sequence[MemberFacts] | None,
    previous_at: datetime | None,
    parameters: RebalanceParameters,
) -> datetime | None:
    """Return the earliest start of the rebalance.

    The join phase waits for old members at most the longest rebalance timeout.
    """
    if (generation.generation_gap or 1) > 1:
        return previous_at  # of the rounds before this one no record tells how long they lasted
    timeout = longest_rebalance_timeout([*(before or ()), *generation.members])
    if timeout is None or generation.state_timestamp is None:
        return previous_at
    delay = parameters.initial_delay_seconds if not before else 0.0
    low = generation.state_timestamp - timedelta(seconds=timeout + delay)
    if previous_at is None:
        return low
    return max(low, previous_at)
