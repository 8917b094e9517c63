"""The hard cap on series: what goes first when a body is too big, always in the same order.

Before the first batch, series are estimated from committed offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import Metric

from laggard.diagnosis.parameters import Policy
from laggard.escape import escape_label
from laggard.exporter.body import families as fam
from laggard.exporter.body.compat_families import COMPAT
from laggard.exporter.body.families import FAMILIES, LEVELS, Family
from laggard.exporter.collectors.compat import BY_PARTITION
from laggard.exporter.evaluated import SEVERITIES
from laggard.exporter.options import Selection
from laggard.exporter.snapshot import Snapshot
from laggard.lag.status import STATUSES
from laggard.names import matches
from laggard.rebalance.analytics.causes import CAUSES

_CALM_SHARE = 0.9  # of the cap
_CALM_BODIES = 10  # in a row: what comes and goes with each batch is worse than what is absent
_LEVEL_OF = {family.base_name: family.level for family in (*FAMILIES, *COMPAT)}

_BESIDE_BUCKETS = 3  # +Inf, count and sum
_CLOSED = {
    fam.GROUP_PARTITIONS: STATUSES,
    fam.GROUP_REBALANCES: CAUSES,
    fam.GROUP_MEMBER_CHANGES: fam.CHANGES,
}


@dataclass(frozen=True, slots=True)
class Budgeted:
    """Families that fit, and how many series were left out on each level."""

    families: Sequence[Metric]
    withheld: dict[str, int] = field(default_factory=dict)


def count_series(families: Sequence[Metric]) -> int:
    """Return the number of samples that the families make."""
    return sum(len(metric.samples) for metric in families)


class Shedding:
    """Number of omitted levels; it rises at once, and falls once bodies are well below the cap."""

    def __init__(self) -> None:
        self._levels = 0
        self._calm = 0
        # of the calm bodies: each of them was well below the cap without so many
        self._most_relaxed = 0

    def settle(self, needed: int, relaxed: int) -> int:
        """Return the number of levels to omit.

        With `needed` levels omitted the body fits the cap; with `relaxed` it is well below.
        """
        self._calm = self._calm + 1 if relaxed < self._levels else 0
        if self._calm > 1:
            relaxed = max(relaxed, self._most_relaxed)
        self._most_relaxed = relaxed
        if needed > self._levels:
            self._levels = needed
        elif self._calm == _CALM_BODIES:
            self._levels, self._calm = self._most_relaxed, 0
        return self._levels


def fit(
    families: Sequence[Metric],
    snapshot: Snapshot,
    max_series: int,
    shedding: Shedding,
    unmade: int = 0,
) -> Budgeted:
    """Shed level by level in the order of `LEVELS`, then whole groups, least lag first.

    `unmade` series of the first level are not among the families, as they would not fit.
    """
    stages = _Stages(families, snapshot, unmade)
    levels = shedding.settle(
        stages.levels_until(max_series), stages.levels_until(_CALM_SHARE * max_series)
    )
    fitting, counts = stages.after(levels), stages.counts
    withheld: Counter[str] = Counter()
    for number, level in enumerate(LEVELS[:levels]):
        withheld[level] = counts[number] - counts[number + 1]
    if counts[levels] > max_series:
        fitting = _shed_least_lag(fitting, snapshot, max_series)
        withheld["groups"] += counts[levels] - count_series(fitting)
    return Budgeted(fitting, dict(+withheld))


class _Stages:
    """Families after each omitted level, created when needed, and their numbers of series."""

    def __init__(self, families: Sequence[Metric], snapshot: Snapshot, unmade: int) -> None:
        self._snapshot = snapshot
        self._families = [families]
        self.counts = [count_series(families) + unmade]

    def levels_until(self, limit: float) -> int:
        """Return the number of levels to leave out so that at most `limit` series remain."""
        while self.counts[-1] > limit and len(self.counts) <= len(LEVELS):
            self.after(len(self.counts))
        for level, count in enumerate(self.counts):
            if count <= limit:
                return level
        return len(LEVELS)

    def after(self, levels: int) -> Sequence[Metric]:
        """Return the families without so many levels."""
        while len(self._families) <= levels:
            level = LEVELS[len(self._families) - 1]
            self._families.append(_shed(self._families[-1], level, self._snapshot))
            self.counts.append(count_series(self._families[-1]))
        return self._families[levels]


def _shed(families: Sequence[Metric], level: str, snapshot: Snapshot) -> list[Metric]:
    severities = _severities(snapshot)
    if level == "topics":
        quiet = {pair for pair in _quiet_topics(snapshot) if pair[0] not in severities}
        return [_without_topics(metric, quiet) for metric in families]
    if level == "groups":
        quiet_groups = _quiet_groups(snapshot) - severities.keys()
        return [_without_groups(metric, quiet_groups) for metric in families]
    return [metric for metric in families if _LEVEL_OF.get(metric.name) != level]


def _severities(snapshot: Snapshot) -> dict[str, int]:
    """Rank the worst open finding of each group as labelled by severity, from 0."""
    worst: dict[str, int] = {}
    for row in snapshot.evaluated.shown_findings():
        name = escape_label(row["group"] or "")
        rank = 0
        if row["severity"] in SEVERITIES:
            rank = SEVERITIES.index(row["severity"])
        worst[name] = max(worst.get(name, 0), rank)
    return worst


def _known_lags(snapshot: Snapshot) -> dict[tuple[str, str], int | None]:
    """Return the lag per group–topic by label; None if a part is unknown.

    A pair with an unknown part is not hidden.
    """
    folded = snapshot.group_topics
    lags = folded.columns.get("lag", ())
    names = zip(map(escape_label, folded.group), map(escape_label, folded.topic), strict=True)
    return dict(zip(names, lags, strict=True))


def _quiet_groups(snapshot: Snapshot) -> set[str]:
    busy = {group for (group, _), lag in _known_lags(snapshot).items() if lag != 0}
    return {escape_label(row["group"]) for row in snapshot.groups} - busy


def _quiet_topics(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Find group–topics as labelled without lag, and those of which only the counters are left."""
    lags = _known_lags(snapshot)
    quiet = {pair for pair, lag in lags.items() if lag == 0}
    for row in snapshot.groups:
        for topic in row["topic_counters"] or ():
            pair = (escape_label(row["group"]), escape_label(topic["topic"]))
            if pair not in lags:
                quiet.add(pair)
    return quiet


