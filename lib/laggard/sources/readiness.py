"""Is the offsets topic there, and how much of it waits to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from laggard import errors
from laggard.errors import LaggardError
from laggard.sources.brokers import EARLIEST, LATEST, Brokers, error_name
from laggard.sources.metadata import DENIED_TOPIC, topic_id_text

if TYPE_CHECKING:
    from laggard.config.sections import Cluster


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """State of the offsets topic, as the cluster reports it."""

    cluster_id: str
    topic_id: str
    partitions: int


class NotReadyYet(Exception):  # noqa: N818 - not an error: it passes by itself
    """Say why the job cannot begin, with the reason of `/-/ready` in front."""


def find_source(brokers: Brokers, cluster: Cluster) -> OffsetsTopic:
    """Return the identity of the source of commits; raise as `find_offsets_topic` does.

    Where coordinators are asked there is no topic, and the word for that stands in for its id:
    tables that were begun from the one source are continued from the other as from a topic that was
    created again.
    """
    if cluster.is_admin:
        return OffsetsTopic(_metadata(brokers, []).get("cluster_id") or "", cluster.source, 0)
    return find_offsets_topic(brokers, cluster.offsets_topic)


def find_offsets_topic(brokers: Brokers, name: str) -> OffsetsTopic:
    """Return the topic's identity.

    Raise NotReadyYet if it or the cluster is not there, LaggardError without rights.
    """
    metadata = _metadata(brokers, [name])
    topic = metadata["topics"][0]
    problem = error_name(topic["error_code"])
    if problem == DENIED_TOPIC:
        raise denied(name)
    if problem is not None:
        raise NotReadyYet(
            f"offsets_topic_missing: {name} does not exist yet ({problem}); Kafka creates it "
            "with the first commit"
        )
    return OffsetsTopic(
        metadata.get("cluster_id") or "",
        topic_id_text(topic.get("topic_id")),
        len(topic["partitions"]),
    )


def _metadata(brokers: Brokers, topics: list[str]) -> dict[str, Any]:
    try:
        return brokers.metadata(topics)
    except LaggardError as error:
        if error.exit_code != errors.UNREACHABLE:
            raise
        raise NotReadyYet(
            f"broker_unreachable: {error.what} ({error.cause}); {error.fix}"
        ) from error


def denied(name: str) -> LaggardError:
    """Return the failure for a topic that we may not even describe."""
    fix = (
        f"allow Describe and Read on topic {name} for this principal, or set cluster.source = "
        '"admin"'
    )
    return LaggardError(f"cannot read {name}", cause=DENIED_TOPIC, fix=fix, exit_code=errors.DENIED)


def count_backlog(brokers: Brokers, name: str, positions: Mapping[int, int]) -> int:
    """Count the topic's unread records, given next offsets by partition (none: from the start)."""
    leaders: dict[int, list[tuple[str, int]]] = {}
    for part in brokers.metadata([name])["topics"][0]["partitions"]:
        leaders.setdefault(part["leader_id"], []).append((name, part["partition_index"]))
    ends, starts = brokers.list_offsets(leaders, LATEST), brokers.list_offsets(leaders, EARLIEST)
    return sum(
        # a truncated log has none
        max(0, answer.offset - max(positions.get(key[1], 0), starts[key].offset or 0))
        for key, answer in ends.items()
        if answer.offset is not None
    )
