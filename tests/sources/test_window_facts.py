"""What is asked once per window: what fails or is denied is unknown, and is not asked for again and
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, cast

import pytest

from laggard.sources import brokers as kafka
from laggard.sources import window_facts
from laggard.sources.brokers import Answer, Brokers, TopicPartition
from laggard.sources.metadata import Partition
from laggard.sources.window_facts import LogFacts

A, B = ("a", 0), ("b", 0)
CONFIG: dict[str, str | None] = {
    "retention.ms": "1500",
    "retention.bytes": "-1",
    "cleanup.policy": "compact,delete",
}


class Reported:
    """Brokers that give the answers of a dictionary by timestamp (or isolation) asked for, and
    count questions.
    """

    def __init__(self) -> None:
        self.answers: dict[int, Mapping[TopicPartition, Answer]] = {}
        self.topics: dict[str, dict[str, str | None]] | None = {"a": CONFIG, "b": CONFIG}
        self.asked: list[Any] = []

    def list_offsets(
        self, led: Mapping[int, Iterable[TopicPartition]], timestamp: int, isolation: int = 0
    ) -> dict[TopicPartition, Answer]:
        self.asked.append((timestamp, isolation))
        answers = self.answers.get(timestamp, {})
        return {key: answers.get(key, Answer(0, None, -1)) for keys in led.values() for key in keys}

    def start_list_offsets(
        self, led: Mapping[int, Iterable[TopicPartition]], timestamp: int, isolation: int = 0
    ) -> Callable[[], dict[TopicPartition, Answer]]:
        answers = self.list_offsets(led, timestamp, isolation)
        return lambda: answers

    def configs(
        self, kind: int, names: Sequence[str], wanted: Sequence[str], broker: int | None = None
    ) -> dict[str, dict[str, str | None]] | None:
        self.asked.append(tuple(names))
        if kind == kafka.BROKER:
            return {"1": {"offsets.retention.minutes": "1440"}}
        return (
            None
            if self.topics is None
            else {name: self.topics[name] for name in names if name in self.topics}
        )

    def asked_for_topics(self) -> list[tuple[str, ...]]:
        return [
            names for names in self.asked if isinstance(names, tuple) and set(names) & {"a", "b"}
        ]


class Log:
    """Two partitions, their ends, and the rows of one asking."""

    def __init__(self, *slo_seconds: float) -> None:
        self.brokers = Reported()
        self.facts = LogFacts(cast("Brokers", self.brokers), slo_seconds)
        self.partitions = {A: Partition("A", 1, None, 0), B: Partition("B", 1, None, 2)}
        self.ends = {A: Answer(100, None), B: Answer(200, None)}

    def ask(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.facts.ask(self.partitions, self.ends).to_pylist()
        return rows


def test_a_row_has_what_was_reported() -> None:
    log = Log()
    log.brokers.answers = {
        kafka.LATEST: {A: Answer(90, None)},
        kafka.MAX_TIMESTAMP: {A: Answer(7, None, 1_700_000_000_123), B: Answer(-1, None, -1)},
    }
    a, b = log.ask()
    assert a == {
        "topic": "a",
        "topic_id": "A",
        "partition": 0,
        "last_stable_offset": 90,
        "max_record_timestamp": datetime(2023, 11, 14, 22, 13, 20, 123000, timezone.utc),
        "replicas_offline": 0,
        "retention_seconds": 1.5,
        "retention_bytes": None,  # unlimited
        "cleanup_policy": "compact,delete",
        "config_known": True,
    }
    assert (b["max_record_timestamp"], b["replicas_offline"]) == (None, 2)
    assert (kafka.LATEST, kafka.READ_COMMITTED) in log.brokers.asked
    assert log.facts.offsets_retention_minutes == 1440


@pytest.mark.parametrize("timestamp_ms", [2**62, -5])
def test_a_time_that_no_calendar_has_is_unknown(timestamp_ms: int) -> None:
    log = Log()
    log.brokers.answers = {kafka.MAX_TIMESTAMP: {A: Answer(7, None, timestamp_ms)}}
    assert log.ask()[0]["max_record_timestamp"] is None


def test_a_partition_without_an_end_is_not_waited_for_again() -> None:
    log = Log()
    log.ends[A] = Answer(None, "KafkaTimeoutError")
    log.brokers.answers = {kafka.LATEST: {A: Answer(90, None), B: Answer(190, None)}}
    assert [row["last_stable_offset"] for row in log.ask()] == [None, 190]


def test_a_broker_without_times_of_newest_records_is_asked_once() -> None:
    log = Log()
    log.brokers.answers = {
        kafka.MAX_TIMESTAMP: dict.fromkeys((A, B), Answer(None, "IncompatibleBrokerVersion"))
    }
    assert [row["max_record_timestamp"] for row in log.ask() + log.ask()] == [None] * 4
    assert log.brokers.asked.count((kafka.MAX_TIMESTAMP, 0)) == 1


def test_a_configuration_that_is_denied_is_unknown_and_not_asked_for_in_every_window() -> None:
    log = Log()
    log.brokers.topics = {"b": CONFIG}
    for _ in range(3):
        a, b = log.ask()
        assert (a["config_known"], a["cleanup_policy"], a["retention_seconds"]) == (
            False,
            None,
            None,
        )
        assert (b["config_known"], b["cleanup_policy"]) == (True, "compact,delete")
    assert log.brokers.asked_for_topics() == [("a", "b")]


def test_a_new_or_recreated_topic_is_asked_for_alone() -> None:
    log = Log()
    log.ask()
    log.partitions[A] = Partition("another A", 1, None)
    log.ask()
    assert log.brokers.asked_for_topics() == [("a", "b"), ("a",)]


def test_all_configurations_are_asked_for_again_after_ten_minutes() -> None:
    log = Log()
    log.ask()
    log.facts._configs_at -= window_facts.CONFIG_SECONDS
    log.brokers.topics = {"a": CONFIG | {"retention.ms": "2000"}, "b": CONFIG}
    assert [row["retention_seconds"] for row in log.ask()] == [2.0, 1.5]


def test_configurations_nobody_answered_for_are_asked_for_in_the_next_window() -> None:
    log = Log()
    log.brokers.topics = None
    assert [row["config_known"] for row in log.ask()] == [False, False]
    log.brokers.topics = {"a": CONFIG, "b": CONFIG}
    assert [row["config_known"] for row in log.ask()] == [True, True]


def test_a_probe_gives_the_first_offset_that_is_not_older_for_each_service_level() -> None:
    log = Log(60, 300.5)
    log.brokers.answers = {
        # everything of B is older
        1_000_000 - 60_000: {A: Answer(80, None, 1), B: Answer(-1, None, -1)},
        # newer than its end
        1_000_000 - 300_500: {A: Answer(None, "NOT_LEADER_OR_FOLLOWER"), B: Answer(201, None, 1)},
    }
    rows = log.facts.probe(log.partitions, log.ends, 1_000_000).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (60.0, "a", "A", 0, 80),
        (60.0, "b", "B", 0, 200),
        (300.5, "b", "B", 0, 200),
    ]


def test_without_a_service_level_nothing_is_probed() -> None:
    log = Log()
    assert log.facts.probe(log.partitions, log.ends, 1_000_000).num_rows == 0
    assert log.brokers.asked == []


def test_of_too_many_partitions_each_window_asks_the_next_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(window_facts, "MOST_PARTITIONS", 1)
    log = Log()
    log.brokers.answers = {kafka.LATEST: {A: Answer(90, None), B: Answer(190, None)}}
    stable = [[row["last_stable_offset"] for row in log.ask()] for _ in range(3)]
    assert stable == [[90, None], [None, 190], [90, None]]
