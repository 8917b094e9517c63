"""Rules D74 and D75: commits for nothing.

D76 (commits by the clock) needs the single gaps between commits, which no window keeps.
"""

from __future__ import annotations

import numpy as np

from laggard.diagnosis.guards import group_kind
from laggard.diagnosis.observation import HYGIENE, INFO, Observation, Rule
from laggard.diagnosis.view import View

_NOOP_SHARE, _NOOP_COMMITS, _NOOP_WINDOWS = 0.9, 1000, 60
_COMMITS_PER_SECOND, _COMMIT_WINDOWS = 10.0, 10


def commit_idle_churn(view: View) -> list[Observation]:
    """D74: nearly all commits of an hour repeat the offset."""
    if group_kind(view.frame) == "share":
        return []
    commits, noops = (
        sum(float(np.nansum(topic.frame[name][:, -_NOOP_WINDOWS:])) for topic in view.topics)
        for name in ("commits", "noops")
    )
    if noops < _NOOP_COMMITS or noops < _NOOP_SHARE * commits:
        return []
    seconds = min(_NOOP_WINDOWS, len(view.frame.windows)) * view.frame.window_seconds
    return [
        Observation(
            "COMMIT_IDLE_CHURN",
            severity=INFO,
            evidence={"noop_share": noops / commits, "noop_commits": noops, "commits_per_second": commits / seconds},
        )
    ]


def commit_rate_high(view: View) -> list[Observation]:
    """D75: more than ten commits a second on each partition for ten minutes."""
    if group_kind(view.frame) == "share" or len(view.frame.windows) < _COMMIT_WINDOWS:
        return []
    commits = [topic.frame["commits"][:, -_COMMIT_WINDOWS:] for topic in view.topics]
    total = sum(float(np.nansum(each)) for each in commits)
    partitions = sum(int((np.nansum(each, axis=1) > 0).sum()) for each in commits)
    seconds = _COMMIT_WINDOWS * view.frame.window_seconds
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


RULES = (
    Rule(
        "D74",
        "COMMIT_IDLE_CHURN",
        HYGIENE,
        commit_idle_churn,
        "Nearly all commits repeat the offset: the offsets topic grows for nothing.",
        advice=("commit less often: a longer auto.commit.interval.ms, or only when the offset moved",),
        open_after=1,
    ),
    Rule(
        "D75",
        "COMMIT_RATE_HIGH",
        HYGIENE,
        commit_rate_high,
        "The group commits more often than is of use, and the coordinator pays for it.",
        advice=("commit once per batch instead of once per record",),
        open_after=1,
    ),
)
