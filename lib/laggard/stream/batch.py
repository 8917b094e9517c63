"""One micro-batch: decode, advance, publish. `batches` is written last; its row makes the tick visible."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from laggard import files
from laggard.config.policy import Policies
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.sources.offsets_topic import check_resolved, positions_of
from laggard.sources.snapshot import Snapshot
from laggard.sources.spool import Spool, poll_of
from laggard.stream.advance_stage import (
    ROWS_PER_SHARD,
    STATUS_TABLES,
    Advanced,
    State,
    advance_frame,
    gather,
)
from laggard.stream.identity import Identity, starts_anew
from laggard.stream.offsets_topic_events import (
    check_grown,
    check_same_topic,
    check_truncated,
    offsets_topic_events,
    with_events,
)
from laggard.stream.progress import Totals, find_gaps
from laggard.stream.pulse import Pulse
from laggard.stream.source_positions import (
    count_readers,
    fallen,
    find_truncations,
    positions_to_go_on,
    truncated_partitions,
)
from laggard.stream.timeline import clock_column, closed_to, is_open, is_unwritten, place, reading_of, time_gaps
from laggard.stream.topic_windows import topic_windows
from laggard.tables import schemas
from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import DataFile
from laggard.tables.readers import BACKFILL, TICK, has_batch_of, newest_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.tables.delta import Writer


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """What a batch needs of the configuration."""

    cluster: str
    checkpoint: str
    offsets_topic: str
    offsets_partitions: int
    window_seconds: int
    names: NameFilter
    policies: Policies


class Batches:
    """The `foreachBatch` side: keeps the newest published row, so that batch k starts from what k-1 named."""

    def __init__(self, spark: SparkSession, writer: Writer, identity: Identity, options: BatchOptions) -> None:
        self._spark = spark
        self._writer = writer
        self._identity = identity
        self._options = options
        newest = newest_batch(writer.root)
        self.last: dict[str, Any] | None = dict(newest.values) if newest else None  # the newest published `batches` row
        is_rebuilt = starts_anew(identity, newest.values["checkpoint_id"] if newest else None)
        # a rebuild goes on counting, but the state and the positions are perhaps of a topic that is no more
        self._anew = is_rebuilt and not identity.continues
        self.starts_at: dict[int, int] | None = None  # where a new checkpoint begins; None: at the log start
        self._rereads = False
        if self.last is not None and is_rebuilt and identity.continues:
            self._rereads = bool(fallen(self.last))
            self.starts_at = positions_to_go_on(self.last)
            self.last |= {"source_to": self.starts_at}
        if self.last is not None and self._anew:
            self.last |= {"source_to": {}, "kind": BACKFILL}
        self._has_history = False
        if newest is not None and not self._anew:
            self._has_history = newest.kind == TICK or has_batch_of(writer.root, TICK)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="publish")
        self._pulse = Pulse()
        self.expect(options.offsets_partitions)
        self.published = 0
        self._is_maintained = True  # perhaps, before this process
        self.on_published: Callable[[dict[str, Any]], None] = lambda _: None

    def expect(self, partitions: int) -> None:
        """A query begins that reads so many partitions of the offsets topic."""
        self._partitions, self._is_first = partitions, True

    def look_up_versions(self) -> None:
        """Name every table's newest version in the next row: maintenance has made new ones of the same rows."""
        self._is_maintained = True

    def process(self, frame: DataFrame, spark_batch_id: int) -> None:
        """Publish one micro-batch, once: a re-run of a published batch does nothing."""
        batch_id = self._identity.base_batch_id + spark_batch_id
        if self.last is not None and batch_id <= self.last["batch_id"]:
            return
        clock = _Stopwatch()
        wal = files.read_text(f"{self._options.checkpoint.rstrip('/')}/offsets/{spark_batch_id}")
        source_to = positions_of(wal, self._options.offsets_topic)
        self._check_resolved(source_to)
        snapshot, is_new_poll = self._snapshot(poll_of(wal, Spool(self._options.checkpoint)))
        check_same_topic(self._identity.offsets_topic_id, snapshot.offsets_topic_id)
        tick = self._tick(batch_id, snapshot, source_to)
        advanced = self._advance(frame, snapshot, tick, source_to)
        clock.lap("advance")
        clock.move("advance", "decode", advanced.decode_seconds)  # its one Spark job does both
        totals = Totals.from_row(self.last)
        if is_new_poll:
            totals.add_poll(snapshot)
        read = totals.add_records(advanced.counts)
        totals.quarantines += advanced.quarantine.entered
        events = offsets_topic_events(self.last, snapshot, tick, self._identity if self._anew else None)
        versions = self._commit(with_events(advanced.files, events, self._writer.root), snapshot, tick)
        clock.lap("publish")
        clock.seconds["poll"] = snapshot.seconds if is_new_poll else 0.0
        gaps = self._time_gaps(snapshot, tick)
        gaps += find_gaps(self.last, snapshot, tick, was_recreated=self._anew)
        gaps += find_truncations(self.last, source_to, tick)
        row = self._batch_row(tick, snapshot, source_to, versions) | read
        row |= {
            **clock.times(not_before=tick.now),
            "durations_seconds": clock.seconds,
        }
        row |= advanced.quarantine.columns()
        row |= totals.finish(clock.seconds, [gap["gap_reason"] for gap in gaps])
        self._publish(row, gaps, tick)
        advanced.quarantine.log()
        check_truncated(fallen(row))
        check_grown(source_to, snapshot)

    def _check_resolved(self, source_to: Mapping[int, int]) -> None:
        """The first batch of a query may have been planned before it, over as many partitions as there were then."""
        before = set(self.last["source_to"]) if self.last and self._is_first else set()
        self._is_first = False
        if not before or before != set(source_to):
            check_resolved(source_to, self._partitions, self._options.offsets_topic)

    def _advance(self, frame: DataFrame, snapshot: Snapshot, tick: Tick, source_to: Mapping[int, int]) -> Advanced:
        """Run the batch's Spark job: it leaves data files that no table version names yet."""
        cores = self._spark.sparkContext.defaultParallelism
        before = self.last["table_versions"] if self.last and not self._anew else {}
        state = State(
            self._writer.root,
            {name: self._writer.file_uris(name, before[name]) for name in STATUS_TABLES if name in before},
            shards=min(cores, 1 + self._writer.rows("partition_status") // ROWS_PER_SHARD),
        )
        readers = count_readers(self.last["source_to"] if self.last else {}, source_to, cores)
        records = frame.select("partition", "offset", "timestamp", "key", "value")
        options = self._options
        frame = advance_frame(records, options.names, snapshot, tick, state, readers, options.policies)
        return gather(frame.collect())

    def _snapshot(self, poll: Snapshot | None) -> tuple[Snapshot, bool]:
        """The batch's poll, and whether it is new; a batch of catching up may stand at the poll of the one before."""
        last = self.last
        if poll is None:
            now_ms = int(last["polled_at"].timestamp() * 1000) if last else int(time.time() * 1000)
            return Snapshot(poll_id=last["poll_id"] if last else 0, polled_at_ms=now_ms), False
        return poll, last is None or poll.poll_id > last["poll_id"]

    def _tick(self, batch_id: int, snapshot: Snapshot, source_to: Mapping[int, int]) -> Tick:
        last = self.last
        was_live = last is not None and last["kind"] == TICK
        moment = place(last, snapshot)
        parts = snapshot.offsets_partitions.to_pylist()
        if parts:
            is_caught_up = all(
                # nothing was read yet of a partition that is new
                part["last_stable_offset"] is None
                or source_to.get(part["offsets_partition"], 0) >= part["last_stable_offset"]
                for part in parts
            )
        else:  # the poll says nothing about the offsets topic
            is_caught_up = was_live and snapshot.positions.num_rows > 0
        is_caught_up = is_caught_up and not self._rereads  # what was read before is not counted again
        truncated = truncated_partitions(last["source_to"] if last else {}, source_to)
        tick = Tick(
            cluster=self._options.cluster,
            batch_id=batch_id,
            poll_id=snapshot.poll_id,
            metadata_poll_id=snapshot.metadata_poll_id,
            now=moment.now,
            window_seconds=self._options.window_seconds,
            is_caught_up=is_caught_up,
            opens_window=False,
            closes_windows=False,
            has_history=self._has_history,
            blocked_partitions=tuple(part["offsets_partition"] for part in parts if part["blocked_since"] is not None),
            truncated_partitions=tuple((number, source_to[number]) for number in truncated),
            wall=moment.wall,
            is_held=moment.is_held,
            shift=moment.shift,
        )
        opens = tick.counts and last is not None and last["polled_at"] < tick.window_start
        # a window is closed once, also where ticks went on in it after it had to end early
        closes = was_live and (opens or not tick.counts) and is_open(last, tick.window_seconds)
        return replace(tick, opens_window=opens, closes_windows=closes)

    def _time_gaps(self, snapshot: Snapshot, tick: Tick) -> list[dict[str, Any]]:
        if self.last is None:
            return []
        before = reading_of(self.last)
        # the first batch after a start may be a re-run with a poll from before it, so count from the poll's time
        was_down, frozen = self._pulse.began_after(before), self._pulse.longest_since(before)
        return time_gaps(self.last, place(self.last, snapshot), tick.window, was_down=was_down, frozen=frozen)

    def _commit(self, files: Mapping[str, Sequence[DataFile]], snapshot: Snapshot, tick: Tick) -> dict[str, int]:
        """Commit every table that has rows, side by side as a commit to an object store is waiting; all versions."""
        jobs = {name: partial(self._writer.commit, schemas.TABLES[name], found) for name, found in files.items()}
        if snapshot.closed.num_rows and is_unwritten(snapshot.window_start_ms, self.last):
            rows = topic_windows(snapshot, tick)
            jobs["topic_windows"] = partial(self._writer.write, schemas.TOPIC_WINDOWS, rows)
        futures = {name: self._pool.submit(job, tick.batch_id) for name, job in jobs.items()}
        written = {name: future.result() for name, future in futures.items()}
        before = dict(self.last["table_versions"]) if self.last and not self._is_maintained else {}
        self._is_maintained = False
        named = {name for name, table in schemas.TABLES.items() if name != "batches" and not table.is_judged}
        for name in named - before.keys():  # also a table that an older job did not have
            before[name] = self._writer.version(name)
        return before | written

    def _batch_row(
        self, tick: Tick, snapshot: Snapshot, source_to: Mapping[int, int], versions: Mapping[str, int]
    ) -> dict[str, Any]:
        parts = {part["offsets_partition"]: part for part in snapshot.offsets_partitions.to_pylist()}

        def by_partition(column: str) -> dict[int, Any] | None:
            return {key: part[column] for key, part in parts.items() if part[column] is not None} if parts else None

        return {
            "kind": TICK if tick.is_caught_up else BACKFILL,
            "gap_seq": 0,
            "poll_id": tick.poll_id,
            "source_from": dict.fromkeys(source_to, 0) | (self.last["source_to"] if self.last else {}),
            "source_to": dict(source_to),
            "clock": clock_column(snapshot.reading),
            "windows_closed_to": closed_to(self.last, tick, snapshot),
            "source_high_watermark": by_partition("high_watermark"),
            "source_last_stable_offset": by_partition("last_stable_offset"),
            "source_blocked_since": by_partition("blocked_since"),
            "table_versions": dict(versions),
            "offsets_retention_minutes": snapshot.offsets_retention_minutes,
        }

    def _publish(self, row: dict[str, Any], gaps: list[dict[str, Any]], tick: Tick) -> None:
        same = {
            "date": tick.now.date(),
            "cluster": tick.cluster,
            "batch_id": tick.batch_id,
            "polled_at": tick.now,
            "checkpoint_id": self._identity.checkpoint_id,
        }
        rows = [
            {**same, **row},
            *({**same, "kind": "gap", "gap_seq": number, **gap} for number, gap in enumerate(gaps, 1)),
        ]
        self._writer.write(schemas.BATCHES, to_arrow(schemas.BATCHES, rows), tick.batch_id)
        self.last = rows[0]
        self._has_history = self._has_history or row["kind"] == TICK
        self._anew = self._rereads = False
        self.published += 1
        self.on_published(rows[0])


class _Stopwatch:
    """Seconds per stage of the batch, and when it began and ended."""

    def __init__(self) -> None:
        self._started_at = datetime.now(timezone.utc)
        self._began = self._since = time.monotonic()
        self.seconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage] = now - self._since
        self._since = now

    def times(self, not_before: datetime) -> dict[str, datetime]:
        """Columns `started_at` and `published_at`: true seconds apart, and not before the time of the rows."""
        started_at = max(self._started_at, not_before)
        return {
            "started_at": started_at,
            "published_at": started_at + timedelta(seconds=time.monotonic() - self._began),
        }

    def move(self, stage: str, to: str, seconds: float) -> None:
        """Count some of a stage's seconds as another stage's."""
        self.seconds[to] = min(seconds, self.seconds[stage])
        self.seconds[stage] -= self.seconds[to]
