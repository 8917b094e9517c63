"""From declarations and values to prometheus-client's families; a missing value gives no sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from operator import itemgetter
from typing import Any, TypeAlias

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


def label_or_empty(value: object) -> str:
    """Return a value as a label; empty for None."""
    if value is None:
        return ""
    return escape_label(str(value))


def filled(family: Family, rows: Iterable[tuple[Labels, Value]]) -> Metric:
    """Return one sample per row that has a value: unknown is absent, never 0, −1 or NaN."""
    metric = Metric(family.base_name, family.help, family.type)
    for labels, value in rows:
        if value is not None and not isnan(value):
            metric.samples.append(Sample(family.name, dict(labels), value))
    return metric


def filled_columns(
    families: Iterable[tuple[Family, str]], labels: Sequence[Labels], rows: Sequence[Row]
) -> Iterator[Metric]:
    """Yield each family with one sample per row, from the family's column."""
    for family, column in families:
        yield filled(family, zip(labels, map(itemgetter(column), rows), strict=True))


def by_key(
    labels: Labels, name: str, counts: Mapping[Any, Value]
) -> Iterator[tuple[Labels, Value]]:
    """Yield each count with its key as one more label."""
    for key, count in counts.items():
        yield {**labels, name: escape_label(str(key))}, count


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
    bucket, count, total = f"{family.name}_bucket", f"{family.name}_count", f"{family.name}_sum"
    if family.type == "gaugehistogram":
        count, total = f"{family.name}_gcount", f"{family.name}_gsum"
    for labels, counts, value in rows:
        if value is not None and isnan(value):
            continue
        for edge, number in zip(edges, counts, strict=True):
            metric.samples.append(Sample(bucket, {**labels, "le": edge}, number))
        metric.samples.append(Sample(count, dict(labels), counts[-1]))
        metric.samples.append(Sample(total, dict(labels), value or 0.0))
    return metric
