"""Rules D58, D59 and D74 to D76 about client settings: commits and tight timeouts.

The commits are for nothing or by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from laggard.diagnosis.history.frames import Floats, Row
from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.rule import (
    CONFIDENCE,
    HYGIENE,
    INFO,
    MISSING,
    Observation,
    Rule,
    assignor,
    group_kind,
    guard,
    has_assignments,
    has_members,
    known,
    passes,
)
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.identity import absence_p95_seconds, absences
from laggard.diagnosis.signals.rebalances import longest_rebalance_timeout
from laggard.diagnosis.signals.rosters import HEARTBEAT_SECONDS
from laggard.diagnosis.signals.statistics import known_sum, percentile

_NOOP_SHARE = fixed("noop_share", 0.9, "share of the commits")
_NOOP_COMMITS = fixed("noop_commits", 1000, "commits")
_NOOP_WINDOWS = fixed("noop_windows", 60, "windows")
_COMMITS_PER_SECOND = fixed("commits_per_second", 10.0, "commits/s of a partition")
_COMMIT_WINDOWS = fixed("commit_windows", 10, "windows")
_CLOCK_GAPS = fixed("clock_gaps", 50, "gaps between commits of each partition")
_CLOCK_VARIATION = fixed("clock_variation", 0.05, "of the mean gap, standard deviation")
# a shorter period is that of fetches: fetch.max.wait.ms is 500
_CLOCK_SECONDS = fixed("clock_seconds", 1.0, "s")
_CLOCK_QUARTER = fixed(
    "clock_quarter", 4, "parts of the windows: the busiest is compared with the quietest"
)
_RATES_APART = fixed("rates_apart", 1.25, "times the arrivals of the quietest part")
_PERIODS_ALIKE = fixed("periods_alike", 1.05, "times the shorter mean gap")
_SUMS = ("commit_gaps_total", "commit_gap_ms_total", "commit_gap_squares_total")


@Rule(
    "D74",
    "COMMIT_IDLE_CHURN",
    HYGIENE,
    says="Nearly all commits repeat the offset: the offsets topic grows without need.",
    is_not="a stall: there is nothing new to commit.",
    advice=(
        "commit less often: a longer auto.commit.interval.ms, or only when the offset has moved",
    ),
    falsifier="records arrived on the partitions whose offset is repeated",
    open_after=1,
)
def commit_idle_churn(signals: Signals) -> Iterator[Observation]:
    """Nearly all commits of an hour repeat the offset."""
    if group_kind(signals.frame) == "share":
        return
    noops, commits = (_newest(signals, name, _NOOP_WINDOWS) for name in ("noops", "commits"))
    if noops >= max(_NOOP_COMMITS, _NOOP_SHARE * commits):
        seconds = min(_NOOP_WINDOWS, len(signals.frame.windows)) * signals.frame.window_seconds
        numbers = {
            "noop_share": noops / commits,
            "noop_commits": noops,
            "commits_per_second": commits / seconds,
        }
        yield Observation("COMMIT_IDLE_CHURN", INFO, evidence=numbers)


def _newest(signals: Signals, name: str, windows: int) -> float:
    return sum(known_sum(topic.frame[name][:, -windows:]) for topic in signals.topics)


@Rule(
    "D75",
    "COMMIT_RATE_HIGH",
    HYGIENE,
    says="The group commits more often than is useful, which is load for the coordinator.",
    is_not="lag, nor a problem of this group alone: the load is on its coordinator.",
    advice=("commit once per batch instead of once per record",),
    falsifier="the timestamps of these commits span a longer time than the windows in which they "
    "were counted",
    open_after=1,
)
def commit_rate_high(signals: Signals) -> Iterator[Observation]:
    """More than ten commits a second on each partition for ten minutes."""
    if (
        group_kind(signals.frame) == "share"
        or len(signals.frame.windows) < _COMMIT_WINDOWS
        or not signals.topics
    ):
        return
    commits = np.concatenate(
        [topic.frame["commits"][:, -_COMMIT_WINDOWS:] for topic in signals.topics]
    )
    is_seen = (~np.isnan(commits)).any(axis=0)
    partitions = int((np.nansum(commits, axis=1) > 0).sum())
    if is_seen[0] and partitions:  # of what nobody watched nothing is known
        rate = _newest(signals, "commits", _COMMIT_WINDOWS) / (
            int(is_seen.sum()) * signals.frame.window_seconds
        )
        evidence = {
            "commits_per_second_and_partition": rate / partitions,
            "partitions": float(partitions),
        }
        if rate / partitions > _COMMITS_PER_SECOND:
            yield Observation("COMMIT_RATE_HIGH", INFO, evidence=evidence)


@Rule(
    "D76",
    "AUTOCOMMIT_PATTERN",
    HYGIENE,
    says=(
        "The group commits at regular intervals, independent of arrivals, as auto-commit does. If "
        "a member dies, records that it committed before it had processed them are not read again. "
        "Commits do not show whether there are any."
    ),
    is_not=(
        "a fault, nor proof of auto-commit: a timer in the application looks the same, and no "
        "loss was seen."
    ),
    advice=(
        "do nothing if all records of a poll are processed before the next poll",
        "otherwise turn enable.auto.commit off and commit what is processed",
    ),
    falsifier="the mean gap between commits changes when the arrivals do",
)
def autocommit_pattern(signals: Signals) -> Iterator[Observation]:
    """50 gaps between commits of each partition vary by at most 1/20, independent of arrivals."""
    if not has_assignments(signals) or assignor(signals) == "stream" or not signals.member_count:
        return  # Streams and Connect commit by a clock of their own
    if signals.frame.fact.get(_SUMS[0]) is None:
        return
    totals = np.array([[_total(row, name) for row in signals.frame.facts] for name in _SUMS])
    span = _newest_gaps(signals, totals[0])
    if span is None:
        return
    count, total_ms, squares = totals[:, -1] - totals[:, -1 - span]
    mean_ms = total_ms / count
    variation = (
        float(np.sqrt(max(0.0, squares / count - mean_ms**2)) / mean_ms) if mean_ms else np.inf
    )
    if variation <= _CLOCK_VARIATION and mean_ms >= 1000 * _CLOCK_SECONDS:
        is_independent = _is_independent(signals, totals)
        yield Observation(
            "AUTOCOMMIT_PATTERN",
            INFO,
            confidence=CONFIDENCE if is_independent else CONFIDENCE * MISSING,
            evidence={
                "period_seconds": float(mean_ms) / 1000,
                "variation": variation,
                "gaps": float(count),
            },
            guards={
                "independent_of_arrivals": passes(is_independent),
                # without time to spare, batches of one size end as evenly as a clock ticks
                "not_back_to_back": guard(is_independent is None and signals.is_material),
            },
        )


def _total(row: Row | None, name: str) -> float:
    value = (row or {}).get(name)
    return np.nan if value is None else float(value)


def _newest_gaps(signals: Signals, gaps: Floats) -> int | None:
    """Return the span in windows of the newest 50 gaps of each committing partition.

    Return None if there are fewer gaps.
    """
    for span in range(1, len(gaps)):
        if np.isnan(gaps[-1] - gaps[-1 - span]):
            continue
        commits = [
            np.nansum(topic.frame["commits"][:, -span:], axis=1) > 0 for topic in signals.topics
        ]
        partitions = sum(int(each.sum()) for each in commits)
        if partitions and gaps[-1] - gaps[-1 - span] >= _CLOCK_GAPS * partitions:
            return span
    return None


def _is_independent(signals: Signals, totals: Floats) -> bool | None:
    """Return True if the mean gap is the same in windows with few and with many arrivals.

    Return None if the arrivals are alike.
    """
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
    if arrivals[many].mean() < _RATES_APART * max(
        arrivals[few].mean(), 1 / signals.frame.window_seconds
    ):
        return None
    low, high = sorted((means[few].mean(), means[many].mean()))
    return bool(high <= _PERIODS_ALIKE * low)


_SESSION_HEARTBEATS = fixed("session_heartbeats", 3, "heartbeats in a session")
# with heartbeats of 2 s it is in order, and the broker's minimum besides
_LEGACY_SESSION_MS = fixed("legacy_session_ms", 6000, "ms")
_ASSUMED_CONFIDENCE = fixed("assumed_confidence", 0.4, "confidence where the heartbeat is assumed")
_LEGACY_CONFIDENCE = fixed(
    "legacy_confidence", 0.2, "confidence where it is, and the session is one of old clients"
)
_TIGHT_SHARE = fixed("tight_share", 0.8, "of the rebalance timeout")
_ABSENCE_TIMES = fixed("absence_times", 1.5, "times the 95th percentile of absences")
_TIGHT_GAPS = fixed("tight_gaps", 20, "gaps between commits, of which a percentile says something")
_TIGHT_GAP_PERCENT = fixed("tight_gap_percent", 99, "percentile of the gaps between commits")


@Rule(
    "D58",
    "TIMEOUT_RATIO",
    HYGIENE,
    says="The session timeout holds fewer than three heartbeats: one late heartbeat may evict a "
    "member.",
    is_not="an eviction that has happened. If the heartbeat interval is assumed, the confidence is "
    "low.",
    advice=(
        (
            "set session.timeout.ms to at least 3 × heartbeat.interval.ms; 45 s and 3 s are "
            "today's defaults"
        ),
        "declare the heartbeat interval of this group if it is a different one",
    ),
    falsifier="the session timeout holds three of the heartbeat intervals that are declared for "
    "the group",
    open_after=1,
)
def timeout_ratio(signals: Signals) -> Iterator[Observation]:
    """A session timeout holds fewer than three heartbeats.

    So one late heartbeat may evict a member.
    """
    sessions = [
        row["session_timeout_ms"]
        for row in signals.membership.current
        if row.get("session_timeout_ms")
    ]
    declared = signals.policy.heartbeat_seconds
    heartbeat = declared or HEARTBEAT_SECONDS
    short = [each for each in sessions if each / 1000 < _SESSION_HEARTBEATS * heartbeat]
    if not has_members(signals) or not short:
        return
    assumed = _LEGACY_CONFIDENCE if min(short) == _LEGACY_SESSION_MS else _ASSUMED_CONFIDENCE
    confidence, source = (CONFIDENCE, "declared") if declared else (assumed, "assumed")
    numbers = {
        "session_timeout_seconds": min(short) / 1000,
        "heartbeat_seconds": heartbeat,
        "members": len(short),
    }
    yield Observation(
        "TIMEOUT_RATIO",
        INFO,
        confidence=confidence,
        evidence=known(numbers),
        evidence_text={"heartbeat": source},
    )


@Rule(
    "D59",
    "TIMEOUT_TIGHT",
    HYGIENE,
    says="A timeout is hardly longer than the batches or restarts that have to fit into it.",
    is_not="an eviction that has happened. Commits made by a timer say little about batches.",
    advice=(
        (
            "poll interval: set max.poll.interval.ms above the longest batch, or lower "
            "max.poll.records"
        ),
        "static members: set session.timeout.ms to 1.5 × the longest restart, 95th percentile",
    ),
    avoid=(
        (
            "do not set the session timeout far above what restarts need: a dead member's "
            "partitions wait that long"
        ),
    ),
    falsifier="the longest gaps between commits stay as long when fewer records arrive: a timer "
    "causes them",
)
def timeout_tight(signals: Signals) -> Iterator[Observation]:
    """The longest batches take nearly the poll interval, or restarts nearly the session timeout."""
    if has_assignments(signals):
        yield from _tight_poll_interval(signals)
        yield from _tight_session(signals)


def _tight_poll_interval(signals: Signals) -> Iterator[Observation]:
    timeout = longest_rebalance_timeout(signals.membership.current)
    if timeout is None or not any(
        (each.frame["interval"] > _TIGHT_SHARE * timeout).any() for each in signals.topics
    ):
        return
    gap, count = commit_gap_p99(signals)
    if count >= _TIGHT_GAPS and gap > _TIGHT_SHARE * timeout:
        # commits that are rarer than any poll may be come from a timer, unless members are evicted
        # for it
        is_of_polls = gap <= timeout or bool(signals.membership.evicted("poll_timeout"))
        numbers = {
            "commit_gap_p99_seconds": gap,
            "rebalance_timeout_seconds": timeout,
            "ratio": gap / timeout,
        }
        yield _tight("poll_interval", numbers, {"no_timer_commits": passes(is_of_polls)})


def _tight_session(signals: Signals) -> Iterator[Observation]:
    static = [row for row in signals.membership.current if row.get("group_instance_id")]
    session = min(
        (row["session_timeout_ms"] / 1000 for row in static if row.get("session_timeout_ms")),
        default=None,
    )
    away = absence_p95_seconds(absences(signals.membership))
    if away is not None and session is not None and session < _ABSENCE_TIMES * away:
        numbers = {
            "absence_p95_seconds": away,
            "session_timeout_seconds": session,
            "ratio": session / away,
        }
        yield _tight("static", numbers, {})


def _tight(kind: str, evidence: dict[str, float], guards: dict[str, str]) -> Observation:
    text = {"kind": kind}
    return Observation(
        "TIMEOUT_TIGHT", INFO, subject=kind, evidence=evidence, evidence_text=text, guards=guards
    )


def commit_gap_p99(signals: Signals) -> tuple[float, int]:
    """Return the 99th percentile of commit intervals of moving partitions, and their number.

    The percentile is by nearest rank, in seconds.

    The frame has the median of a partition's newest gaps per window, not each gap; a batch that is
    the exception in twenty does not show. Stalled partitions say nothing of batches.
    """
    gaps = [
        topic.frame["interval"][
            (topic.frame["consumed"] > 0) & np.isfinite(topic.frame["interval"])
        ]
        for topic in signals.topics
    ]
    moving = np.concatenate([*gaps, np.zeros(0)]).tolist()
    return percentile(moving, _TIGHT_GAP_PERCENT), len(moving)
