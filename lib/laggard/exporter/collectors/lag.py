"""A. Lag now: the group–topic families and those of the exported partitions.

B. Shape, forecast and lag floor of each group–topic, from the newest group_windows row.
C. Flow counters from group_status: records each topic brought a group, and their outcome.
F. Topics, from the newest closed window of topic_windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import compress
from math import inf
from operator import itemgetter

from prometheus_client.core import Metric

from laggard.diagnosis.parameters import Policy
from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import (
    Labels,
    SnapshotCollector,
    Value,
    filled,
    filled_columns,
    filled_histogram,
    filled_states,
)
from laggard.exporter.snapshot import Row
from laggard.exporter.totals import worst_verdict
from laggard.lag.status import STATUSES
from laggard.names import matches

_SCALARS = (
    (fam.GROUP_LAG, "lag"),
    (fam.GROUP_LAG_KNOWN, "lag_known"),
    (fam.GROUP_MAX_LAG, "max_lag"),
    (fam.GROUP_READABLE, "readable"),
    (fam.GROUP_UNCOMMITTED, "uncommitted"),
    (fam.GROUP_TIME_LAG, "time_lag"),
    (fam.GROUP_TIME_LAG_KNOWN, "time_lag_known"),
    (fam.GROUP_TIME_LAG_CENSORED, "is_censored"),
    (fam.GROUP_TIME_LAG_ERROR, "time_lag_error"),
    (fam.GROUP_RETENTION_USED, "retention_used"),
    (fam.GROUP_OLDEST_COMMIT, "oldest_commit"),
    (fam.GROUP_NEWEST_COMMIT, "newest_commit"),
)
_DISTRIBUTIONS = (
    (fam.GROUP_LAG_DISTRIBUTION, "lag_le_", "lag_known"),
    (fam.GROUP_TIME_LAG_DISTRIBUTION, "seconds_le_", "time_lag_total"),
)
_PARTITION_SCALARS = (
    (fam.PARTITION_TIME_LAG, "time_lag_seconds"),
    (fam.PARTITION_COMMITTED, "committed_offset"),
)
_LOG_SCALARS = (
    (fam.PARTITION_LOG_END, "log_end_offset"),
    (fam.PARTITION_LOG_START, "log_start_offset"),
)

_OF_SHAPE = (
    (fam.GROUP_LAG_FLOOR, "floor_records"),
    (fam.GROUP_LAG_GINI, "gini"),
    (fam.GROUP_LAG_TOP_DECILE, "top_decile_share"),
    (fam.GROUP_LAG_EFFECTIVE, "n_eff"),
    (fam.GROUP_LAG_SLOPE, "slope"),
    (fam.GROUP_DRAIN, "drain_seconds"),
    (fam.GROUP_DRAIN_AT_CAPACITY, "drain_at_capacity_seconds"),
    (fam.GROUP_SLO_BREACH, "slo_breach_seconds"),
    (fam.GROUP_LOSS, "loss_seconds"),
)
_SHAPES = (
    (fam.GROUP_ARRIVAL_SHAPE, "arrival_shape"),
    (fam.GROUP_LAG_SHAPE, "shape"),
    (fam.GROUP_LAG_TREND, "trend"),
)
_MAY_BE_NEVER = (fam.GROUP_DRAIN, fam.GROUP_LOSS)
_COUNTERS = (
    (fam.GROUP_PRODUCED, "produced"),
    (fam.GROUP_CONSUMED, "consumed"),
    (fam.GROUP_LOST, "lost"),
    (fam.GROUP_COMMITS, "commits"),
    (fam.GROUP_NOOP_COMMITS, "noop_commits"),
    (fam.GROUP_REWINDS, "rewinds"),
    (fam.GROUP_REWOUND, "rewound_records"),
    (fam.GROUP_AHEAD, "ahead"),
)
_SERVICE_LEVEL = ((fam.GROUP_MATURED, "matured"), (fam.GROUP_LATE, "late"))

_OF_TOPIC = (
    (fam.TOPIC_ARRIVAL, "arrival_rate"),
    (fam.TOPIC_PARTITIONS, "partitions"),
    (fam.TOPIC_ARRIVAL_GINI, "arrival_gini"),
    (fam.TOPIC_RETAINED, "retained"),
)


class LagCollector(SnapshotCollector):
    """Lag of every group–topic, and of its exported partitions."""

    def collect(self) -> Iterator[Metric]:
        folded = self._snapshot.group_topics
        labels = [
            {"cluster": self._cluster, "group": escape_label(group), "topic": escape_label(topic)}
            for group, topic in zip(folded.group, folded.topic, strict=True)
        ]
        if labels:
            yield from _group_topic_families(labels, folded.columns)
            yield from self._distributions(labels)
        yield from self._partition_lag()
        yield from _partition_families(self._cluster, self._snapshot.partitions)

    def _distributions(self, labels: list[dict[str, str]]) -> Iterator[Metric]:
        folded, globs = self._snapshot.group_topics, self._snapshot.selection.distributions
        wanted = {group for group in set(folded.group) if matches(group, globs)}
        columns, chosen = folded.columns, [group in wanted for group in folded.group]
        for family, prefix, total in _DISTRIBUTIONS:
            names = [f"{prefix}{bound}" for bound in (*family.bounds, "inf")]
            counts = zip(*([n or 0 for n in columns[name]] for name in names), strict=True)
            rows = zip(labels, counts, columns[total], strict=True)
            yield filled_histogram(family, compress(rows, chosen))

    def _partition_lag(self) -> Iterator[Metric]:
        """Yield lag of exported partitions."""
        rows = self._snapshot.partitions
        labels = partition_labels(self._cluster, rows)
        yield from filled_columns([(fam.PARTITION_LAG, "lag")], labels, rows)


def _group_topic_families(
    labels: list[dict[str, str]], columns: Mapping[str, Sequence[Value]]
) -> Iterator[Metric]:
    for family, column in _SCALARS:
        yield filled(family, zip(labels, columns[column], strict=True))
    partitions = (
        ({**row, "status": name}, n)
        for name in STATUSES
        for row, n in zip(labels, columns[f"status_{name}"], strict=True)
    )
    yield filled(fam.GROUP_PARTITIONS, partitions)
    verdicts: list[tuple[Labels, str]] = []
    for row, code, count in zip(labels, columns["verdict"], columns["unrated"], strict=True):
        verdict = worst_verdict([{"verdict": code, "unrated": count}])
        if verdict is not None:
            verdicts.append((row, verdict))
    yield filled_states(fam.GROUP_VERDICT, verdicts)


def partition_labels(cluster: str, rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the labels cluster, group, topic and partition of each row."""
    return [
        {
            "cluster": cluster,
            "group": escape_label(row["group"]),
            "topic": escape_label(row["topic"]),
            "partition": str(row["partition"]),
        }
        for row in rows
    ]


