"""Answers of the coordinators, if they are asked in place of the offsets topic.

Before the first batch they also give an estimate of the series that the cluster would have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from operator import itemgetter
from typing import TYPE_CHECKING

from laggard.doctor.principal import allow
from laggard.doctor.result import Result
from laggard.exporter.body.budget import estimate_series
from laggard.exporter.options import Selection
from laggard.lag.arrays import tuples
from laggard.names import NameFilter
from laggard.sources.groups.coordinators import GROUP_DENIED, Asked, Coordinators, has_no_offsets
from laggard.tables.published import newest_batch
from laggard.tables.readers import TableMissing

if TYPE_CHECKING:
    from laggard.doctor.cluster import Cluster

CHECK = "coordinators"

ESTIMATE = "series, estimated"


def ask_coordinators(cluster: Cluster) -> Asked:
    """Ask the coordinators about the watched groups, within the time of a request."""
    config = cluster.config.cluster
    names = NameFilter(config.groups, config.groups_ignore, config.topics, config.topics_ignore)
    brokers = [broker["node_id"] for broker in (cluster.metadata or {"brokers": []})["brokers"]]
    return Coordinators(cluster.brokers, names, config.request_timeout_seconds).ask(brokers)


def check_coordinators(cluster: Cluster) -> Iterable[Result]:
    """Check that brokers list their groups and watched groups return offsets in time.

    Every broker must list its groups. Every watched group must return offsets within a
    request's timeout.
    """
    asked = ask_coordinators(cluster)
    if asked.unlisted:
        fact = f"brokers {asked.unlisted} did not list their groups"
        yield Result(
            "fail",
            CHECK,
            fact,
            "look at the logs of these brokers; ask again",
        )
    rows = [row for row in asked.answers.to_pylist() if row["is_asked"]]
    failed = Counter(map(itemgetter("error"), rows))
    del failed[None]
    for error, groups in sorted(failed.items()):
        fact = f"offsets of {groups} groups: {error}"
        if error == GROUP_DENIED:
            command = allow(cluster.config, "Describe", resource=("--group", "*"))
            yield Result("fail", CHECK, fact, command)
        else:
            yield Result("warn", CHECK, fact, "look at the logs of the brokers; ask again")
    late = asked.pending - failed.total() + failed[GROUP_DENIED]
    if late > 0 and not asked.unlisted:
        fact = (
            f"{late} groups were not asked within {cluster.config.cluster.request_timeout_seconds} "
            "s"
        )
        yield Result("warn", CHECK, fact, "raise job.tick_seconds: half of it is for asking groups")
    if not failed and not asked.pending:
        yield Result("ok", CHECK, f"{len(rows)} groups gave their offsets")


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
    groups = dict(tuples(asked.groups, ("group", "group_type")))
    if not groups:
        return
    now = datetime.now(timezone.utc)
    rows = asked.committed.select(["group", "topic", "partition"]).to_pylist()
    estimate = estimate_series(
        groups,
        map(itemgetter("group", "topic", "partition"), rows),
        len(cluster.topic["partitions"]),
        Selection.of(config.metrics),
        lambda group: config.policies.of(config.cluster.name, group, now),
    )
    room = config.metrics.max_series // max(1, len(config.exporter.tables))
    sizes = (
        f"groups {estimate.groups:,}, topics of groups {estimate.group_topics:,}, their partitions "
        f"{estimate.partitions:,}"
    )
    fact = f"{_how_many(estimate.series, groups, asked)} ({sizes}); room for {room:,}"
    if estimate.series > room:
        remedy = "raise metrics.max_series, or limit metrics.distributions (docs/exporter.md)"
        yield Result("warn", ESTIMATE, fact, remedy)
    else:
        yield Result("ok", ESTIMATE, fact)


def _how_many(series: int, groups: Mapping[str, str | None], asked: Asked) -> str:
    answered = set()
    for row in asked.answers.to_pylist():
        if row["is_asked"] and row["error"] is None:
            answered.add(row["group"])
    without = groups.keys() - answered
    silent = sum(not has_no_offsets(groups[group]) for group in without)
    if silent or asked.unlisted:
        return (
            f"at least {series:,}, as {silent:,} groups and {len(asked.unlisted)} brokers did "
            "not answer"
        )
    return f"about {series:,}"
