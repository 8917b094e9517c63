"""The second query: it follows the first one's batches and evaluates each window that closed.

An error in a rule or in this query never touches the first one: lag is recorded on.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard import files
from laggard.diagnosis.engine import Evaluated, settle_apart
from laggard.diagnosis.history.frames import Memory, Row, from_json
from laggard.diagnosis.history.grid import Piece, coded, kept
from laggard.errors import DAMAGED, INTERNAL, TEMPORARY, LaggardError
from laggard.failures import classify
from laggard.files import is_local, locate
from laggard.stream.evaluation.evaluating import (
    Baselines,
    check_rows,
    evaluate_window,
    memories_of,
    read_cluster,
    writable,
)
from laggard.stream.evaluation.reading import (
    RECENT,
    Options,
    Window,
    find_closed,
    read_baseline,
    read_history,
)
from laggard.stream.job.jvm import jvm_failure
from laggard.stream.job.query_stop import QueryStop
from laggard.stream.tick.advance_stage import carrying, shards_of
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.published import TICK, newest_batch
from laggard.tables.readers import open_table, read_newest, table_uri
from laggard.tables.schema import schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from laggard.config import Config
    from laggard.tables.lease import Lease

log = logging.getLogger("laggard.diagnose")
# partitions of the status table below which a second task costs more than it saves
ROWS_PER_SHARD = 50_000
# windows that closed longer ago, while the job was down, are left to a replay
_CATCH_UP_MS = 86_400_000
_MAX_BACKOFF_SECONDS = 60.0
_INTERRUPT_SECONDS = 60.0  # for the window at hand, before it is broken off
_STATE = ["group", "window_start", "state", "batch_id"]


class Diagnosis:
    """The `foreachBatch` side; its memory is in `finding_state`, so a restart continues there."""

    def __init__(
        self,
        spark: SparkSession,
        writer: Writer,
        options: Options,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._spark = spark
        self._writer = writer
        self._options = options
        self._evaluated_ms, self._memories = last_state(writer.root)
        # if so, windows after the one at hand follow the next start
        self._is_stopping = is_stopping

    def process(self, frame: DataFrame, _: int) -> None:
        """Evaluate the windows that closed before the newest of these rows of `batches`."""
        rows = (
            frame.where(f"kind = '{TICK}'")
            .select("batch_id", "polled_at", "table_versions")
            .collect()
        )
        if rows:
            newest = max(rows, key=lambda row: int(row["batch_id"]))
            self.evaluate_closed(newest["polled_at"].timestamp(), newest["table_versions"])

    def evaluate_closed(self, now: float, versions: Mapping[str, int]) -> None:
        """Evaluate windows closed before the poll at `now` and not evaluated yet.

        `versions` are those of its batch.
        """
        now_ms, step = round(now * 1000), 1000 * self._options.window_seconds
        if now_ms // step * step - step <= self._evaluated_ms:
            return
        first_ms = max(self._evaluated_ms + step, now_ms - _CATCH_UP_MS)
        seconds = self._options.window_seconds
        for window in find_closed(
            self._writer.root, versions, first_ms, now_ms, seconds, until_ms=now_ms
        ):
            if self._is_stopping():
                return
            self.evaluate(window, versions)

    def evaluate(self, window: Window, versions: Mapping[str, int]) -> None:
        """Evaluate one window: groups on executors, the cluster and findings on the driver."""
        evaluated = self._evaluate_groups(window, versions)
        cluster = read_cluster(self._writer.root, versions, window, self._options)
        evaluated = list(map(writable, evaluated))
        windows, findings, memories = settle_apart(
            evaluated, cluster, self._memories, self._options.parameters, check_rows
        )
        completed = {}
        for name in ("deploys", "scale_events"):
            completed[name] = [
                row for evaluation in evaluated for row in evaluation.completed.get(name, ())
            ]
        self._write(window, windows, findings, completed, memories)
        # not before it is written: a window whose write failed is evaluated again with the memory
        # of the one before it
        self._evaluated_ms, self._memories = window.begin_ms, memories

    def _evaluate_groups(self, window: Window, versions: Mapping[str, int]) -> list[Evaluated]:
        cores = self._spark.sparkContext.defaultParallelism
        shards = min(cores, 1 + self._writer.rows("partition_status") // ROWS_PER_SHARD)
        root, options = self._writer.root, self._options
        memories = {group: memory.to_json() for group, memory in self._memories.items()}
        versions = dict(versions)

        @carrying
        def evaluate_shard(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in chain.from_iterable(batch["id"].to_pylist() for batch in numbers):
                shard = {"shard": int(number), "shards": shards}
                tables = read_history(root, versions, window.begin_ms, window.begin_ms, options)
                for name in (*RECENT, "group_history"):
                    tables[name] = of_shard(tables[name], **shard)
                before = Baselines(partial(read_baseline, root, window.begin_ms, options))
                remembered = {group: from_json(text) for group, text in memories.items()}
                evaluated = evaluate_window(
                    tables, window, remembered, before.of, options, partial(in_shard, **shard)
                )
                yield pa.RecordBatch.from_pydict(
                    {"evaluated": pa.array([pickle.dumps(evaluated)], pa.binary())}
                )

        frame = self._spark.range(0, shards, 1, shards).mapInArrow(
            evaluate_shard, "evaluated binary"
        )
        rows = frame.collect()
        # written by our own workers
        return [result for row in rows for result in pickle.loads(row["evaluated"])]  # noqa: S301

    def _write(
        self,
        window: Window,
        windows: list[Row],
        findings: list[Row],
        completed: Mapping[str, list[Row]],
        memories: Mapping[str, Memory],
    ) -> None:
        """Write the rows, and `finding_state` last.

        Its newest window marks the progress of the evaluation.
        """
        begin = pa.scalar(window.begin_ms * 1000, pa.timestamp("us", tz="UTC")).as_py()
        same = {"cluster": self._options.cluster, "batch_id": window.batch_id}
        at = {"date": begin.date(), "window_start": begin, "status": "ok"}
        states = []
        for group, memory in memories.items():
            text = memory.to_json()
            if text is not None or group == "":
                states.append({**same, **at, "group": group, "state": text})
        for table, rows in (
            (schemas.FINDINGS, findings),
            (schemas.GROUP_WINDOWS, windows),
            (schemas.DEPLOYS, completed["deploys"]),
            (schemas.SCALE_EVENTS, completed["scale_events"]),
            (schemas.FINDING_STATE, states),
        ):
            if rows:
                written = to_arrow(table, [{**row, **same} for row in rows])
                self._writer.write(table, written, window.batch_id)
        _log(findings)


class DiagnoseQuery:
    """The stream over `batches`.

    A failure in it is logged and tried again, and the first query goes on.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        checkpoint_id: str,
        stopping: Event | None = None,
        lease: Lease | None = None,
    ) -> None:
        job = config.job
        self._stopping = stopping or Event()
        self._is_over = self._is_ending = False
        self._options = Options(
            config.cluster.name, job.window_seconds, config.diagnosis.thresholds, config.policies.of
        )
        self._spark = spark
        # a writer of its own: each table has one writing query
        self._writer = Writer(job.tables, checkpoint_id, lease)
        self._found: Diagnosis | None = None
        self._root = job.tables
        self._checkpoint = f"{locate(job.checkpoint)}.diagnose-{checkpoint_id[:8]}"
        self._seconds = job.tick_seconds
        self._query: StreamingQuery | None = None
        self._stop = QueryStop()
        self._not_before = 0.0
        self._backoff = 1.0
        self._failure: Exception | None = None
        self._logged = ""

    def catch_up(self) -> None:
        """Evaluate the closed windows, without a stream."""
        newest = newest_batch(self._root)
        if newest is not None and newest.kind == TICK:
            self._diagnosis().evaluate_closed(newest.polled_at.timestamp(), newest.table_versions)

    def keep_running(self) -> None:
        """Start it, or start it again after a failure; call it often, it never raises."""
        try:
            if self._query is not None:
                if self._query.isActive:
                    return
                error, self._failure = self._failure or self._query.exception(), None
                self._query = None
                self._wait_after(
                    error or LaggardError("its query ended without a cause", exit_code=TEMPORARY)
                )
            if time.monotonic() >= self._not_before:
                self._query = self._start()
        except Exception as error:  # noqa: BLE001 - lag is collected whatever happens here
            self._wait_after(error)

    def _wait_after(self, error: BaseException) -> None:
        failure = classify(jvm_failure(self._spark, error) or error)
        log.warning(
            "the diagnosis stopped: %s; starting again in %.0f s", failure.sentence, self._backoff
        )
        # once, however often it repeats
        if failure.exit_code == INTERNAL and self._logged != failure.what:
            self._logged = failure.what
            log.error("%s", failure.what, exc_info=failure)
        if failure.exit_code in (INTERNAL, DAMAGED):
            files.delete_folder(self._checkpoint)  # all that is needed is in `finding_state`
        self._not_before = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, _MAX_BACKOFF_SECONDS)

    def _diagnosis(self) -> Diagnosis:
        if self._found is None:
            self._found = Diagnosis(
                self._spark,
                self._writer,
                self._options,
                lambda: self._is_over or self._is_ending or self._stopping.is_set(),
            )
        return self._found

    def _start(self) -> StreamingQuery:
        self._diagnosis()  # reads what it remembers
        writer = self._batches().writeStream.queryName("diagnose").foreachBatch(self._process)
        writer = writer.option("checkpointLocation", self._checkpoint)
        return writer.trigger(processingTime=f"{self._seconds} seconds").start()

    def _batches(self) -> DataFrame:
        """Return the source that wakes it: the table `batches`, or a timer in a bucket.

        In a bucket Spark would need Hadoop's connector.
        """
        uri = table_uri(self._root, schemas.BATCHES.name)
        if not is_local(uri):
            return self._spark.readStream.format("rate").load()
        batches = self._spark.readStream.format("delta").option("skipChangeCommits", "true")
        # what was published before is in the state of the diagnosis already, or is found from there
        # a row whose log entry expired while this query was down is no loss: windows are found from
        # the tables
        batches = batches.option("startingVersion", "latest").option("failOnDataLoss", "false")
        return batches.load(uri)

    def stop(self) -> None:
        """End it between two windows; what it had not written follows the next start."""
        self._is_over = True
        self.interrupt(None)

    def interrupt(self, wait_seconds: float | None = _INTERRUPT_SECONDS) -> None:
        """End its query after the window at hand, after at most `wait_seconds` of waiting.

        `keep_running` starts it again.
        """
        if self._query is not None:
            self._is_ending = True
            with suppress(Exception):
                self._stop.end(self._query, wait_seconds)
            self._is_ending = False
            self._query = None

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        with self._stop.batch():
            try:
                if is_local(self._writer.root):
                    self._diagnosis().process(frame, batch_id)
                else:
                    self.catch_up()
            except Exception as error:
                self._failure = error
                raise
            self._backoff = 1.0


