"""H. The exporter about itself: what it counts while it runs."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import product
from threading import Lock
from typing import Literal, TypeAlias, TypeVar, get_args

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from laggard import __version__
from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import Labels, Value, by_key, filled
from laggard.tables.odd_rows import REASONS, SIFTED
from laggard.tables.schema.schemas import TABLES

Failure: TypeAlias = Literal[
    "table_missing", "table_unreadable", "findings_unreadable", "duplicate_cluster", "internal"
]
Refusal: TypeAlias = Literal["slow_reader", "connections", "tls", "client_name"]
Drop: TypeAlias = Literal["max_series"]
Key = TypeVar("Key", bound=str | tuple[str, str])


def _zeros(keys: Iterable[Key]) -> Callable[[], Counter[Key]]:
    """Return a factory of counters that start at 0, so that their first increase is visible."""
    return lambda: Counter(dict.fromkeys(keys, 0))


@dataclass(slots=True)
class SelfStats:
    """Counts since the start, written by the serving loop and the refresh thread."""

    refresh_seconds: float | None = None
    refreshed_at: float | None = None
    clock_offset_seconds: float | None = None  # this process's clock - the job's
    connections: int = 0
    web_config_current: bool | None = None  # None without a web-config file
    web_config_errors: int = 0
    refresh_errors: Counter[Failure] = field(default_factory=_zeros(get_args(Failure)))
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[Refusal] = field(default_factory=_zeros(get_args(Refusal)))
    dropped: Counter[Drop] = field(default_factory=_zeros(get_args(Drop)))
    skipped: Counter[tuple[str, str]] = field(default_factory=_zeros([*product(SIFTED, REASONS)]))
    _lock: Lock = field(default_factory=Lock)

    def count_request(self, path: str, code: int) -> None:
        with self._lock:
            self.requests[path, str(code)] += 1

    def counts(self, counter: Counter[Key]) -> dict[Key, int]:
        """Return a copy that no other thread changes."""
        with self._lock:
            return dict(counter)


_OF_ROOT = (
    (fam.REFRESH_SECONDS, "refresh_seconds"),
    (fam.CLOCK_OFFSET, "clock_offset_seconds"),
    (fam.REFRESH_TIMESTAMP, "refreshed_at"),
)


class SelfCollector(Collector):
    """Build, refresh and HTTP of this process; the refresh of each table root."""

    def __init__(self, roots: Sequence[tuple[str, SelfStats]], process: SelfStats) -> None:
        self._roots = [({"cluster": escape_label(cluster)}, stats) for cluster, stats in roots]
        self._process = process

    def collect(self) -> Iterator[Metric]:
        yield filled(fam.BUILD_INFO, [(build_labels(), 1)])
        yield from self._of_roots()
        yield from self._of_process()

    def _of_roots(self) -> Iterator[Metric]:
        for family, name in _OF_ROOT:
            yield filled(family, [(labels, getattr(stats, name)) for labels, stats in self._roots])
        errors: list[tuple[Labels, Value]] = []
        dropped: Counter[Drop] = Counter()
        skipped: list[tuple[Labels, Value]] = []
        for labels, stats in self._roots:
            errors += by_key(labels, "reason", stats.counts(stats.refresh_errors))
            dropped.update(stats.counts(stats.dropped))
            for (table, reason), number in stats.counts(stats.skipped).items():
                skipped.append(({**labels, "table": table, "reason": reason}, number))
        yield filled(fam.REFRESH_ERRORS, errors)
        yield filled(fam.SERIES_DROPPED, by_key({}, "reason", dropped))
        yield filled(fam.ROWS_SKIPPED, skipped)

    def _of_process(self) -> Iterator[Metric]:
        stats = self._process
        requests = stats.counts(stats.requests)
        answers = (
            ({"path": path, "code": code}, n) for (path, code), n in sorted(requests.items())
        )
        yield filled(fam.HTTP_REQUESTS, answers)
        yield filled(fam.HTTP_REFUSED, by_key({}, "reason", stats.counts(stats.refused)))
        yield filled(fam.HTTP_CONNECTIONS, [({}, stats.connections)])
        if stats.web_config_current is not None:
            yield filled(fam.WEB_CONFIG_CURRENT, [({}, int(stats.web_config_current))])
            yield filled(fam.WEB_CONFIG_ERRORS, [({}, stats.web_config_errors)])


def series_families(total: int, withheld: Mapping[str, int]) -> list[Metric]:
    """Return metrics that count the series in the body, themselves included, and omitted series."""
    counts = dict.fromkeys(fam.LEVELS, 0) | dict(withheld)
    levels = filled(fam.SERIES_WITHHELD, by_key({}, "level", counts))
    return [levels, filled(fam.SERIES, [({}, total + len(levels.samples) + 1)])]


def build_labels() -> dict[str, str]:
    """Return the versions of laggard and Python, and a fingerprint of the expected tables."""
    declared = repr(
        [
            (table.name, [(column.name, column.type) for column in table.columns])
            for table in TABLES.values()
        ]
    )
    fingerprint = sha256(declared.encode()).hexdigest()[:8]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "schema_version": fingerprint,
    }
