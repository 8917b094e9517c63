"""One batch of Spark's source, as the job would read it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from laggard.doctor.result import Result
from laggard.errors import TEMPORARY, UNREACHABLE, LaggardError
from laggard.sources.offsets_topic import check_resolved, positions_of, read_offsets_topic

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from laggard.doctor.cluster import Cluster

TRIAL_SECONDS = 120
MOST_RECORDS = 1000


def check_trial(cluster: Cluster) -> Iterable[Result]:
    """The batch must resolve every partition and end."""
    from laggard.stream.session import start_session

    config, partitions = cluster.config.cluster, len(cluster.topic["partitions"])
    if not partitions:
        yield Result("warn", "trial query", "not tried, as the topic is not there", 'first mend "offsets topic"')
        return
    spark = start_session(cluster.config.job.master, cluster.config.job.spark)
    try:
        with tempfile.TemporaryDirectory() as folder:
            frame = read_offsets_topic(spark, config, partitions, MOST_RECORDS)
            query = frame.writeStream.format("noop").option("checkpointLocation", folder).start()
            try:
                records = _await_batch(query)
                wal = Path(folder, "offsets", "0").read_text(encoding="utf-8")
            finally:
                query.stop()
    finally:
        spark.stop()
    check_resolved(positions_of(wal, config.offsets_topic), partitions, config.offsets_topic)
    fact = (
        f"Spark resolved all {partitions} partitions and read {records} records in one batch of {MOST_RECORDS} at most"
    )
    yield Result("ok", "trial query", fact)


def _await_batch(query: StreamingQuery) -> int:
    """Records of the first batch, once it has ended: one that is only planned has not read anything."""
    deadline = time.monotonic() + TRIAL_SECONDS
    while time.monotonic() < deadline:
        if progress := query.recentProgress:
            return int(progress[0]["numInputRows"])
        if (error := query.exception()) is not None:
            cause = str(error).strip().partition("\n")[0]
            fix = "first mend the failures above; if there are none, look at the brokers' logs"
            raise LaggardError("the trial query failed", cause=cause, fix=fix, exit_code=UNREACHABLE)
        time.sleep(0.2)
    raise LaggardError(
        "the trial query ended no batch",
        cause=f"{TRIAL_SECONDS} s have passed",
        fix="check the brokers' load",
        exit_code=TEMPORARY,
    )
