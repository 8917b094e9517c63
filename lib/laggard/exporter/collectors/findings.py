"""F. Findings: those that are open, and how many were ever opened."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import Labels, SnapshotCollector, Value, filled


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
