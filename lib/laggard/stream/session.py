"""The Spark session of the job: settings the job depends on are fixed here, not left to Spark's defaults."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from laggard.conf import conf_file
from laggard.jars import spark_jars
from laggard.sources.offsets_topic import DEPRECATED_OFFSET_READER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark 4.2 reads nothing at all from an internal topic with its default offset reader, and says nothing
    DEPRECATED_OFFSET_READER: "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # the poll is the clock
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",  # status tables keep removed files one hour
}
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # replanning costs more than it saves on frames this small
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.streaming.numRecentProgressUpdates": "10",  # each repeats the poll
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.stopTimeout": "15000",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.autoBroadcastJoinThreshold": "32m",
    "spark.sql.parquet.compression.codec": "zstd",
}
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_LOCAL = {
    "spark.driver.host": "127.0.0.1",  # no open ports
    "spark.driver.bindAddress": "127.0.0.1",
    # the default one starts a chmod process for every file it makes
    "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
}
_LOCAL_DRIVER_MEMORY = "2g"


def start_session(master: str, extra: Mapping[str, str]) -> SparkSession:
    """A session with the job's jars; under spark-submit it takes the master it was given."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers otherwise take python3 from the path
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("laggard")
    settings = dict(DEFAULTS)
    if not _is_submitted():
        settings["spark.master"] = master
        settings["spark.jars"] = ",".join(str(jar) for jar in spark_jars())
        settings["spark.driver.memory"] = _LOCAL_DRIVER_MEMORY
        settings["spark.driver.extraJavaOptions"] = (
            f"-XX:+UseParallelGC -Xss4m -Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
        )
    if master.startswith("local"):
        settings |= _LOCAL
    settings |= dict(extra) | FIXED
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if "spark.sql.shuffle.partitions" not in extra:
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    return spark


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit started the JVM before us
