"""Partitions that there are, and their leaders, as the brokers' metadata last gave them."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from laggard.errors import LaggardError
from laggard.names import NameFilter
from laggard.sources import brokers as kafka
from laggard.sources.brokers import TopicPartition, error_name

DENIED_TOPIC = "TOPIC_AUTHORIZATION_FAILED"


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's topic id ("": none), leader, replicas on down brokers, and Kafka error name.

    `leader_epoch` counts leaders (KIP-101); -1: the broker did not say.
    """

    topic_id: str
    leader: int | None
    error: str | None
    replicas_offline: int | None = None
    leader_epoch: int = -1

    def succeeds(self, before: Partition) -> bool:
        """Return False if the answering broker does not know of a later leader.

        A broker that was frozen gives such answers.
        """
        # without ids (before Kafka 2.8) a topic that was recreated counts from 0 again, perhaps
        # under the same leader
        is_as_known = self.topic_id == before.topic_id and self.leader != before.leader
        return not (is_as_known and 0 <= self.leader_epoch < before.leader_epoch)


def read_partitions(topics: Sequence[Mapping[str, Any]]) -> dict[TopicPartition, Partition]:
    """Return the partitions in an answer to a metadata request."""
    partitions: dict[TopicPartition, Partition] = {}
    for topic in topics:
        topic_id = topic_id_text(topic.get("topic_id"))
        for partition in topic["partitions"]:
            leader, offline = partition["leader_id"], partition.get("offline_replicas")
            if leader < 0:
                leader = None
            replicas_offline = None
            if offline is not None:
                replicas_offline = len(offline)
            partitions[topic["name"], partition["partition_index"]] = Partition(
                topic_id,
                leader,
                error_name(partition["error_code"]),
                replicas_offline,
                partition.get("leader_epoch", -1),
            )
    return partitions


def topic_id_text(value: Any) -> str:
    """Return a topic id as Kafka's 22 characters of URL-safe base64.

    The result is "" for no id (brokers before 2.8).
    """
    if not value:
        return ""
    raw = value.bytes if isinstance(value, uuid.UUID) else uuid.UUID(str(value)).bytes
    if not any(raw):
        return ""
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
# metadata is asked out of turn at most a tenth of the time: 100,000 partitions take 1.5 s to read
METADATA_SHARE = 10
Partitions = Mapping[kafka.TopicPartition, Partition]


class Metadata:
    """Metadata of the newest answered request.

    Without an `offsets_topic`, it is that of the watched topics alone.
    """

    def __init__(
        self,
        brokers: kafka.Brokers,
        names: NameFilter,
        every_seconds: float,
        offsets_topic: str | None,
    ) -> None:
        self._brokers = brokers
        self._names = names
        self._every_seconds = every_seconds
        self._offsets_topic = offsets_topic
        self._read_at = 0.0
        self._took = 0.0  # seconds
        self.poll_id = 0
        self.partitions: dict[kafka.TopicPartition, Partition] = {}
        self.offsets_topic: dict[kafka.TopicPartition, Partition] = {}
        self.is_denied = False  # True: we may not describe the offsets topic
        self.addresses: dict[int, str] = {}
        self.cluster_id = ""
        self.lists_all_topics = False
        self.failed: frozenset[kafka.TopicPartition] = frozenset()  # without an end when last asked

    @property
    def everything(self) -> dict[kafka.TopicPartition, Partition]:
        """Watched partitions and those of the offsets topic."""
        return self.partitions | self.offsets_topic

    def refresh(self, poll_id: int, *, force: bool = False) -> None:
        """Ask for it if it is due; without an answer all stays as it was."""
        age = time.monotonic() - self._read_at
        if self.poll_id and age < self._every_seconds and not force:
            return
        started = time.monotonic()
        try:
            metadata, named = self._ask()
        except LaggardError:
            # the old leaders gave errors already: keep the errors, ask again at the next poll
            if force:
                self._read_at = 0.0
            return
        self._read_at, self.poll_id = time.monotonic(), poll_id
        self._took = self._read_at - started
        self.addresses = {}
        for broker in metadata["brokers"]:
            self.addresses[broker["node_id"]] = _address(broker["host"], broker["port"])
        self.cluster_id = metadata.get("cluster_id") or ""
        self._take_topics([*metadata["topics"], *named], _errors_of(named))

    def _ask(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Ask for metadata of all that the broker lists, and for topics by name.

        These are internal ones and those that vanished: only then "unknown" is the broker's word.
        """
        metadata = self._brokers.metadata(None)
        listed = set(map(itemgetter("name"), metadata["topics"]))
        known = {topic for topic, _ in self.partitions}
        by_name = sorted({self._offsets_topic or kafka.UNUSED_NAME, *known} - listed)
        if not by_name:
            return metadata, []
        return metadata, self._brokers.metadata(by_name)["topics"]

    def _take_topics(
        self, topics: list[dict[str, Any]], named_errors: Mapping[str, str | None]
    ) -> None:
        errors, partitions = _errors_of(topics), self._believed(read_partitions(topics))
        self.lists_all_topics = errors.get(kafka.UNUSED_NAME) == UNKNOWN_TOPIC
        if self._offsets_topic is not None:
            self.is_denied = errors.get(self._offsets_topic) == DENIED_TOPIC
            self.offsets_topic = {
                key: value for key, value in partitions.items() if key[0] == self._offsets_topic
            }
        watched = {
            key: value for key, value in partitions.items() if self._names.watches_topic(key[0])
        }
        for key, before in self.partitions.items():
            # reported once more as missing, then forgotten
            if key not in watched and before.error != UNKNOWN_TOPIC:
                watched[key] = Partition(
                    before.topic_id, None, named_errors.get(key[0]) or UNKNOWN_TOPIC
                )
        self.partitions = watched

    def _believed(self, partitions: Partitions) -> Partitions:
        """Return partitions by metadata, or as known if a later leader answers.

        An earlier leader would give a lower end.

        A broker that was frozen names itself for some 100 ms after it goes on, and gives the ends
        at which it froze.
        """
        believed = dict(partitions)
        for key, before in self.everything.items():
            if key in self.failed:
                continue
            if key in partitions and not partitions[key].succeeds(before):
                believed[key] = before
        return believed

    @property
    def may_be_asked_again(self) -> bool:
        """True if asking out of turn costs no more than its share of the time."""
        return (
            self._read_at != 0.0 and time.monotonic() - self._read_at >= METADATA_SHARE * self._took
        )


def _errors_of(topics: list[dict[str, Any]]) -> dict[str, str | None]:
    return {topic["name"]: kafka.error_name(topic["error_code"]) for topic in topics}


def _address(host: str, port: int) -> str:
    if ":" in host:
        return f"[{host}]:{port}"
    return f"{host}:{port}"
