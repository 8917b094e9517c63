"""From declarations and values to prometheus-client's families; a missing value gives no sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import TypeAlias

from prometheus_client.core import Metric, Sample
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from laggard.escape import escape_label
from laggard.exporter.body.families import Family
from laggard.exporter.snapshot import Row, Snapshot

Labels: TypeAlias = Mapping[str, str]
Value: TypeAlias = float | None


class SnapshotCollector(Collector):
    """Families of one snapshot; `_cluster` is its label."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._cluster = escape_label(snapshot.cluster)

    def _labels(self, row: Row, *names: str) -> dict[str, str]:
        """Return the cluster, and names that a row has, as labels."""
        return {"cluster": self._cluster, **{name: escape_label(row[name]) for name in names}}


def filled(family: Family, rows: Iterable[tuple[Labels, Value]]) -> Metric:
    """Return one sample per row that has a value: unknown is absent, never 0, −1 or NaN."""
    metric = Metric(family.base_name, family.help, family.type)
    metric.samples.extend(
        Sample(family.name, dict(labels), value)
        for labels, value in rows
        if value is not None and not isnan(value)
    )
    return metric


def filled_states(family: Family, rows: Iterable[tuple[Labels, str]]) -> Metric:
    """Return one sample per state, 1 for the current one."""
    metric = Metric(family.base_name, family.help, family.type)
    for labels, current in rows:
        for state in family.states:
            metric.samples.append(
                Sample(family.name, {**labels, family.name: state}, float(state == current))
            )
    return metric


def filled_histogram(family: Family, rows: Iterable[tuple[Labels, Sequence[int], Value]]) -> Metric:
    """Return a histogram or gaugehistogram.

    Each row has cumulative counts, the last for +Inf, and the sum.
    """
    metric = Metric(family.base_name, family.help, family.type)
    bounds = (*family.bounds, float("inf"))
    edges = [str(floatToGoString(bound)) for bound in bounds]  # type: ignore[no-untyped-call]
    is_gauge = family.type == "gaugehistogram"
    bucket, count, total = (
        f"{family.name}_{suffix}"
        for suffix in ("bucket", *(("gcount", "gsum") if is_gauge else ("count", "sum")))
    )
    for labels, counts, value in rows:
        if value is not None and isnan(value):
            continue
        metric.samples.extend(
            Sample(bucket, {**labels, "le": edge}, n) for edge, n in zip(edges, counts, strict=True)
        )
        metric.samples.append(Sample(count, dict(labels), counts[-1]))
        metric.samples.append(Sample(total, dict(labels), value or 0.0))
    return metric
