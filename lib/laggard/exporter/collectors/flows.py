"""C. Flow counters from group_status: records each topic brought a group, and their outcome.

F. Topics, from the newest closed window of topic_windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from laggard.diagnosis.parameters import Policy
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import Labels, SnapshotCollector, filled_columns
from laggard.exporter.snapshot import Row

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
