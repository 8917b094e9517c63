"""One cluster as the API shows it: every group of one batch.

The groups are computed once for all questions about that batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laggard.answers.document import named
from laggard.answers.evaluated import Health, read_health
from laggard.answers.groups import GroupLine, group_lines, worst_partitions
from laggard.answers.history import GroupSeries, Seen
from laggard.answers.reading import Row
from laggard.diagnosis.parameters import Policy
from laggard.exporter.collectors.sizing import sizes
from laggard.exporter.snapshot import Snapshot
from laggard.exporter.totals import worst_verdict
from laggard.lag.status import STATUSES
from laggard.tables.published import Batch

_NO_COMMIT = "no_commit"


@dataclass(frozen=True, slots=True)
class Entry:
    """One group: as `laggard status` has it, and as the API gives it."""

    line: GroupLine
    row: dict[str, Any]
    topics: Sequence[Row]  # sums of each


@dataclass(frozen=True, slots=True)
class Board:
    """All groups of a batch, the worst first."""

    snapshot: Snapshot
    root: str
    entries: Mapping[str, Entry]  # by the group's name
    is_past: bool = False  # at the end of a window, as history has it

    @property
    def batch(self) -> Batch:
        return self.snapshot.batch

    def topics(self, group: str) -> Sequence[Row]:
        return self.entries[group].topics


def make_board(
    snapshot: Snapshot,
    root: str,
    window_seconds: int,
    series: GroupSeries | None,
) -> Board:
    """Read what the rules say of the batch, and put all groups in order.

    Without series the groups have no history.
    """
    healths = read_health(root, snapshot.batch.polled_at, window_seconds)
    polled_at = snapshot.batch.polled_at
    closed_to = polled_at.timestamp() // window_seconds * window_seconds
    history: Mapping[str, Sequence[Seen]] = {}
    if series is not None:
        history = series.upto(polled_at.fromtimestamp(closed_to, polled_at.tzinfo))
    wanted = {group: number for group, _, number in sizes(snapshot)}
    rows = {row["group"]: row for row in snapshot.groups}
    topics: dict[str, list[Row]] = {}
    for row in snapshot.group_topics.rows():
        topics.setdefault(row["group"], []).append(row)
    worst = worst_partitions(snapshot)
    entries = {}
    for line in group_lines(snapshot, healths):
        name = line.group
        mine, policy = topics.get(name, []), snapshot.policies.get(name, Policy())
        row = {
            **named("cluster", snapshot.cluster),
            **named("group", name),
            **_facts(line, rows[name], mine),
            **_evaluated(line, healths.get(name)),
            "desired_consumers": wanted.get(name),
            "worst": _worst(worst.get(name)),
            "owner": policy.owner or None,
            "team": policy.team or None,
            "in_maintenance": policy.in_maintenance,
            **_history(history.get(name, [])),
        }
        entries[name] = Entry(line, row, mine)
    return Board(snapshot, root, entries)


def _history(values: Sequence[Seen]) -> dict[str, Any]:
    bounds = [
        number
        for number, (seconds, is_bound) in enumerate(values)
        if is_bound and seconds is not None
    ]
    return {"history": [seconds for seconds, _ in values], "history_bounds": bounds}


def _facts(line: GroupLine, row: Row, topics: Sequence[Row]) -> dict[str, Any]:
    return {
        "type": row["group_type"],
        "state": line.state,
        "status": line.status,
        "verdict": worst_verdict(topics),
        "generation": line.generation,
        "members": line.members,
        "lag": row["lag"],
        "lag_known": row["lag_known"],
        "time_lag_seconds": line.time_lag_seconds if line.time_lag_is_exact else None,
        "time_lag_known_seconds": line.time_lag_seconds,
        "time_lag_censored": is_censored(topics),
        "partitions": partition_counts(topics),
    }


def is_censored(topics: Sequence[Row]) -> bool | None:
    """Return True if the time lag of any partition is only a lower bound; None if none is known."""
    known = [bool(topic["is_censored"]) for topic in topics if topic["is_censored"] is not None]
    return any(known) if known else None


def partition_counts(topics: Sequence[Row]) -> dict[str, int]:
    """Count partitions: in all, ok, without a commit, and unknown."""
    counts = {name: sum(topic[f"status_{name}"] for topic in topics) for name in STATUSES}
    known = {"ok": counts["ok"], _NO_COMMIT: counts[_NO_COMMIT]}
    total = sum(counts.values())
    return {"total": total, **known, "unknown": total - sum(known.values())}


def _evaluated(line: GroupLine, health: Health | None) -> dict[str, Any]:
    findings = [] if health is None else health.findings
    return {
        "health": line.health,
        "finding": line.finding,
        "findings": list(dict.fromkeys(row["code"] for row in findings)),
        "shape": line.shape,
        "trend": None if health is None else health.of_worst("trend"),
        "scale_verdict": line.verdict,
    }


def _worst(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    of_row = {name: row[name] for name in ("partition", "lag", "time_lag_seconds")}
    return {**named("topic", row["topic"]), **of_row, "verdict": row["verdict"]}
