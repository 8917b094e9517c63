"""One micro-batch: decode, advance, publish; the `batches` row, written last, shows the tick."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laggard import files
from laggard.config.policy import Policies
from laggard.config.sections import ADMIN
from laggard.errors import TEMPORARY
from laggard.failures import classify
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.rebalance.parameters import DEFAULTS, RebalanceParameters
from laggard.sources.clock import Pulse
from laggard.sources.odd_records import named_record
from laggard.sources.offsets_topic import (
    OffsetsSource,
    Piece,
    begin_positions,
    positions_in,
    unanswered,
)
from laggard.sources.poll_files import PollFiles, offset_in
from laggard.sources.snapshot import Snapshot
from laggard.stream.job.identity import Identity, follows_another
from laggard.stream.job.progress import Stopwatch, Totals, find_gaps
from laggard.stream.job.source_positions import (
    count_readers,
    fallen,
    find_truncations,
    positions_to_go_on,
)
from laggard.stream.job.tick_clock import backfill_gaps, is_unwritten, place, reading_of, time_gaps
from laggard.stream.job.ticks import batch_row, next_tick, topic_windows
from laggard.stream.tick.advance_stage import (
    ROWS_PER_SHARD,
    STATUS_TABLES,
    Advanced,
    State,
    advance_frame,
    gather,
)
from laggard.stream.tick.commit_times import clock_skew
from laggard.stream.tick.offsets_topic_events import (
    check_same_topic,
    check_truncated,
    offsets_topic_events,
    with_events,
)
from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import DataFile
from laggard.tables.published import BACKFILL, TICK, has_batch_where, newest_batch, newest_of_topic
from laggard.tables.readers import read_table
from laggard.tables.schema import schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.errors import LaggardError
    from laggard.tables.delta import Writer

log = logging.getLogger("laggard.job")


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Configuration of a batch."""

    cluster: str
    checkpoint: str
    source: OffsetsSource
    window_seconds: int
    names: NameFilter
    policies: Policies
    max_group_partitions: int
    limits: RebalanceParameters = DEFAULTS


