"""Rights of our principal, found by using each, and the command that grants the missing ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest
from kafka.protocol.consumer import FetchRequest

from laggard.doctor.principal import allow, principal_of
from laggard.doctor.result import Result
from laggard.names import NameFilter
from laggard.sources.brokers import UNUSED_NAME, error_name

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.doctor.cluster import Cluster

# how the names begin that Spark's consumers make up, one per query
SPARKS_GROUPS = "spark-kafka-source-"
DESCRIBE = 8  # org.apache.kafka.common.acl.AclOperation
DENIED = {
    "CLUSTER_AUTHORIZATION_FAILED",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
}


def check_rights(cluster: Cluster) -> Iterable[Result]:
    """Check Read on the offsets topic, and Describe on groups, topics and the cluster.

    Describe is checked on Spark's own groups too.
    """
    config, brokers = cluster.config, cluster.brokers
    if not config.cluster.is_admin:  # else nothing is read by Spark
        yield evaluate_read(config, _try_read(cluster))
        yield evaluate_sparks_groups(config, _try_group(cluster, SPARKS_GROUPS + UNUSED_NAME))
    # a consumer's group would be looked up at its coordinator, and that creates the offsets topic:
    # all below does not
    names = NameFilter(topics=config.cluster.topics, topics_ignore=config.cluster.topics_ignore)
    topics = sum(
        names.watches_topic(topic["name"]) for topic in cluster.brokers.metadata(None)["topics"]
    )
    yield evaluate_topics(
        config,
        error_name(cluster.brokers.metadata([UNUSED_NAME])["topics"][0]["error_code"]),
        topics,
    )
    on_cluster = _try_cluster(cluster)
    groups = len(
        brokers.list_groups([broker["node_id"] for broker in (cluster.metadata or {})["brokers"]])
    )
    on_group = _try_group(cluster, UNUSED_NAME)
    # to list a group Describe on the cluster is enough, to ask it for its offsets it is not
    is_cluster_allowed = on_cluster is None and not config.cluster.is_admin
    yield evaluate_groups(config, on_group, groups, is_cluster_allowed=is_cluster_allowed)
    yield evaluate_cluster(config, on_cluster)


def evaluate_read(config: Config, error: str | None) -> Result:
    """Evaluate Read on the offsets topic, without which there is nothing to do."""
    name = config.cluster.offsets_topic
    if error is None:
        return Result("ok", f"Read {name}", f"{principal_of(config.cluster.security)} may")
    if error not in DENIED:
        return _unknown(f"Read {name}", error)
    command = allow(config, "Describe", "Read", resource=("--topic", name))
    return Result("fail", f"Read {name}", _denied(config, error), command)


def evaluate_sparks_groups(config: Config, error: str | None) -> Result:
    """Evaluate the right to look up the coordinator of Spark's made-up group.

    Spark does not join the group, but fails if the lookup is denied.
    """
    check = f"Describe groups {SPARKS_GROUPS}*"
    if error is None:
        return Result("ok", check, f"{principal_of(config.cluster.security)} may")
    if error not in DENIED:
        return _unknown(check, error)
    resource = ("--group", SPARKS_GROUPS, "--resource-pattern-type", "prefixed")
    return Result(
        "fail", check, _denied(config, error), allow(config, "Describe", resource=resource)
    )


def evaluate_topics(config: Config, error: str | None, visible: int) -> Result:
    """Evaluate the right to describe topics.

    A topic without this right looks like a missing topic, and its lag stays unknown.
    """
    check, fact = "Describe topics", f"watched topics that we see: {visible}"
    if error not in DENIED:  # the name is unknown, as it should be
        return Result(
            "ok", check, f"{principal_of(config.cluster.security)} may describe every topic; {fact}"
        )
    command = allow(config, "Describe", resource=("--topic", "*"))
    if not visible:
        return Result("fail", check, f"{_denied(config, error)}; {fact}", command)
    if "*" in config.cluster.topics:
        return Result(
            "warn",
            check,
            f"{_denied(config, error)} on every topic; {fact}, others may be hidden",
            command,
        )
    return Result(
        "ok", check, f"{fact}; not every topic may be described, and not every one is watched"
    )


def evaluate_groups(
    config: Config, error: str | None, visible: int, *, is_cluster_allowed: bool
) -> Result:
    """Evaluate Describe on groups other than Spark's; states and coordinator offsets need it."""
    check, fact = "Describe groups", f"groups that we see: {visible}"
    if error is not None and error not in DENIED:
        return _unknown(check, error)
    if error is None or is_cluster_allowed:  # either right lists all groups
        return Result(
            "ok", check, f"{principal_of(config.cluster.security)} may list every group; {fact}"
        )
    if visible and "*" not in config.cluster.groups:
        return Result(
            "ok", check, f"{fact}; not every group may be described, and not every one is watched"
        )
    command = allow(config, "Describe", resource=("--group", "*"))
    if config.cluster.is_admin:
        return Result(
            "warn" if visible else "fail",
            check,
            f"{_denied(config, error)}; {fact}, others are hidden and have no rows",
            command,
        )
    return Result(
        "warn",
        check,
        f"{_denied(config, error)}; {fact}, the state of others stays unknown",
        command,
    )


def evaluate_cluster(config: Config, error: str | None) -> Result:
    """Evaluate the right to describe the cluster: only the doctor's check of the clock needs it."""
    if error is None:
        return Result("ok", "Describe cluster", f"{principal_of(config.cluster.security)} may")
    if error not in DENIED:
        return _unknown("Describe cluster", error)
    fact = f"{_denied(config, error)}; only the check of the clock needs it"
    return Result(
        "warn", "Describe cluster", fact, allow(config, "Describe", resource=("--cluster",))
    )


def _try_read(cluster: Cluster) -> str | None:
    """Fetch from one partition; any answer but a denial comes after the broker's rights check."""
    led = [part for part in cluster.topic["partitions"] if part["leader_id"] >= 0]
    index, leader = (led[0]["partition_index"], led[0]["leader_id"]) if led else (0, None)
    topic, size = FetchRequest.FetchTopic, 1024
    part = topic.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=size)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=size,
        isolation_level=0,
        topics=[topic(topic=cluster.config.cluster.offsets_topic, partitions=[part])],
        # from 13 on topics have ids, and we have none of a topic that we may not describe
        max_version=12,
    )
    response = cluster.brokers.ask("fetch", request, leader)
    if isinstance(response, str):
        return response
    error = error_name(response.error_code or response.responses[0].partitions[0].error_code)
    if error not in DENIED:
        return None
    return error


def _try_group(cluster: Cluster, group: str) -> str | None:
    response = cluster.brokers.ask("describe_groups", DescribeGroupsRequest(groups=[group]))
    if isinstance(response, str):
        return response
    error = error_name(response.groups[0].error_code)
    # any broker answers that it does not coordinate the group
    if error not in DENIED:
        return None
    return error


def _try_cluster(cluster: Cluster) -> str | None:
    response = cluster.brokers.ask(
        "describe_cluster", DescribeClusterRequest(include_cluster_authorized_operations=True)
    )
    if isinstance(response, str):
        return response
    # listing brokers needs no right; the broker tells which operations we have
    if DESCRIBE in response.authorized_operations:
        return None
    return "CLUSTER_AUTHORIZATION_FAILED"


def _denied(config: Config, error: str | None) -> str:
    return f"denied to {principal_of(config.cluster.security)} ({error})"


def _unknown(check: str, error: str) -> Result:
    return Result("warn", check, f"unknown: {error}", "look at the broker's log; ask again")
