"""Walk over the tables of one root, oldest first and a part at a time.

So memory does not grow with the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import field as column

from laggard.audit import windows
from laggard.audit.known_gaps import ENDS, QUARANTINED, RECOVERED, KnownGaps
from laggard.audit.reader import DAY, Reader
from laggard.audit.result import Tally, Totals, new_tallies
from laggard.lag.arrays import key_codes
from laggard.tables.schema.schemas import (
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
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, its bits well mixed: 2^64 by the golden ratio
GAP = "gap"
_OF_BATCHES = (
    "batch_id", "kind", "polled_at", "source_from", "source_to", "records", "decoded", "tombstones",
    "unknown", "dead",
    "dead_letters_total", "reconcile_corrections_total", "gap_scope", "gap_from", "gap_to",
    "gap_reason",
    "gap_from_offset",
)  # fmt: skip
_OUTCOMES = ("decoded", "tombstones", "unknown", "dead")
_MOVING = (*TOPIC_WINDOWS.key, "window_end", "log_end_offset", "produced")
_HISTORY = (
    "status", "lag", "lag_known", "partitions_total", "partitions_ok", "partitions_no_commit",
    "partitions_unknown",
)  # fmt: skip
_EVALUATED = (*_HISTORY[2:], "lag_max", "commits", "noop_commits")
_OF_WINDOWS = (LAG_WINDOWS, GROUP_HISTORY, GROUP_EVENTS, PARTITION_STATUS)  # read together
_OF_STATUS = (PARTITION_STATUS, GROUP_STATUS)
_STATUS = (
    "status",
    "committed_offset",
    "log_end_offset",
    "log_start_offset",
    "ahead_records",
    "lag",
)
Row = Mapping[str, Any]


@dataclass(slots=True)
class Audit:
    """Tallies by invariant, and facts that are no violation."""

    tallies: dict[str, Tally] = field(default_factory=new_tallies)
    totals: Totals = field(default_factory=Totals)


def audit_tables(reader: Reader, tables: Sequence[Table]) -> Iterator[Audit]:
    """Check the invariants of these tables and yield the audit after each of `count_steps`.

    It is the same audit each time, complete at the last.
    """
    audit, comparisons = Audit(), _comparisons(tables)
    needed = [*tables, *(table for comparison in comparisons for table in comparison.needs)]
    missing = _missing(reader, needed, audit.tallies["I1"])
    for table in tables:
        # their rows are compared with their neighbours
        if table not in (LAG_WINDOWS, TOPIC_WINDOWS):
            _check_keys(reader, table, audit.tallies["I1"])
        yield audit
    for comparison in comparisons:
        if not any(table in missing for table in comparison.needs):
            yield from comparison.check(reader, audit)


def count_steps(reader: Reader, tables: Sequence[Table]) -> int:
    """Count the steps of `audit_tables`."""
    walked = filter(None, map(attrgetter("walked"), _comparisons(tables)))
    return len(tables) + sum(len(reader.spans(table)) for table in walked)


def _missing(reader: Reader, needed: Sequence[Table], tally: Tally) -> list[Table]:
    """Find tables that the batch names and that are missing; the tally says so."""
    missing = [table for table in TABLES.values() if table in needed and reader.lacks(table)]
    if missing:
        names = ", ".join(table.name for table in missing)
        tally.unchecked = (
            f"batch {reader.batch.batch_id} names a version of tables that are missing, and what "
            f"is compared with them is not checked either: {names}"
        )
    return missing


def _check_keys(reader: Reader, table: Table, tally: Tally) -> None:
    """Check I1 by a hash of each key, as the keys of all rows may be more than memory holds."""
    span = (reader.begin, reader.end) if table.time_column in table.key else None
    scan = reader.scan(table, table.key, span)
    if scan is None:
        return
    parts = 1 + sum(reader.counts(table).values()) // HASHES
    for part in range(parts):
        chosen = [codes[codes % parts == part] for codes in map(_hash_rows, scan.to_batches())]
        hashes = np.concatenate([np.zeros(0, np.uint64), *chosen])
        tally.checked += len(hashes)
        hashes.sort()
        doubled = hashes[1:][hashes[1:] == hashes[:-1]]
        if len(doubled):
            rows = scan.to_batches()
            doubles = [part.filter(pa.array(np.isin(_hash_rows(part), doubled))) for part in rows]
            _check_unique(pa.Table.from_batches(doubles), table, tally)


def _hash_rows(rows: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    """Return a hash of each row; equal rows have equal hashes."""
    row_hashes = np.zeros(rows.num_rows, np.uint64)
    for values in rows.columns:
        codes = values.dictionary_encode("encode")
        plain = codes.dictionary  # bytes and numbers: Python cannot hold each text and time
        if pa.types.is_string(plain.type) or pa.types.is_timestamp(plain.type):
            plain = plain.cast(pa.binary() if pa.types.is_string(plain.type) else pa.int64())
        hashes = np.array([hash(value) for value in plain.to_pylist()], np.int64).view(np.uint64)
        row_hashes = (row_hashes ^ hashes[codes.indices.to_numpy()]) * _MIX
    return row_hashes


def _check_unique(rows: pa.Table, table: Table, tally: Tally) -> None:
    """Check I1: no key occurs twice in these rows.

    The rows have key columns only and were counted before.
    """
    (codes,) = key_codes([rows], rows.column_names)
    _, first, times = np.unique(codes, return_index=True, return_counts=True)
    doubled = rows.take(pa.array(first[times > 1]))
    is_bad = pa.array(np.ones(doubled.num_rows, bool))
    tally.add(doubled, is_bad, table.name, rows.column_names, "rows", 1, pa.array(times[times > 1]))


def _check_batches(reader: Reader, audit: Audit) -> Iterator[Audit]:
    before = None
    for span in reader.spans(BATCHES):
        rows = reader.rows(BATCHES, _OF_BATCHES, *span).to_pylist()
        before = _check_rows_of_batches(rows, before, audit.tallies["I7"], audit.totals)
        yield audit


def _check_rows_of_batches(
    rows: Iterable[Row], before: Row | None, tally: Tally, totals: Totals
) -> Row | None:
    """Check the rows of one time in batch order; return the last row that read records.

    `before`: the result of the call for the time before.
    """
    ordered = sorted(rows, key=lambda row: (row["batch_id"], row["kind"] != GAP))
    has_gap = {row["batch_id"] for row in ordered if row["kind"] == GAP}
    for row in ordered:
        if row["kind"] == GAP:
            _count_gap(row, totals)
            continue
        _check_outcomes(row, tally)
        if row["batch_id"] not in has_gap:
            _check_follows(before, row, tally)
        _count_batch(row, before, totals)
        before = row
    return before


def _check_outcomes(row: Row, tally: Tally) -> None:
    """Check that every record that a batch read has one outcome."""
    tally.checked += 1
    counted = sum(row[name] or 0 for name in _OUTCOMES)
    if counted != (row["records"] or 0):
        tally.refute(
            BATCHES.name, {"batch_id": row["batch_id"]}, "records", counted, row["records"]
        )


def _check_follows(before: Row | None, row: Row, tally: Tally) -> None:
    """Check that no offset lies between a batch's end and the next start, per offsets partition."""
    ends = dict((before or {}).get("source_to") or ())
    for partition, begin in row["source_from"] or ():
        if (end := ends.get(partition)) is not None and begin > end:
            key = {"batch_id": row["batch_id"], "offsets partition": partition}
            tally.refute(BATCHES.name, key, "source_from, at most the source_to before", end, begin)


