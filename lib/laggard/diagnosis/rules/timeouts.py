"""Rules D58 and D59: session timeouts against heartbeats and restarts, poll intervals against batches."""

from __future__ import annotations

import numpy as np

from laggard.diagnosis.parameters import fixed
from laggard.diagnosis.rules.guards import guarded, has_assignments, has_members, passes
from laggard.diagnosis.rules.rule import CONFIDENCE, HYGIENE, INFO, Observation, Rule
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.rebalances import longest_rebalance_timeout
from laggard.diagnosis.signals.rosters import HEARTBEAT_SECONDS
from laggard.diagnosis.signals.static import absence_p95_seconds, absences

_SESSION_HEARTBEATS = fixed("session_heartbeats", 3, "heartbeats in a session")
# with heartbeats of 2 s it is in order, and the broker's minimum besides
_LEGACY_SESSION_MS = fixed("legacy_session_ms", 6000, "ms")
_ASSUMED_CONFIDENCE = fixed("assumed_confidence", 0.4, "confidence where the heartbeat is assumed")
_LEGACY_CONFIDENCE = fixed("legacy_confidence", 0.2, "confidence where it is, and the session is one of old clients")
_TIGHT_SHARE = fixed("tight_share", 0.8, "of the rebalance timeout")
_ABSENCE_TIMES = fixed("absence_times", 1.5, "times the 95th percentile of absences")
_TIGHT_GAPS = fixed("tight_gaps", 20, "gaps between commits, of which a percentile says something")
_TIGHT_GAP_PERCENT = fixed("tight_gap_percent", 99, "percentile of the gaps between commits")


@Rule(
    "D58",
    "TIMEOUT_RATIO",
    HYGIENE,
    says="The session timeout holds fewer than three heartbeats: one late heartbeat may evict a member.",
    is_not="an eviction that has happened. Where the heartbeat is assumed, the confidence is low.",
    advice=(
        "set session.timeout.ms to at least 3 × heartbeat.interval.ms; 45 s and 3 s are today's defaults",
        "declare the heartbeat of this group if it is another one",
    ),
    falsifier="the session timeout holds three of the heartbeat intervals that are declared for the group",
    open_after=1,
)
def timeout_ratio(signals: Signals) -> list[Observation]:
    """A session holds fewer than three heartbeats, so that one late answer evicts a member."""
    members = [row for row in signals.membership.current if row.get("session_timeout_ms")]
    if not has_members(signals) or not members:
        return []
    declared = signals.policy.heartbeat_seconds
    heartbeat = declared or HEARTBEAT_SECONDS
    short = [row for row in members if row["session_timeout_ms"] / 1000 < _SESSION_HEARTBEATS * heartbeat]
    if not short:
        return []
    session = min(row["session_timeout_ms"] for row in short)
    return [
        Observation(
            "TIMEOUT_RATIO",
            severity=INFO,
            confidence=CONFIDENCE
            if declared
            else _LEGACY_CONFIDENCE
            if session == _LEGACY_SESSION_MS
            else _ASSUMED_CONFIDENCE,
            evidence={
                "session_timeout_seconds": session / 1000,
                "heartbeat_seconds": heartbeat,
                "members": float(len(short)),
            },
            evidence_text={"heartbeat": "declared" if declared else "assumed"},
        )
    ]


@Rule(
    "D59",
    "TIMEOUT_TIGHT",
    HYGIENE,
    says="A timeout is hardly longer than what it has to outlast.",
    is_not="an eviction that has happened. Commits by a timer say little about batches.",
    advice=(
        "poll interval: set max.poll.interval.ms above the longest batch, or lower max.poll.records",
        "static members: set session.timeout.ms to 1.5 × the longest restart, 95th percentile",
    ),
    avoid=("a session much longer than restarts need: a dead member's partitions stay unread for as long",),
    falsifier="the longest gaps between commits stay as long when fewer records arrive: a timer makes them",
)
def timeout_tight(signals: Signals) -> list[Observation]:
    """The longest batches nearly fill the poll interval, or restarts nearly fill the session."""
    if not has_assignments(signals):
        return []
    return [*_tight_poll_interval(signals), *_tight_session(signals)]


def _tight_poll_interval(signals: Signals) -> list[Observation]:
    timeout = longest_rebalance_timeout(signals.membership.current)
    if timeout is None or not any((each.frame["interval"] > _TIGHT_SHARE * timeout).any() for each in signals.topics):
        return []
    gap, count = commit_gap_p99(signals)
    if count < _TIGHT_GAPS or gap <= _TIGHT_SHARE * timeout:
        return []
    evicted = signals.membership.evicted("poll_timeout")
    observation = Observation(
        "TIMEOUT_TIGHT",
        severity=INFO,
        subject="poll_interval",
        evidence={"commit_gap_p99_seconds": gap, "rebalance_timeout_seconds": timeout, "ratio": gap / timeout},
        evidence_text={"kind": "poll_interval"},
        # commits that are rarer than any poll may be come from a timer, unless members are evicted for it
        guards={"timer_commits": passes(gap <= timeout or bool(evicted))},
    )
    return guarded(observation)


def _tight_session(signals: Signals) -> list[Observation]:
    static = [row for row in signals.membership.current if row.get("group_instance_id")]
    sessions = [row["session_timeout_ms"] / 1000 for row in static if row.get("session_timeout_ms")]
    away = absence_p95_seconds(absences(signals.membership))
    if away is None or not sessions or min(sessions) >= _ABSENCE_TIMES * away:
        return []
    return [
        Observation(
            "TIMEOUT_TIGHT",
            severity=INFO,
            subject="static",
            evidence={
                "absence_p95_seconds": away,
                "session_timeout_seconds": min(sessions),
                "ratio": min(sessions) / away,
            },
            evidence_text={"kind": "static"},
        )
    ]


def commit_gap_p99(signals: Signals) -> tuple[float, int]:
    """99th percentile (nearest rank) of the commit intervals of moving partitions in seconds, and how many there are.

    The frame has the median of a partition's newest gaps per window, not each gap; a batch that is the exception in
    twenty does not show. Stalled partitions say nothing of batches.
    """
    known = [
        topic.frame["interval"][(topic.frame["consumed"] > 0) & np.isfinite(topic.frame["interval"])]
        for topic in signals.topics
    ]
    gaps = np.sort(np.concatenate([*known, np.zeros(0)]))
    return (float(gaps[-(-_TIGHT_GAP_PERCENT * len(gaps) // 100) - 1]) if len(gaps) else np.nan), len(gaps)
