"""Estimate of a cluster's series from its groups' committed offsets, before the first batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from laggard.diagnosis.parameters import Policy
from laggard.exporter.body import families as fam
from laggard.exporter.body.families import FAMILIES, Family
from laggard.exporter.collectors.compat import BY_PARTITION
from laggard.exporter.options import Selection
from laggard.lag.status import STATUSES
from laggard.names import matches
from laggard.rebalance.analytics.causes import CAUSES

_BESIDE_BUCKETS = 3  # +Inf, count and sum
_CLOSED = {
    fam.GROUP_PARTITIONS: STATUSES,
    fam.GROUP_REBALANCES: CAUSES,
    fam.GROUP_MEMBER_CHANGES: fam.CHANGES,
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Series that a cluster would have, and of how much."""

    series: int
    groups: int
    group_topics: int
    partitions: int  # of groups, with series of their own


def estimate_series(
    groups: Iterable[str],
    committed: Iterable[tuple[str, str, int]],
    offsets_partitions: int,
    selection: Selection,
    policy: Callable[[str], Policy],
) -> Estimate:
    """Count series as if every value were known.

    `committed` has group, topic and partition of each offset.
    """
    names, sizes = set(groups), Counter((group, topic) for group, topic, _ in committed)
    most = {group: _most_partitions(group, selection, policy(group)) for group in names}
    times = _times(sizes, most) | {fam.O: offsets_partitions}
    series = sizes.total() * sum(len(BY_PARTITION[tool]) for tool in selection.compat)
    for family in FAMILIES:
        if selection.experimental or not family.help.startswith(fam.EXPERIMENTAL):
            series += _width(family) * times.get(_unit(family), 0)
    plain = sum(not matches(group, selection.distributions) for group, _ in sizes)
    series -= plain * sum(_width(family) for family in FAMILIES if family.level == "distributions")
    return Estimate(series, len(names), len(sizes), times[fam.P])


def _times(
    sizes: Mapping[tuple[str, str], int], most: Mapping[str, int]
) -> dict[tuple[str, ...], int]:
    """Count each set of labels.

    `sizes` has partitions by group and topic, `most` the most partitions that a group shows.
    """
    shown = {pair: min(size, most[pair[0]]) for pair, size in sizes.items()}
    by_topic: dict[str, int] = {}
    # groups that read one topic may have the same partitions
    for (_, topic), number in shown.items():
        by_topic[topic] = max(by_topic.get(topic, 0), number)
    return {
        fam.G: len(most),
        fam.T: len(sizes),
        fam.P: sum(shown.values()),
        fam.K: len(by_topic),
        fam.KP: sum(by_topic.values()),
    }


def _most_partitions(group: str, selection: Selection, policy: Policy) -> int:
    """Return the group's maximum of partitions per topic with series, if a topic has so many."""
    if policy.exports_all or matches(group, selection.partition_always):
        return 1 << 31  # all
    return 0 if policy.exports_none else selection.partition_top_k


def _unit(family: Family) -> tuple[str, ...]:
    """Return the longest of the sets of labels that the family's labels begin with."""
    units = (fam.P, fam.KP, fam.T, fam.O, fam.G, fam.K)
    found = next((unit for unit in units if family.labels[: len(unit)] == unit), ())
    return () if family is fam.FINDING_ACTIVE else found


def _width(family: Family) -> int:
    """Return the number of series of one group, topic or partition."""
    if family.bounds:
        return len(family.bounds) + _BESIDE_BUCKETS
    return len(family.states or _CLOSED.get(family, "1"))
