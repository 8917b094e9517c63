"""D. State, members, rebalances and policy of each group, from group_status and `[[policy]]`.

F. Findings: those that are open, and how many were ever opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import (
    Labels,
    SnapshotCollector,
    Value,
    by_key,
    filled,
    filled_columns,
    filled_histogram,
    filled_states,
    label_or_empty,
)
from laggard.exporter.snapshot import Row
from laggard.exporter.totals import GroupTopics
from laggard.rebalance.analytics.causes import CAUSES
from laggard.rebalance.groups import generation_or_epoch

_SCALARS = (
    (fam.GROUP_MEMBERS, "members"),
    (fam.GROUP_IDLE_MEMBERS, "idle_members"),
    (fam.GROUP_STATIC_MEMBERS, "static_members"),
    (fam.GROUP_IMBALANCE, "assignment_imbalance"),
)
_INFO = ("group_type", "protocol_type", "assignor", "rebalance_mode", "coordinator")

_BY_COMMIT = ("classic", "consumer", "streams", "simple")  # a share group keeps no offsets there

_OF_REBALANCES = (
    (fam.GROUP_GENERATIONS, "generations_total"),
    (fam.GROUP_INTERRUPTED, "interrupted_generations_total"),
    (fam.GROUP_STATIC_RESTARTS, "static_restarts_absorbed_total"),
    (fam.GROUP_MOVED, "partitions_moved_total"),
    (fam.GROUP_MOVED_AVOIDABLE, "partitions_moved_avoidable_total"),
    (fam.GROUP_REBALANCE_RATIO, "time_in_rebalance_ratio"),
    (fam.GROUP_PING_PONG, "ping_pong"),
)
_BY_KEY = (
    (fam.GROUP_REBALANCES, "rebalances_total", CAUSES),
    (fam.GROUP_MEMBER_CHANGES, "member_changes_total", fam.CHANGES),
)
_HISTOGRAMS = (
    (fam.GROUP_REBALANCE_DURATION, "rebalance_duration_buckets", "rebalance_duration_sum"),
    (fam.GROUP_REBALANCE_PAUSE, "rebalance_pause_buckets", "rebalance_pause_sum"),
)


class StateCollector(SnapshotCollector):
    """State, type and members of each group."""

    def collect(self) -> Iterator[Metric]:
        rows = self._snapshot.groups
        labels = [self._labels(row, "group") for row in rows]
        yield filled_states(fam.GROUP_STATE, zip(labels, map(known_state, rows), strict=True))
        infos = ((name | _info(row), 1) for name, row in zip(labels, rows, strict=True))
        yield filled(fam.GROUP_INFO, infos)
        yield from filled_columns(_SCALARS, labels, rows)
        minutes = self._snapshot.batch.values.get("offsets_retention_minutes")
        commits = first_commits(self._snapshot.group_topics)
        expiry = (offsets_expiry(row, commits.get(row["group"], {}), minutes) for row in rows)
        yield filled(fam.GROUP_OFFSETS_EXPIRY, zip(labels, expiry, strict=True))
        yield filled(fam.GROUP_GENERATION, zip(labels, map(generation_or_epoch, rows), strict=True))


def known_state(row: Row) -> str:
    """Return the group's state; Unknown for one that Kafka added after this code."""
    state = str(row["group_state"])
    if state not in fam.GROUP_STATES:
        return "Unknown"
    return state


def _info(row: Row) -> dict[str, str]:
    return {name: label_or_empty(row[name]) for name in _INFO}


class PolicyCollector(SnapshotCollector):
    """Owner, planned maintenance and service level of each group; undeclared values are absent."""

    def collect(self) -> Iterator[Metric]:
        owners: list[tuple[Labels, Value]] = []
        maintenance: list[tuple[Labels, Value]] = []
        levels: list[tuple[Labels, Value]] = []
        objectives: list[tuple[Labels, Value]] = []
        for group, policy in sorted(self._snapshot.policies.items()):
            labels = {"cluster": self._cluster, "group": escape_label(group)}
            if policy.owner or policy.team:
                names = {"owner": escape_label(policy.owner), "team": escape_label(policy.team)}
                owners.append((labels | names, 1))
            maintenance.append((labels, int(policy.in_maintenance)))
            if policy.slo_time_lag_seconds > 0:
                levels.append((labels, policy.slo_time_lag_seconds))
                objectives.append((labels, policy.slo_objective))
        yield filled(fam.GROUP_POLICY, owners)
        yield filled(fam.GROUP_MAINTENANCE, maintenance)
        yield filled(fam.GROUP_SLO, levels)
        yield filled(fam.GROUP_SLO_OBJECTIVE, objectives)


