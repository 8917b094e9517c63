"""From families to bytes: both formats, plain and gzip, made once and served many times."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest as text_latest
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_latest
from prometheus_client.registry import Collector

from laggard.exporter.budget import Budgeted, count_series, fit
from laggard.exporter.collect_findings import FindingCollector
from laggard.exporter.collect_flows import FlowCollector
from laggard.exporter.collect_lag import LagCollector
from laggard.exporter.collect_pipeline import PipelineCollector
from laggard.exporter.collect_policy import PolicyCollector
from laggard.exporter.collect_rebalances import RebalanceCollector
from laggard.exporter.collect_self import SelfCollector, SelfStats, series_families
from laggard.exporter.collect_shape import ShapeCollector
from laggard.exporter.collect_sizing import SizingCollector
from laggard.exporter.collect_state import StateCollector
from laggard.exporter.collect_topics import TopicCollector
from laggard.exporter.snapshot import Snapshot

TEXT = "text"
OPENMETRICS = "openmetrics"
_EOF = b"# EOF\n"
_GZIP_LEVEL = 1  # measured on 6 MB: level 6 takes three times as long for a body a fifth smaller
_GZIP_CONTAINER = 31


@dataclass(frozen=True, slots=True)
class Body:
    """One answer to /metrics in one format."""

    plain: bytes
    gzip: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """The data families in one format, compressed so far that a tail can be put behind them at any time."""

    plain: bytes
    gzip: bytes
    compressor: object

    def followed_by(self, tail: bytes) -> Body:
        compressor = self.compressor.copy()  # type: ignore[attr-defined]
        return Body(self.plain + tail, self.gzip + compressor.compress(tail) + compressor.flush())


@dataclass(frozen=True, slots=True)
class DataPart:
    """The rendered families A to F of a batch: the part that goes when the batch is old."""

    heads: dict[str, Head]
    series: int = 0
    withheld: dict[str, int] = field(default_factory=dict)


def render_data(snapshot: Snapshot, max_series: int) -> DataPart:
    """Render what one batch says about groups and topics, under the cap on series."""
    collected = _collect(
        LagCollector(snapshot),
        ShapeCollector(snapshot),
        FlowCollector(snapshot),
        StateCollector(snapshot),
        PolicyCollector(snapshot),
        RebalanceCollector(snapshot),
        SizingCollector(snapshot),
        FindingCollector(snapshot),
        TopicCollector(snapshot),
    )
    # the pipeline's own families are in every body, so they count first
    reserved = count_series(_collect(PipelineCollector(snapshot.cluster, "", snapshot))) + _SELF_SERIES
    budgeted: Budgeted = fit(collected, snapshot, max_series - reserved)
    heads = {name: _head(render(budgeted.families)) for name, render in _FORMATS.items()}
    return DataPart(heads, count_series(budgeted.families), budgeted.withheld)


def render_bodies(
    data: DataPart | None, cluster: str, reason: str, snapshot: Snapshot | None, stats: SelfStats
) -> dict[str, Body]:
    """Bodies per format: the data part if there is one, then families G and H."""
    part = data or NO_DATA
    own = _collect(
        PipelineCollector(cluster, reason, snapshot), SelfCollector(cluster, stats), ProcessCollector(registry=None)
    )
    own += series_families(part.series + count_series(own), part.withheld)
    return {
        TEXT: part.heads[TEXT].followed_by(_text(own)),
        OPENMETRICS: part.heads[OPENMETRICS].followed_by(_openmetrics(own) + _EOF),
    }


def _collect(*collectors: Collector) -> list[Metric]:
    registry = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        registry.register(collector)
    return [metric for metric in registry.collect() if metric.samples]


@dataclass(frozen=True, slots=True)
class _Collected(Collector):
    """Families already collected, so that the second format does not collect them again."""

    families: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


def _text(families: Sequence[Metric]) -> bytes:
    return text_latest(_Collected(families))


def _openmetrics(families: Sequence[Metric]) -> bytes:
    # our names are plain ASCII, for which this scheme changes nothing; the default walks every name letter by letter
    body: bytes = openmetrics_latest(_Collected(families), ALLOWUTF8)  # type: ignore[no-untyped-call]
    return body.removesuffix(_EOF)


def _head(plain: bytes) -> Head:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_CONTAINER)
    return Head(plain, compressor.compress(plain) + compressor.flush(zlib.Z_SYNC_FLUSH), compressor)


_FORMATS: dict[str, Callable[[Sequence[Metric]], bytes]] = {TEXT: _text, OPENMETRICS: _openmetrics}
_SELF_SERIES = 60  # more than the exporter's own families and process_* have
NO_DATA = DataPart({name: _head(b"") for name in _FORMATS})
