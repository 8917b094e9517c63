"""D. What the people who own a group declare about it, from `[[policy]]`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.samples import SnapshotCollector, filled


class PolicyCollector(SnapshotCollector):
    """Owner, planned maintenance and service level of each group; undeclared values are absent."""

    def collect(self) -> Iterator[Metric]:
        declared = [
            ({"cluster": self._cluster, "group": escape_label(group)}, policy)
            for group, policy in sorted(self._snapshot.policies.items())
        ]
        owners = (
            ({**labels, "owner": escape_label(each.owner), "team": escape_label(each.team)}, 1)
            for labels, each in declared
            if each.owner or each.team
        )
        yield filled(fam.GROUP_POLICY, owners)
        yield filled(
            fam.GROUP_MAINTENANCE, ((labels, int(each.in_maintenance)) for labels, each in declared)
        )
        levels = [(labels, each) for labels, each in declared if each.slo_time_lag_seconds > 0]
        yield filled(
            fam.GROUP_SLO, ((labels, each.slo_time_lag_seconds) for labels, each in levels)
        )
        yield filled(
            fam.GROUP_SLO_OBJECTIVE, ((labels, each.slo_objective) for labels, each in levels)
        )
