"""The stream of polls of the brokers, each with how far to read the offsets topic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from laggard.config.sections import KAFKAS_OWN
from laggard.sources.log_ends import options_to_json
from laggard.sources.offsets_topic import Positions
from laggard.sources.poll import PollOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.config import Config
    from laggard.config.sections import Cluster

ASK_SHARE = 0.5  # of a tick, for asking groups for their offsets; who is left waits for the next one


def stream_polls(
    spark: SparkSession, config: Config, after_poll: int, positions: Positions, known_groups: Sequence[str] = ()
) -> DataFrame:
    """One row per poll. A new checkpoint begins after this poll and at these positions; an older one has its own.

    `known_groups`: those that have rows.
    """
    cluster, job = config.cluster, config.job
    options = PollOptions(
        bootstrap_servers=tuple(cluster.bootstrap_servers),
        offsets_topic=cluster.offsets_topic,
        topics=tuple(cluster.topics),
        topics_ignore=tuple(cluster.topics_ignore),
        request_timeout_seconds=cluster.request_timeout_seconds,
        metadata_seconds=cluster.metadata_seconds,
        state_poll_seconds=cluster.state_poll_seconds,
        reconcile_seconds=reconcile_seconds(cluster),
        window_seconds=job.window_seconds,
        slo_seconds=config.policies.slo_seconds(cluster.name),
        reads_committed=config.policies.reads_committed(cluster.name),
        security=cluster.security,
        ask_groups_seconds=job.tick_seconds * ASK_SHARE if cluster.is_admin else 0,
        groups=tuple(cluster.groups),
        groups_ignore=tuple(cluster.groups_ignore),
        known_groups=tuple(known_groups),
    )
    polls = spark.readStream.format("log_ends").option("poll", options_to_json(options))
    polls = polls.option("checkpoint", job.checkpoint).option("most_records", str(job.max_records_per_batch))
    return polls.option("after_poll", str(after_poll)).option("positions", json.dumps(positions)).load()


def reconcile_seconds(cluster: Cluster) -> int:
    """Seconds between two looks for groups that ended unseen; 0 for a copied topic: no coordinator has its groups."""
    return cluster.reconcile_hours * 3600 if cluster.offsets_topic == KAFKAS_OWN else 0