def _shed_least_lag(
    families: Sequence[Metric], snapshot: Snapshot, max_series: int
) -> list[Metric]:
    """Remove whole groups, least known time lag and lag first, until the body fits."""
    per_group: dict[str, int] = {}
    for metric in families:
        for sample in metric.samples:
            group = sample.labels.get("group", "")
            per_group[group] = per_group.get(group, 0) + 1
    excess, gone = count_series(families) - max_series, set()
    for group in _least_lag_first(snapshot):
        if excess <= 0:
            break
        excess -= per_group.get(group, 0)
        gone.add(group)
    return [_without_groups(metric, gone) for metric in families]


def _least_lag_first(snapshot: Snapshot) -> list[str]:
    """Return group labels, least first: by finding severity, known time lag, known lag, name."""
    severities = _severities(snapshot)
    names = (escape_label(row["group"]) for row in snapshot.groups)
    rank: dict[str, tuple[float, int]] = dict.fromkeys(names, (-1.0, -1))
    for row in snapshot.group_topics.rows():
        name = escape_label(row["group"])
        known = (row["time_lag_known"] or 0.0, row["lag_known"] or 0)
        rank[name] = max(rank.get(name, known), known)
    return sorted(rank, key=lambda name: (severities.get(name, -1), rank[name], name))


def _without_topics(metric: Metric, pairs: Collection[tuple[str, str]]) -> Metric:
    return _keep(
        metric, lambda labels: (labels.get("group", ""), labels.get("topic", "")) not in pairs
    )


def _without_groups(metric: Metric, groups: Collection[str]) -> Metric:
    return _keep(metric, lambda labels: "group" not in labels or labels["group"] not in groups)


def _keep(metric: Metric, is_kept: Callable[[Mapping[str, str]], bool]) -> Metric:
    result = Metric(metric.name, metric.documentation, metric.type)
    result.samples = [sample for sample in metric.samples if is_kept(sample.labels)]
    return result


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
    most = {group: _most_partitions(selection, policy(group)) for group in names}
    times = _times(sizes, most) | {fam.O: offsets_partitions}
    series = sizes.total() * sum(len(BY_PARTITION[tool]) for tool in selection.compat)
    plain = sum(not matches(group, selection.distributions) for group, _ in sizes)
    for family in FAMILIES:
        series += _width(family) * times.get(_unit(family), 0)
        if family.level == "distributions":
            series -= _width(family) * plain
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


def _most_partitions(selection: Selection, policy: Policy) -> int:
    """Return the group's maximum of partitions per topic with series, if a topic has so many."""
    if policy.exports_all:
        return 1 << 31  # all
    if policy.exports_none:
        return 0
    return selection.partition_top_k


def _unit(family: Family) -> tuple[str, ...]:
    """Return the longest of the sets of labels that the family's labels begin with."""
    units = (fam.P, fam.KP, fam.T, fam.O, fam.G, fam.K)
    if family is not fam.FINDING_ACTIVE:
        for unit in units:
            if family.labels[: len(unit)] == unit:
                return unit
    return ()


def _width(family: Family) -> int:
    """Return the number of series of one group, topic or partition."""
    if family.bounds:
        return len(family.bounds) + _BESIDE_BUCKETS
    return len(family.states or _CLOSED.get(family, "1"))
