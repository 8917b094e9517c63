"""Source A: the offsets topic, read through Spark batch by batch between positions per partition.

The positions after a batch come from its poll and are part of its streaming offset, so that a
re-run reads the same records. Spark itself is asked for no offsets: it would wait for every
broker, and this waits for none.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from laggard.config.security import Security
from laggard.lag.arrays import tuples
from laggard.sources.brokers import LATEST, Brokers, TopicPartition, offsets_of
from laggard.sources.login.security import version_of
from laggard.sources.login.spark_security import check_executors, spark_options
from laggard.sources.metadata import read_partitions
from laggard.sources.odd_records import read_records
from laggard.sources.read_plan import Planner
from laggard.sources.snapshot import Snapshot
from laggard.wire.coordinator import coordinator_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from laggard.config.sections import Cluster

DEPRECATED_OFFSET_READER = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
COLUMNS = {
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
}
READ_OPTIONS = {
    "kafka.isolation.level": "read_committed",  # an aborted transaction's commit is not progress
    # a batch reads only what is there: a broker that holds a fetch back for more to come costs half
    # a second each
    "kafka.fetch.max.wait.ms": "20",
    "failOnDataLoss": "false",  # compaction and retention are gaps, not failures
    # A consumer whose broker stops answering has to find the new leader. Kafka's defaults let it
    # wait 30 s, ask the same broker for metadata, and reconnect to it before it can ask another
    # one, on and on.
    "kafka.metadata.max.age.ms": "1000",
    "kafka.retry.backoff.ms": "100",
    "kafka.retry.backoff.max.ms": "200",
    # more than the wait before metadata is asked again, so of another broker
    "kafka.reconnect.backoff.ms": "2000",
    "kafka.reconnect.backoff.max.ms": "2000",
}
# of the time limit of a poll: the consumers of one task wait one after the other
REQUEST_SHARE = 0.25
LEAST_REQUEST_SECONDS = 2.5
# a coordinator may lead its partition and yet give no offsets: it loads them, or failed to
PLAN_SECONDS = 30
# a batch waits so long, up to twice, for a broker that stopped answering after the poll
LEAST_FETCH_SECONDS = 10
READ_TO = "read_to"  # key of the positions in the streaming offset
PIECE_RECORDS = 10_000  # held in memory
# no group is joined, but Spark's consumers look for its coordinator
GROUP = "spark-kafka-source-laggard"

Positions = Mapping[int, int]  # offsets partition to next offset


def next_positions(positions: Positions, parts: pa.Table, most_records: int) -> dict[int, int]:
    """Return the positions after a batch that reads up to a poll's last stable offsets.

    The batch reads at most `most_records` records.

    `parts` has the schema `OFFSETS_PARTITIONS`. A partition without an answer keeps its position;
    one whose last stable offset is below its position falls to it. Of a larger backlog every
    partition gets the same share.
    """
    ends = _known(parts, "last_stable_offset")
    begins = begin_positions(positions, ends, parts)
    waiting = {number: max(0, ends[number] - begin) for number, begin in begins.items()}
    total = sum(waiting.values())
    if total > most_records:
        for number, records in waiting.items():
            if records:
                ends[number] = begins[number] + max(1, records * most_records // total)
    return {**positions, **ends}


def begin_positions(positions: Positions, ends: Positions, parts: pa.Table) -> dict[int, int]:
    """Begin of reading up to `ends`: the position, or the start of the log where that is later."""
    starts = _known(parts, "log_start_offset")
    return {number: max(positions.get(number, 0), starts.get(number, 0)) for number in ends}


def is_read(positions: Positions, parts: pa.Table) -> bool:
    """Return True if these positions have reached a poll's known last stable offsets."""
    ends = _known(parts, "last_stable_offset")
    return all(positions.get(number, 0) >= end for number, end in ends.items())


def unanswered(parts: pa.Table) -> frozenset[int]:
    """Return offsets partitions whose leader did not answer a poll."""
    return (
        frozenset(parts["offsets_partition"].to_pylist())
        - _known(parts, "last_stable_offset").keys()
    )


