"""Simulate a workload, and run the job's own decode and advance stages on the records it wrote."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from operator import itemgetter
from typing import Any

import pyarrow as pa

from laggard.config.policy import Policies
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.rebalance.groups import Listing
from laggard.sources.snapshot import FACTS, OFFSETS_PARTITIONS, POSITIONS, PROBES, Snapshot
from laggard.sources.window_facts import TopicWindow
from laggard.stream.job.ticks import topic_windows
from laggard.stream.tick.advance import Poll, advance
from laggard.stream.tick.decode import decode_records
from laggard.stream.tick.decoded import SCHEMA as DECODED
from laggard.stream.tick.decoded import read_batch
from laggard.stream.tick.offsets_topic_events import offsets_topic_events
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.schema import schemas
from simulator.cluster import Cluster
from simulator.offsets_log import PARTITIONS, Written
from simulator.producer import Arrivals
from simulator.records import TopicPartition
from simulator.truth import Position, Truth
from simulator.workloads import WORKLOADS
from stream.simulation import RECORDS

Row = dict[str, Any]
TICK_MS = 15_000


@dataclass(frozen=True)
class Polled:
    """One tick's poll, in the shape of the job's snapshot."""

    at_ms: int
    positions: list[Row]
    offsets_partitions: dict[int, Row]
    facts: list[Row] = field(default_factory=list)  # asked in the poll that closes a window
    probes: list[Row] = field(default_factory=list)  # likewise
    partitions: int = PARTITIONS  # of the offsets topic, used or not


@dataclass(frozen=True)
class Simulation:
    """The result of a run: all records written, every poll, and the truth."""

    workload: str
    seed: int
    records: list[Written]
    polls: list[Polled]
    truth: Truth
    logs: dict[TopicPartition, Arrivals] = field(default_factory=dict)


def simulate(workload: str, seed: int, tick_ms: int = TICK_MS, mark: str = "") -> Simulation:
    """Run a workload to its end; the same seed gives the same bytes. `mark` ends the names of its
    groups and topics.
    """
    cluster = Cluster(seed, mark)
    length_ms = WORKLOADS[workload](cluster)
    polls: list[Polled] = []

    def poll() -> None:
        polls.append(
            Polled(cluster.clock.now, cluster.brokers.poll(), cluster.coordinator.log.positions())
        )
        cluster.truth.positions.append(_positions(cluster))
        cluster.clock.after(tick_ms, poll)

    cluster.clock.after(tick_ms, poll)
    cluster.clock.run_until(cluster.clock.now + length_ms)
    cluster.truth.finish()
    logs = {
        (name, part): log
        for name, topic in cluster.brokers.topics.items()
        for part, log in enumerate(topic.logs)
    }
    return Simulation(workload, seed, cluster.coordinator.log.records, polls, cluster.truth, logs)


recall = cache(simulate)  # for those who only look


def _positions(cluster: Cluster) -> dict[tuple[str, str, int], Position]:
    """Every partition that a group has committed or processed, as its coordinator knows it now."""
    committed, now = cluster.coordinator.committed, cluster.clock.now
    visible = cluster.coordinator.log.visible_offsets()
    found = {}
    for group, place in {(key[0], key[1:]) for key in committed} | cluster.truth.processed.keys():
        if place[0] not in cluster.brokers.topics:
            continue
        processed = cluster.truth.processed_at(group, place, now)
        held = committed.get((group, *place))
        end = cluster.brokers.end(*place)
        produced_ms = None
        if processed is not None and processed < end:
            produced_ms = cluster.brokers.topics[place[0]].logs[place[1]].produced_at(processed)
        time_lag = 0 if processed is not None and processed >= end else None
        time_lag = time_lag if produced_ms is None else now - produced_ms
        key = (group, *place)
        found[key] = Position(
            None if held is None else held[0],
            visible.get(key),
            processed,
            cluster.brokers.start(*place),
            end,
            time_lag,
        )
    return found


def ticks(simulation: Simulation, step: int = 1) -> Iterator[tuple[int, Polled, list[Written]]]:
    """Every step-th poll, its number, and what a read_committed reader got since the one before.

    That is all below the last stable offset, without what was aborted.
    """
    unread: dict[int, deque[tuple[int, Written]]] = {}
    for place, record in enumerate(simulation.records):
        unread.setdefault(record.partition, deque()).append((place, record))
    for number in range(step - 1, len(simulation.polls), step):
        polled = simulation.polls[number]
        read = []
        for part, row in polled.offsets_partitions.items():
            left = unread.get(part, ())
            while left and left[0][1].offset < row["last_stable_offset"]:
                read.append(left.popleft())
        read.sort(key=itemgetter(0))  # as they were written
        yield number, polled, [each for _, each in read if each.is_visible]


class Laggard:
    """The job without Spark, tick by tick; appended rows are kept."""

    def __init__(self, window_seconds: int = 60, policies: Policies | None = None) -> None:
        self.window_seconds, self.policies = window_seconds, policies
        self.tables = {
            name: arrow_schema(table).empty_table() for name, table in schemas.TABLES.items()
        }
        self.history: dict[str, list[Row]] = {
            name: [] for name, table in schemas.TABLES.items() if not table.overwritten
        }
        self._number = 0
        self._last: datetime | None = None
        self._partitions = PARTITIONS  # of the offsets topic at the tick before
        self._topic_window = TopicWindow(1000 * window_seconds)
        self._stable_since: dict[int, tuple[int, int]] = {}

    def tick(
        self, polled: Polled, records: list[Written], *, is_caught_up: bool = True
    ) -> dict[str, pa.Table]:
        self._number += 1
        decoded = self.decode(sorted(records, key=lambda each: (each.partition, each.offset)))
        positions = pa.Table.from_pylist(polled.positions, schema=POSITIONS)
        leaders = {part: row["coordinator"] for part, row in polled.offsets_partitions.items()}
        probes = pa.Table.from_pylist(polled.probes, schema=PROBES)
        poll = Poll(positions, Listing({}, leaders, is_fresh=False), probes)
        tick = replace(self._tick(polled), is_caught_up=is_caught_up)
        self.tables = self.advance(decoded, poll, tick)
        self.tables["decoded"] = decoded
        facts = pa.Table.from_pylist(polled.facts, schema=FACTS)
        closed, begin_ms = self._topic_window.add(self._number, polled.at_ms, positions, facts)
        snapshot = Snapshot(self._number, polled.at_ms, window_start_ms=begin_ms, closed=closed)
        self.tables["topic_windows"] = topic_windows(snapshot, tick)
        self._add_own_events(polled.partitions, tick)
        self.keep()
        self._last = tick.now
        return self.tables

    def decode(self, given: list[Written]) -> pa.Table:
        """What the decode stage makes of records in Kafka's order within each partition."""
        table = pa.table(
            [
                pa.array([each.partition for each in given], pa.int32()),
                pa.array([each.offset for each in given], pa.int64()),
                pa.array(
                    [each.timestamp_ms * 1000 for each in given], pa.timestamp("us", tz="UTC")
                ),
                pa.array([each.record.key for each in given], pa.binary()),
                pa.array([each.record.value for each in given], pa.binary()),
            ],
            schema=RECORDS,
        )
        return pa.Table.from_batches(decode_records(table, NameFilter()), DECODED)

    def advance(self, decoded: pa.Table, poll: Poll, tick: Tick) -> dict[str, pa.Table]:
        """Rows of every table after the state of the tick before."""
        return advance(
            self.tables["partition_status"],
            self.tables["group_status"],
            read_batch(decoded),
            poll,
            tick,
            self.policies,
        )

    def _add_own_events(self, partitions: int, tick: Tick) -> None:
        """What the driver writes beside its tasks."""
        rows = [{"offsets_partition": number} for number in range(partitions)]
        snapshot = Snapshot(
            self._number,
            0,
            offsets_partitions=pa.Table.from_pylist(rows, schema=OFFSETS_PARTITIONS),
        )
        last = {
            "source_to": dict.fromkeys(range(self._partitions), 0),
            "source_high_watermark": None,
        }
        if events := offsets_topic_events(last, snapshot, tick):
            own = to_arrow(schemas.GROUP_EVENTS, events)
            self.tables["group_events"] = pa.concat_tables([self.tables["group_events"], own])
        self._partitions = partitions

    def keep(self) -> None:
        for name in self.history.keys() & self.tables.keys():
            self.history[name] += self.tables[name].to_pylist()

    def _tick(self, polled: Polled) -> Tick:
        now = datetime.fromtimestamp(polled.at_ms / 1000, timezone.utc)
        blocked = [
            part
            for part, row in polled.offsets_partitions.items()
            if self._blocked_since(part, row, polled.at_ms) is not None
        ]
        tick = Tick(
            cluster="c",
            batch_id=self._number,
            poll_id=self._number,
            metadata_poll_id=self._number,
            now=now,
            window_seconds=self.window_seconds,
            # unless set otherwise the reader has got all that the poll calls stable
            is_caught_up=True,
            opens_window=False,
            closes_windows=False,
            has_history=self._last is not None,
            blocked_partitions=tuple(blocked),
        )
        opens = self._last is not None and self._last < tick.window_start
        return replace(tick, opens_window=opens, closes_windows=opens)

    def _blocked_since(self, part: int, row: Row, now_ms: int) -> int | None:
        """The poll's rule: the last stable offset has stood behind the high
        watermark for a window.
        """
        last, since = self._stable_since.get(part, (-1, now_ms))
        if row["last_stable_offset"] != last or last >= row["high_watermark"]:
            since = now_ms
        self._stable_since[part] = (row["last_stable_offset"], since)
        is_behind = row["last_stable_offset"] < row["high_watermark"]
        return since if is_behind and now_ms - since >= self.window_seconds * 1000 else None


def compacted(records: list[Written]) -> list[Written]:
    """What the log cleaner leaves in the end: the last record of each key that was not aborted."""
    last = {(each.partition, each.record.key): each for each in records if each.is_visible}
    return [each for each in records if last.get((each.partition, each.record.key)) is each]


def run_through_laggard(simulation: Simulation) -> Laggard:
    """All ticks of a workload; status tables as of the last one, the others whole
    under `history`.
    """
    job = Laggard()
    for _, polled, records in ticks(simulation):
        job.tick(polled, records)
    return job