def last_state(root: str) -> tuple[int, dict[str, Memory]]:
    """Start of the newest evaluated window in ms (-1: none), and the memory after it."""
    table = open_table(root, schemas.FINDING_STATE.name)
    if not table.count():
        return -1, {}
    rows = read_newest(root, schemas.FINDING_STATE.name, table.version(), _STATE)
    memories = memories_of(rows)
    # the cluster has a row for every evaluated window
    newest = pc.max(rows.filter(pc.equal(rows["group"], ""))["window_start"]).as_py()
    return round(newest.timestamp() * 1000), memories


def of_shard(rows: Piece, shard: int, shards: int) -> Piece:
    """Return the rows of a shard's groups."""
    if shards == 1:
        return rows
    return kept(rows, pa.array(in_shard(rows["group"], shard, shards)))


def in_shard(groups: pa.Array | pa.ChunkedArray, shard: int, shards: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of a shard's groups."""
    codes, names = coded(groups)
    mine: npt.NDArray[np.bool_] = shards_of(pa.array([*names, None], pa.string()), shards) == shard
    return mine[codes]  # without a group, -1, as the last one


def _log(findings: Sequence[Row]) -> None:
    for row in findings:
        if row["event"] != "updated" and row["role"] in ("primary", "contributing", "symptom"):
            log.info(
                "%s %s %s of %s",
                row["event"],
                row["severity"],
                row["code"],
                row["group"] or "the cluster",
            )