def first_commits(folded: GroupTopics) -> dict[str, dict[str, float]]:
    """Return the oldest commit per group and topic, in seconds since 1970.

    A topic without a commit is left out.
    """
    oldest: dict[str, dict[str, float]] = {}
    for group, topic, at in zip(
        folded.group, folded.topic, folded.columns.get("first_commit", ()), strict=True
    ):
        if at is not None:
            oldest.setdefault(group, {})[topic] = at
    return oldest


def offsets_expiry(
    group: Mapping[str, Any], commits: Mapping[str, float], retention_minutes: int | None
) -> float | None:
    """Return the offsets' expiry in seconds since 1970; None if nothing expires or it is unknown.

    The first deletion by the broker counts (offsets.retention.minutes, KIP-211). A classic group's
    offsets live on from when it became empty, those of any other group from their commits. Of a
    group with members only topics expire that none of them subscribes to.
    """
    kind, members = group["group_type"], group["members"]
    if retention_minutes is None or kind not in _BY_COMMIT:
        return None
    if kind == "classic" and members == 0:
        since: float | None = group["empty_since"] and group["empty_since"].timestamp()
    elif members and group["topics"] is None:
        return None
    else:
        read = frozenset(group["topics"] if members else ())
        since = min(map(commits.__getitem__, commits.keys() - read), default=None)
    if since is None:
        return None
    return since + 60.0 * retention_minutes


class RebalanceCollector(SnapshotCollector):
    """Counters of each group's rebalances so far; counters missing from its row are absent."""

    def collect(self) -> Iterator[Metric]:
        rows = self._snapshot.groups
        labels = [self._labels(row, "group") for row in rows]
        yield from filled_columns(_OF_REBALANCES, labels, rows)
        ends = (row["last_rebalance_at"] and row["last_rebalance_at"].timestamp() for row in rows)
        yield filled(fam.GROUP_LAST_REBALANCE, zip(labels, ends, strict=True))
        for family, column, keys in _BY_KEY:
            counts: list[tuple[Labels, Value]] = []
            for name, row in zip(labels, rows, strict=True):
                if row[column] is not None:  # a new group publishes 0 first
                    counts += by_key(name, family.labels[-1], dict.fromkeys(keys, 0) | row[column])
            yield filled(family, counts)
        for family, buckets, total in _HISTOGRAMS:
            cumulative = []
            for name, row in zip(labels, rows, strict=True):
                if None not in (row[buckets], row[total]):
                    cumulative.append((name, list(accumulate(row[buckets])), row[total]))
            yield filled_histogram(family, cumulative)


class FindingCollector(SnapshotCollector):
    """Open findings by code, without findings explained by others or hardly more than a guess."""

    def collect(self) -> Iterator[Metric]:
        evaluated = self._snapshot.evaluated
        _, *names = fam.FINDING_ACTIVE.labels
        shown = set()  # findings of one code on several partitions or members are one series
        for row in evaluated.shown_findings():
            shown.add(tuple(escape_label(str(row[name] or "")) for name in names))
        series = (
            ({"cluster": self._cluster, **dict(zip(names, values, strict=True))}, 1)
            for values in sorted(shown)
        )
        yield filled(fam.FINDING_ACTIVE, series)
        opened: list[tuple[Labels, Value]] = []
        for (code, severity), number in sorted(evaluated.opened.items()):
            labels = {"code": escape_label(code), "severity": escape_label(severity)}
            opened.append(({"cluster": self._cluster, **labels}, number))
        yield filled(fam.FINDINGS_OPENED, opened)