class Batches:
    """The `foreachBatch` side, with the newest published row.

    So batch k starts from the versions that k-1 named.
    """

    def __init__(
        self, spark: SparkSession, writer: Writer, identity: Identity, options: BatchOptions
    ) -> None:
        self._spark = spark
        self._writer = writer
        self._identity = identity
        self._options = options
        newest = newest_batch(writer.root)
        # the newest published `batches` row
        self.last: dict[str, Any] | None = None
        is_rebuilt = False
        if newest is not None:
            self.last = dict(newest.values)
            is_rebuilt = follows_another(identity, self.last["checkpoint_id"])
        self._begins_again = is_rebuilt and not identity.continues
        # offsets partitions that were read before, to be read again
        self._rereads: frozenset[int] = frozenset()
        if self.last is not None and is_rebuilt:
            self.last, self._rereads = _rebuilt(self.last, continues=identity.continues)
        self._written = _written_positions(writer.root, identity)
        self._has_history = False
        if newest is not None and not self._begins_again:
            self._has_history = newest.kind == TICK or has_batch_where(writer.root, "kind", TICK)
        self._pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="publish")
        self._pulse = Pulse()
        self.published = 0
        self._has_shed = False
        self._is_maintained = True  # perhaps, before this process
        self.on_published: Callable[[dict[str, Any]], None] = lambda _: None

    @property
    def positions(self) -> dict[int, int]:
        """Next offset by offsets partition; one that is not here is read from its start."""
        if not self.last:
            return {}
        return dict(self.last["source_to"])

    def known_groups(self, *, are_asked: bool) -> list[str]:
        """Return groups that have rows; if asked for offsets, oldest answers first."""
        if self.last is None or self._begins_again:
            return []
        versions, root = self.last["table_versions"], self._writer.root
        groups = read_table(root, "group_status", versions["group_status"], ["group"])[
            "group"
        ].to_pylist()
        if not are_asked:
            return list(groups)
        rows = read_table(
            root, "partition_status", versions["partition_status"], ["group", "answered_at"]
        )
        newest = rows.group_by("group").aggregate([("answered_at", "max")])
        answered_us = newest["answered_at_max"].cast(pa.int64()).to_pylist()
        answered = dict(zip(newest["group"].to_pylist(), answered_us, strict=True))
        return sorted(groups, key=lambda group: (answered.get(group) or 0, group))

    def look_up_versions(self) -> None:
        """Name every table's newest version in the next row.

        Maintenance has made new versions of the same rows.
        """
        self._is_maintained = True

    def process(self, frame: DataFrame, spark_batch_id: int) -> None:
        """Publish one micro-batch, once: a re-run of a published batch does nothing."""
        batch_id = self._identity.base_batch_id + spark_batch_id
        if self.last is not None and batch_id <= self.last["batch_id"]:
            return
        clock = Stopwatch()
        wal = files.read_text(f"{self._options.checkpoint.rstrip('/')}/offsets/{spark_batch_id}")
        offset = offset_in(wal)
        snapshot = PollFiles(self._options.checkpoint).from_offset(offset)
        check_same_topic(self._identity.offsets_topic_id, snapshot.offsets_topic_id)
        tick, source_to, advanced = self._read(
            frame.sparkSession, batch_id, snapshot, positions_in(offset)
        )
        clock.lap("advance")
        clock.move("advance", "decode", advanced.decode_seconds)  # its one Spark job does both
        totals = Totals.from_row(self.last)
        totals.add_poll(snapshot)
        read = totals.add_records(advanced.counts)
        totals.quarantines += advanced.quarantine.entered
        for number, times in advanced.commit_times.items():
            totals.source_commits[number] += times.commits
        self._count_rows(totals, advanced)
        rebuild, reason = None, ""
        if self._begins_again:
            rebuild, reason = self._identity, self._identity.rebuild_reason
        events = offsets_topic_events(self.last, snapshot, tick, rebuild)
        versions = self._commit(
            with_events(advanced.files, events, self._writer.root), snapshot, tick
        )
        clock.lap("publish")
        clock.seconds["poll"] = snapshot.seconds
        gaps = self._time_gaps(snapshot, tick)
        gaps += find_gaps(self.last, snapshot, tick, reason=reason)
        gaps += find_truncations(self.last, source_to, tick)
        row = batch_row(self.last, tick, snapshot, source_to, versions) | read
        row |= {
            **clock.times(not_before=tick.now),
            "durations_seconds": clock.seconds,
            "origin": self._identity.origin(),
            "clock_skew_seconds": clock_skew(
                self.last, snapshot, advanced.commit_times, is_live=tick.is_caught_up
            ),
        }
        row |= advanced.quarantine.columns()
        row |= totals.finish(clock.seconds, map(itemgetter("gap_reason"), gaps))
        self._publish(row, gaps, tick)
        advanced.quarantine.log()
        check_truncated(fallen(row))

    def _count_rows(self, totals: Totals, advanced: Advanced) -> None:
        if advanced.shed_keys and not self._has_shed:  # once; the counter counts on
            most = self._options.max_group_partitions
            log.warning("new partitions are refused: job.max_group_partitions is %d", most)
        if advanced.corrections:
            log.warning("%d rows of groups that ended unseen are removed", advanced.corrections)
        self._has_shed = self._has_shed or advanced.shed_keys > 0
        totals.shed_keys += advanced.shed_keys
        totals.corrections += advanced.corrections

    def _read(
        self, spark: SparkSession, batch_id: int, snapshot: Snapshot, source_to: dict[int, int]
    ) -> tuple[Tick, dict[int, int], Advanced]:
        """Read the batch and return its tick, the positions it read to, and its result.

        Partitions of silent brokers are left to a later batch; a broker may also fall silent
        between poll and batch.
        """
        silent = unanswered(snapshot.offsets_partitions)
        source_to = self._without(silent, source_to)
        # of those that fell silent after the poll, the ones with records to read
        left: frozenset[int] = frozenset()
        pieces: list[Piece] = []
        while True:
            tick = self._tick(batch_id, snapshot, source_to, left)
            unusable = len(self._options.source.unusable)
            try:
                return (
                    tick,
                    source_to,
                    self._advance(spark, snapshot, tick, source_to, pieces, silent),
                )
            except Exception as error:
                failure = classify(error)
                if odd := named_record(failure.cause):
                    pieces.append(self._options.source.read_piece(*odd, source_to[odd[0]]))
                    log.info(
                        "offsets partition %d has a record that Spark cannot read, at offset %d",
                        *odd,
                    )
                    continue
                newly_silent = self._silent(snapshot, failure) - silent
                late = newly_silent & self._moved(source_to)
                # another group can be taken at any time, but no batch is cut of which rows are in a
                # table
                is_other_group = bool(newly_silent) or len(self._options.source.unusable) > unusable
                if not is_other_group or (late and self._writer.has_written(batch_id)):
                    raise
                if newly_silent:
                    log.warning(
                        "offsets partitions %s are left for later: their broker does not answer",
                        sorted(newly_silent),
                    )
                silent |= newly_silent
                left |= late
                source_to = self._without(late, source_to)

    def _without(self, left_out: frozenset[int], source_to: Mapping[int, int]) -> dict[int, int]:
        """Return the positions to read to if these partitions are not read."""
        positions = {key: value for key, value in self.positions.items() if key in left_out}
        return {key: value for key, value in source_to.items() if key not in left_out} | positions

    def _silent(self, snapshot: Snapshot, failure: LaggardError) -> frozenset[int]:
        """Return partitions with a silent leader, if that may have caused the failure."""
        numbers = snapshot.offsets_partitions["offsets_partition"].to_pylist()
        if failure.exit_code == TEMPORARY:
            return self._options.source.silent(numbers)
        return frozenset()

    def _moved(self, source_to: Mapping[int, int]) -> frozenset[int]:
        """Return partitions that have records to read."""
        before = self.positions
        return frozenset(
            number for number, offset in source_to.items() if offset > before.get(number, 0)
        )

    def _advance(
        self,
        spark: SparkSession,
        snapshot: Snapshot,
        tick: Tick,
        source_to: Mapping[int, int],
        pieces: Sequence[Piece],
        silent: frozenset[int],
    ) -> Advanced:
        """Run the batch's Spark job: it leaves data files that no table version names yet."""
        cores = self._spark.sparkContext.defaultParallelism
        before = self.last["table_versions"] if self.last and not self._begins_again else {}
        # at the version that the batch starts from: a re-run must refuse the same
        rows = dict.fromkeys(STATUS_TABLES, 0)
        most = self._options.max_group_partitions
        uris = {}
        for name in STATUS_TABLES:
            if name in before:
                rows[name] = self._writer.rows(name, before[name])
                uris[name] = self._writer.file_uris(name, before[name])
        state = State(
            self._writer.root,
            uris,
            # as many groups of which all is refused as may have a row each
            rooms={
                "partition_status": max(0, most - rows["partition_status"]),
                "group_status": max(0, 2 * most - rows["group_status"]),
            },
            shards=min(cores, 1 + rows["partition_status"] // ROWS_PER_SHARD),
        )
        begins = begin_positions(self.positions, source_to, snapshot.offsets_partitions)
        readers = count_readers(begins, source_to, cores)
        options = self._options
        records = options.source.read(spark, begins, source_to, snapshot, pieces, silent)
        frame = advance_frame(
            records, options.names, snapshot, tick, state, readers, options.policies, options.limits
        )
        options.source.plan(frame, snapshot, silent)
        return gather(frame.collect())

    def _tick(
        self,
        batch_id: int,
        snapshot: Snapshot,
        source_to: Mapping[int, int],
        silent: frozenset[int] = frozenset(),
    ) -> Tick:
        options = self._options
        written = {
            part: end for part, end in self._written.items() if self.positions.get(part, 0) < end
        }
        tick = next_tick(
            self.last,
            snapshot,
            source_to,
            cluster=options.cluster,
            batch_id=batch_id,
            window_seconds=options.window_seconds,
            has_history=self._has_history,
            rereads=not self._rereads.isdisjoint(source_to),
            written=written,
            silent=silent,
        )
        if not tick.has_history and (missing := sorted(tick.unread_partitions - source_to.keys())):
            log.warning(
                "no lag is known yet: the leaders of offsets partitions %s do not answer", missing
            )
        return tick

    def _time_gaps(self, snapshot: Snapshot, tick: Tick) -> list[dict[str, Any]]:
        if self.last is None:
            return []
        before = reading_of(self.last)
        # the first batch after a start may be a re-run with a poll from before it, so count from
        # the poll's time
        was_down, frozen = self._pulse.began_after(before), self._pulse.longest_since(before)
        gaps = time_gaps(
            self.last, place(self.last, snapshot), tick.window, was_down=was_down, frozen=frozen
        )
        return gaps + backfill_gaps(self.last, tick)

    def _commit(
        self, files: Mapping[str, Sequence[DataFile]], snapshot: Snapshot, tick: Tick
    ) -> dict[str, int]:
        """Commit every table that has rows; return the versions of all tables.

        The commits run side by side, as a commit to an object store is waiting.
        """
        jobs = {}
        for name, data_files in files.items():
            jobs[name] = partial(self._writer.commit, schemas.TABLES[name], data_files)
        if snapshot.closed.num_rows and is_unwritten(snapshot.window_start_ms, self.last):
            rows = topic_windows(snapshot, tick)
            jobs["topic_windows"] = partial(self._writer.write, schemas.TOPIC_WINDOWS, rows)
        futures = {name: self._pool.submit(job, tick.batch_id) for name, job in jobs.items()}
        written = {name: future.result() for name, future in futures.items()}
        return self._versions() | written

    def _versions(self) -> dict[str, int]:
        """Return table versions: those of the row before, or the newest after maintenance."""
        versions: dict[str, int] = {}
        if self.last and not self._is_maintained:
            versions |= self.last["table_versions"]
        self._is_maintained = False
        for name, table in schemas.TABLES.items():
            is_of_job = name != "batches" and not table.is_of_diagnosis
            if is_of_job and name not in versions:  # also a table that an older job did not have
                versions[name] = self._writer.version(name)
        return versions

    def _publish(self, row: dict[str, Any], gaps: list[dict[str, Any]], tick: Tick) -> None:
        same = {
            "date": tick.now.date(),
            "cluster": tick.cluster,
            "batch_id": tick.batch_id,
            "polled_at": tick.now,
            "checkpoint_id": self._identity.checkpoint_id,
        }
        rows = [{**same, **row}]
        for number, gap in enumerate(gaps, 1):
            rows.append({**same, "kind": "gap", "gap_seq": number, **gap})
        self._writer.write(schemas.BATCHES, to_arrow(schemas.BATCHES, rows), tick.batch_id)
        self.last = rows[0]
        self._has_history = self._has_history or row["kind"] == TICK
        self._begins_again = False
        self._rereads -= row["source_to"].keys()
        self.published += 1
        self.on_published(rows[0])


def _written_positions(root: str, identity: Identity) -> dict[int, int]:
    """Return positions up to which history has the rows of a re-read offsets topic.

    The topic is read from its start again.
    """
    if identity.replaced_topic_id != ADMIN:
        return {}
    return newest_of_topic(root, identity.offsets_topic_id, identity.checkpoint_id)


def _rebuilt(last: Mapping[str, Any], *, continues: bool) -> tuple[dict[str, Any], frozenset[int]]:
    """Return the newest row as a new checkpoint goes on from it, and partitions to read again.

    The partitions are offsets partitions.
    """
    if continues:
        return {**last, "source_to": positions_to_go_on(last)}, frozenset(fallen(last))
    # it goes on counting, but the state and the positions are perhaps of a topic that is no more
    return {**last, "source_to": {}, "kind": BACKFILL}, frozenset()
