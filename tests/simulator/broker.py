"""User topics: their logs, ids and partition counts over time, and what a poll of them answers."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

from simulator.clock import Clock, Streams
from simulator.producer import Arrivals, Rate

SEGMENT = 1000  # records; a log start moves by whole segments
BROKERS = 3


@dataclass
class Topic:
    name: str
    topic_id: str
    rates: list[Rate]
    created_ms: int
    retention_ms: int | None = None
    logs: list[Arrivals] = field(default_factory=list)

    def log_start(self, partition: int, now_ms: int) -> int:
        if self.retention_ms is None:
            return 0
        return self.logs[partition].end_at(now_ms - self.retention_ms) // SEGMENT * SEGMENT


class Brokers:
    """The cluster's topics by name."""

    def __init__(self, clock: Clock, streams: Streams) -> None:
        self.clock, self._streams = clock, streams
        self.origin_ms = clock.now
        self.topics: dict[str, Topic] = {}
        self.leaderless: set[tuple[str, int]] = set()  # partitions that answer no poll; members go on from replicas
        self._lives = 0

    def create(self, name: str, rates: list[Rate], retention_ms: int | None = None) -> Topic:
        """A topic with one partition per rate, under a new id."""
        self._lives += 1
        raw = self._streams("topic ids").randbytes(16)
        shown = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        topic = Topic(name, shown, [], self.clock.now, retention_ms)
        self.topics[name] = topic
        self.expand(name, rates)
        return topic

    def expand(self, name: str, rates: list[Rate]) -> None:
        """More partitions, empty at first."""
        topic = self.topics[name]
        for rate in rates:
            chance = self._streams(f"arrivals {self._lives} {name} {len(topic.logs)}")
            topic.logs.append(Arrivals(self.clock.now, self.origin_ms, rate, chance))
            topic.rates.append(rate)

    def delete(self, name: str) -> Topic:
        return self.topics.pop(name)

    def counts(self) -> dict[str, int]:
        return {name: len(topic.logs) for name, topic in self.topics.items()}

    def end(self, topic: str, partition: int) -> int:
        return self.topics[topic].logs[partition].end_at(self.clock.now)

    def start(self, topic: str, partition: int) -> int:
        return self.topics[topic].log_start(partition, self.clock.now)

    def name_of(self, topic_id: str) -> str | None:
        return next((name for name, topic in self.topics.items() if topic.topic_id == topic_id), None)

    def poll(self) -> list[dict[str, Any]]:
        """Rows of `POSITIONS` for every partition there is."""
        topics = sorted(self.topics.items())
        return [self._row(topic, partition) for _, topic in topics for partition in range(len(topic.logs))]

    def _row(self, topic: Topic, partition: int) -> dict[str, Any]:
        is_led = (topic.name, partition) not in self.leaderless
        return {
            "topic": topic.name,
            "topic_id": topic.topic_id,
            "partition": partition,
            "log_end_offset": self.end(topic.name, partition) if is_led else None,
            "log_start_offset": self.start(topic.name, partition) if is_led else None,
            "leader_broker": partition % BROKERS if is_led else None,
            "error": None if is_led else "LEADER_NOT_AVAILABLE",
        }
