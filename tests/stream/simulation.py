"""A job without Spark: records as bytes and log ends go in tick by tick, the rows of every table
come out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

import encoder
from laggard.config.policy import Policies
from laggard.lag.tick import Tick
from laggard.names import NameFilter
from laggard.rebalance.groups import Listing
from laggard.sources.odd_records import SCHEMA as RECORDS
from laggard.sources.snapshot import OFFSETS_PARTITIONS, POSITIONS, PROBES, Snapshot
from laggard.stream.job.tick_clock import clock_column, closed_to, place, time_gaps
from laggard.stream.job.ticks import next_tick
from laggard.stream.tick.advance import Poll, advance
from laggard.stream.tick.decode import decode_records
from laggard.stream.tick.decoded import KINDS, SCHEMA, Batch, of_kind, read_batch
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema import schemas

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)
ID_A, ID_B = "aaaaaaaaaaaaaaaaaaaaaA", "bbbbbbbbbbbbbbbbbbbbbA"
Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """A record of the offsets topic; its place is given when it is appended, and its time unless it
    has one.
    """

    key: bytes
    value: bytes | None
    at: datetime | None = None


def commit(
    offset: int | None,
    *,
    group: str = "g",
    topic: str = "t",
    partition: int = 0,
    topic_id: str | None = None,
    at: datetime = NOON,
    record_type: int = 1,
) -> Record:
    """A commit, or the tombstone of one where the offset is None."""
    key = encoder.commit_key(group, topic, partition, record_type)
    fields = {
        "offset": offset,
        "leader_epoch": 5,
        "metadata": "",
        "commit_timestamp": round(at.timestamp() * 1000),
        "topic_id": topic_id,
    }
    if offset is None:
        return Record(key, None)
    return Record(key, encoder.commit_value(4 if topic_id else 3, fields))


def generation(
    number: int,
    members: Mapping[str, tuple[str, ...]] | None = None,
    *,
    group: str = "g",
    static: Mapping[str, str] | None = None,
    state_ms: int = -1,
    protocol_type: str = "consumer",
    protocol: str = "range",
    hosts: Mapping[str, str] | None = None,
    blobs: Mapping[str, tuple[bytes, bytes]] | None = None,
) -> Record:
    """A group record: member id to subscribed topics; nobody is assigned anything
    but by `blobs`.
    """
    blobs = blobs or {}
    joined = []
    for name, topics in (members or {}).items():
        subscription, assignment = (
            blobs[name] if name in blobs else (_subscription(topics), _assignment())
        )
        joined.append(
            {
                "member_id": name,
                "group_instance_id": (static or {}).get(name),
                "client_id": "client",
                "client_host": (hosts or {}).get(name, "/10.0.0.1"),
                "rebalance_timeout": 60_000,
                "session_timeout": 45_000,
                "subscription": subscription,
                "assignment": assignment,
            }
        )
    leader = next(iter(members)) if members else None
    value = {
        "protocol_type": protocol_type,
        "generation": number,
        "protocol": protocol if joined else None,
        "leader": leader,
        "current_state_timestamp": state_ms,
        "members": joined,
    }
    return Record(encoder.group_key(group), encoder.group_value(3, value))


def _subscription(topics: tuple[str, ...]) -> bytes:
    return encoder.subscription({"version": 0, "topics": topics, "user_data": None})


def _assignment() -> bytes:
    return encoder.assignment({"version": 0, "assigned_partitions": [], "user_data": None})


def group_tombstone(group: str = "g") -> Record:
    return Record(encoder.group_key(group), None)


def decoded(
    records: Iterable[Record], first_offset: int = 0, *, partition: int = 0, at: datetime = NOON
) -> pa.Table:
    """What the decode stage makes of records that lie one after the other in one
    offsets partition.
    """
    given = list(records)
    table = pa.table(
        [
            pa.array([partition] * len(given), pa.int32()),
            pa.array(range(first_offset, first_offset + len(given)), pa.int64()),
            pa.array([record.at or at for record in given], pa.timestamp("us", tz="UTC")),
            pa.array([record.key for record in given], pa.binary()),
            pa.array([record.value for record in given], pa.binary()),
        ],
        schema=RECORDS,
    )
    return pa.Table.from_batches(decode_records(table, NameFilter()), SCHEMA)


def rows_of(decoded: pa.Table) -> list[dict[str, Any]]:
    """Rows of the decode stage as dicts, each with its kind, one kind after the other."""
    return [{"kind": kind, **row} for kind in KINDS for row in of_kind(decoded, kind).to_pylist()]


def end(  # one row of a poll
    log_end: int | None = None,
    *,
    topic: str = "t",
    partition: int = 0,
    start: int | None = None,
    topic_id: str = ID_A,
    error: str | None = None,
) -> Row:
    return {
        "topic": topic,
        "topic_id": topic_id,
        "partition": partition,
        "log_end_offset": log_end,
        "log_start_offset": start,
        "leader_broker": None if error else 1,
        "error": error,
    }


@dataclass
class Simulation:
    """Ticks one after the other; whether a window opens or closes is decided by the
    job's own code.
    """

    window_seconds: int = 60
    now: datetime = NOON
    batch_id: int = 0
    poll_id: int = 0
    next_offset: int = 0
    last: Row | None = None
    has_history: bool = False
    policies: Policies | None = None
    boot_id: str = "boot"
    boot_ms: int = 0
    gaps: list[Row] = field(default_factory=list)
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(0, 0))
    tables: dict[str, pa.Table] = field(default_factory=dict)
    history: dict[str, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tables = {
            name: arrow_schema(table).empty_table() for name, table in schemas.TABLES.items()
        }
        self.history = {name: [] for name, table in schemas.TABLES.items() if not table.overwritten}

    def tick(
        self,
        ends: Iterable[Row] = (),
        records: Iterable[Record] = (),
        *,
        seconds: float = 10,
        true_seconds: float | None = None,
        is_live: bool = True,
        blocked: tuple[int, ...] = (),
        silent: tuple[int, ...] = (),
        metadata_poll_id: int | None = None,
        listing: Listing | None = None,
        batch: Batch | None = None,
        truncated: Mapping[int, int] | None = None,
        probes: Iterable[Row] = (),
    ) -> dict[str, pa.Table]:
        """One tick, so many seconds after the one before; gives its tables and keeps the appended
        rows.

        `now` is the machine's wall clock; where that was set meanwhile, other `true_seconds`
        passed.
        """
        self.now += timedelta(seconds=seconds)
        self.boot_ms += round(1000 * (seconds if true_seconds is None else true_seconds))
        self.batch_id += 1
        self.poll_id += 1
        given = list(records)
        if batch is None:
            batch = read_batch(decoded(given, self.next_offset, at=self.now))
        self.next_offset += len(given)
        positions = pa.Table.from_pylist(list(ends), schema=POSITIONS)
        probed = pa.Table.from_pylist(list(probes), schema=PROBES)
        poll = Poll(positions, listing or Listing({}, {}, is_fresh=False), probed)
        tick = self._tick(positions, blocked, silent, metadata_poll_id, is_live=is_live)
        tick = replace(tick, truncated_partitions=tuple((truncated or {}).items()))
        before = (self.tables["partition_status"], self.tables["group_status"])
        self.tables = advance(*before, batch, poll, tick, self.policies)
        for name in self.history.keys() & self.tables.keys():
            self.history[name] += self.tables[name].to_pylist()
        if self.last is not None:
            self.gaps += time_gaps(
                self.last, place(self.last, self.snapshot), tick.window, was_down=False
            )
        self.last = {
            "kind": "tick" if is_live else "backfill",
            "polled_at": tick.now,
            "poll_id": self.poll_id,
            "source_to": {},
            "clock": clock_column(self.snapshot.reading),
            "windows_closed_to": closed_to(self.last, tick, self.snapshot),
        }
        self.has_history = self.has_history or is_live
        return self.tables

    def _tick(
        self,
        positions: pa.Table,
        blocked: tuple[int, ...],
        silent: tuple[int, ...],
        metadata_poll_id: int | None,
        *,
        is_live: bool,
    ) -> Tick:
        parts: dict[int, Row] = {
            part: {"blocked_since": self.now, "last_stable_offset": 0} for part in blocked
        }
        parts |= {part: {"blocked_since": self.now, "last_stable_offset": None} for part in silent}
        parts.setdefault(49, {"last_stable_offset": 0 if is_live else 1})
        rows = [{"offsets_partition": part, **columns} for part, columns in parts.items()]
        snapshot = Snapshot(
            poll_id=self.poll_id,
            polled_at_ms=round(self.now.timestamp() * 1000),
            boot_id=self.boot_id,
            boot_ms=self.boot_ms,
            awake_ms=self.boot_ms,
            metadata_poll_id=self.poll_id if metadata_poll_id is None else metadata_poll_id,
            positions=positions,
            offsets_partitions=pa.Table.from_pylist(rows, schema=OFFSETS_PARTITIONS),
        )
        tick = next_tick(
            self.last,
            snapshot,
            dict.fromkeys(parts, 0),
            cluster="c",
            batch_id=self.batch_id,
            window_seconds=self.window_seconds,
            has_history=self.has_history,
        )
        assert tick.is_caught_up == is_live
        self.snapshot = snapshot
        return tick

    @property
    def rows(self) -> list[Row]:
        """The rows of `partition_status` now, in order of key."""
        rows: list[Row] = self.tables["partition_status"].to_pylist()
        return sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"]))

    @property
    def row(self) -> Row:
        """The only row of `partition_status`."""
        (row,) = self.rows
        return row

    @property
    def groups(self) -> dict[str, Row]:
        return {row["group"]: row for row in self.tables["group_status"].to_pylist()}

    def events(self) -> list[str]:
        return [row["kind"] for row in self.history["group_events"]]
