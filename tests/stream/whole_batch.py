"""The whole batch without a JVM: decode, advance, files, Delta commits and the `batches` row, by
the job's own code.

Only Spark is replaced: its write-ahead log is a text, and its one job per batch runs here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from exporter.harness import Clock, Exporter, Key
from laggard.config.policy import Policies
from laggard.config.sections import ADMIN, Job
from laggard.errors import TEMPORARY, LaggardError
from laggard.names import NameFilter
from laggard.sources.offsets_topic import READ_TO
from laggard.sources.readiness import OffsetsTopic
from laggard.sources.snapshot import OFFSETS_PARTITIONS, POSITIONS, Snapshot, pack
from laggard.stream.job import batch as job
from laggard.stream.job.starting import prepare
from laggard.stream.tick.advance_stage import advance_stage
from laggard.stream.tick.decode import decode_stage
from laggard.tables.arrow import arrow_schema
from laggard.tables.delta import Writer
from laggard.tables.published import newest_batch
from laggard.tables.readers import open_table
from laggard.tables.schema import schemas
from stream.simulation import RECORDS, Row

TOPIC = "__consumer_offsets"
Given = tuple[bytes | None, bytes | None, int]  # key, value, record timestamp in ms


@dataclass
class _Source:
    """Stands in for Spark's Kafka source: one partition, whose broker may stop answering before it
    is read.
    """

    records: list[pa.RecordBatch] = field(default_factory=list)
    failure: Exception | None = None
    answers: bool = True
    waits: list[int] = field(default_factory=list)  # coordinators that let the next plans wait
    unusable: set[int] = field(default_factory=set)

    def read(
        self, _: Any, begins: Mapping[int, int], ends: Mapping[int, int], *__: Any
    ) -> pa.RecordBatch:
        begin, end = begins.get(0, 0), ends.get(0, 0)
        if self.failure is not None and end > begin:
            raise self.failure
        whole = pa.Table.from_batches(self.records, schema=RECORDS).slice(
            begin, max(0, end - begin)
        )
        return pa.RecordBatch.from_arrays(
            [column.combine_chunks() for column in whole.columns], schema=RECORDS
        )

    def plan(self, *_: Any) -> None:
        if self.waits:
            self.unusable.add(self.waits.pop())
            raise LaggardError("Spark cannot plan a read of the offsets topic", exit_code=TEMPORARY)

    def silent(self, numbers: Iterable[int]) -> frozenset[int]:
        return frozenset() if self.answers else frozenset(numbers)


@dataclass
class WholeBatches:
    """Tables in a folder, and batches on them; `scrape` is what an exporter serves
    of the newest.
    """

    folder: Path
    window_seconds: int = 20
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc).replace(microsecond=0))
    source: Any = field(default_factory=_Source)
    spark: Any = field(
        default_factory=lambda: SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
    )
    position: int = 0
    spark_batch: int = -1
    most_rows: int = 2_000_000  # of partition_status
    ended: list[str] = field(default_factory=list)  # groups that their coordinator does not know
    topic_id: str = "topic"  # of the offsets topic; "admin": coordinators are polled

    def __post_init__(self) -> None:
        self.root, self.checkpoint = str(self.folder / "tables"), self.folder / "checkpoint"
        self.start()
        self.exporter = Exporter(Path(self.root), Clock(), max_series=1_000_000)

    def start(self) -> None:
        """Begin as the job does, with what the folder holds."""
        places = Job(
            tables=self.root, checkpoint=str(self.checkpoint), window_seconds=self.window_seconds
        )
        identity = prepare(places, OffsetsTopic("cluster", self.topic_id, 1))
        (self.checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        options = job.BatchOptions(
            "prod",
            str(self.checkpoint),
            self.source,
            self.window_seconds,
            NameFilter(),
            Policies(),
            self.most_rows,
        )
        self.writer = Writer(self.root, identity.checkpoint_id)
        self.batches = job.Batches(self.spark, self.writer, identity, options)
        # Spark runs a batch again that it had planned and that did not end
        ended = self.batches.last["batch_id"] if self.batches.last else -1
        self.spark_batch = max(-1, ended - identity.base_batch_id)

    def tick(
        self,
        ends: Iterable[Row],
        records: Iterable[Given],
        *,
        seconds: float = 10,
        answers: bool = True,
    ) -> Row:
        """One batch with these records, so many seconds after the one before; gives its `batches`
        row.
        """
        given, first = list(records), self.position
        self.now += timedelta(seconds=seconds)
        self.position += len(given)
        self.spark_batch += 1
        read_to = {} if self.topic_id == ADMIN else {"0": self.position}
        offset = pack(self._snapshot(list(ends), answers=answers)) | {READ_TO: read_to}
        (self.checkpoint / "offsets" / str(self.spark_batch)).write_text(
            f"v1\n{json.dumps(offset)}"
        )
        columns = zip(*given, strict=True) if given else ((), (), ())
        keys, values, times = columns
        given_records = pa.record_batch(
            [
                pa.array([0] * len(given), pa.int32()),
                pa.array(range(first, self.position), pa.int64()),
                pa.array([at * 1000 for at in times], pa.timestamp("us", tz="UTC")),
                pa.array(keys, pa.binary()),
                pa.array(values, pa.binary()),
            ],
            schema=RECORDS,
        )
        self.source.records.append(given_records)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(job, "advance_frame", _run_here)
            frame: Any = SimpleNamespace(sparkSession=self.spark)
            self.batches.process(frame, self.spark_batch)
        newest = newest_batch(self.root)
        assert newest is not None
        return dict(newest.values)

    def rows(self, name: str) -> list[Row]:
        """Rows of a table at the version that the newest batch names."""
        table = open_table(
            self.root,
            name,
            self.batches.last["table_versions"].get(name) if self.batches.last else None,
        )
        names = [field.name for field in arrow_schema(schemas.TABLES[name])]
        rows: list[Row] = table.to_pyarrow_table(columns=names).to_pylist(maps_as_pydicts="lossy")
        return rows

    def scrape(self) -> dict[Key, float]:
        """Samples of both formats."""
        self.exporter.clock.now = self.now.timestamp() + 1
        self.exporter.refresh()
        return self.exporter.samples()

    def _snapshot(self, ends: list[Row], *, answers: bool) -> Snapshot:
        number = 1 + (self.batches.last["poll_id"] if self.batches.last else 0)
        position = self.position if answers else None
        own = {"offsets_partition": 0, "high_watermark": position, "last_stable_offset": position}
        return Snapshot(
            poll_id=number,
            polled_at_ms=round(self.now.timestamp() * 1000),
            metadata_poll_id=number,
            ended_groups=self.ended,
            positions=pa.Table.from_pylist(ends, schema=POSITIONS),
            offsets_partitions=pa.Table.from_pylist([own], schema=OFFSETS_PARTITIONS),
        )


def _run_here(
    records: pa.RecordBatch,
    names: NameFilter,
    snapshot: Snapshot,
    tick: Any,
    state: Any,
    _: int,
    policies: Policies,
    limits: Any,
) -> Any:
    """The job of `advance_frame` in one task."""
    decode = decode_stage(names, with_edges=tick.is_caught_up)
    advance = advance_stage(snapshot, tick, state, policies, names, limits)

    def collect() -> Iterator[tuple[str, str]]:
        for batch in advance(decode(iter([records]))):
            yield from zip(batch["kind"].to_pylist(), batch["data"].to_pylist(), strict=True)

    return SimpleNamespace(collect=lambda: list(collect()))
