"""F. Topics, from the newest closed window of topic_windows."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import SnapshotCollector, filled

_SCALARS = (
    (fam.TOPIC_ARRIVAL, "arrival_rate"),
    (fam.TOPIC_PARTITIONS, "partitions"),
    (fam.TOPIC_ARRIVAL_GINI, "arrival_gini"),
    (fam.TOPIC_RETAINED, "retained"),
)


class TopicCollector(SnapshotCollector):
    """Arrival, partitions and retained records of each watched topic."""

    def collect(self) -> Iterator[Metric]:
        rows = [(self._labels(row, "topic"), row) for row in self._snapshot.topics]
        for family, column in _SCALARS:
            yield filled(family, ((labels, row[column]) for labels, row in rows))
