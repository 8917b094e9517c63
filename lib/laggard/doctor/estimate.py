"""Series that the cluster would have, from what its groups committed, before there is a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from laggard.doctor.coordinators import ask_coordinators
from laggard.doctor.result import Result
from laggard.exporter.estimate import estimate_series
from laggard.exporter.options import Selection
from laggard.sources.groups.coordinators import Asked, has_no_offsets
from laggard.tables.published import newest_batch
from laggard.tables.readers import TableMissing

if TYPE_CHECKING:
    from laggard.doctor.cluster import Cluster

CHECK = "series, estimated"


def check_estimate(cluster: Cluster) -> Iterable[Result]:
    """Check that the cluster's series fit under the cap, before the first batch.

    From the first batch on `check_series` counts them.
    """
    config = cluster.config
    if cluster.metadata is None:
        return  # reported by its own line
    with suppress(TableMissing):
        if newest_batch(config.job.tables) is not None:
            return
    asked = ask_coordinators(cluster)
    groups = {row["group"]: row["group_type"] for row in asked.groups.to_pylist()}
    if not groups:
        return
    now = datetime.now(timezone.utc)
    rows = asked.committed.select(["group", "topic", "partition"]).to_pylist()
    found = estimate_series(
        groups,
        [(row["group"], row["topic"], row["partition"]) for row in rows],
        len(cluster.topic["partitions"]),
        Selection.of(config.metrics),
        lambda group: config.policies.of(config.cluster.name, group, now),
    )
    room = config.metrics.max_series // max(1, len(config.exporter.tables))
    sizes = (
        f"groups {found.groups:,}, topics of groups {found.group_topics:,}, their partitions "
        f"{found.partitions:,}"
    )
    fact = f"{_how_many(found.series, groups, asked)} ({sizes}); room for {room:,}"
    if found.series > room:
        remedy = "raise metrics.max_series, or limit metrics.distributions (docs/exporter.md)"
        yield Result("warn", CHECK, fact, remedy)
    else:
        yield Result("ok", CHECK, fact)


def _how_many(series: int, groups: Mapping[str, str | None], asked: Asked) -> str:
    answered = {
        row["group"]
        for row in asked.answers.to_pylist()
        if row["is_asked"] and row["error"] is None
    }
    silent = sum(
        group not in answered and not has_no_offsets(kind) for group, kind in groups.items()
    )
    if silent or asked.unlisted:
        return (
            f"at least {series:,}, as {silent:,} groups and {len(asked.unlisted)} brokers did "
            "not answer"
        )
    return f"about {series:,}"
