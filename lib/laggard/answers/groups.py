"""Groups of a batch in the order of `laggard status`: state, lag and what the rules say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from laggard.answers.evaluated import BEHIND, INFO, LEVELS, Health
from laggard.answers.reading import Row, made_lines, published_batch
from laggard.answers.text.words import UNKNOWN, aligned, known, known_duration, records, short
from laggard.exporter.options import PolicyOf, Selection, no_policy
from laggard.exporter.snapshot import Snapshot, load_snapshot
from laggard.rebalance.groups import generation_or_epoch
from laggard.tables.odd_rows import Skipped
from laggard.tables.schema.schemas import GROUP_STATUS

SORTS = ("severity", "time_lag", "lag", "group")
Healths = Mapping[str, Health]  # by group; empty if the rules have not evaluated the moment
_RETURNED = "members are back"  # in place of a verdict that says that there is none
_DESERTED = "no member reads"  # in place of a verdict about members that have left
_OF_NOBODY = ("NO_MEMBERS", "UNKNOWN")  # verdicts that are true also when all members have left


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group of `status`: None is unknown, an inexact number is a lower bound."""

    group: str
    state: str
    members: int | None
    lag: int | None
    lag_is_exact: bool
    time_lag_seconds: float | None
    time_lag_is_exact: bool
    worst_partition: str
    generation: int | None
    status: str  # of the data: how far its lag is known
    health: str = UNKNOWN  # by the rules, in the newest window that they evaluated
    # code of the open finding to act on; None: none is open, or unknown as health is
    finding: str | None = None
    shape: str | None = None  # of the topic that is furthest behind
    verdict: str | None = None


def group_lines(snapshot: Snapshot, healths: Healths = MappingProxyType({})) -> list[GroupLine]:
    """Return one entry per group, sorted by health, then time lag, then lag, unknown last."""
    topics: dict[str, list[Row]] = {}
    for row in snapshot.group_topics.rows():
        topics.setdefault(row["group"], []).append(row)
    worst = {
        group: f"{row['topic']}-{row['partition']}"
        for group, row in worst_partitions(snapshot).items()
    }

    def shown_line(row: Row) -> GroupLine:
        line = _group_line(row, topics.get(row["group"], []), worst.get(row["group"], ""))
        health = healths.get(row["group"])
        if health is not None:
            shape, verdict = health.of_worst("shape"), health.of_worst("scale_verdict")
            level = health.level
            # nobody reads, which no window has to show
            if level in ("ok", INFO) and line.members == 0 and line.lag:
                level = BEHIND
            line = replace(line, health=level, finding=health.code, shape=shape, verdict=verdict)
        aligned([tuple(cells(line).values())], [False] * len(cells(line)))
        return line

    lines = made_lines(snapshot.groups, GROUP_STATUS.name, shown_line)
    return sorted(lines, key=order)


def order(line: GroupLine, sort: str = SORTS[0]) -> tuple[Any, ...]:
    """Return the sort key of a line: by health, then by its lag, or by what else is asked for."""
    if sort != SORTS[0]:
        value = {"time_lag": line.time_lag_seconds, "lag": line.lag, "group": 0}[sort]
        return (1.0 if value is None else -value, line.group)
    return (LEVELS.index(line.health), -_rank(line.time_lag_seconds), -_rank(line.lag), line.group)


def _group_line(row: Row, topics: list[Row], worst: str) -> GroupLine:
    is_exact = row["lag"] is not None
    return GroupLine(
        group=row["group"],
        state=row["group_state"],
        members=row["members"],
        lag=row["lag"] if is_exact else row["lag_known"],
        lag_is_exact=is_exact,
        time_lag_seconds=row["max_time_lag_seconds"],
        # a topic where nothing was ever committed has no time lag, and none is missing
        time_lag_is_exact=row["max_time_lag_seconds"] is not None
        and all(
            topic["time_lag"] is not None or not (topic["partitions_bad"] or topic["status_ok"])
            for topic in topics
        ),
        worst_partition=worst,
        generation=generation_or_epoch(row),
        status=row["status"],
    )


def worst_partitions(snapshot: Snapshot) -> dict[str, Row]:
    """Return the partition with the largest time lag, for each group that has lag."""
    worst: dict[str, tuple[tuple[float, int], Row]] = {}
    for row in (*snapshot.partitions, *snapshot.worst):
        rank = (row["time_lag_seconds"] or 0.0, row["lag"] or 0)
        if rank > worst.get(row["group"], ((0.0, 0), {}))[0]:
            worst[row["group"]] = (rank, row)
    return {group: row for group, (_, row) in worst.items()}


def cells(line: GroupLine) -> dict[str, str]:
    """Return a dict from column title to cell."""
    return {
        "GROUP": short(line.group),
        "HEALTH": line.health,
        "FINDING": line.finding or (UNKNOWN if line.health == UNKNOWN else "-"),
        "VERDICT": _verdict(line),
        "STATE": line.state,
        "MEMBERS": known(line.members),
        "LAG": records(line.lag, is_exact=line.lag_is_exact),
        "TIME LAG": known_duration(line.time_lag_seconds, is_exact=line.time_lag_is_exact),
        "WORST PARTITION": short(line.worst_partition) or "-",
        "GENERATION": known(line.generation),
        "DATA": line.status,
        "SHAPE": known(line.shape),
    }


def _verdict(line: GroupLine) -> str:
    """Return the verdict of the newest window.

    If since then all members have left, or some joined an empty group, return that change
    instead.
    """
    if line.members == 0 and line.lag and line.verdict and not line.verdict.startswith(_OF_NOBODY):
        return _DESERTED
    return _RETURNED if line.members and line.verdict == "NO_MEMBERS" else known(line.verdict)


def _rank(value: float | None) -> float:
    return -1.0 if value is None else value


def read_snapshot(
    root: str, skipped: Skipped | None = None, policy: PolicyOf = no_policy
) -> Snapshot:
    """Return the newest published batch with all partitions that `status` may name.

    Odd rows are counted in `skipped`.
    """
    return load_snapshot(root, published_batch(root), Selection(partition_top_k=1), skipped, policy)
