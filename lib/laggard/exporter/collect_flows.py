"""C. Flow counters: what each topic brought a group so far, from group_status.topic_counters."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from laggard.exporter import families as fam
from laggard.exporter.escape import escape_label
from laggard.exporter.samples import filled
from laggard.exporter.snapshot import Snapshot

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


class FlowCollector(Collector):
    """Records, commits and rewinds per group and topic; they never fall, so they are not sums over partitions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        cluster = escape_label(self._snapshot.cluster)
        counted = [
            ({"cluster": cluster, "group": escape_label(row["group"]), "topic": escape_label(each["topic"])}, each)
            for row in self._snapshot.groups
            for each in row["topic_counters"] or ()  # null in a row that an older job wrote
        ]
        for family, name in _COUNTERS:
            yield filled(family, ((labels, each[name]) for labels, each in counted))