def _count_batch(row: Row, before: Row | None, totals: Totals) -> None:
    totals.batches += 1
    totals.records += row["records"] or 0
    totals.unknown_records += row["unknown"] or 0
    if before is None:
        return
    totals.reconciled += max(
        (row["reconcile_corrections_total"] or 0) - (before["reconcile_corrections_total"] or 0), 0
    )
    known = dict(before["dead_letters_total"] or ())
    for reason, total in row["dead_letters_total"] or ():
        if total > known.get(reason, 0):
            totals.dead_letters[reason] += total - known.get(reason, 0)


def _count_gap(row: Row, totals: Totals) -> None:
    totals.gaps[row["gap_reason"]] += 1
    if row["gap_from"] is not None and row["gap_to"] is not None and row["gap_from_offset"] is None:
        totals.gap_seconds[row["gap_reason"]] += (row["gap_to"] - row["gap_from"]).total_seconds()


def _check_status(reader: Reader, audit: Audit) -> Iterator[Audit]:
    """Check rows of the newest batch, and the sums over them, at once: it is no step of its own."""
    rows = reader.whole(PARTITION_STATUS, (*PARTITION_STATUS.key, *_STATUS))
    windows.check_rows(rows, PARTITION_STATUS, audit.tallies)
    by = GROUP_STATUS.key
    windows.check_sums(
        rows, reader.whole(GROUP_STATUS, (*by, *_HISTORY)), by, GROUP_STATUS, audit.tallies["I6"]
    )
    yield from ()


