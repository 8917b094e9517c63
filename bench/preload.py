"""Commit records by the million on a topic that stands in for the offsets topic."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 50
GROUPS, GROUP_PARTITIONS = 500, 10  # 5,000 keys, committed over and over, as real groups do
TASKS = 4  # each writes groups of its own, so that the offsets of a key only grow


def preload(spark: SparkSession, bootstrap: str, topic: str, records: int) -> None:
    """Write `records` commits of value version 3 with growing offsets.

    All belong to one group and lie in one partition of the topic.
    """
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1), NewTopic("orders", GROUP_PARTITIONS, 1)])
    admin.close()
    rows = spark.range(0, records, 1, TASKS).mapInArrow(
        _commits(records // TASKS), "partition int, key binary, value binary"
    )
    (
        rows.write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.linger.ms", "20")
        .option("kafka.batch.size", "262144")
        .option("topic", topic)
        .mode("append")
        .save()
    )


def _commits(share: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function for `mapInArrow` that makes records of numbers.

    Each task gets `share` numbers.
    """

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        keys = {}
        for group in range(GROUPS):
            name = f"group-{group:04d}".encode()
            for part in range(GROUP_PARTITIONS):
                keys[group, part] = struct.pack(
                    f">hh{len(name)}sh6si", 1, len(name), name, 6, b"orders", part
                )
        own = GROUPS // TASKS
        for batch in batches:
            numbers = [divmod(number, share) for number in batch["id"].to_pylist()]
            places = [
                (turn % own * TASKS + task % TASKS, turn // own % GROUP_PARTITIONS)
                for task, turn in numbers
            ]
            values = [
                struct.pack(">hqihq", 3, turn, 0, 0, 1_700_000_000_000 + turn)
                for _, turn in numbers
            ]
            yield pa.record_batch(
                {
                    "partition": pa.array([group % PARTITIONS for group, _ in places], pa.int32()),
                    "key": pa.array([keys[place] for place in places], pa.binary()),
                    "value": pa.array(values, pa.binary()),
                }
            )

    return make
