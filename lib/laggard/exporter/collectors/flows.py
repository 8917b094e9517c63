"""C. Flow counters from group_status: records each topic brought a group, and their outcome.

F. Topics, from the newest closed window of topic_windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from laggard.diagnosis.parameters import Policy
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import Labels, SnapshotCollector, filled
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
            counted = list(self._counted(rows, column))
            for family, name in counters:
                yield filled(family, ((labels, each[name]) for labels, each in counted))

    def _counted(self, rows: Sequence[Row], column: str) -> Iterator[tuple[Labels, Row]]:
        for row in rows:
            for each in row[column] or ():  # null in a row that an older job wrote
                yield self._labels(row, "group") | self._labels(each, "topic"), each


class TopicCollector(SnapshotCollector):
    """Arrival, partitions and retained records of each watched topic."""

    def collect(self) -> Iterator[Metric]:
        rows = [(self._labels(row, "topic"), row) for row in self._snapshot.topics]
        for family, column in _OF_TOPIC:
            yield filled(family, ((labels, row[column]) for labels, row in rows))
