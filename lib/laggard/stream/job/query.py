"""The job: the query, run and started again until it is stopped."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from laggard import errors
from laggard.errors import LaggardError, first_line
from laggard.failures import SlowStartError, classify
from laggard.files import locate
from laggard.names import NameFilter
from laggard.sources.brokers import Brokers
from laggard.sources.clock import read_clock
from laggard.sources.log_ends import MOST_RECORDS, LogEnds, stream_polls
from laggard.sources.login.security import check_files, warnings
from laggard.sources.offsets_topic import OffsetsSource
from laggard.sources.readiness import count_backlog
from laggard.stream.evaluation.diagnose import DiagnoseQuery
from laggard.stream.job.batch import Batches, BatchOptions
from laggard.stream.job.heartbeat import Heartbeat, idle_limit
from laggard.stream.job.jvm import Session, jvm_failure, kill_below, session_of, silence
from laggard.stream.job.query_stop import QueryStop
from laggard.stream.job.starting import Retries, look_up, prepare, wait_for_offsets_topic
from laggard.stream.tick.offsets_topic_events import RebuildError, check_same_topic
from laggard.tables.delta import Writer
from laggard.tables.lock import claim_tables, writer_lock
from laggard.tables.upkeep.schedule import Schedule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from laggard.config import Config
    from laggard.tables.lease import Lease

log = logging.getLogger("laggard.job")
FIRST_TICKS = 5
STUCK_SECONDS = 900  # without any progress, the job ends by itself
STOP_SECONDS = 20  # longest wait for the batch at hand; the images are given 10 s more
# before these are over, what is left is killed, which takes a second at load 35
CUT_SECONDS = 3.0


class Job:
    """One run of the query; `stop` may be called from a signal handler."""

    def __init__(self, config: Config, *, once: bool = False) -> None:
        self._config = config
        self._once = once
        self._stopping = Event()
        self._stop = QueryStop()
        self._lease: Lease | None = None
        self._failure: BaseException | None = None
        self._exit_code = errors.OK
        self._stop_by: float | None = None
        # Spark's JVM: nothing is written meanwhile, so nothing is waited for
        self._is_starting = False
        self._retries = Retries()
        idle_seconds = idle_limit(config.job.tick_seconds, config.cluster.request_timeout_seconds)
        self._heartbeat = Heartbeat(config.job.heartbeat_file, idle_seconds, STUCK_SECONDS)
        self._logged = ""
        self._ticks = 0
        self._progress_said_at = 0.0

    def stop(self, exit_code: int = errors.OK) -> None:
        """End after the batch at hand, with this exit code; the first one counts."""
        # a second signal may come in the middle of the first; it must not meet the lock of the
        # event
        if self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_SECONDS - CUT_SECONDS
            self._exit_code = exit_code
            self._stopping.set()

    def is_overdue(self) -> bool:
        """Return True if the query should have ended by now."""
        return self._stop_by is not None and (self._is_starting or time.monotonic() > self._stop_by)

    def is_stuck(self) -> bool:
        """Return True if there was no progress for STUCK_SECONDS.

        The job then ends with 75. Call it often.
        """
        if self._stop_by is not None or not (activity := self._heartbeat.stuck()):
            return False
        log.error("stuck: %s, more than %d s", activity, STUCK_SECONDS)
        self._exit_code = errors.TEMPORARY
        return True

    def cut_off(self) -> int:
        """Kill what runs below, as it did not end by itself; gives the exit code."""
        if not self._is_starting:
            why = "Spark or the diagnosis did not end"
            if self._stop.has_batch:
                why = "the batch at hand is repeated"
            log.warning("cut off, to end within %d s: %s", STOP_SECONDS, why)
        kill_below()
        if self._lease is not None:  # a store that does not answer must not hold up the end
            back = Thread(target=self._lease.give_back, daemon=True)
            back.start()
            back.join(CUT_SECONDS / 2)
        return self._exit_code

    def run(self, start_session: Callable[[], SparkSession]) -> int:
        """Run until stopped; gives the exit code. Every failure it raises is a LaggardError."""
        # also replaces the file that an earlier process left
        self._heartbeat.idle("starting", wait_seconds=self._config.storage.lease_seconds)
        try:
            check_files(self._config.cluster.security)
            for sentence in warnings(self._config.cluster.security):
                log.warning("cluster.security: %s", sentence)
            root, is_stopping = self._config.job.tables, self._stopping.is_set
            with (
                writer_lock(root, is_stopping) as self._lease,
                session_of(start_session) as session,
            ):
                claim_tables(root, self._lease)  # once `cut_off` can give the lease back
                while not self._stopping.is_set() and self._run_on_one_topic(session):
                    log.warning(
                        "the offsets topic is another one or was truncated: going on with a new "
                        "checkpoint"
                    )
        # each failure has a class, which is the exit code
        except Exception as error:  # noqa: BLE001
            if self._stopping.is_set():
                log.info("cut off while stopping: %s", first_line(error))
                return self._exit_code
            failure = classify(error)
            self._log_traceback(failure)
            raise failure from failure.__cause__
        return self._exit_code

    def _run_on_one_topic(self, session: Session) -> bool:
        """Run under one checkpoint; True if the next one is to be prepared."""
        config = self._config
        topic = wait_for_offsets_topic(
            config.cluster, self._stopping, self._heartbeat.idle, once=self._once
        )
        if topic is None:
            return False
        self._heartbeat.batch("preparing tables and Spark")
        identity = prepare(config.job, topic, self._lease)
        self._is_starting = True
        spark = session.get()
        self._is_starting = False
        diagnosis = DiagnoseQuery(
            spark, config, identity.checkpoint_id, self._stopping, self._lease
        )
        try:
            writer = Writer(config.job.tables, identity.checkpoint_id, self._lease)
            batches = Batches(spark, writer, identity, self._batch_options())
            with closing(Schedule(config)) as schedule:
                self._run_queries(spark, topic.topic_id, batches, diagnosis, schedule)
                if self._once:
                    self._heartbeat.unlimited("the diagnosis")
                    diagnosis.catch_up()
                    schedule.finish(self._stopping)
        except RebuildError:
            if self._once:
                raise
            return True
        finally:
            diagnosis.stop()
        return False

    def _batch_options(self) -> BatchOptions:
        cluster, job = self._config.cluster, self._config.job
        return BatchOptions(
            cluster=cluster.name,
            checkpoint=job.checkpoint,
            source=OffsetsSource.of(cluster),
            window_seconds=job.window_seconds,
            names=NameFilter(
                cluster.groups, cluster.groups_ignore, cluster.topics, cluster.topics_ignore
            ),
            policies=self._config.policies,
            max_group_partitions=job.max_group_partitions,
            limits=self._config.diagnosis.thresholds.of_rebalances(),
        )

    def _run_queries(
        self,
        spark: SparkSession,
        topic_id: str,
        batches: Batches,
        diagnosis: DiagnoseQuery,
        schedule: Schedule,
    ) -> None:
        """Restart the query inside the process for causes that pass by themselves (`Retries`)."""
        spark.dataSource.register(LogEnds)
        batches.on_published = partial(self._on_published, batches, schedule)
        while not self._stopping.is_set():
            try:
                if self._has_backlog(batches):
                    log.info(
                        "catching up: reading the backlog of %s first",
                        self._config.cluster.offsets_topic,
                    )
                    self._run_query(spark, batches, None)
                if not self._stopping.is_set():
                    self._run_query(spark, batches, None if self._once else diagnosis)
                if self._once:
                    return
            except Exception as error:
                cause = classify(self._failure or error)
                self._failure = None
                if self._stopping.is_set():
                    return  # cut off on purpose
                if (ended := jvm_failure(spark, error)) is not None:
                    raise ended from error
                self._wait_to_try_again(cause, topic_id)

    def _on_published(self, batches: Batches, schedule: Schedule, row: dict[str, Any]) -> None:
        self._retries.published()
        self._heartbeat.published()
        self._say_progress(row)
        if schedule.run_due(row["polled_at"]):
            batches.look_up_versions()

    def _wait_to_try_again(self, cause: LaggardError, topic_id: str) -> None:
        """Wait; raise the failure if it is final, or an error if the topic was recreated."""
        self._log_traceback(cause)
        # who asked for one run wants to know
        if self._once and not isinstance(cause, SlowStartError):
            raise cause
        wait = self._retries.next_wait(cause)
        log.warning("query stopped: %s; starting again in %.0f s", cause.sentence, wait)
        self._heartbeat.idle("waiting to start the query again", wait_seconds=wait)
        self._stopping.wait(wait)
        if (topic := look_up(self._config.cluster)) is not None:
            check_same_topic(topic_id, topic.topic_id)

    def _log_traceback(self, failure: LaggardError) -> None:
        """Write the traceback of a failure without a name, once however often it repeats."""
        if failure.exit_code == errors.INTERNAL:
            failure.is_logged = True
            if self._logged != failure.what:
                self._logged = failure.what
                log.error("%s", failure.what, exc_info=failure)

    def _has_backlog(self, batches: Batches) -> bool:
        """Return True if more records wait than a tick may read.

        They are then read batch after batch, not tick by tick.
        """
        cluster = self._config.cluster
        if cluster.is_admin:
            return False
        with closing(Brokers.of(cluster)) as brokers:
            waiting = count_backlog(brokers, cluster.offsets_topic, batches.positions)
        return waiting > MOST_RECORDS

    def _run_query(
        self, spark: SparkSession, batches: Batches, diagnosis: DiagnoseQuery | None
    ) -> None:
        """Read tick by tick with the diagnosis beside it; without one, all there is and no more."""
        config = self._config

        def process(frame: DataFrame, batch_id: int) -> None:
            with self._stop.batch():
                if self._stopping.is_set():
                    raise LaggardError("stopping", exit_code=errors.TEMPORARY)
                self._heartbeat.batch(f"batch {batch_id}")
                try:
                    batches.process(frame, batch_id)
                except BaseException as error:
                    self._failure = error
                    raise

        self._heartbeat.idle("waiting for the first batch")
        writer = self._polls(spark, batches).writeStream.queryName("laggard").foreachBatch(process)
        writer = writer.option("checkpointLocation", locate(config.job.checkpoint))
        if diagnosis is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{config.job.tick_seconds} seconds")
        query, clock = writer.start(), read_clock()
        while not self._stopping.is_set():
            if query.awaitTermination(1):
                return
            if diagnosis is None:
                continue
            clock, before = read_clock(), clock
            if (back := clock.set_back_since(before)) > config.job.tick_seconds:
                log.warning(
                    "the clock was set back by %.0f s: starting the queries again, as Spark "
                    "would wait",
                    back,
                )
                diagnosis.interrupt()
                self._stop_between_batches(query)
                return
            if batches.last is not None:
                diagnosis.keep_running()
        silence(spark)
        self._stop_between_batches(query)

    def _polls(self, spark: SparkSession, batches: Batches) -> DataFrame:
        after_poll = batches.last["poll_id"] if batches.last else 0
        known_groups = batches.known_groups(are_asked=self._config.cluster.is_admin)
        return stream_polls(spark, self._config, after_poll, batches.positions, known_groups)

    def _stop_between_batches(self, query: StreamingQuery) -> None:
        try:
            self._stop.end(query)  # a batch that lasts too long is cut off by the main thread
        # killing instead of stopping costs repeated work only
        except Exception as error:  # noqa: BLE001
            log.info("the query was cut off while stopping: %s", first_line(error))
            kill_below()  # stopping Spark under a query that hangs prints stacks

    def _say_progress(self, row: dict[str, Any]) -> None:
        """Log each batch while catching up and in the first ticks, then one line a minute."""
        is_tick = row["kind"] == "tick"
        self._ticks += is_tick
        if is_tick and self._ticks > FIRST_TICKS and time.monotonic() - self._progress_said_at < 60:
            return
        self._progress_said_at = time.monotonic()
        seconds = sum(row["durations_seconds"].values())
        behind = sum((row["source_last_stable_offset"] or {}).values()) - sum(
            row["source_to"].values()
        )
        log.info(
            "%s %d: %d records read, %s, %.1f s",
            row["kind"],
            row["batch_id"],
            row["records"],
            "caught up" if is_tick else f"{max(behind, 0):,} records behind",
            seconds,
        )
