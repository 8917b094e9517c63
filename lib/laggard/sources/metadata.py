"""Partitions that there are, and their leaders, as the brokers' metadata last gave them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from laggard.errors import LaggardError
from laggard.names import NameFilter
from laggard.sources import brokers as kafka
from laggard.sources.partitions import Partition, read_partitions
from laggard.sources.readiness import DENIED_TOPIC

UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
METADATA_SHARE = 10  # metadata is asked out of turn at most a tenth of the time: 100,000 partitions take 1.5 s to read
Partitions = Mapping[kafka.TopicPartition, Partition]


class Metadata:
    """Metadata of the newest request that was answered; without an `offsets_topic`, of the watched topics alone."""

    def __init__(
        self, brokers: kafka.Brokers, names: NameFilter, every_seconds: float, offsets_topic: str | None
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
            if force:  # the old leaders gave errors already: keep the errors, ask again at the next poll
                self._read_at = 0.0
            return
        self._read_at, self.poll_id = time.monotonic(), poll_id
        self._took = self._read_at - started
        self.addresses = {each["node_id"]: _address(each["host"], each["port"]) for each in metadata["brokers"]}
        self.cluster_id = metadata.get("cluster_id") or ""
        self._take_topics([*metadata["topics"], *named], _errors_of(named))

    def _ask(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Ask for metadata of all that the broker lists, and for topics by name.

        These are internal ones and those that vanished: only then "unknown" is the broker's word.
        """
        metadata = self._brokers.metadata(None)
        listed = {topic["name"] for topic in metadata["topics"]}
        known = {topic for topic, _ in self.partitions}
        by_name = sorted({self._offsets_topic or kafka.UNUSED_NAME, *known} - listed)
        return metadata, self._brokers.metadata(by_name)["topics"] if by_name else []

    def _take_topics(self, topics: list[dict[str, Any]], named_errors: Mapping[str, str | None]) -> None:
        errors, found = _errors_of(topics), self._believed(read_partitions(topics))
        self.lists_all_topics = errors.get(kafka.UNUSED_NAME) == UNKNOWN_TOPIC
        if self._offsets_topic is not None:
            self.is_denied = errors.get(self._offsets_topic) == DENIED_TOPIC
            self.offsets_topic = {key: value for key, value in found.items() if key[0] == self._offsets_topic}
        watched = {key: value for key, value in found.items() if self._names.watches_topic(key[0])}
        for key, before in self.partitions.items():
            if key not in watched and before.error != UNKNOWN_TOPIC:  # reported once more as missing, then forgotten
                watched[key] = Partition(before.topic_id, None, named_errors.get(key[0]) or UNKNOWN_TOPIC)
        self.partitions = watched

    def _believed(self, found: Partitions) -> Partitions:
        """Partitions by metadata, but as known where a later leader answers: an earlier one would give a lower end.

        A broker that was frozen names itself for some 100 ms after it goes on, and gives the ends at which it froze.
        """
        known = self.everything
        return {
            key: each if each.succeeds(before := known.get(key, each)) or key in self.failed else before
            for key, each in found.items()
        }

    @property
    def may_be_asked_again(self) -> bool:
        """True if asking out of turn costs no more than its share of the time."""
        return self._read_at != 0.0 and time.monotonic() - self._read_at >= METADATA_SHARE * self._took


def _errors_of(topics: list[dict[str, Any]]) -> dict[str, str | None]:
    return {topic["name"]: kafka.error_name(topic["error_code"]) for topic in topics}


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
