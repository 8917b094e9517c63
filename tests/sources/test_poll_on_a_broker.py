"""A poll of a real broker: what an open transaction holds back, configurations, times, and probes
of service levels.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from laggard.demo.broker import Broker
from laggard.sources.poll import Poller, PollOptions
from laggard.sources.snapshot import Snapshot

pytestmark = [pytest.mark.broker, pytest.mark.full]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SLO = 3600.0
OLD_MS = round((time.time() - 2 * SLO) * 1000)
Rows = dict[tuple[str, int], dict[str, Any]]
TOPICS = {
    "held": {},
    "mixed": {
        "retention.ms": "3600000",
        "retention.bytes": "1000000",
        "cleanup.policy": "compact,delete",
    },
    "endless": {"retention.ms": "-1"},
}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker(properties={"offsets.retention.minutes": "4321"}) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics(
            [NewTopic(name, 2, 1, topic_configs=configs) for name, configs in TOPICS.items()]
        )
        admin.close()
        yield broker.bootstrap_servers


@pytest.fixture
def producer(servers: str) -> Iterator[KafkaProducer]:
    producer = KafkaProducer(bootstrap_servers=servers)
    yield producer
    producer.close()


def closing_poll(servers: str) -> Snapshot:
    """The poll after the end of a window in which others were."""
    poller = Poller(
        PollOptions((servers,), window_seconds=1, slo_seconds=(SLO,), reads_committed=True)
    )
    try:
        for poll_id in range(1, 100):
            snapshot = poller.poll(poll_id)
            if snapshot.closed.num_rows and snapshot.closed["config_known"][0].as_py():
                return snapshot
            time.sleep(0.2)
    finally:
        poller.close()
    pytest.fail("no window closed")


def rows_of(snapshot: Snapshot) -> Rows:
    return {(row["topic"], row["partition"]): row for row in snapshot.closed.to_pylist()}


def test_an_open_transaction_holds_the_last_stable_offset_back(
    servers: str, producer: KafkaProducer
) -> None:
    producer.send("held", b"x", partition=0).get(10)
    holder = KafkaProducer(bootstrap_servers=servers, transactional_id="holder")
    holder.init_transactions()
    holder.begin_transaction()
    holder.send("held", b"x", partition=0).get(10)
    producer.send("held", b"x", partition=0).get(10)
    snapshot = closing_poll(servers)
    position = next(
        row
        for row in snapshot.positions.to_pylist()
        if (row["topic"], row["partition"]) == ("held", 0)
    )
    for row in (rows_of(snapshot)["held", 0], position):
        assert (row["log_end_offset"], row["last_stable_offset"]) == (3, 1)
    holder.commit_transaction()
    holder.close()
    row = rows_of(closing_poll(servers))["held", 0]
    # the commit marker is a record too
    assert (row["log_end_offset"], row["last_stable_offset"]) == (4, 4)


def test_configurations_are_known(servers: str) -> None:
    snapshot = closing_poll(servers)
    names = (
        "retention_seconds",
        "retention_bytes",
        "cleanup_policy",
        "config_known",
        "replicas_offline",
    )
    found = {
        topic: tuple(row[name] for name in names) for (topic, _), row in rows_of(snapshot).items()
    }
    assert found == {
        "held": (604_800.0, None, "delete", True, 0),
        "mixed": (3600.0, 1_000_000, "compact,delete", True, 0),
        "endless": (None, None, "delete", True, 0),
    }
    assert snapshot.offsets_retention_minutes == 4321
    assert snapshot.failures == []


def test_times_and_probes_are_those_of_the_records(servers: str, producer: KafkaProducer) -> None:
    newer_ms = round(time.time() * 1000) - 5000
    for stamp in (OLD_MS, OLD_MS + 1, newer_ms, newer_ms - 7):
        producer.send("endless", b"x", partition=1, timestamp_ms=stamp).get(10)
    producer.send("endless", b"x", partition=0, timestamp_ms=OLD_MS).get(10)
    snapshot = closing_poll(servers)
    newest = {
        key: row["max_record_timestamp"]
        for key, row in rows_of(snapshot).items()
        if key[0] == "endless"
    }
    assert newest == {
        ("endless", number): EPOCH + timedelta(milliseconds=stamp)
        for number, stamp in ((0, OLD_MS), (1, newer_ms))
    }
    probes = {
        (row["topic"], row["partition"]): row["offset"] for row in snapshot.probes.to_pylist()
    }
    assert probes["endless", 1] == 2  # the first record of the newest hour
    assert probes["endless", 0] == 1  # every record is older: the log end
    assert probes["mixed", 0] == 0  # no record at all
    assert set(snapshot.probes["slo_seconds"].to_pylist()) == {SLO}
