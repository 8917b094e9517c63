"""B. Shape, forecast and lag floor of each group–topic, from the newest group_windows row."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from prometheus_client.core import Metric

from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import SnapshotCollector, Value, filled, filled_states

_SCALARS = (
    (fam.GROUP_LAG_FLOOR, "floor_records"),
    (fam.GROUP_LAG_GINI, "gini"),
    (fam.GROUP_LAG_TOP_DECILE, "top_decile_share"),
    (fam.GROUP_LAG_EFFECTIVE, "n_eff"),
    (fam.GROUP_LAG_SLOPE, "slope"),
    (fam.GROUP_DRAIN, "drain_seconds"),
    (fam.GROUP_DRAIN_AT_CAPACITY, "drain_at_capacity_seconds"),
    (fam.GROUP_SLO_BREACH, "slo_breach_seconds"),
    (fam.GROUP_LOSS, "loss_seconds"),
)
_STATES = (
    (fam.GROUP_ARRIVAL_SHAPE, "arrival_shape"),
    (fam.GROUP_LAG_SHAPE, "shape"),
    (fam.GROUP_LAG_TREND, "trend"),
)
_MAY_BE_NEVER = (fam.GROUP_DRAIN, fam.GROUP_LOSS)


class ShapeCollector(SnapshotCollector):
    """Distribution of lag over the partitions of each topic, its trend, and its drain time."""

    def collect(self) -> Iterator[Metric]:
        rows = [
            (self._labels(row, "group", "topic"), row) for row in self._snapshot.evaluated.windows
        ]
        for family, column in _SCALARS:
            yield filled(family, ((labels, _shown(family, row[column])) for labels, row in rows))
        for family, column in _STATES:
            known = ((labels, row[column]) for labels, row in rows if row[column] in family.states)
            yield filled_states(family, known)


def _shown(family: fam.Family, value: Value) -> Value:
    """Return the value, but None in place of infinity (never) for families that may not have it."""
    return None if value == inf and family not in _MAY_BE_NEVER else value
