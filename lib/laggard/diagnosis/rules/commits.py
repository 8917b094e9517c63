"""Rules D74 to D76: commits for nothing, and commits by the clock."""

from __future__ import annotations

import math

import numpy as np

from laggard.diagnosis.history.frames import Floats, Row
from laggard.diagnosis.order import known_sum
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.guards import MISSING, assignor, group_kind, guard, guarded, passes
from laggard.diagnosis.rules.rule import CONFIDENCE, HYGIENE, INFO, UNKNOWN, Observation, Rule
from laggard.diagnosis.signals.group import Signals

_NOOP_SHARE = fixed("noop_share", 0.9, "share of the commits")
_NOOP_COMMITS = fixed("noop_commits", 1000, "commits")
_NOOP_WINDOWS = fixed("noop_windows", 60, "windows")
_COMMITS_PER_SECOND = fixed("commits_per_second", 10.0, "commits/s of a partition")
_COMMIT_WINDOWS = fixed("commit_windows", 10, "windows")
_CLOCK_GAPS = fixed("clock_gaps", 50, "gaps between commits of each partition")
_CLOCK_VARIATION = fixed("clock_variation", 0.05, "of the mean gap, standard deviation")
_CLOCK_SECONDS = fixed("clock_seconds", 1.0, "s")  # a shorter period is that of fetches: fetch.max.wait.ms is 500
_CLOCK_QUARTER = fixed("clock_quarter", 4, "parts of the windows: the busiest is compared with the quietest")
_RATES_APART = fixed("rates_apart", 1.25, "times the arrivals of the quietest part")
_PERIODS_ALIKE = fixed("periods_alike", 1.05, "times the shorter mean gap")
_SUMS = ("commit_gaps_total", "commit_gap_ms_total", "commit_gap_squares_total")


@Rule(
    "D74",
    "COMMIT_IDLE_CHURN",
    HYGIENE,
    says="Nearly all commits repeat the offset: the offsets topic grows for nothing.",
    is_not="a stall: there is nothing new to commit.",
    advice=("commit less often: a longer auto.commit.interval.ms, or only when the offset moved",),
    falsifier="records arrived on the partitions whose offset is repeated",
    open_after=1,
)
def commit_idle_churn(signals: Signals) -> list[Observation]:
    """Nearly all commits of an hour repeat the offset."""
    if group_kind(signals.frame) == "share":
        return []
    noops = sum(known_sum(topic.frame["noops"][:, -_NOOP_WINDOWS:]) for topic in signals.topics)
    if noops < _NOOP_COMMITS:
        return []
    commits = sum(known_sum(topic.frame["commits"][:, -_NOOP_WINDOWS:]) for topic in signals.topics)
    if noops < _NOOP_SHARE * commits:
        return []
    seconds = min(_NOOP_WINDOWS, len(signals.frame.windows)) * signals.frame.window_seconds
    return [
        Observation(
            "COMMIT_IDLE_CHURN",
            severity=INFO,
            evidence={"noop_share": noops / commits, "noop_commits": noops, "commits_per_second": commits / seconds},
        )
    ]


@Rule(
    "D75",
    "COMMIT_RATE_HIGH",
    HYGIENE,
    says="The group commits more often than is of use, and the coordinator pays for it.",
    is_not="lag, nor a fault of the group's own speed alone: the coordinator pays.",
    advice=("commit once per batch instead of once per record",),
    falsifier="the timestamps of these commits span a longer time than the windows in which they were counted",
    open_after=1,
)
def commit_rate_high(signals: Signals) -> list[Observation]:
    """More than ten commits a second on each partition for ten minutes."""
    if group_kind(signals.frame) == "share" or len(signals.frame.windows) < _COMMIT_WINDOWS or not signals.topics:
        return []
    commits = [topic.frame["commits"][:, -_COMMIT_WINDOWS:] for topic in signals.topics]
    is_seen = np.any([(~np.isnan(each)).any(axis=0) for each in commits], axis=0)
    total = sum(known_sum(each) for each in commits)
    seconds = int(is_seen.sum()) * signals.frame.window_seconds
    if not is_seen[0] or total / seconds <= _COMMITS_PER_SECOND:  # of what nobody watched nothing is known
        return []
    partitions = sum(int((np.nansum(each, axis=1) > 0).sum()) for each in commits)
    if not partitions or total / seconds / partitions <= _COMMITS_PER_SECOND:
        return []
    return [
        Observation(
            "COMMIT_RATE_HIGH",
            severity=INFO,
            evidence={
                "commits_per_second_and_partition": total / seconds / partitions,
                "partitions": float(partitions),
            },
        )
    ]


