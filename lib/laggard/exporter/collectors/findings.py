"""F. Findings: those that are open, and how many were ever opened."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import SnapshotCollector, filled


class FindingCollector(SnapshotCollector):
    """Open findings by code, without findings explained by others or hardly more than a guess."""

    def collect(self) -> Iterator[Metric]:
        evaluated = self._snapshot.evaluated
        shown = {  # findings of one code on several partitions or members are one series
            tuple(escape_label(str(row[name] or "")) for name in fam.FINDING_ACTIVE.labels[1:])
            for row in evaluated.shown_findings()
        }
        labels = fam.FINDING_ACTIVE.labels
        active = (
            (dict(zip(labels, (self._cluster, *values), strict=True)), 1)
            for values in sorted(shown)
        )
        yield filled(fam.FINDING_ACTIVE, active)
        opened = (
            (
                {
                    "cluster": self._cluster,
                    "code": escape_label(code),
                    "severity": escape_label(severity),
                },
                n,
            )
            for (code, severity), n in sorted(evaluated.opened.items())
        )
        yield filled(fam.FINDINGS_OPENED, opened)