def _known(parts: pa.Table, column: str) -> dict[int, int]:
    pairs = tuples(parts, ("offsets_partition", column))
    return {number: offset for number, offset in pairs if offset is not None}


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one partition from offset `begin` to before `end`, with the columns `COLUMNS`."""

    partition: int
    begin: int
    end: int
    records: pa.Table


def rounds(
    begins: Positions, ends: Positions, pieces: Iterable[Piece] = ()
) -> list[dict[int, tuple[int, int]]]:
    """Return ranges to read, one per partition in each round.

    There is more than one round only if pieces are left out.
    """
    ranges: list[dict[int, tuple[int, int]]] = []
    for number, end in sorted(ends.items()):
        begin, index = begins.get(number, 0), 0
        cuts = sorted((piece.begin, piece.end) for piece in pieces if piece.partition == number)
        for low, high in [*cuts, (end, end)]:
            if low > begin:
                if index == len(ranges):
                    ranges.append({})
                ranges[index][number] = (begin, low)
                index += 1
            begin = max(begin, high)
    return ranges


@dataclass(frozen=True, slots=True)
class OffsetsSource:
    """Options with which Spark reads records of the offsets topic."""

    bootstrap_servers: tuple[str, ...]
    topic: str
    request_timeout_seconds: float
    security: Security = field(default_factory=Security)
    _planner: Planner = field(default_factory=Planner, repr=False, compare=False)
    # offsets partitions whose coordinators let a plan wait though they lead them; no group of
    # theirs is taken again
    unusable: set[int] = field(default_factory=set, repr=False, compare=False)

    @classmethod
    def of(cls, cluster: Cluster) -> OffsetsSource:
        """Return the source of a configured cluster."""
        servers = tuple(cluster.bootstrap_servers)
        return cls(
            servers, cluster.offsets_topic, cluster.request_timeout_seconds, cluster.security
        )

    def plan(
        self, frame: DataFrame, snapshot: Snapshot, silent: frozenset[int] = frozenset()
    ) -> None:
        """Let Spark's driver do its part of a frame with records of `read`.

        It does not wait for a silent broker.

        Raises `LaggardError` (75) if the coordinator of the group does not answer; then leave out
        what is `silent` now. One that leads its partition and lets the plan wait is `unusable`
        from then on, if there is another one.
        """
        begun = time.monotonic()
        parts, count = snapshot.offsets_partitions, max(1, snapshot.offsets_partitions.num_rows)
        partition = coordinator_partition(self.group(self._servers(snapshot), parts, silent), count)

        def is_silent() -> bool:
            if self.silent([partition]):
                return True
            others = count - len(unanswered(parts) | silent | self.unusable | {partition})
            if time.monotonic() - begun < PLAN_SECONDS or others <= 0:
                return False
            self.unusable.add(partition)
            return True

        self._planner.plan(frame, is_silent)

    def read(
        self,
        spark: SparkSession,
        begins: Positions,
        ends: Positions,
        snapshot: Snapshot,
        pieces: Sequence[Piece] = (),
        silent: frozenset[int] = frozenset(),
    ) -> DataFrame:
        """Return one row per record: partition, offset, timestamp, key, value.

        One row of nulls is added, so that a task runs.

        `pieces` were read by `read_piece` and Spark does not read them again. `silent`: offsets
        partitions that do not answer since the poll. Before an action on the rows call `plan`.
        """
        from pyspark.sql import functions as F

        nulls = (F.lit(None).cast(kind).alias(name) for name, kind in COLUMNS.items())
        rows = spark.range(1, numPartitions=1).select(*nulls)
        for part in rounds(begins, ends, pieces):
            rows = rows.unionByName(self._read(spark, part, snapshot, silent))
        for piece in pieces:
            rows = rows.unionByName(spark.createDataFrame(piece.records))
        if not pieces:
            return rows
        return rows.coalesce(1).sortWithinPartitions("partition", "offset")

    def read_piece(self, partition: int, begin: int, end: int) -> Piece:
        """Return records on which Spark's source fails, read by another client.

        It returns at most `PIECE_RECORDS`.
        """
        end, seconds = (
            min(end, begin + PIECE_RECORDS),
            max(LEAST_FETCH_SECONDS, self.request_timeout_seconds),
        )
        records = read_records(
            self.bootstrap_servers, self.topic, partition, begin, end, seconds, self.security
        )
        return Piece(partition, begin, end, records)

    def _read(
        self,
        spark: SparkSession,
        ranges: Mapping[int, tuple[int, int]],
        snapshot: Snapshot,
        silent: frozenset[int],
    ) -> DataFrame:
        """Return records of one range per partition.

        `assign` joins no consumer group on the watched cluster. With Spark 4.2's default offset
        reader the source resolves zero partitions of an internal topic, so the job sets the other
        one.
        """
        is_local = (spark.sparkContext.master or "").startswith("local")
        if not is_local:
            check_executors(spark, self.security)
        begins = {str(number): begin for number, (begin, _) in ranges.items()}
        ends = {str(number): end for number, (_, end) in ranges.items()}
        servers = self._servers(snapshot)
        request_ms = str(
            round(1000 * max(LEAST_REQUEST_SECONDS, REQUEST_SHARE * self.request_timeout_seconds))
        )
        fetch_ms = str(round(1000 * max(LEAST_FETCH_SECONDS, self.request_timeout_seconds)))
        records = (
            spark.read.format("kafka")
            .option("kafka.bootstrap.servers", ",".join(servers))
            .option("kafka.group.id", self.group(servers, snapshot.offsets_partitions, silent))
            .option("assign", json.dumps({self.topic: list(ranges)}))
            .option("startingOffsets", json.dumps({self.topic: begins}))
            .option("endingOffsets", json.dumps({self.topic: ends}))
            .options(**READ_OPTIONS)
            .option("kafka.request.timeout.ms", request_ms)
            .option("kafka.socket.connection.setup.timeout.ms", request_ms)
            .option("kafka.socket.connection.setup.timeout.max.ms", request_ms)
            .option("kafka.default.api.timeout.ms", fetch_ms)
            .option("kafkaConsumer.pollTimeoutMs", fetch_ms)
            .options(**spark_options(self.security, is_local=is_local))
            .load()
        )
        return records.select(*COLUMNS)

    def silent(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return those of these offsets partitions whose leader does not answer now."""
        wanted = frozenset(numbers)
        brokers = Brokers(self.bootstrap_servers, self.request_timeout_seconds, self.security)
        try:
            leaders: dict[int, list[TopicPartition]] = {}
            for key, partition in read_partitions(brokers.metadata([self.topic])["topics"]).items():
                if partition.leader is not None:
                    leaders.setdefault(partition.leader, []).append(key)
            answers = brokers.list_offsets(leaders, LATEST)
        finally:
            brokers.close()
        return wanted.difference(number for _, number in offsets_of(answers))

    def _servers(self, snapshot: Snapshot) -> Sequence[str]:
        return snapshot.answering_brokers or self.bootstrap_servers

    def group(
        self, servers: Iterable[str], parts: pa.Table, silent: frozenset[int] = frozenset()
    ) -> str:
        """Return a group id whose coordinator answers, equal for equal brokers.

        Executors keep consumers by it.
        """
        # of another name once a secret is exchanged: a kept consumer would go on with the old one
        known_by = ",".join([*servers, version_of(self.security)])
        name = f"{GROUP}-{zlib.crc32(known_by.encode()):08x}"
        silent, count = unanswered(parts) | silent | self.unusable, max(1, parts.num_rows)
        turn = 0
        if len(silent) < count:  # else nothing is read
            while coordinator_partition(f"{name}-{turn}", count) in silent:
                turn += 1
        return f"{name}-{turn}"


def positions_in(offset: Mapping[str, Any]) -> dict[int, int]:
    """Return a dict from offsets partition to next offset, from a streaming offset."""
    return {int(partition): int(position) for partition, position in offset[READ_TO].items()}