@Rule(
    "D76",
    "AUTOCOMMIT_PATTERN",
    HYGIENE,
    says=(
        "Commits come by the clock, whatever arrives, as auto-commit does: if records are still in work then, those of"
        " a member that dies are not read again. Whether any are, no commit tells."
    ),
    is_not=("a fault, nor proof of auto-commit: a timer of the application's own looks the same, and no loss is seen."),
    advice=(
        "nothing, where all records of a poll are done before the next one",
        "else turn enable.auto.commit off and commit what is done",
    ),
    falsifier="the mean gap between commits changes when the arrivals do",
)
def autocommit_pattern(signals: Signals) -> list[Observation]:
    """50 gaps between commits of each partition that vary by a twentieth at most, however much arrives."""
    if group_kind(signals.frame) not in {"consumer", ""} or assignor(signals) == "stream" or not signals.member_count:
        return []  # Streams and Connect commit by a clock of their own
    if math.isnan(_total(signals.frame.fact, _SUMS[0])):
        return []
    totals = np.array([[_total(row, name) for row in signals.frame.facts] for name in _SUMS])
    span = _newest_gaps(signals, totals[0])
    if span is None:
        return []
    count, total_ms, squares = totals[:, -1] - totals[:, -1 - span]
    mean_ms = total_ms / count
    variation = float(np.sqrt(max(0.0, squares / count - mean_ms**2)) / mean_ms) if mean_ms else np.inf
    if variation > _CLOCK_VARIATION or mean_ms < 1000 * _CLOCK_SECONDS:
        return []
    is_independent = _is_independent(signals, totals)
    return guarded(
        Observation(
            "AUTOCOMMIT_PATTERN",
            severity=INFO,
            confidence=CONFIDENCE if is_independent else CONFIDENCE * MISSING,
            evidence={"period_seconds": float(mean_ms) / 1000, "variation": variation, "gaps": float(count)},
            guards={
                "period_follows_arrivals": passes(is_independent),
                # without time to spare, batches of one size end as evenly as a clock ticks
                "rhythm_of_work": guard(is_independent is None and signals.is_material),
                "manual_commits_by_a_timer": UNKNOWN,
            },
        )
    )


def _total(row: Row | None, name: str) -> float:
    value = (row or {}).get(name)
    return np.nan if value is None else float(value)


def _newest_gaps(signals: Signals, gaps: Floats) -> int | None:
    """Return how many windows the newest 50 gaps of each committing partition span; None if there are fewer."""
    for span in range(1, len(gaps)):
        if np.isnan(gaps[-1] - gaps[-1 - span]):
            continue
        commits = [np.nansum(topic.frame["commits"][:, -span:], axis=1) > 0 for topic in signals.topics]
        partitions = sum(int(each.sum()) for each in commits)
        if partitions and gaps[-1] - gaps[-1 - span] >= _CLOCK_GAPS * partitions:
            return span
    return None


def _is_independent(signals: Signals, totals: Floats) -> bool | None:
    """True if the mean gap is the same in windows with few and with many arrivals; None if these are alike."""
    steps = np.diff(totals, axis=1)
    arrivals = sum(np.nansum(topic.frame["arrival"], axis=0) for topic in signals.topics)[1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(steps[0] > 0, steps[1] / steps[0], np.nan)
    known = np.flatnonzero(~np.isnan(means))
    quarter = len(known) // _CLOCK_QUARTER
    if not quarter:
        return None
    order = known[np.argsort(arrivals[known], kind="stable")]
    few, many = order[:quarter], order[-quarter:]
    if arrivals[many].mean() < _RATES_APART * max(arrivals[few].mean(), 1 / signals.frame.window_seconds):
        return None
    low, high = sorted((means[few].mean(), means[many].mean()))
    return bool(high <= _PERIODS_ALIKE * low)
