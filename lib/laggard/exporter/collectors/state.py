"""D. State and members of each group, from group_status."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.expiry import first_commits, offsets_expiry
from laggard.exporter.body.samples import SnapshotCollector, filled, filled_states
from laggard.exporter.snapshot import Row
from laggard.rebalance.groups import generation_or_epoch

_SCALARS = (
    (fam.GROUP_MEMBERS, "members"),
    (fam.GROUP_IDLE_MEMBERS, "idle_members"),
    (fam.GROUP_STATIC_MEMBERS, "static_members"),
    (fam.GROUP_IMBALANCE, "assignment_imbalance"),
)
_INFO = ("group_type", "protocol_type", "assignor", "rebalance_mode", "coordinator")


class StateCollector(SnapshotCollector):
    """State, type and members of each group."""

    def collect(self) -> Iterator[Metric]:
        rows = self._snapshot.groups
        labels = [self._labels(row, "group") for row in rows]
        yield filled_states(
            fam.GROUP_STATE,
            ((name, known_state(row)) for name, row in zip(labels, rows, strict=True)),
        )
        yield filled(
            fam.GROUP_INFO,
            (({**name, **_info(row)}, 1) for name, row in zip(labels, rows, strict=True)),
        )
        for family, column in _SCALARS:
            yield filled(
                family, ((name, row[column]) for name, row in zip(labels, rows, strict=True))
            )
        minutes = self._snapshot.batch.values.get("offsets_retention_minutes")
        commits = first_commits(self._snapshot.group_topics)
        expiry = (offsets_expiry(row, commits.get(row["group"], {}), minutes) for row in rows)
        yield filled(fam.GROUP_OFFSETS_EXPIRY, zip(labels, expiry, strict=True))
        yield filled(fam.GROUP_GENERATION, zip(labels, map(generation_or_epoch, rows), strict=True))


def known_state(row: Row) -> str:
    """Return the group's state; Unknown for one that Kafka added after this code."""
    state = str(row["group_state"])
    return state if state in fam.GROUP_STATES else "Unknown"


def _info(row: Row) -> dict[str, str]:
    return {name: "" if row[name] is None else escape_label(str(row[name])) for name in _INFO}
