"""F. Topics, from the newest closed window of topic_windows."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from laggard.escape import escape_label
from laggard.exporter import families as fam
from laggard.exporter.samples import filled
from laggard.exporter.snapshot import Snapshot

_SCALARS = (
    (fam.TOPIC_ARRIVAL, "arrival_rate"),
    (fam.TOPIC_PARTITIONS, "partitions"),
    (fam.TOPIC_ARRIVAL_GINI, "arrival_gini"),
    (fam.TOPIC_RETAINED, "retained"),
)


class TopicCollector(Collector):
    """Arrival, partitions and retained records of each watched topic."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        cluster = escape_label(self._snapshot.cluster)
        rows = [({"cluster": cluster, "topic": escape_label(row["topic"])}, row) for row in self._snapshot.topics]
        for family, column in _SCALARS:
            yield filled(family, ((labels, row[column]) for labels, row in rows))
