"""E. Sizing of each group, from group_windows and its policy.

It shows if adding consumers would help, and how many consumers the group should have.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from prometheus_client.core import Metric

from laggard.diagnosis.parameters import Policy
from laggard.diagnosis.rules.registry import BLOCKS_SCALING
from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import Labels, SnapshotCollector, Value, filled, filled_states
from laggard.exporter.desired import desired_consumers
from laggard.exporter.snapshot import Row, Snapshot


class SizingCollector(SnapshotCollector):
    """Verdict, desired consumers, their limit and the capacity of one consumer.

    The rows of a group agree on these.
    """

    def collect(self) -> Iterator[Metric]:
        firsts: list[tuple[Labels, Row]] = []
        desired: list[tuple[Labels, Value]] = []
        for group, first, wanted in sizes(self._snapshot):
            labels = {"cluster": self._cluster, "group": escape_label(group)}
            firsts.append((labels, first))
            desired.append((labels, wanted))
        yield filled(fam.GROUP_DESIRED, desired)
        yield filled_states(
            fam.GROUP_SCALE_VERDICT, ((labels, known_verdict(row)) for labels, row in firsts)
        )
        yield filled(
            fam.GROUP_CEILING, ((labels, row["members_ceiling"]) for labels, row in firsts)
        )
        yield filled(fam.GROUP_CAPACITY, ((labels, row["capacity"]) for labels, row in firsts))


def sizes(snapshot: Snapshot) -> Iterator[tuple[str, Row, int | None]]:
    """Yield each group with the first row of its window, and its desired number of consumers."""
    evaluated = snapshot.evaluated
    restless = {row["group"] for row in evaluated.findings if row["code"] in BLOCKS_SCALING}
    for group, found in groupby(evaluated.windows, key=lambda row: row["group"]):
        rows = list(found)
        wanted = desired_consumers(
            rows,
            snapshot.policies.get(group, Policy()),
            evaluated.idle_seconds.get(group, 0.0),
            evaluated.before.get(group, ()),
            window_seconds=evaluated.window_seconds,
            is_restless=group in restless,
        )
        yield group, rows[0], wanted


def known_verdict(row: Row) -> str:
    """Return the verdict; UNKNOWN for one that only a newer job gives."""
    verdict = str(row["scale_verdict"])
    return verdict if verdict in fam.GROUP_SCALE_VERDICT.states else "UNKNOWN"
