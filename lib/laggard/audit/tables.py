"""Walk over the tables of one root, oldest first and a part at a time: memory does not grow with the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import field as column

from laggard.audit import batches, windows
from laggard.audit.excuses import ENDS, QUARANTINED, RECOVERED, Excuses
from laggard.audit.reader import DAY, Reader
from laggard.audit.result import Tally, new_tallies
from laggard.audit.sums import check_sums
from laggard.tables.schemas import (
    BATCHES,
    GROUP_EVENTS,
    GROUP_HISTORY,
    GROUP_STATUS,
    GROUP_WINDOWS,
    LAG_WINDOWS,
    PARTITION_STATUS,
    TABLES,
    TOPIC_WINDOWS,
    Table,
)

HASHES = 4_000_000  # of keys at a time
_MOVING = (*TOPIC_WINDOWS.key, "window_end", "log_end_offset", "produced")
_HISTORY = (
    "status",
    "lag",
    "lag_known",
    "partitions_total",
    "partitions_ok",
    "partitions_no_commit",
    "partitions_unknown",
)
_EVALUATED = (*_HISTORY[2:], "lag_max", "commits", "noop_commits")
_OF_WINDOWS = (LAG_WINDOWS, GROUP_HISTORY, GROUP_EVENTS, PARTITION_STATUS)  # read together
_OF_STATUS = (PARTITION_STATUS, GROUP_STATUS)
_STATUS = ("status", "committed_offset", "log_end_offset", "log_start_offset", "ahead_records", "lag")


@dataclass(slots=True)
class Audit:
    """Tallies by invariant, and facts that are no violation."""

    tallies: dict[str, Tally] = field(default_factory=new_tallies)
    totals: batches.Totals = field(default_factory=batches.Totals)


def audit_tables(reader: Reader, tables: Sequence[Table]) -> Iterator[Audit]:
    """Check the invariants of these tables; gives the same audit after each of `count_steps`, complete at the last."""
    audit = Audit()
    has_windows = any(table in tables for table in (LAG_WINDOWS, GROUP_HISTORY, GROUP_WINDOWS))
    has_status = PARTITION_STATUS in tables or GROUP_STATUS in tables
    needed = [*tables, *(_OF_WINDOWS if has_windows else ()), *(_OF_STATUS if has_status else ())]
    missing = [table for table in TABLES.values() if table in needed and reader.lacks(table)]
    if missing:
        names = ", ".join(table.name for table in missing)
        audit.tallies["I1"].unchecked = (
            f"batch {reader.batch.batch_id} names a version of tables that are missing, and what is compared with them"
            f" is not checked either: {names}"
        )
    for table in tables:
        if table not in (LAG_WINDOWS, TOPIC_WINDOWS):  # their rows are compared with their neighbours
            _check_keys(reader, table, audit.tallies["I1"])
        yield audit
    if BATCHES in tables:
        yield from _check_batches(reader, audit)
    if has_status and not any(table in missing for table in _OF_STATUS):
        _check_status(reader, audit)
    if TOPIC_WINDOWS in tables:
        yield from _check_topics(reader, audit)
    if has_windows and not any(table in missing for table in _OF_WINDOWS):
        yield from _check_windows(reader, audit)


def count_steps(reader: Reader, tables: Sequence[Table]) -> int:
    """Count the steps of `audit_tables`."""
    walked = [table for table in (BATCHES, TOPIC_WINDOWS) if table in tables]
    if any(table in tables for table in (LAG_WINDOWS, GROUP_HISTORY, GROUP_WINDOWS)):
        walked.append(LAG_WINDOWS)
    return len(tables) + sum(len(reader.spans(table)) for table in walked)


def _check_keys(reader: Reader, table: Table, tally: Tally) -> None:
    """I1, by a hash of each key: the keys of all rows may be more than memory holds."""
    scan = reader.scan(table, table.key, (reader.begin, reader.end) if table.time_column in table.key else None)
    if scan is None:
        return
    parts = 1 + sum(reader.counts(table).values()) // HASHES
    for part in range(parts):
        found = [each[each % parts == part] for each in map(windows.hash_rows, scan.to_batches())]
        hashes = np.concatenate([np.zeros(0, np.uint64), *found])
        tally.checked += len(hashes)
        hashes.sort()
        doubled = hashes[1:][hashes[1:] == hashes[:-1]]
        if len(doubled):
            kept = [each.filter(pa.array(np.isin(windows.hash_rows(each), doubled))) for each in scan.to_batches()]
            windows.check_unique(pa.Table.from_batches(kept), table, tally)


def _check_batches(reader: Reader, audit: Audit) -> Iterator[Audit]:
    before = None
    for span in reader.spans(BATCHES):
        rows = reader.rows(BATCHES, batches.COLUMNS, *span).to_pylist()
        before = batches.check_batches(rows, before, audit.tallies["I7"], audit.totals)
        yield audit


def _check_status(reader: Reader, audit: Audit) -> None:
    """Rows of the newest batch, and the sums over them."""
    rows = reader.whole(PARTITION_STATUS, (*PARTITION_STATUS.key, *_STATUS))
    windows.check_rows(rows, PARTITION_STATUS, audit.tallies)
    by = GROUP_STATUS.key
    check_sums(rows, reader.whole(GROUP_STATUS, (*by, *_HISTORY)), by, GROUP_STATUS, audit.tallies["I6"])


def _check_topics(reader: Reader, audit: Audit) -> Iterator[Audit]:
    excuses, before = _excuses(reader, audit.totals), None
    for span in reader.spans(TOPIC_WINDOWS):
        rows = reader.rows(TOPIC_WINDOWS, _MOVING, *span)
        before, _, _ = windows.check_neighbours(before, rows, TOPIC_WINDOWS, audit.tallies, excuses)
        yield audit


def _check_windows(reader: Reader, audit: Audit) -> Iterator[Audit]:
    excuses, before, tallies = _excuses(reader, audit.totals), None, audit.tallies
    for begin, end in reader.spans(LAG_WINDOWS):
        rows = reader.rows(LAG_WINDOWS, windows.COLUMNS, begin, end)
        windows.check_rows(rows, LAG_WINDOWS, tallies)
        before, earlier, later = windows.check_neighbours(before, rows, LAG_WINDOWS, tallies, excuses)
        windows.check_order(earlier, later, tallies, excuses)
        windows.check_source(rows, tallies["I4"], _read_to(reader, rows, begin, end))
        for table, columns in ((GROUP_HISTORY, (*_HISTORY, "sampled_at")), (GROUP_WINDOWS, _EVALUATED)):
            stored = reader.rows(table, (*table.key, *columns), begin, end)
            by = (*table.key, *({"sampled_at"} & {*columns}))
            check_sums(rows, stored, by, table, tallies["I6"])
        for each in pc.value_counts(rows["status"]).to_pylist():
            audit.totals.statuses[each["values"]] += each["counts"]
        audit.totals.ahead += int(pc.sum(pc.greater(rows["ahead_records"], 0)).as_py() or 0)
        yield audit
    if before is not None and (closed_to := reader.batch.values["windows_closed_to"]) is not None:
        living = reader.whole(PARTITION_STATUS, PARTITION_STATUS.key)
        windows.check_newest(before, living, closed_to, tallies["I2"], excuses)


def _excuses(reader: Reader, totals: batches.Totals) -> Excuses:
    columns = ("kind", "polled_at", "gap_scope", "gap_from", "gap_to", "gap_reason")
    rows = reader.whole(BATCHES, columns)
    oldest = pc.min(rows["polled_at"]).as_py() or reader.begin
    kept = rows.filter((column("kind") == batches.GAP) & column("gap_from").is_valid() & column("gap_to").is_valid())
    if (spans := reader.spans(LAG_WINDOWS)) and spans[0][0].date() < oldest.date():
        totals.gaps_known_since = oldest
    events = reader.whole(GROUP_EVENTS, ("group", "kind", "event_at", "topic", "partition"))
    kinds = (*ENDS, QUARANTINED, RECOVERED)
    return Excuses(kept.to_pylist(), events.filter(column("kind").isin(kinds)).to_pylist(), oldest)


def _read_to(reader: Reader, rows: pa.Table, begin: datetime, end: datetime) -> Callable[[int, int], int | None]:
    """Positions by the batches that wrote these rows; a window is written by the first batch after it."""
    kept = reader.rows(BATCHES, ("batch_id", "kind", "source_to"), begin, end + DAY).filter(
        (column("kind") != batches.GAP) & column("batch_id").isin(pc.unique(rows["batch_id"]))
    )
    found = {row["batch_id"]: dict(row["source_to"] or ()) for row in kept.to_pylist()}
    return lambda batch, partition: found.get(batch, {}).get(partition)


def chosen_tables(names: Sequence[str]) -> list[Table]:
    """Give the tables of these names; all of them if none is given."""
    return [TABLES[name] for name in names or TABLES]