def _check_topics(reader: Reader, audit: Audit) -> Iterator[Audit]:
    known_gaps, before = _known_gaps(reader, audit.totals), None
    for span in reader.spans(TOPIC_WINDOWS):
        rows = reader.rows(TOPIC_WINDOWS, _MOVING, *span)
        before, _, _ = windows.check_neighbours(
            before, rows, TOPIC_WINDOWS, audit.tallies, known_gaps
        )
        yield audit


def _check_windows(reader: Reader, audit: Audit) -> Iterator[Audit]:
    known_gaps, before, tallies = _known_gaps(reader, audit.totals), None, audit.tallies
    for begin, end in reader.spans(LAG_WINDOWS):
        rows = reader.rows(LAG_WINDOWS, windows.COLUMNS, begin, end)
        windows.check_rows(rows, LAG_WINDOWS, tallies)
        before, earlier, later = windows.check_neighbours(
            before, rows, LAG_WINDOWS, tallies, known_gaps
        )
        windows.check_order(earlier, later, tallies, known_gaps)
        windows.check_source(rows, tallies["I4"], _read_to(reader, rows, begin, end))
        for table, columns in (
            (GROUP_HISTORY, (*_HISTORY, "sampled_at")),
            (GROUP_WINDOWS, _EVALUATED),
        ):
            stored = reader.rows(table, (*table.key, *columns), begin, end)
            by = (*table.key, *({"sampled_at"} & {*columns}))
            windows.check_sums(rows, stored, by, table, tallies["I6"])
        for entry in pc.value_counts(rows["status"]).to_pylist():
            audit.totals.statuses[entry["values"]] += entry["counts"]
        audit.totals.ahead += int(pc.sum(pc.greater(rows["ahead_records"], 0)).as_py() or 0)
        yield audit
    if before is not None and (closed_to := reader.batch.values["windows_closed_to"]) is not None:
        living = reader.whole(PARTITION_STATUS, PARTITION_STATUS.key)
        windows.check_newest(before, living, closed_to, tallies["I2"], known_gaps)


def _known_gaps(reader: Reader, totals: Totals) -> KnownGaps:
    columns = ("kind", "polled_at", "gap_scope", "gap_from", "gap_to", "gap_reason")
    rows = reader.whole(BATCHES, columns)
    oldest = pc.min(rows["polled_at"]).as_py() or reader.begin
    gaps = rows.filter(
        (column("kind") == GAP) & column("gap_from").is_valid() & column("gap_to").is_valid()
    )
    if (spans := reader.spans(LAG_WINDOWS)) and spans[0][0].date() < oldest.date():
        totals.gaps_known_since = oldest
    events = reader.whole(GROUP_EVENTS, ("group", "kind", "event_at", "topic", "partition"))
    kinds = (*ENDS, QUARANTINED, RECOVERED)
    return KnownGaps(
        gaps.to_pylist(), events.filter(column("kind").isin(kinds)).to_pylist(), oldest
    )


def _read_to(
    reader: Reader, rows: pa.Table, begin: datetime, end: datetime
) -> Callable[[int, int], int | None]:
    """Return positions by the batches that wrote these rows.

    A window is written by the first batch after it.
    """
    batches = reader.rows(BATCHES, ("batch_id", "kind", "source_to"), begin, end + DAY).filter(
        (column("kind") != GAP) & column("batch_id").isin(pc.unique(rows["batch_id"]))
    )
    positions = {row["batch_id"]: dict(row["source_to"] or ()) for row in batches.to_pylist()}
    return lambda batch, partition: positions.get(batch, {}).get(partition)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Comparison of rows with one another.

    It is done if one of the tables is asked for, and none that it needs is missing.
    """

    asked: Sequence[Table]
    check: Callable[[Reader, Audit], Iterator[Audit]]
    needs: Sequence[Table] = ()
    walked: Table | None = None  # each of its spans is a step


_COMPARISONS = (
    _Comparison((BATCHES,), _check_batches, walked=BATCHES),
    _Comparison(_OF_STATUS, _check_status, needs=_OF_STATUS),
    _Comparison((TOPIC_WINDOWS,), _check_topics, walked=TOPIC_WINDOWS),
    _Comparison(
        (LAG_WINDOWS, GROUP_HISTORY, GROUP_WINDOWS),
        _check_windows,
        needs=_OF_WINDOWS,
        walked=LAG_WINDOWS,
    ),
)


def _comparisons(tables: Sequence[Table]) -> list[_Comparison]:
    """Return comparisons for which one of these tables is asked."""
    return [
        comparison
        for comparison in _COMPARISONS
        if any(table in tables for table in comparison.asked)
    ]


def chosen_tables(names: Sequence[str]) -> list[Table]:
    """Give the tables of these names; all of them if none is given."""
    return [TABLES[name] for name in names or TABLES]
