"""What the query reads: polls of the brokers and records of the offsets topic, as one stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from laggard.sources.log_ends import options_to_json
from laggard.sources.offsets_topic import read_offsets_topic
from laggard.sources.poll import PollOptions
from laggard.sources.readiness import OffsetsTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.config import Config


def read_inputs(
    spark: SparkSession,
    config: Config,
    topic: OffsetsTopic,
    after_poll: int,
    starts_at: Mapping[int, int] | None = None,
) -> DataFrame:
    """Both sources as one stream; the poll first, as Spark then polls before it fixes what records to read.

    `starts_at` is where a new checkpoint begins (next offset by partition); an older one knows its own positions.
    """
    from pyspark.sql import functions as F

    cluster, job = config.cluster, config.job
    polls = spark.readStream.format("log_ends").option("after_poll", str(after_poll))
    polls = polls.option("checkpoint", job.checkpoint)
    polls = polls.option(
        "poll",
        options_to_json(
            PollOptions(
                bootstrap_servers=tuple(cluster.bootstrap_servers),
                offsets_topic=cluster.offsets_topic,
                topics=tuple(cluster.topics),
                topics_ignore=tuple(cluster.topics_ignore),
                request_timeout_seconds=cluster.request_timeout_seconds,
                metadata_seconds=cluster.metadata_seconds,
                state_poll_seconds=cluster.state_poll_seconds,
                window_seconds=job.window_seconds,
                slo_seconds=config.policies.slo_seconds(cluster.name),
                reads_committed=config.policies.reads_committed(cluster.name),
            )
        ),
    )
    records = read_offsets_topic(spark, cluster, topic.partitions, job.max_records_per_batch, starts_at)
    types = dict(records.dtypes)
    # a poll's row has no partition: it makes the batch, the poll itself is in the write-ahead log
    padded = polls.load().select(*(F.lit(None).cast(types[name]).alias(name) for name in records.columns))
    return padded.unionByName(records)