def _partition_families(cluster: str, rows: Sequence[Row]) -> Iterator[Metric]:
    labels = partition_labels(cluster, rows)
    yield from filled_columns(_PARTITION_SCALARS, labels, rows)
    commits: list[tuple[Labels, Value]] = []
    statuses: list[tuple[Labels, Value]] = []
    for name, row in zip(labels, rows, strict=True):
        commits.append((name, row["commit_timestamp"] and row["commit_timestamp"].timestamp()))
        if row["status"] is not None:
            statuses.append(({**name, "status": escape_label(row["status"])}, 1))
    yield filled(fam.PARTITION_COMMIT_TIMESTAMP, commits)
    yield filled(fam.PARTITION_STATUS, statuses)
    for family, column in _LOG_SCALARS:
        yield filled(family, newest_per_log(labels, rows, column))


def newest_per_log(
    labels: Sequence[Labels], rows: Sequence[Row], column: str
) -> list[tuple[Labels, Value]]:
    """Return one value per topic-partition; groups share it, and a stale row may be older.

    A stale row may hold an older poll's value.

    The end that a group sees which reads committed records only is the last stable offset, so the
    largest one counts.
    """
    newest: dict[tuple[str, int], tuple[int, Labels, Value]] = {}
    for name, row in zip(labels, rows, strict=True):
        key, poll = (row["topic"], row["partition"]), row["poll_id"] or 0
        value = row[column]
        if value is not None and (
            key not in newest or (poll, value) > (newest[key][0], newest[key][2])
        ):
            newest[key] = (poll, {label: name[label] for label in fam.KP}, value)
    return [(name, value) for _, name, value in newest.values()]


class ShapeCollector(SnapshotCollector):
    """Distribution of lag over the partitions of each topic, its trend, and its drain time."""

    def collect(self) -> Iterator[Metric]:
        rows = self._snapshot.evaluated.windows
        labels = [self._labels(row, "group", "topic") for row in rows]
        for family, column in _OF_SHAPE:
            values = [row[column] for row in rows]
            if family not in _MAY_BE_NEVER:
                values = [None if value == inf else value for value in values]
            yield filled(family, zip(labels, values, strict=True))
        for family, column in _SHAPES:
            shapes = zip(labels, map(itemgetter(column), rows), strict=True)
            yield filled_states(family, (pair for pair in shapes if pair[1] in family.states))


class FlowCollector(SnapshotCollector):
    """Records, commits and rewinds per group and topic, which never fall.

    They are therefore not sums over partitions.
    """

    def collect(self) -> Iterator[Metric]:
        groups, policies = self._snapshot.groups, self._snapshot.policies
        measured = [
            row for row in groups if policies.get(row["group"], Policy()).slo_time_lag_seconds > 0
        ]
        for rows, column, counters in (
            (groups, "topic_counters", _COUNTERS),
            (groups, "outcome_counters", ((fam.GROUP_SKIPS, "skips"),)),
            (measured, "outcome_counters", _SERVICE_LEVEL),
        ):
            labels, counted = self._counted(rows, column)
            yield from filled_columns(counters, labels, counted)

    def _counted(self, rows: Sequence[Row], column: str) -> tuple[list[Labels], list[Row]]:
        """Return the labels and the counters of each group and topic."""
        labels: list[Labels] = []
        counted: list[Row] = []
        for row in rows:
            for topic in row[column] or ():  # null in a row that an older job wrote
                labels.append(self._labels(row, "group") | self._labels(topic, "topic"))
                counted.append(topic)
        return labels, counted


class TopicCollector(SnapshotCollector):
    """Arrival, partitions and retained records of each watched topic."""

    def collect(self) -> Iterator[Metric]:
        rows = self._snapshot.topics
        labels = [self._labels(row, "topic") for row in rows]
        yield from filled_columns(_OF_TOPIC, labels, rows)
