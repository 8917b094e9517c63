"""From families to bytes: both formats, plain and gzip, made once and served many times."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest as text_latest
from prometheus_client.openmetrics.exposition import ALLOWUTF8
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_latest
from prometheus_client.registry import Collector

from laggard.exporter.body.budget import Budgeted, Shedding, count_series, fit
from laggard.exporter.collectors.compat import CompatCollector, count_least
from laggard.exporter.collectors.lag import (
    FlowCollector,
    LagCollector,
    ShapeCollector,
    TopicCollector,
)
from laggard.exporter.collectors.own import SelfCollector, SelfStats, series_families
from laggard.exporter.collectors.pipeline import PipelineCollector
from laggard.exporter.collectors.sizing import SizingCollector
from laggard.exporter.collectors.state import (
    FindingCollector,
    PolicyCollector,
    RebalanceCollector,
    StateCollector,
)
from laggard.exporter.snapshot import Snapshot
from laggard.tables.odd_rows import ERROR, Skipped, error_of, find_odd

TEXT = "text"
OPENMETRICS = "openmetrics"
_EOF = b"# EOF\n"
_GZIP_LEVEL = 1  # measured on 6 MB: level 6 takes three times as long for a body a fifth smaller
_GZIP_CONTAINER = 31
# no series begins so, and no label holds a line break
_FAMILY = re.compile(rb"^(?=# HELP )", re.MULTILINE)
_BY_GROUP = (  # collector, and the table it is mostly about
    (LagCollector, "partition_status"),
    (ShapeCollector, "group_windows"),
    (FlowCollector, "group_status"),
    (StateCollector, "group_status"),
    (PolicyCollector, "group_status"),
    (RebalanceCollector, "group_status"),
    (SizingCollector, "group_windows"),
    (FindingCollector, "findings"),
)


@dataclass(frozen=True, slots=True)
class Body:
    """One answer to /metrics in one format."""

    plain: bytes
    gzip: bytes


@dataclass(frozen=True, slots=True)
class Head:
    """Data families in one format, compressed so that a tail can be appended at any time."""

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


def render_data(
    snapshot: Snapshot,
    max_series: int,
    skipped: Skipped | None = None,
    shedding: Shedding | None = None,
) -> DataPart:
    """Render one batch's groups and topics under the cap on series; the rest is counted."""
    if skipped is None:
        skipped = Skipped()
    budgeted = fitting_families(snapshot, max_series, skipped, shedding)
    heads = {name: _head(render(budgeted.families)) for name, render in _FORMATS.items()}
    return DataPart(heads, count_series(budgeted.families), budgeted.withheld)


def fitting_families(
    snapshot: Snapshot, max_series: int, skipped: Skipped, shedding: Shedding | None = None
) -> Budgeted:
    """Return families A to F of one batch that fit, beside the others, under the cap on series."""
    collected = list[Metric]()
    for collector, table in _BY_GROUP:
        collected += _collect_by("group", collector, snapshot, table, skipped)
    collected += _collect_by("topic", TopicCollector, snapshot, "topic_windows", skipped)
    # the pipeline's own families are in every body, so they count first
    reserved = (
        count_series(_collect(PipelineCollector(snapshot.cluster, "", snapshot))) + _SELF_SERIES
    )
    room, least = max_series - reserved, count_least(snapshot)
    if count_series(collected) + least <= room:  # what is shed in any case is not made
        least = 0
        if snapshot.selection.compat:
            collected += _collect_by(
                "group", CompatCollector, snapshot, "partition_status", skipped
            )
    return fit(collected, snapshot, room, shedding or Shedding(), least)


@dataclass(frozen=True, slots=True)
class View:
    """Data of families G and H for one table root; `reason` is empty while its data is served."""

    cluster: str
    reason: str
    snapshot: Snapshot | None
    stats: SelfStats


def pipeline_families(view: View) -> list[Metric]:
    """Return family G of one table root."""
    return _collect(PipelineCollector(view.cluster, view.reason, view.snapshot))


