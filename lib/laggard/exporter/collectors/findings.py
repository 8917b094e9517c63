"""F. Findings: those that are open, and how many were ever opened."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from laggard.escape import escape_label
from laggard.exporter import families as fam
from laggard.exporter.samples import filled
from laggard.exporter.snapshot import Snapshot


class FindingCollector(Collector):
    """Open findings by code, without those that another one explains away or that are hardly more than a guess."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        evaluated = self._snapshot.evaluated
        cluster = escape_label(self._snapshot.cluster)
        shown = {  # findings of one code on several partitions or members are one series
            tuple(escape_label(str(row[name] or "")) for name in fam.FINDING_ACTIVE.labels[1:])
            for row in evaluated.shown_findings()
        }
        labels = (dict(zip(fam.FINDING_ACTIVE.labels, (cluster, *values), strict=True)) for values in sorted(shown))
        yield filled(fam.FINDING_ACTIVE, ((each, 1) for each in labels))
        yield filled(
            fam.FINDINGS_OPENED,
            (
                ({"cluster": cluster, "code": escape_label(code), "severity": escape_label(severity)}, n)
                for (code, severity), n in sorted(evaluated.opened.items())
            ),
        )
