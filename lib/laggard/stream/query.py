"""The job: the query, run and started again until told to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from laggard import errors
from laggard.errors import LaggardError, first_line
from laggard.names import NameFilter
from laggard.sources.brokers import Brokers
from laggard.sources.log_ends import LogEnds
from laggard.sources.readiness import OffsetsTopic, count_backlog
from laggard.stream.batch import Batches, BatchOptions
from laggard.stream.diagnose import DiagnoseQuery
from laggard.stream.failures import SlowStartError, with_remedy
from laggard.stream.inputs import read_inputs
from laggard.stream.offsets_topic_events import GrownTopicError
from laggard.stream.starting import prepare, wait_for_offsets_topic
from laggard.tables.delta import Writer
from laggard.tables.lock import writer_lock
from laggard.tables.maintenance import Schedule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from laggard.config import Config

log = logging.getLogger("laggard.job")
MAX_BACKOFF_SECONDS = 60.0
FIRST_TICKS = 5
SLOW_STARTS = 2  # that one run bears
TEMPORARY = (errors.TEMPORARY, errors.UNREACHABLE)


class Job:
    """One run of the query; `stop` may be called from a signal handler."""

    def __init__(self, config: Config, *, once: bool = False) -> None:
        self._config = config
        self._once = once
        self._stopping = Event()
        self._in_batch = Lock()
        self._failure: BaseException | None = None
        self._ticks = 0
        self._progress_said_at = 0.0

    def stop(self) -> None:
        """End after the batch at hand."""
        self._stopping.set()

    def run(self, start_session: Callable[[], SparkSession]) -> int:
        """Run until stopped; gives the exit code."""
        config = self._config
        with writer_lock(config.job.tables):
            topic = wait_for_offsets_topic(config.cluster, self._stopping)
            if topic is None:
                return errors.OK
            identity = prepare(config.job, topic)
            spark = start_session()
            Thread(target=_warm_up, args=(spark,), name="warm-up", daemon=True).start()
            diagnosis = DiagnoseQuery(spark, config, identity.checkpoint_id)
            try:
                batches = Batches(
                    spark,
                    Writer(config.job.tables, identity.checkpoint_id),
                    identity,
                    self._batch_options(topic),
                )
                self._run_queries(spark, topic, batches, diagnosis)
                if self._once:
                    diagnosis.catch_up()
            finally:
                diagnosis.stop()
                spark.stop()
        return errors.OK

    def _batch_options(self, topic: OffsetsTopic) -> BatchOptions:
        cluster, job = self._config.cluster, self._config.job
        return BatchOptions(
            cluster=cluster.name,
            checkpoint=job.checkpoint,
            offsets_topic=cluster.offsets_topic,
            offsets_partitions=topic.partitions,
            window_seconds=job.window_seconds,
            names=NameFilter(cluster.groups, cluster.groups_ignore, cluster.topics, cluster.topics_ignore),
            policies=self._config.policies,
        )

    def _run_queries(
        self, spark: SparkSession, topic: OffsetsTopic, batches: Batches, diagnosis: DiagnoseQuery
    ) -> None:
        """Restart the query inside the process, with back-off, for causes that pass by themselves."""
        spark.dataSource.register(LogEnds)
        schedule = Schedule(self._config)

        def on_published(row: dict[str, Any]) -> None:
            self._say_progress(row)
            schedule.run_due(row["polled_at"])

        batches.on_published = on_published
        backoff, slow_starts = 1.0, 0
        while not self._stopping.is_set():
            published = batches.published
            try:
                if self._has_backlog(batches):
                    log.info("catching up: reading the backlog of %s first", self._config.cluster.offsets_topic)
                    self._run_query(spark, topic, batches, None)
                if not self._stopping.is_set():
                    self._run_query(spark, topic, batches, None if self._once else diagnosis)
                if self._once:
                    return
            except Exception as error:
                cause = self._failure or with_remedy(error)
                self._failure = None
                slow_starts += isinstance(cause, SlowStartError)
                if self._stopping.is_set():
                    return  # cut off on purpose
                passes = not isinstance(cause, LaggardError) or cause.exit_code in TEMPORARY
                is_slow = isinstance(cause, SlowStartError) and slow_starts <= SLOW_STARTS
                is_worth_a_try = is_slow or isinstance(cause, GrownTopicError)
                if not passes or (self._once and not is_worth_a_try):  # who asked for one run wants to know
                    raise cause from error
                if batches.published > published:
                    backoff = 1.0
                log.warning("query stopped: %s; starting again in %.0f s", first_line(cause), backoff)
                self._stopping.wait(backoff)
                backoff = min(backoff * 2, MAX_BACKOFF_SECONDS)
                topic = self._topic_after(cause, topic, batches)

    def _topic_after(self, cause: BaseException, topic: OffsetsTopic, batches: Batches) -> OffsetsTopic:
        """The topic to go on with: looked up again where it has grown."""
        if isinstance(cause, GrownTopicError):
            topic = wait_for_offsets_topic(self._config.cluster, self._stopping) or topic
            batches.expect(topic.partitions)
        return topic

    def _has_backlog(self, batches: Batches) -> bool:
        """Whether more records wait than one tick may read: those are read batch after batch, not tick by tick."""
        cluster = self._config.cluster
        brokers = Brokers(cluster.bootstrap_servers, cluster.request_timeout_seconds)
        try:
            waiting = count_backlog(brokers, cluster.offsets_topic, (batches.last or {}).get("source_to") or {})
        finally:
            brokers.close()
        return waiting > self._config.job.max_records_per_batch

    def _run_query(
        self, spark: SparkSession, topic: OffsetsTopic, batches: Batches, diagnosis: DiagnoseQuery | None
    ) -> None:
        """Read tick by tick with the diagnosis beside it; without one, all there is and no more."""
        config = self._config

        def process(frame: DataFrame, batch_id: int) -> None:
            with self._in_batch:
                if self._stopping.is_set():
                    return_early = LaggardError("stopping", exit_code=errors.TEMPORARY)
                    self._failure = return_early
                    raise return_early
                try:
                    batches.process(frame, batch_id)
                except BaseException as error:
                    self._failure = error
                    raise

        after_poll = batches.last["poll_id"] if batches.last else 0
        writer = read_inputs(spark, config, topic, after_poll).writeStream.queryName("laggard").foreachBatch(process)
        writer = writer.option("checkpointLocation", config.job.checkpoint)
        writer = (
            writer.trigger(availableNow=True)
            if diagnosis is None
            else writer.trigger(processingTime=f"{config.job.tick_seconds} seconds")
        )
        query = writer.start()
        while not self._stopping.is_set():
            if query.awaitTermination(1):
                return
            if diagnosis is not None and batches.last is not None:
                diagnosis.keep_running()
        self._stop_between_batches(query)

    def _stop_between_batches(self, query: StreamingQuery) -> None:
        acquired = self._in_batch.acquire(timeout=self._config.job.stop_seconds / 2)
        try:
            query.stop()
        except Exception as error:  # noqa: BLE001 - killing instead of stopping costs repeated work only
            log.info("the query was cut off while stopping: %s", first_line(error))
        finally:
            if acquired:
                self._in_batch.release()

    def _say_progress(self, row: dict[str, Any]) -> None:
        """A line for each batch of catching up and each of the first ticks, then one a minute."""
        is_tick = row["kind"] == "tick"
        self._ticks += is_tick
        if is_tick and self._ticks > FIRST_TICKS and time.monotonic() - self._progress_said_at < 60:
            return
        self._progress_said_at = time.monotonic()
        seconds = sum(row["durations_seconds"].values())
        behind = sum((row["source_last_stable_offset"] or {}).values()) - sum(row["source_to"].values())
        log.info(
            "%s %d: %d records read, %s, %.1f s",
            row["kind"],
            row["batch_id"],
            row["records"],
            "caught up" if is_tick else f"{max(behind, 0):,} records behind",
            seconds,
        )


def _warm_up(spark: SparkSession) -> None:
    """Let the Python workers load the stages' modules while the query is still being set up: two seconds of a start."""

    def load(batches: Iterator[Any]) -> Iterator[Any]:
        from laggard.stream import advance_stage  # noqa: F401 - the import is what is wanted

        return batches

    with suppress(Exception):  # the query itself says what is wrong
        cores = spark.sparkContext.defaultParallelism
        spark.range(0, cores, 1, cores).mapInArrow(load, "id bigint").collect()
