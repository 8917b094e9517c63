"""The second query: it follows what the first publishes and judges each window that closed.

An error in a rule or in this query never touches the first one: lag is recorded on.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.engine import Judged, settle
from laggard.diagnosis.frames import Row
from laggard.diagnosis.memory import Memory, from_json
from laggard.stream.advance_stage import shards_of
from laggard.stream.judging import (
    Options,
    Window,
    find_closed,
    judge_groups,
    known_at,
    read_baseline,
    read_cluster,
    read_history,
)
from laggard.tables import schemas
from laggard.tables.arrow import to_arrow
from laggard.tables.readers import TICK, open_table, read_newest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.tables.delta import Writer

log = logging.getLogger("laggard.diagnose")
ROWS_PER_SHARD = 50_000  # partitions of the status table below which a second task costs more than it saves
_CATCH_UP_MS = 86_400_000  # windows that closed longer ago, while the job was down, are left to a replay
_STATE = ["group", "window_start", "state", "batch_id"]


class Diagnosis:
    """The `foreachBatch` side; what it remembers is in `finding_state`, so a restart goes on where it was."""

    def __init__(self, spark: SparkSession, writer: Writer, options: Options) -> None:
        self._spark = spark
        self._writer = writer
        self._options = options
        self._judged_ms, self._memories = last_state(writer.root)

    def process(self, frame: DataFrame, _: int) -> None:
        """Judge the windows that these rows of `batches` closed."""
        rows = frame.where(f"kind = '{TICK}'").select("batch_id", "polled_at", "table_versions").collect()
        if not rows:
            return
        newest = max(rows, key=lambda each: int(each["batch_id"]))
        now_ms = round(newest["polled_at"].timestamp() * 1000)
        step = 1000 * self._options.window_seconds
        if now_ms // step * step - step <= self._judged_ms:
            return  # no window has closed since
        versions = dict(newest["table_versions"])
        first_ms = max(self._judged_ms + step, now_ms - _CATCH_UP_MS)
        for window in find_closed(self._writer.root, versions, first_ms, now_ms, self._options):
            self.judge(window, versions)

    def judge(self, window: Window, versions: Mapping[str, int]) -> None:
        """One window: all groups on the executors, the cluster and the findings here."""
        judged = self._judge_groups(window, versions)
        cluster = read_cluster(self._writer.root, versions, window, self._options)
        windows, findings, self._memories = settle(judged, cluster, self._memories, self._options.parameters)
        self._write(window, windows, findings)
        self._judged_ms = window.begin_ms

    def _judge_groups(self, window: Window, versions: Mapping[str, int]) -> list[Judged]:
        cores = self._spark.sparkContext.defaultParallelism
        shards = min(cores, 1 + self._writer.rows("partition_status") // ROWS_PER_SHARD)
        root, options = self._writer.root, self._options
        memories = {group: memory.to_json() for group, memory in self._memories.items()}
        versions = dict(versions)

        def judge_shard(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for number in (each.as_py() for batch in numbers for each in batch["id"]):
                tables = read_history(root, versions, window.begin_ms, window.begin_ms, options)
                tables = {name: _of_shard(rows, int(number), shards) for name, rows in tables.items()}
                known = known_at(tables, window, options)
                remembered = {group: from_json(text) for group, text in memories.items()}
                found = list(
                    judge_groups(
                        known,
                        lambda: read_baseline(root, window.begin_ms, window.begin_ms, options),
                        window,
                        remembered,
                        options,
                    )
                )
                yield pa.RecordBatch.from_pydict({"judged": pa.array([pickle.dumps(found)], pa.binary())})

        frame = self._spark.range(0, shards, 1, shards).mapInArrow(judge_shard, "judged binary")
        return [each for row in frame.collect() for each in pickle.loads(row["judged"])]  # noqa: S301 - our own workers'

    def _write(self, window: Window, windows: list[Row], findings: list[Row]) -> None:
        """`finding_state` last: its newest window says how far the rules have judged."""
        begin = pa.scalar(window.begin_ms * 1000, pa.timestamp("us", tz="UTC")).as_py()
        same = {"cluster": self._options.cluster, "batch_id": window.batch_id}
        states = [
            {**same, "date": begin.date(), "group": group, "window_start": begin, "status": "ok", "state": text}
            for group, memory in self._memories.items()
            if (text := memory.to_json()) is not None or group == ""
        ]
        for table, rows in (
            (schemas.FINDINGS, findings),
            (schemas.GROUP_WINDOWS, windows),
            (schemas.FINDING_STATE, states),
        ):
            if rows:
                self._writer.write(table, to_arrow(table, [{**row, **same} for row in rows]), window.batch_id)
        for row in findings:
            if row["event"] != "updated" and row["role"] in ("primary", "contributing", "symptom"):
                log.info("%s %s %s of %s", row["event"], row["severity"], row["code"], row["group"] or "the cluster")


def last_state(root: str) -> tuple[int, dict[str, Memory]]:
    """Begin of the newest judged window in ms (-1: none), and what was remembered after it."""
    table = open_table(root, schemas.FINDING_STATE.name)
    if not table.count():
        return -1, {}
    rows = read_newest(root, schemas.FINDING_STATE.name, table.version(), _STATE)
    memories = {row["group"]: from_json(row["state"]) for row in rows.to_pylist()}
    newest = pc.max(rows["window_start"]).as_py()
    return round(newest.timestamp() * 1000), memories


def _of_shard(rows: pa.Table, shard: int, shards: int) -> pa.Table:
    if shards == 1 or "group" not in rows.column_names:
        return rows
    mine: np.ndarray[Any, np.dtype[np.bool_]] = shards_of(rows["group"], shards) == shard
    return rows.filter(pa.array(mine))