def render_bodies(
    data: DataPart | None, views: Sequence[View], process: SelfStats
) -> dict[str, Body]:
    """Return bodies per format: the data part if there is one, then families G and H."""
    part = data or NO_DATA
    own = merge_families(chain.from_iterable(map(pipeline_families, views)))
    own += _collect(
        SelfCollector([(view.cluster, view.stats) for view in views], process),
        ProcessCollector(registry=None),
    )
    own += series_families(part.series + count_series(own), part.withheld)
    return {
        TEXT: part.heads[TEXT].followed_by(_text(own)),
        OPENMETRICS: part.heads[OPENMETRICS].followed_by(_openmetrics(own) + _EOF),
    }


def merge_data(parts: Sequence[DataPart]) -> DataPart:
    """Return the data of several table roots as one part."""
    heads = {
        name: _head(merge_text([part.heads[name].plain for part in parts])) for name in _FORMATS
    }
    withheld: Counter[str] = Counter()
    for part in parts:
        withheld.update(part.withheld)
    return DataPart(heads, sum(part.series for part in parts), dict(withheld))


def merge_text(bodies: Sequence[bytes]) -> bytes:
    """Merge rendered families of several bodies.

    Both text formats want all series of a family in one place.
    """
    families: dict[bytes, list[bytes]] = {}
    for body in bodies:
        for text in filter(None, _FAMILY.split(body)):
            head, series = _split_head(text)
            families.setdefault(head, []).append(series)
    return b"".join(head + b"".join(series) for head, series in families.items())


def _split_head(text: bytes) -> tuple[bytes, bytes]:
    end = 0
    while text.startswith(b"# ", end):
        end = text.index(b"\n", end) + 1
    return text[:end], text[end:]


def merge_families(families: Iterable[Metric]) -> list[Metric]:
    """Merge families of the same name before they are rendered."""
    merged: dict[str, Metric] = {}
    for metric in families:
        if metric.name in merged:
            merged[metric.name].samples.extend(metric.samples)
        else:
            merged[metric.name] = metric
    return list(merged.values())


def _collect_by(
    unit: str,
    collector: Callable[[Snapshot], Collector],
    snapshot: Snapshot,
    table: str,
    skipped: Skipped,
) -> list[Metric]:
    """Return the families of one collector, without the groups or topics for which it raises."""
    of: Callable[[Collection[str | None]], Snapshot] = getattr(snapshot, f"of_{unit}s")
    names = snapshot.group_names
    if unit == "topic":
        names = list(map(itemgetter("topic"), snapshot.topics))

    def collect(wanted: Collection[str | None]) -> list[Metric]:
        return _collect(collector(of(wanted)))

    try:
        return _collect(collector(snapshot))
    except Exception as error:  # noqa: BLE001 - one odd group must cost its own series only
        # it raises for nobody too: then it is the collector's fault
        if wrong := error_of(lambda: collect(())):
            skipped.add(table, ERROR, 1, f"with all others: {wrong}")
            return []
        odd = find_odd(len(names), lambda begin, end: collect({*names[begin:end]}))
        for position in odd:
            skipped.add(
                table, ERROR, 1, f"of {unit} {names[position]!r}: {type(error).__name__}: {error}"
            )
        return collect({*names} - {names[position] for position in odd})


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
    # our names are plain ASCII, for which this scheme changes nothing; the default walks every name
    # letter by letter
    registry = _Collected(families)
    body: bytes = openmetrics_latest(registry, ALLOWUTF8)  # type: ignore[no-untyped-call]
    return body.removesuffix(_EOF)


def _head(plain: bytes) -> Head:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_CONTAINER)
    return Head(plain, compressor.compress(plain) + compressor.flush(zlib.Z_SYNC_FLUSH), compressor)


_FORMATS: dict[str, Callable[[Sequence[Metric]], bytes]] = {TEXT: _text, OPENMETRICS: _openmetrics}
_SELF_SERIES = 120  # more than the exporter's own families and process_* have
NO_DATA = DataPart({name: _head(b"") for name in _FORMATS})
