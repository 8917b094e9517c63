"""Questions asked once per window: stable ends, newest records, configurations, and log positions some time ago."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from laggard.sources import brokers as kafka
from laggard.sources import snapshot as shapes
from laggard.sources.brokers import Answer, Brokers, TopicPartition
from laggard.sources.partitions import Partition

CONFIG_SECONDS = 600.0  # configurations change seldom
MOST_PARTITIONS = 10_000  # asked in one window, about a second; of more, each window asks the next share
TOPIC_CONFIGS = ("retention.ms", "retention.bytes", "cleanup.policy")
OFFSETS_RETENTION = "offsets.retention.minutes"
_TOO_OLD = ("IncompatibleBrokerVersion", "UNSUPPORTED_VERSION")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MAX_TIMESTAMP_MS = 253_402_300_799_999  # the end of the year 9999: producers may set anything

Partitions = Mapping[TopicPartition, Partition]
Answers = Mapping[TopicPartition, Answer]


class LogFacts:
    """Asks about the partitions that just answered; what fails or is denied is unknown, and stops nothing."""

    def __init__(self, brokers: Brokers, slo_seconds: Sequence[float] = ()) -> None:
        self._brokers = brokers
        self._slo_seconds = slo_seconds
        self._knows_newest = True  # brokers since 3.0
        self._configs: dict[tuple[str, str], Mapping[str, str | None]] = {}  # (topic, topic id)
        self._configs_at = -CONFIG_SECONDS
        self._asked = 0  # windows
        self.offsets_retention_minutes: int | None = None

    def ask(self, partitions: Partitions, ends: Answers) -> pa.Table:
        """Rows of `FACTS` for every partition; ends and newest records of a share of them where they are many."""
        led = _by_leader(self._share(partitions), ends)
        pending = self._brokers.start_list_offsets(led, kafka.LATEST, kafka.READ_COMMITTED)
        newest = self._newest(led)
        stable = pending()
        self._refresh_configs(partitions)
        rows = [self._row(key, each, stable.get(key), newest.get(key)) for key, each in sorted(partitions.items())]
        return shapes.table_of_rows(shapes.FACTS, rows)

    def _row(
        self, key: TopicPartition, found: Partition, stable: Answer | None, newest: Answer | None
    ) -> Sequence[Any]:
        config = self._configs.get((key[0], found.topic_id), {})
        retention_ms = _limit(config, "retention.ms")
        return (
            key[0],
            found.topic_id,
            key[1],
            None if stable is None else stable.offset,
            None if newest is None else _moment(newest.timestamp_ms),
            found.replicas_offline,
            None if retention_ms is None else retention_ms / 1000,
            _limit(config, "retention.bytes"),
            config.get("cleanup.policy"),
            set(TOPIC_CONFIGS) <= set(config),
        )

    def _share(self, partitions: Partitions) -> Partitions:
        shares = -(-len(partitions) // MOST_PARTITIONS)
        turn, self._asked = self._asked % max(shares, 1), self._asked + 1
        return partitions if shares <= 1 else {key: partitions[key] for key in sorted(partitions)[turn::shares]}

    def probe(self, partitions: Partitions, ends: Answers, now_ms: int) -> pa.Table:
        """Rows of `PROBES`: for each service level the first offset that is not older; the log end where all are."""
        led = _by_leader(partitions, ends) if self._slo_seconds else {}
        pending = [
            (seconds, self._brokers.start_list_offsets(led, now_ms - round(seconds * 1000)))
            for seconds in self._slo_seconds
        ]
        rows: list[tuple[float, str, str, int, int]] = []
        for seconds, wait in pending:
            for (topic, partition), answer in sorted(wait().items()):
                end = ends[topic, partition].offset
                if answer.offset is not None and end is not None:
                    offset = end if answer.offset < 0 else min(answer.offset, end)
                    rows.append((seconds, topic, partitions[topic, partition].topic_id, partition, offset))
        return shapes.table_of_rows(shapes.PROBES, rows)

    def _newest(self, led: Mapping[int, Sequence[TopicPartition]]) -> Answers:
        if not self._knows_newest:
            return {}
        answers = self._brokers.list_offsets(led, kafka.MAX_TIMESTAMP)
        self._knows_newest = not answers or any(answer.error not in _TOO_OLD for answer in answers.values())
        return answers

    def _refresh_configs(self, partitions: Partitions) -> None:
        """All after ten minutes, else those of topics not asked about yet; what we may not see has no values."""
        topics = {(key[0], each.topic_id) for key, each in partitions.items() if each.error is None}
        wanted = topics - set(self._configs)
        if time.monotonic() - self._configs_at >= CONFIG_SECONDS:
            wanted, self._configs_at = topics, time.monotonic()
            self.offsets_retention_minutes = self._ask_offsets_retention(partitions)
        names = sorted({topic for topic, _ in wanted})
        answers = self._brokers.configs(kafka.TOPIC, names, TOPIC_CONFIGS) if names else {}
        if answers is None:  # nobody answered: asked again in the next window
            self._configs, self._configs_at = {}, -CONFIG_SECONDS
            return
        self._configs = {key: answers.get(key[0], {}) if key in wanted else self._configs[key] for key in topics}

    def _ask_offsets_retention(self, partitions: Partitions) -> int | None:
        leader = min((each.leader for each in partitions.values() if each.leader is not None), default=None)
        if leader is None:
            return None
        answers = self._brokers.configs(kafka.BROKER, [str(leader)], [OFFSETS_RETENTION], leader) or {}
        value = answers.get(str(leader), {}).get(OFFSETS_RETENTION)
        return int(value) if value else None


def _by_leader(partitions: Partitions, ends: Answers) -> dict[int, list[TopicPartition]]:
    """The partitions that just answered: who did not is not waited for again."""
    led: dict[int, list[TopicPartition]] = {}
    for key, found in partitions.items():
        if found.leader is not None and key in ends and ends[key].offset is not None:
            led.setdefault(found.leader, []).append(key)
    return led


def _limit(config: Mapping[str, str | None], name: str) -> int | None:
    """A configured limit; null if it is unlimited (-1) or not known."""
    limit = int(config.get(name) or -1)
    return limit if limit >= 0 else None


def _moment(timestamp_ms: int | None) -> datetime | None:
    if timestamp_ms is None or not 0 <= timestamp_ms <= _MAX_TIMESTAMP_MS:
        return None
    return _EPOCH + timedelta(milliseconds=timestamp_ms)
