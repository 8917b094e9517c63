"""Source A: every partition of the offsets topic through Spark's Kafka source, and proof that it reads them all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from laggard.errors import INTERNAL, LaggardError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEPRECATED_OFFSET_READER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
_EARLIEST = -2  # in Spark's startingOffsets
READ_OPTIONS = {
    "kafka.isolation.level": "read_committed",  # an aborted transaction's commit is not progress
    # a batch reads only what is there: a broker that holds a fetch back for more to come costs half a second each
    "kafka.fetch.max.wait.ms": "20",
    "failOnDataLoss": "false",  # compaction and retention are gaps, not failures
}


def read_offsets_topic(
    spark: SparkSession,
    bootstrap_servers: Sequence[str],
    topic: str,
    partitions: int,
    max_records_per_batch: int,
    starts_at: Mapping[int, int] | None = None,
) -> DataFrame:
    """One row per record: partition, offset, timestamp, key, value.

    `assign` joins no consumer group on the watched cluster. With Spark 4.2's default offset reader the source
    resolves zero partitions of an internal topic and says nothing, so the job sets the other one.
    """
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", ",".join(bootstrap_servers))
        .option("assign", json.dumps({topic: list(range(partitions))}))
        .option("startingOffsets", _starting_offsets(topic, partitions, starts_at))
        .options(**READ_OPTIONS)
        .option("fetchOffset.numRetries", "10")
        .option("fetchOffset.retryIntervalMs", "500")
        .option("maxOffsetsPerTrigger", str(max_records_per_batch))
        .load()
        .select("partition", "offset", "timestamp", "key", "value")
    )


def _starting_offsets(topic: str, partitions: int, starts_at: Mapping[int, int] | None) -> str:
    if starts_at is None:
        return "earliest"  # the last commits of idle groups are old
    return json.dumps({topic: {str(number): starts_at.get(number, _EARLIEST) for number in range(partitions)}})


def positions_of(wal_text: str, topic: str) -> dict[int, int]:
    """Offsets partition to next offset, from the text of a batch in Spark's write-ahead log."""
    for line in wal_text.splitlines():
        if line.startswith("{"):
            parsed = json.loads(line)
            if topic in parsed:
                return {int(partition): int(offset) for partition, offset in parsed[topic].items()}
    return {}


def check_resolved(positions: Mapping[int, int], partitions: int, topic: str) -> None:
    """Fail loudly unless the batch reads exactly the assigned partitions: fewer would be silent blindness."""
    expected, resolved = set(range(partitions)), set(positions)
    if resolved != expected:
        missing = sorted(expected - resolved)
        raise LaggardError(
            f"source_resolved_wrong_partitions: Spark reads {len(resolved)} of {partitions} partitions of {topic}",
            cause=f"missing partitions {missing[:10]}{'…' if len(missing) > 10 else ''}; "
            f"{DEPRECATED_OFFSET_READER} is off or no longer works in this Spark",
            fix=f"remove {DEPRECATED_OFFSET_READER} from your Spark defaults; run: laggard doctor",
            exit_code=INTERNAL,
        )
