"""Records that Spark's Kafka source cannot read, read by another client.

The source makes microseconds of a record's timestamp before it leaves out any column, so a record
whose timestamp does not fit into them fails every read of its range (KafkaRecordToRowConverter,
SPARK-56243).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition

from laggard.config.security import Security
from laggard.errors import TEMPORARY, LaggardError
from laggard.sources.login.security import Login
from laggard.sources.snapshot import table_of_rows

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
_NAMED = re.compile(
    r"Record at topic (\S+) partition (\d+) offset (\d+) has timestamp value -?\d+ that overflows"
)
_MAX_MS = (2**63 - 1) // 1000
_POLL_MS = 1000


def named_record(text: str) -> tuple[int, int] | None:
    """Return partition and offset of the record that a Kafka source error names.

    The error is of Spark's Kafka source; None without a record.
    """
    match = _NAMED.search(text)
    if not match:
        return None
    return (int(match[2]), int(match[3]))


def read_records(
    servers: Sequence[str],
    topic: str,
    partition: int,
    begin: int,
    end: int,
    timeout_seconds: float,
    security: Security | None = None,
) -> pa.Table:
    """Return committed records from offset `begin` to before `end`.

    A timestamp beyond int64 microseconds is null.

    `timeout_seconds` limits the wait for the next records. They are held in memory: keep the range
    short.
    """
    topic_partition = TopicPartition(topic, partition)
    consumer = KafkaConsumer(
        bootstrap_servers=list(servers),
        group_id=None,
        client_id="laggard",
        enable_auto_commit=False,
        isolation_level="read_committed",
        request_timeout_ms=int(timeout_seconds * 1000),
        **Login(security or Security(), timeout_seconds).settings(),
    )
    rows = []
    try:
        consumer.assign([topic_partition])
        consumer.seek(topic_partition, begin)
        position, limit = begin, time.monotonic() + timeout_seconds
        while position < end:
            for record in consumer.poll(_POLL_MS).get(topic_partition, ()):
                if record.offset < end:
                    known = abs(record.timestamp) <= _MAX_MS
                    at = None
                    if known:
                        at = record.timestamp * 1000
                    rows.append((partition, record.offset, at, record.key, record.value))
            before, position = position, consumer.position(topic_partition)
            if position > before:
                limit = time.monotonic() + timeout_seconds
            elif time.monotonic() > limit:
                raise LaggardError(
                    f"partition {partition} of {topic} cannot be read from offset {position} on",
                    cause=f"its leader gave no record for {timeout_seconds:g} s",
                    fix="none needed if it passes; otherwise: laggard doctor",
                    exit_code=TEMPORARY,
                )
    finally:
        consumer.close(autocommit=False)
    return table_of_rows(SCHEMA, rows)
