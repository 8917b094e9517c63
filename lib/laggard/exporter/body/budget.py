"""The hard cap on series: what goes first when a body is too big, always in the same order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import Metric

from laggard.escape import escape_label
from laggard.exporter.body.compat_families import COMPAT
from laggard.exporter.body.families import FAMILIES, LEVELS
from laggard.exporter.evaluated import SEVERITIES
from laggard.exporter.snapshot import Snapshot

_CALM_SHARE = 0.9  # of the cap
_CALM_BODIES = 10  # in a row: what comes and goes with each batch is worse than what is absent
_LEVEL_OF = {family.base_name: family.level for family in (*FAMILIES, *COMPAT)}


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
        self._most_relaxed = relaxed if self._calm <= 1 else max(relaxed, self._most_relaxed)
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
    kept, counts = stages.after(levels), stages.counts
    withheld = {level: counts[n] - counts[n + 1] for n, level in enumerate(LEVELS[:levels])}
    if counts[levels] > max_series:
        kept = _shed_least_lag(kept, snapshot, max_series)
        withheld["groups"] += counts[levels] - count_series(kept)
    return Budgeted(kept, {level: count for level, count in withheld.items() if count})


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
        return next(
            (level for level, count in enumerate(self.counts) if count <= limit), len(LEVELS)
        )

    def after(self, levels: int) -> Sequence[Metric]:
        """Return the families without so many levels."""
        while len(self._families) <= levels:
            level = LEVELS[len(self._families) - 1]
            self._families.append(_shed(self._families[-1], level, self._snapshot))
            self.counts.append(count_series(self._families[-1]))
        return self._families[levels]


def _shed(families: Sequence[Metric], level: str, snapshot: Snapshot) -> list[Metric]:
    found = _severities(snapshot)
    if level == "topics":
        quiet = {pair for pair in _quiet_topics(snapshot) if pair[0] not in found}
        return [_without_topics(metric, quiet) for metric in families]
    if level == "groups":
        quiet_groups = _quiet_groups(snapshot) - found.keys()
        return [_without_groups(metric, quiet_groups) for metric in families]
    return [metric for metric in families if _LEVEL_OF.get(metric.name) != level]


def _severities(snapshot: Snapshot) -> dict[str, int]:
    """Rank the worst open finding of each group as labelled by severity, from 0."""
    worst: dict[str, int] = {}
    for row in snapshot.evaluated.shown_findings():
        name = escape_label(row["group"] or "")
        place = SEVERITIES.index(row["severity"]) if row["severity"] in SEVERITIES else 0
        worst[name] = max(worst.get(name, 0), place)
    return worst


def _known_lags(snapshot: Snapshot) -> dict[tuple[str, str], int | None]:
    """Return the lag per group–topic by label; None if a part is unknown.

    A pair with an unknown part is not hidden.
    """
    folded = snapshot.group_topics
    lags = folded.columns.get("lag", ())
    return {
        (escape_label(g), escape_label(t)): lag
        for g, t, lag in zip(folded.group, folded.topic, lags, strict=True)
    }


def _quiet_groups(snapshot: Snapshot) -> set[str]:
    busy = {group for (group, _), lag in _known_lags(snapshot).items() if lag != 0}
    return {escape_label(row["group"]) for row in snapshot.groups} - busy


def _quiet_topics(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Find group–topics as labelled without lag, and those of which only the counters are left."""
    lags = _known_lags(snapshot)
    counted = {
        (escape_label(row["group"]), escape_label(each["topic"]))
        for row in snapshot.groups
        for each in row["topic_counters"] or ()
    }
    return {pair for pair, lag in lags.items() if lag == 0} | (counted - lags.keys())


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
    found = _severities(snapshot)
    rank: dict[str, tuple[float, int]] = {
        escape_label(row["group"]): (-1.0, -1) for row in snapshot.groups
    }
    for row in snapshot.group_topics.rows():
        name = escape_label(row["group"])
        known = (row["time_lag_known"] or 0.0, row["lag_known"] or 0)
        rank[name] = max(rank.get(name, known), known)
    return sorted(rank, key=lambda name: (found.get(name, -1), rank[name], name))


def _without_topics(metric: Metric, pairs: Collection[tuple[str, str]]) -> Metric:
    kept = [
        (sample.labels.get("group", ""), sample.labels.get("topic", "")) not in pairs
        for sample in metric.samples
    ]
    return _keep(metric, kept)


def _without_groups(metric: Metric, groups: Collection[str]) -> Metric:
    kept = [
        sample.labels.get("group", "") not in groups or "group" not in sample.labels
        for sample in metric.samples
    ]
    return _keep(metric, kept)


def _keep(metric: Metric, kept: list[bool]) -> Metric:
    result = Metric(metric.name, metric.documentation, metric.type)
    result.samples = [
        sample for sample, is_kept in zip(metric.samples, kept, strict=True) if is_kept
    ]
    return result
