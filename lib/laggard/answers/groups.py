"""All groups of one cluster as documents, the worst first: state, lag and what the rules say.

They are made once for all questions about a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laggard.answers.document import name_of, named
from laggard.answers.evaluated import BEHIND, INFO, LEVELS, Health, read_health
from laggard.answers.history import GroupSeries, Seen
from laggard.answers.reading import Row, made_lines, published_batch
from laggard.answers.text.words import UNKNOWN, aligned, known, known_duration, records, short
from laggard.diagnosis.parameters import Policy
from laggard.exporter.collectors.sizing import sizes
from laggard.exporter.options import PolicyOf, Selection, no_policy
from laggard.exporter.snapshot import Snapshot, load_snapshot
from laggard.exporter.totals import worst_verdict
from laggard.lag.status import STATUSES
from laggard.rebalance.groups import generation_or_epoch
from laggard.tables.odd_rows import Skipped
from laggard.tables.published import Batch
from laggard.tables.schema.schemas import GROUP_STATUS

SORTS = ("severity", "time_lag", "lag", "group")
_NO_COMMIT = "no_commit"
_RETURNED = "members are back"  # in place of a verdict that says that there is none
_DESERTED = "no member reads"  # in place of a verdict about members that have left
_OF_NOBODY = ("NO_MEMBERS", "UNKNOWN")  # verdicts that are true also when all members have left


@dataclass(frozen=True, slots=True)
class ClusterGroups:
    """All groups of a batch, the worst first."""

    snapshot: Snapshot
    root: str
    groups: Mapping[str, Row]  # documents by name
    topics: Mapping[str, Sequence[Row]]  # sums of each topic, by group
    is_past: bool = False  # at the end of a window, as history has it

    @property
    def batch(self) -> Batch:
        """The batch that the groups are of."""
        return self.snapshot.batch


def groups_of(
    snapshot: Snapshot, root: str, window_seconds: int, series: GroupSeries | None = None
) -> ClusterGroups:
    """Return all groups of a batch with what the rules say of them.

    Without series the groups have no history. A row that cannot be shown is left out and named.
    """
    topics: dict[str, list[Row]] = {}
    for row in snapshot.group_topics.rows():
        topics.setdefault(row["group"], []).append(row)
    document = _document_maker(snapshot, root, window_seconds, series, topics)

    def shown(row: Row) -> Row:
        group = document(row)
        aligned([tuple(cells(group).values())], [False] * len(cells(group)))
        return group

    groups = sorted(made_lines(snapshot.groups, GROUP_STATUS.name, shown), key=order)
    return ClusterGroups(snapshot, root, {name_of(row, "group"): row for row in groups}, topics)


def _document_maker(
    snapshot: Snapshot,
    root: str,
    window_seconds: int,
    series: GroupSeries | None,
    topics: Mapping[str, Sequence[Row]],
) -> Callable[[Row], Row]:
    """Return the function that makes the document of a row of group_status."""
    polled_at = snapshot.batch.polled_at
    healths = read_health(root, polled_at, window_seconds)
    closed_to = polled_at.timestamp() // window_seconds * window_seconds
    history: Mapping[str, Sequence[Seen]] = {}
    if series is not None:
        history = series.upto(polled_at.fromtimestamp(closed_to, polled_at.tzinfo))
    desired = {group: number for group, _, number in sizes(snapshot)}
    worst = worst_partitions(snapshot)

    def document(row: Row) -> Row:
        name = row["group"]
        policy = snapshot.policies.get(name, Policy())
        return {
            **named("cluster", snapshot.cluster),
            **named("group", name),
            **_facts(row, topics.get(name, [])),
            **_evaluated(row, healths.get(name)),
            "desired_consumers": desired.get(name),
            "worst": _worst(worst.get(name)),
            "owner": policy.owner or None,
            "team": policy.team or None,
            "in_maintenance": policy.in_maintenance,
            **_history(history.get(name, [])),
        }

    return document


def _facts(row: Row, topics: Sequence[Row]) -> Row:
    seconds = row["max_time_lag_seconds"]
    # a topic where nothing was ever committed has no time lag, and none is missing
    is_exact = all(
        topic["time_lag"] is not None or not (topic["partitions_bad"] or topic["status_ok"])
        for topic in topics
    )
    return {
        "type": row["group_type"],
        "state": row["group_state"],
        "status": row["status"],
        "verdict": worst_verdict(topics),
        "generation": generation_or_epoch(row),
        "members": row["members"],
        "lag": row["lag"],
        "lag_known": row["lag_known"],
        "time_lag_seconds": seconds if is_exact else None,
        "time_lag_known_seconds": seconds,
        "time_lag_censored": is_censored(topics),
        "partitions": partition_counts(topics),
    }


def _evaluated(row: Row, health: Health | None) -> Row:
    """Return what the rules say of the newest window that they evaluated."""
    if health is None:
        rules = dict.fromkeys(("finding", "shape", "trend", "scale_verdict"))
        return {"health": UNKNOWN, "findings": []} | rules
    level = health.level
    # nobody reads, which no window has to show
    if level in ("ok", INFO) and row["members"] == 0 and _least_lag(row):
        level = BEHIND
    return {
        "health": level,
        "finding": health.code,
        "findings": list(dict.fromkeys(finding["code"] for finding in health.findings)),
        "shape": health.of_worst("shape"),
        "trend": health.of_worst("trend"),
        "scale_verdict": health.of_worst("scale_verdict"),
    }


def _history(values: Sequence[Seen]) -> Row:
    bounds = [
        number
        for number, (seconds, is_bound) in enumerate(values)
        if is_bound and seconds is not None
    ]
    return {"history": [seconds for seconds, _ in values], "history_bounds": bounds}


def _worst(row: Row | None) -> Row | None:
    if row is None:
        return None
    facts = {name: row[name] for name in ("partition", "lag", "time_lag_seconds")}
    return {**named("topic", row["topic"]), **facts, "verdict": row["verdict"]}


def _least_lag(row: Row) -> int | None:
    """Return the lag of a row or a document, or its lower bound; None if neither is known."""
    lag: int | None = row["lag"] if row["lag"] is not None else row["lag_known"]
    return lag


def order(group: Row, sort: str = SORTS[0]) -> tuple[Any, ...]:
    """Return the sort key of a document: by health, then by its lag, or by what else is asked."""
    lag, seconds, name = _least_lag(group), group["time_lag_known_seconds"], name_of(group, "group")
    if sort != SORTS[0]:
        value = {"time_lag": seconds, "lag": lag, "group": 0}[sort]
        return (1.0 if value is None else -value, name)
    return (LEVELS.index(group["health"]), -_rank(seconds), -_rank(lag), name)


def _rank(value: float | None) -> float:
    return -1.0 if value is None else value


def worst_partitions(snapshot: Snapshot) -> dict[str, Row]:
    """Return the partition with the largest time lag, for each group that has lag."""
    worst: dict[str, tuple[tuple[float, int], Row]] = {}
    for row in (*snapshot.partitions, *snapshot.worst):
        rank = (row["time_lag_seconds"] or 0.0, row["lag"] or 0)
        if rank > worst.get(row["group"], ((0.0, 0), {}))[0]:
            worst[row["group"]] = (rank, row)
    return {group: row for group, (_, row) in worst.items()}


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


def cells(group: Row) -> dict[str, str]:
    """Return the cells of `laggard status` by the titles of their columns."""
    worst, seconds = group["worst"], group["time_lag_known_seconds"]
    partition = "" if worst is None else f"{name_of(worst, 'topic')}-{worst['partition']}"
    return {
        "GROUP": short(name_of(group, "group")),
        "HEALTH": group["health"],
        "FINDING": group["finding"] or (UNKNOWN if group["health"] == UNKNOWN else "-"),
        "VERDICT": _verdict(group),
        "STATE": group["state"],
        "MEMBERS": known(group["members"]),
        "LAG": records(_least_lag(group), is_exact=group["lag"] is not None),
        "TIME LAG": known_duration(seconds, is_exact=group["time_lag_seconds"] is not None),
        "WORST PARTITION": short(partition) or "-",
        "GENERATION": known(group["generation"]),
        "DATA": group["status"],
        "SHAPE": known(group["shape"]),
    }


def _verdict(group: Row) -> str:
    """Return the verdict of the newest window.

    If since then all members have left, or some joined an empty group, return that change
    instead.
    """
    members, verdict = group["members"], group["scale_verdict"]
    if members == 0 and _least_lag(group) and verdict and not verdict.startswith(_OF_NOBODY):
        return _DESERTED
    return _RETURNED if members and verdict == "NO_MEMBERS" else known(verdict)


def read_snapshot(
    root: str, skipped: Skipped | None = None, policy: PolicyOf = no_policy
) -> Snapshot:
    """Return the newest published batch with all partitions that `status` may name.

    Odd rows are counted in `skipped`.
    """
    return load_snapshot(root, published_batch(root), Selection(partition_top_k=1), skipped, policy)
