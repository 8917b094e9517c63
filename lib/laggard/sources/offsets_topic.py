"""Source A: every partition of the offsets topic through Spark's Kafka source, and proof that it reads them all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from laggard.errors import INTERNAL, LaggardError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.config.sections import Cluster

DEPRECATED_OFFSET_READER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
_EARLIEST = -2  # in Spark's startingOffsets
READ_OPTIONS = {
    "kafka.isolation.level": "read_committed",  # an aborted transaction's commit is not progress
    # a batch reads only what is there: a broker that holds a fetch back for more to come costs half a second each
    "kafka.fetch.max.wait.ms": "20",
    "failOnDataLoss": "false",  # compaction and retention are gaps, not failures
    # Spark waits for every partition: while a broker does not answer, no batch ends until others lead its partitions.
    # Each consumer then has to find that out. Kafka's defaults let it wait 30 s, ask the same broker for metadata, and
    # reconnect to it before it can ask another one, on and on.
    "kafka.metadata.max.age.ms": "1000",
    "kafka.retry.backoff.ms": "100",
    "kafka.retry.backoff.max.ms": "200",
    "kafka.reconnect.backoff.ms": "2000",  # more than the wait before metadata is asked again, so of another broker
    "kafka.reconnect.backoff.max.ms": "2000",
}
REQUEST_SHARE = 0.25  # of the time limit of a poll: the consumers of one task wait one after the other
LEAST_REQUEST_SECONDS = 2.5
API_SECONDS = 30  # longer than a controller needs to miss a broker: 9 s by default, 18 s with ZooKeeper


def read_offsets_topic(
    spark: SparkSession,
    cluster: Cluster,
    partitions: int,
    max_records_per_batch: int,
    starts_at: Mapping[int, int] | None = None,
) -> DataFrame:
    """One row per record: partition, offset, timestamp, key, value.

    `assign` joins no consumer group on the watched cluster. With Spark 4.2's default offset reader the source
    resolves zero partitions of an internal topic and says nothing, so the job sets the other one.
    """
    request_ms = str(round(1000 * max(LEAST_REQUEST_SECONDS, REQUEST_SHARE * cluster.request_timeout_seconds)))
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", ",".join(cluster.bootstrap_servers))
        .option("assign", json.dumps({cluster.offsets_topic: list(range(partitions))}))
        .option("startingOffsets", _starting_offsets(cluster.offsets_topic, partitions, starts_at))
        .options(**READ_OPTIONS)
        .option("kafka.request.timeout.ms", request_ms)
        .option("kafka.socket.connection.setup.timeout.ms", request_ms)
        .option("kafka.socket.connection.setup.timeout.max.ms", request_ms)
        .option("kafka.default.api.timeout.ms", str(max(API_SECONDS, cluster.request_timeout_seconds) * 1000))
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
