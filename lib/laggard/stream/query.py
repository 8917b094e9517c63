"""The job: wait for the cluster, check that state and checkpoint belong together, run the query until told to stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from laggard import errors, files
from laggard.errors import LaggardError, first_line
from laggard.names import NameFilter
from laggard.sources.brokers import Brokers
from laggard.sources.log_ends import LogEnds
from laggard.sources.readiness import NotReadyYet, OffsetsTopic, count_backlog, find_offsets_topic
from laggard.stream.batch import Batches, BatchOptions
from laggard.stream.diagnose import DiagnoseQuery
from laggard.stream.failures import SlowStartError, with_remedy
from laggard.stream.identity import Identity, find_state, identity_path, judge_start, starts_anew, to_json
from laggard.stream.inputs import read_inputs
from laggard.stream.offsets_topic_events import GrownTopicError
from laggard.tables.delta import Writer, create_tables
from laggard.tables.lock import writer_lock
from laggard.tables.maintenance import Schedule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from laggard.config import Config

log = logging.getLogger("laggard.job")
MAX_BACKOFF_SECONDS = 60.0
SAY_EVERY_SECONDS = 10.0
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
            topic = self._wait_for_offsets_topic()
            if topic is None:
                return errors.OK
            identity = self._prepare(topic)
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

    def _wait_for_offsets_topic(self) -> OffsetsTopic | None:
        """The offsets topic once it exists; says every 10 s what is missing. None when stopped meanwhile."""
        cluster = self._config.cluster
        brokers = Brokers(cluster.bootstrap_servers, cluster.request_timeout_seconds)
        said_at, backoff = 0.0, 1.0
        try:
            while not self._stopping.is_set():
                try:
                    return find_offsets_topic(brokers, cluster.offsets_topic)
                except NotReadyYet as reason:
                    if time.monotonic() - said_at >= SAY_EVERY_SECONDS:
                        log.warning("waiting: %s", reason)
                        said_at = time.monotonic()
                self._stopping.wait(backoff)
                backoff = min(backoff * 1.5, 5.0)
        finally:
            brokers.close()
        return None

    def _prepare(self, topic: OffsetsTopic) -> Identity:
        """Create what is missing and refuse what does not belong together, before anything expensive starts."""
        job = self._config.job
        create_tables(job.tables)
        wanted = Identity(topic.cluster_id, topic.topic_id, job.tables, job.window_seconds)
        found = find_state(job.tables, job.checkpoint)
        identity = judge_start(found, wanted)
        anew = starts_anew(identity, found.batch_checkpoint_id)
        stored_id = (found.identity or {}).get("checkpoint_id", "")
        if found.has_checkpoint and not anew and stored_id != identity.checkpoint_id:
            self._set_aside(stored_id)  # before the new identity: without rows, nothing else would tell it is old
        files.write_text(identity_path(job.checkpoint), to_json(identity))
        if found.has_checkpoint and anew:
            self._set_aside(identity.replaces)
        return identity

    def _set_aside(self, checkpoint_id: str) -> None:
        try:
            kept = files.set_aside(self._config.job.checkpoint, checkpoint_id)
        except (OSError, NotImplementedError) as error:
            raise LaggardError(
                "the offsets topic was recreated, and the old checkpoint cannot be moved out of the way",
                cause=str(error),
                fix=f"move {self._config.job.checkpoint} aside yourself, keep its .laggard.json, and start again",
                exit_code=errors.REFUSED,
            ) from error
        log.warning("the offsets topic was recreated: starting anew on its records, the old checkpoint is %s", kept)

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
            topic = self._wait_for_offsets_topic() or topic
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
