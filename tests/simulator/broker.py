"""User topics: their logs, ids and partition counts over time, and what a poll of them answers."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterable
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
    retention_records: int | None = None  # by size: so many of each partition stay
    logs: list[Arrivals] = field(default_factory=list)
    cleanup_policy: str = "delete"
    # partition -> first offset of a transaction left open
    opened: dict[int, int] = field(default_factory=dict)
    # the newest offset is a transaction's marker, of which no reader gets a record
    ends_in_marker: bool = False

    def readable(self, partition: int, now_ms: int, *, is_committed: bool) -> int:
        """Up to where a reader gets records: an open transaction holds back one that reads what is
        committed.
        """
        end = self.logs[partition].end_at(now_ms)
        if is_committed and self.opened:
            end = min(end, self.opened.get(partition, end))
        return end - 1 if self.ends_in_marker else end

    @property
    def has_retention(self) -> bool:
        """True if old records are deleted."""
        return self.retention_ms is not None or self.retention_records is not None

    def log_start(self, partition: int, now_ms: int) -> int:
        log, start = self.logs[partition], 0
        if self.retention_ms is not None:
            start = log.end_at(now_ms - self.retention_ms)
        if self.retention_records is not None:
            start = max(start, log.end_at(now_ms) - self.retention_records)
        return start // SEGMENT * SEGMENT


class Brokers:
    """The cluster's topics by name."""

    def __init__(self, clock: Clock, streams: Streams) -> None:
        self.clock, self._streams = clock, streams
        self.origin_ms = clock.now
        self.topics: dict[str, Topic] = {}
        self.offsets_retention_minutes: int | None = None  # None: we may not see it
        # partitions that answer no poll; members go on from replicas
        self.leaderless: set[tuple[str, int]] = set()
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

    def stable(self, topic: str, partition: int) -> int:
        """The last stable offset: where the oldest open transaction begins, or the end."""
        return min(
            self.end(topic, partition), self.topics[topic].opened.get(partition, sys.maxsize)
        )

    def open_transaction(self, topic: str, partitions: Iterable[int]) -> None:
        """A producer begins a transaction on these partitions and never ends it."""
        self.topics[topic].opened.update({part: self.end(topic, part) for part in partitions})

    def cut(self, topic: str, partition: int, records: int) -> None:
        """A replica that lacks the newest records becomes the leader (unclean election); offsets
        are given again.
        """
        known = self.topics[topic]
        chance = self._streams(f"arrivals after a cut {topic} {partition}")
        first = max(0, self.end(topic, partition) - records)
        known.logs[partition] = Arrivals(
            self.clock.now, self.origin_ms, known.rates[partition], chance, first
        )

    def start(self, topic: str, partition: int) -> int:
        known = self.topics[topic]
        return known.log_start(partition, self.clock.now) if known.has_retention else 0

    def name_of(self, topic_id: str) -> str | None:
        return next(
            (name for name, topic in self.topics.items() if topic.topic_id == topic_id), None
        )

    def poll(self) -> list[dict[str, Any]]:
        """Rows of `POSITIONS` for every partition there is."""
        topics = sorted(self.topics.items())
        return [
            self._row(topic, partition)
            for _, topic in topics
            for partition in range(len(topic.logs))
        ]

    def facts(self) -> list[dict[str, Any]]:
        """Rows of `FACTS` for every partition that has a leader."""
        return [
            {
                "topic": topic.name,
                "topic_id": topic.topic_id,
                "partition": partition,
                "last_stable_offset": self.stable(topic.name, partition),
                "max_record_timestamp": topic.logs[partition].produced_at(
                    self.end(topic.name, partition) - 1
                ),
                "replicas_offline": 0,
                "retention_seconds": None
                if topic.retention_ms is None
                else topic.retention_ms / 1000,
                "cleanup_policy": topic.cleanup_policy,
                "config_known": True,
            }
            for _, topic in sorted(self.topics.items())
            for partition in range(len(topic.logs))
            if (topic.name, partition) not in self.leaderless
        ]

    def probes(self, slo_seconds: Iterable[float]) -> list[dict[str, Any]]:
        """Rows of `PROBES`: for each service level the first offset that is not older; the log end
        where all are.
        """
        led = [
            (topic, partition, log)
            for _, topic in sorted(self.topics.items())
            for partition, log in enumerate(topic.logs)
            if (topic.name, partition) not in self.leaderless
        ]
        return [
            {
                "slo_seconds": seconds,
                "topic": topic.name,
                "topic_id": topic.topic_id,
                "partition": partition,
                "offset": log.end_at(self.clock.now - round(1000 * seconds)),
            }
            for seconds in slo_seconds
            for topic, partition, log in led
        ]

    def _row(self, topic: Topic, partition: int) -> dict[str, Any]:
        row = {
            "topic": topic.name,
            "topic_id": topic.topic_id,
            "partition": partition,
            "log_end_offset": None,
            "log_start_offset": None,
            "leader_broker": None,
            "error": "LEADER_NOT_AVAILABLE",
        }
        if (topic.name, partition) not in self.leaderless:
            row |= {
                "log_end_offset": self.end(topic.name, partition),
                "log_start_offset": self.start(topic.name, partition),
                "leader_broker": partition % BROKERS,
                "error": None,
            }
        return row
