"""Metadata of a partition."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from laggard.sources.brokers import TopicPartition, error_name


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's topic id ("": none), its leader, its replicas on brokers that are down, and Kafka's error name.

    `leader_epoch` counts leaders (KIP-101); -1: the broker did not say.
    """

    topic_id: str
    leader: int | None
    error: str | None
    replicas_offline: int | None = None
    leader_epoch: int = -1

    def succeeds(self, before: Partition) -> bool:
        """False if a broker says this that has not heard of a later leader, as one that was frozen."""
        # without ids (before Kafka 2.8) a topic that was recreated counts from 0 again, perhaps under the same leader
        is_as_known = self.topic_id == before.topic_id and self.leader != before.leader
        return not (is_as_known and 0 <= self.leader_epoch < before.leader_epoch)


def read_partitions(topics: Sequence[Mapping[str, Any]]) -> dict[TopicPartition, Partition]:
    """The partitions in an answer to a metadata request."""
    found: dict[TopicPartition, Partition] = {}
    for topic in topics:
        topic_id = topic_id_text(topic.get("topic_id"))
        for partition in topic["partitions"]:
            leader, offline = partition["leader_id"], partition.get("offline_replicas")
            found[topic["name"], partition["partition_index"]] = Partition(
                topic_id,
                leader if leader >= 0 else None,
                error_name(partition["error_code"]),
                None if offline is None else len(offline),
                partition.get("leader_epoch", -1),
            )
    return found


def topic_id_text(value: Any) -> str:
    """Kafka's 22 characters of URL-safe base64; "" for no id (brokers before 2.8)."""
    if not value:
        return ""
    raw = value.bytes if isinstance(value, uuid.UUID) else uuid.UUID(str(value)).bytes
    return "" if not any(raw) else base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")
