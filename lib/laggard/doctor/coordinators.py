"""Answers of the coordinators, if they are asked in place of the offsets topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING

from laggard.doctor.principal import allow
from laggard.doctor.result import Result
from laggard.names import NameFilter
from laggard.sources.groups.coordinators import GROUP_DENIED, Asked, Coordinators

if TYPE_CHECKING:
    from laggard.doctor.cluster import Cluster

CHECK = "coordinators"


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
        level, remedy = "warn", "look at the logs of the brokers; ask again"
        if error == GROUP_DENIED:
            level, remedy = "fail", allow(cluster.config, "Describe", resource=("--group", "*"))
        yield Result(level, CHECK, f"offsets of {groups} groups: {error}", remedy)
    late = asked.pending - failed.total() + failed[GROUP_DENIED]
    if late > 0 and not asked.unlisted:
        fact = (
            f"{late} groups were not asked within {cluster.config.cluster.request_timeout_seconds} "
            "s"
        )
        yield Result("warn", CHECK, fact, "raise job.tick_seconds: half of it is for asking groups")
    if not failed and not asked.pending:
        yield Result("ok", CHECK, f"{len(rows)} groups gave their offsets")
