"""The Spark session of the job, with the settings the job depends on fixed here.

They are not left to Spark's defaults.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any

from laggard.conf import PACKAGE, conf_file
from laggard.config.security import Security
from laggard.jars import spark_jars
from laggard.sources.login.spark_security import jvm_properties
from laggard.sources.offsets_topic import DEPRECATED_OFFSET_READER
from laggard.stream.job.jvm import signals_ignored_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Spark 4.2 reads nothing at all from an internal topic with its default offset reader, and says
    # nothing
    DEPRECATED_OFFSET_READER: "true",
    # without "kafka": Spark's older batch reader turns each record into objects and back, a third
    # slower
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    "spark.sql.session.timeZone": "UTC",
    # a plan of a read asks Kafka and runs nothing (sources/read_plan.py); with it, a plan would
    # also decode the batch
    "spark.sql.adaptive.enabled": "false",
    # a kill in the first batch leaves a temporary file, and Spark would refuse every later start;
    # we check it ourselves
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",  # the poll is the clock
    # status tables keep removed files one hour
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.streaming.numRecentProgressUpdates": "10",  # each repeats the poll
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.stopTimeout": "15000",
    # seconds; 15 are few for a worker on a busy machine
    "spark.python.authenticate.socketTimeout": "600",
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
    # Spark measures the silence of executors by the wall clock: after a step forward, or a stop, of
    # more than 2 minutes it could remove the only one, which is in the driver, and the JVM ended
    # itself 10 minutes later
    "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
    # the default one starts a chmod process for every file it makes
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
    ),
}
_LOCAL_DRIVER_MEMORY = "2g"


def start_session(
    master: str, extra: Mapping[str, str], security: Security | None = None
) -> SparkSession:
    """Start a session with the job's jars; under spark-submit use its master and jars."""
    properties = jvm_properties(security or Security())
    # workers otherwise take python3 from the path
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    if is_submitted():
        _end_with(os.getppid())
        given = _given()
        settings = submitted_settings(given, extra)
    else:
        given, settings = {}, own_settings(master, extra)
    settings |= _executor_properties(given | settings, properties)
    builder = SparkSession.builder.appName("laggard")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with signals_ignored_below():
        spark = builder.getOrCreate()
    for name, value in properties.items():
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
        jvm.java.lang.System.setProperty(name, value)
    _show_zip_to_source(spark)
    if not spark.sparkContext.getConf().contains("spark.sql.shuffle.partitions"):
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    return spark


def own_settings(master: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Return settings of a session whose JVM this process starts itself."""
    jvm = {
        "spark.master": master,
        "spark.jars": ",".join(str(jar) for jar in spark_jars()),
        "spark.driver.memory": _LOCAL_DRIVER_MEMORY,
        "spark.executorEnv.PYTHONPATH": str(PACKAGE / "stream" / "worker_path"),
        "spark.driver.extraJavaOptions": (
            "-XX:+UseParallelGC -Xss4m "
            f"-Dlog4j2.configurationFile={conf_file('log4j2.properties').as_uri()}"
        ),
    }
    return DEFAULTS | jvm | _local_settings(master) | dict(extra) | FIXED


def submitted_settings(given: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Return settings to add to those of spark-submit; only necessary ones override them.

    A necessary setting is one that the job depends on.
    """
    # the master of the configuration says nothing here: executors elsewhere must find the driver
    ours = DEFAULTS | _local_settings(given["spark.master"])
    return {name: value for name, value in ours.items() if name not in given} | dict(extra) | FIXED


def _executor_properties(
    settings: Mapping[str, str], properties: Mapping[str, str]
) -> dict[str, str]:
    """Return system properties for remote executors' JVMs, after those already set."""
    name = "spark.executor.extraJavaOptions"
    options = [settings.get(name, ""), *(f"-D{key}={value}" for key, value in properties.items())]
    return {name: " ".join(options).strip()}


def _local_settings(master: str) -> dict[str, str]:
    if master.startswith("local"):
        return _LOCAL
    return {}


def is_submitted() -> bool:
    """Return True if spark-submit started the JVM before us."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _given() -> dict[str, str]:
    """Return settings given to spark-submit by options, --conf and spark-defaults.conf."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - without the JVM SparkConf is empty
    return dict(SparkConf().getAll())


def _show_zip_to_source(spark: SparkSession) -> None:
    """Let the driver's own Python worker, which polls, import laggard from the zip of --py-files.

    Spark 4.2 tells it to look for the zip in a folder "streaming_job" that nobody fills. Executors
    find theirs, and for them this is one more path that does not exist.
    """
    library = PACKAGE.parent
    if library.is_file():
        environment = spark.sparkContext.environment
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{known}{os.pathsep}{library}" if known else str(library)


def _end_with(parent: int) -> None:
    """Stop this process once spark-submit's JVM has ended: a signal reaches only the JVM."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    Thread(target=watch, name="end with spark-submit", daemon=True).start()
