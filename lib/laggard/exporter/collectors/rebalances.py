"""D. Rebalances per group: counters, histograms, ratios; group_status carries them by tick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import SnapshotCollector, filled, filled_histogram
from laggard.exporter.snapshot import Row
from laggard.rebalance.analytics.causes import CAUSES

_SCALARS = (
    (fam.GROUP_GENERATIONS, "generations_total"),
    (fam.GROUP_INTERRUPTED, "interrupted_generations_total"),
    (fam.GROUP_STATIC_RESTARTS, "static_restarts_absorbed_total"),
    (fam.GROUP_MOVED, "partitions_moved_total"),
    (fam.GROUP_MOVED_AVOIDABLE, "partitions_moved_avoidable_total"),
    (fam.GROUP_REBALANCE_RATIO, "time_in_rebalance_ratio"),
    (fam.GROUP_PING_PONG, "ping_pong"),
)
_BY_KEY = (
    (fam.GROUP_REBALANCES, "rebalances_total", CAUSES),
    (fam.GROUP_MEMBER_CHANGES, "member_changes_total", fam.CHANGES),
)
_HISTOGRAMS = (
    (fam.GROUP_REBALANCE_DURATION, "rebalance_duration_buckets", "rebalance_duration_sum"),
    (fam.GROUP_REBALANCE_PAUSE, "rebalance_pause_buckets", "rebalance_pause_sum"),
)


class RebalanceCollector(SnapshotCollector):
    """Counters of each group's rebalances so far; counters missing from its row are absent."""

    def collect(self) -> Iterator[Metric]:
        rows = [(self._labels(row, "group"), row) for row in self._snapshot.groups]
        for family, column in _SCALARS:
            yield filled(family, ((labels, row[column]) for labels, row in rows))
        ends = (
            (labels, (at := row["last_rebalance_at"]) and at.timestamp()) for labels, row in rows
        )
        yield filled(fam.GROUP_LAST_REBALANCE, ends)
        for family, column, keys in _BY_KEY:
            yield filled(family, _by_key(rows, column, family.labels[-1], keys))
        for family, buckets, total in _HISTOGRAMS:
            cumulative = (
                (labels, list(accumulate(row[buckets])), row[total])
                for labels, row in rows
                if None not in (row[buckets], row[total])
            )
            yield filled_histogram(family, cumulative)


def _by_key(
    rows: Iterable[tuple[dict[str, str], Row]], column: str, label: str, keys: Iterable[str]
) -> Iterator[tuple[dict[str, str], int]]:
    for labels, row in rows:
        if row[column] is not None:
            # a new group publishes 0 first
            for key, number in (dict.fromkeys(keys, 0) | row[column]).items():
                yield {**labels, label: escape_label(key)}, number
