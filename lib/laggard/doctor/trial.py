"""One batch of the offsets topic, read as the job reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from laggard.doctor.result import Result
from laggard.failures import classify
from laggard.sources.offsets_topic import OffsetsSource, begin_positions, next_positions, unanswered
from laggard.sources.poll import Poller, PollOptions

if TYPE_CHECKING:
    from laggard.doctor.cluster import Cluster

MOST_RECORDS = 1000


def check_trial(cluster: Cluster) -> Iterable[Result]:
    """Check that Spark sees every partition whose leader answers, and reads a batch to its end."""
    from laggard.stream.job.session import start_session

    config, partitions = cluster.config.cluster, len(cluster.topic["partitions"])
    if not partitions:
        yield Result(
            "warn",
            "trial query",
            "not tried, as the topic is not there",
            'first mend "offsets topic"',
        )
        return
    source = OffsetsSource.of(config)
    servers, seconds = source.bootstrap_servers, source.request_timeout_seconds
    poller = Poller(PollOptions(servers, source.topic, (), (), seconds, security=source.security))
    try:
        snapshot = poller.poll(1)
    finally:
        poller.close()
    parts = snapshot.offsets_partitions
    ends = next_positions({}, parts, MOST_RECORDS)
    spark = start_session(cluster.config.job.master, cluster.config.job.spark, config.security)
    try:
        rows = source.read(spark, begin_positions({}, ends, parts), ends, snapshot).select("offset")
        source.plan(rows, snapshot)
        records = sum(row.offset is not None for row in rows.collect())
    except Exception as error:
        raise classify(error) from error
    finally:
        spark.stop()
    if silent := unanswered(parts):
        fact = (
            f"the leaders of {len(silent)} of {partitions} partitions did not answer: "
            f"{sorted(silent)[:10]}"
        )
        yield Result("warn", "trial query", fact, "look at the brokers that lead them")
    fact = f"Spark read {records} records of {partitions - len(silent)} partitions in one batch"
    yield Result("ok", "trial query", fact)
