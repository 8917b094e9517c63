"""Rows built singly because they are few: group records, rewinds, dead letters, and counts.

The counts are of all records.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from laggard.names import NameFilter
from laggard.rebalance.membership.generations import describe_generation
from laggard.rebalance.membership.modern_records import CLASSIC_GROUP, ROLES, describe_modern
from laggard.stream.tick.decoded import COLUMNS, as_decoded
from laggard.wire.columnar import CommitColumns
from laggard.wire.decode import Outcome

MAX_DEAD_LETTERS = 1000
HEAD_BYTES = 256
# details have no cycles
_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Records:
    """All records of a task, in Kafka's order within each partition."""

    partition: np.ndarray[Any, np.dtype[np.int32]]
    offset: np.ndarray[Any, np.dtype[np.int64]]
    timestamp: pa.Array
    key: pa.Array
    value: pa.Array


class RareRows:
    """The rows of one task."""

    def __init__(self) -> None:
        self._rows: dict[str, list[dict[str, Any]]] = defaultdict(list)

    def add(self, kind: str, **columns: Any) -> None:
        """Add one row of a kind; columns that are not given are null."""
        self._rows[kind].append(columns)

    def add_others(
        self,
        records: Records,
        columns: CommitColumns,
        names: NameFilter,
        is_past: np.ndarray[Any, np.dtype[np.bool_]],
    ) -> None:
        """Add group records of watched groups, without those of the past, and dead letters."""
        dead = 0
        for row in sorted(columns.others):
            outcome, detail = columns.others[row], None
            is_record = outcome.outcome in ("record", "tombstone") and not is_past[row]
            if is_record and names.watches_group(outcome.group or ""):
                try:
                    detail = _describe(outcome)
                except Exception:  # noqa: BLE001 - one record is never a reason to stop
                    outcome = columns.others[row] = replace(
                        outcome, outcome="malformed", error="decoder_failed"
                    )
            source = {
                "source_partition": int(records.partition[row]),
                "source_offset": int(records.offset[row]),
                "record_timestamp": records.timestamp[row].as_py(),
                "record_type": outcome.record_type,
            }
            if detail is not None:
                version = outcome.value_version
                self.add(
                    "group_record",
                    group=outcome.group,
                    record_version=version,
                    detail=detail,
                    **source,
                )
            elif outcome.outcome == "malformed":
                dead += 1
                if dead <= MAX_DEAD_LETTERS:  # the rest is only counted
                    evidence = _evidence(records, row)
                    self.add(
                        "dead_letter",
                        reason=outcome.error,
                        field=outcome.field,
                        **source,
                        **evidence,
                    )

    def add_counts(self, columns: CommitColumns) -> None:
        """Add a count row per outcome, type and version.

        Records in = decoded + tombstones + unknown + dead.
        """
        counts: Counter[tuple[str, int | None, int | None, str | None]] = Counter()
        counts["record", 1, None, None] += int(columns.is_commit.sum())
        counts["tombstone", 1, None, None] += int(columns.is_tombstone.sum())
        for outcome in columns.others.values():
            version = outcome.value_version if outcome.outcome == "unsupported" else None
            counts[outcome.outcome, outcome.record_type, version, outcome.error] += 1
        for (name, record_type, version, reason), number in counts.items():
            if number:
                self.add(
                    "count",
                    outcome=name,
                    record_type=record_type,
                    record_version=version,
                    reason=reason,
                    records=number,
                )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows, as rows of `DECODED`."""
        for kind, rows in self._rows.items():
            yield as_decoded(kind, pa.RecordBatch.from_pylist(rows, COLUMNS[kind]))


def set_aside(records: Records, columns: CommitColumns) -> None:
    """Make dead letters of records that decode and that no table can hold.

    No broker writes them, but whoever may write to the topic does: a commit of a partition below 0,
    and a group record whose timestamp lies outside the calendar, so that its rows would have no
    date.
    """
    is_negative = np.array([(key.key or {}).get("partition", 0) < 0 for key in columns.keys], bool)
    for row in np.flatnonzero(is_negative[columns.key_index]).tolist():
        key = columns.keys[columns.key_index[row]]
        columns.is_commit[row] = columns.is_tombstone[row] = False
        columns.others[row] = Outcome(
            "malformed", key.record_type, error="out_of_range", field="partition"
        )
    for row, outcome in columns.others.items():
        if outcome.outcome in ("record", "tombstone") and not records.timestamp[row].is_valid:
            columns.others[row] = replace(
                outcome, outcome="malformed", error="out_of_range", field="record_timestamp"
            )


def _describe(outcome: Outcome) -> str | None:
    if outcome.record_type == CLASSIC_GROUP:
        return _to_json(describe_generation(outcome.value))
    if outcome.record_type in ROLES and outcome.key is not None:
        return _to_json(describe_modern(outcome.record_type, outcome.key, outcome.value))
    return None


def _evidence(records: Records, row: int) -> dict[str, Any]:
    key, value = records.key[row].as_py(), records.value[row].as_py()
    names = ("key_bytes", "value_bytes", "key_hex", "head_hex", "sha256")
    evidence: dict[str, Any] = dict.fromkeys(names)
    if key is not None:
        evidence |= {"key_bytes": len(key), "key_hex": key[:HEAD_BYTES].hex()}
    if value is not None:
        evidence |= {
            "value_bytes": len(value),
            "head_hex": value[:HEAD_BYTES].hex(),
            "sha256": hashlib.sha256(value).hexdigest(),
        }
    return evidence
