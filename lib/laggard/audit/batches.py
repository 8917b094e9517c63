"""I7 on the rows of `batches`, and what they count that is no violation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from laggard.audit.result import Tally
from laggard.tables.schemas import BATCHES

GAP = "gap"
COLUMNS = (
    "batch_id", "kind", "polled_at", "source_from", "source_to", "records", "decoded", "tombstones", "unknown", "dead",
    "dead_letters_total", "reconcile_corrections_total", "gap_scope", "gap_from", "gap_to", "gap_reason",
    "gap_from_offset",
)  # fmt: skip
_OUTCOMES = ("decoded", "tombstones", "unknown", "dead")
Row = Mapping[str, Any]


@dataclass(slots=True)
class Totals:
    """Facts of the range that are no violation but matter."""

    batches: int = 0
    records: int = 0
    unknown_records: int = 0
    reconciled: int = 0
    gaps_known_since: datetime | None = None  # if `lag_windows` is older than the oldest row of `batches`
    ahead: int = 0  # rows of lag_windows whose commit is newer than the poll
    gap_seconds: Counter[str] = field(default_factory=Counter)
    gaps: Counter[str] = field(default_factory=Counter)
    dead_letters: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)  # of rows of lag_windows


def check_batches(rows: Iterable[Row], before: Row | None, tally: Tally, totals: Totals) -> Row | None:
    """Check the rows of some time in the order of their batches; gives the last one that read records.

    `before`: the result of the call for the time before.
    """
    ordered = sorted(rows, key=lambda row: (row["batch_id"], row["kind"] != GAP))
    has_gap = {row["batch_id"] for row in ordered if row["kind"] == GAP}
    for row in ordered:
        if row["kind"] == GAP:
            _count_gap(row, totals)
            continue
        tally.checked += 1
        counted = sum(row[name] or 0 for name in _OUTCOMES)
        if counted != (row["records"] or 0):
            tally.refute(BATCHES.name, {"batch_id": row["batch_id"]}, "records", counted, row["records"])
        if before is not None and row["batch_id"] not in has_gap:
            _check_follows(before, row, tally)
        _count_batch(row, before, totals)
        before = row
    return before


def _check_follows(before: Row, row: Row, tally: Tally) -> None:
    """No offset lies between the end of a batch and the begin of the next one."""
    ends = dict(before["source_to"] or ())
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
