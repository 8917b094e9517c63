"""Records whose timestamp Spark's Kafka source cannot hold: it names them, and they are read all
the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from laggard.demo.broker import Broker
from laggard.errors import TEMPORARY, LaggardError
from laggard.sources.odd_records import named_record, read_records
from laggard.stream.job.session import start_session

pytestmark = [pytest.mark.broker, pytest.mark.full]

TOPIC = "shadow-offsets"
ANY_TIME = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}
LARGEST = 9_223_372_036_854_775  # milliseconds whose microseconds are an int64
KNOWN = {1: 1000, -1: -1000, LARGEST: LARGEST * 1000}
ODD = (LARGEST + 1, 2**62, 2**63 - 1, -LARGEST - 1, -(2**63))


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics(
            [NewTopic(TOPIC, 2, 1, topic_configs={**ANY_TIME, "retention.ms": "-1"})]
        )
        admin.close()
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def end(servers: str) -> int:
    """The log end, behind two transactions: one that was aborted and, last, one
    that was committed.
    """
    producer = KafkaProducer(bootstrap_servers=servers)
    for timestamp_ms in (*KNOWN, *ODD):
        producer.send(
            TOPIC, key=b"k", value=b"%d" % timestamp_ms, partition=0, timestamp_ms=timestamp_ms
        )
        producer.flush(30)  # a batch each, as within one times are differences
    producer.close()
    writer = KafkaProducer(bootstrap_servers=servers, transactional_id="w")
    writer.init_transactions()
    for is_kept in (False, True):
        writer.begin_transaction()
        writer.send(
            TOPIC, value=b"kept" if is_kept else b"aborted", partition=0, timestamp_ms=1
        ).get(30)
        if is_kept:
            writer.commit_transaction()
        else:
            writer.abort_transaction()
    writer.close()
    return len(KNOWN) + len(ODD) + 4  # each transaction is a record and a marker


def test_every_committed_record_is_read_and_an_odd_time_is_null(servers: str, end: int) -> None:
    rows = read_records([servers], TOPIC, 0, 0, end, 20)
    times = rows["timestamp"].cast("int64").to_pylist()
    assert times == [*KNOWN.values(), *[None] * len(ODD), 1000]
    assert rows["value"].to_pylist() == [b"%d" % each for each in (*KNOWN, *ODD)] + [b"kept"]
    assert rows["offset"].to_pylist() == [*range(len(KNOWN) + len(ODD)), end - 2]
    assert set(rows["partition"].to_pylist()) == {0}


def test_a_range_may_begin_and_end_anywhere(servers: str, end: int) -> None:
    for begin in range(end):
        for last in (begin, begin + 1, end):
            found = read_records([servers], TOPIC, 0, begin, last, 20)["offset"].to_pylist()
            whole = [*range(len(KNOWN) + len(ODD)), end - 2]
            assert found == [offset for offset in whole if begin <= offset < last]


def test_a_range_that_is_not_there_ends_as_a_failure_that_may_pass(servers: str, end: int) -> None:
    with pytest.raises(LaggardError, match="cannot be read from offset") as caught:
        read_records([servers], TOPIC, 0, end - 1, end + 5, 2)
    assert caught.value.exit_code == TEMPORARY


@pytest.mark.spark
def test_spark_names_the_record_whatever_columns_are_read(servers: str, end: int) -> None:
    spark = start_session("local[1]", {})
    try:
        read = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
        read = read.option("assign", json.dumps({TOPIC: [0]}))
        for offset in range(len(KNOWN), len(KNOWN) + len(ODD)):
            options = {name: json.dumps({TOPIC: {"0": at}}) for name, at in (
                ("startingOffsets", offset), ("endingOffsets", end)
            )}  # fmt: skip
            with pytest.raises(Exception, match="overflows") as caught:
                read.options(**options).load().select("offset").collect()
            assert named_record(str(caught.value)) == (0, offset)
    finally:
        spark.stop()
