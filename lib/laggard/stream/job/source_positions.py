"""Positions of two adjacent batches in the offsets topic: their distance, and falls.

A position falls if the log was truncated below it (unclean leader election) or the topic was
recreated. Spark's source then skips the partition's range and goes on from the lower position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laggard.lag.tick import Tick
from laggard.tables.schema.batch_tables import LOG_TRUNCATED

RECORDS_PER_READER = 50_000

Positions = Mapping[int, int]  # offsets partition to next offset


def truncated_partitions(before: Positions, after: Positions) -> tuple[int, ...]:
    """Return offsets partitions whose position fell."""
    return tuple(number for number in sorted(after) if after[number] < before.get(number, 0))


def fallen(row: Mapping[str, Any]) -> tuple[int, ...]:
    """Return offsets partitions whose position fell in the batch of this `batches` row."""
    return truncated_partitions(row["source_from"] or {}, row["source_to"] or {})


def positions_to_go_on(row: Mapping[str, Any]) -> dict[int, int]:
    """Return start positions of a new checkpoint: those of the row, without those that fell.

    A partition whose position fell is to be read whole.

    What was written between the truncation and the batch that saw it lies below the position that
    it gave.
    """
    again = fallen(row)
    return {number: offset for number, offset in row["source_to"].items() if number not in again}


def count_readers(before: Positions, after: Positions, cores: int) -> int:
    """Return the number of tasks to read with, at least one.

    A partition whose position fell has nothing to read.
    """
    records = sum(max(0, offset - before.get(number, 0)) for number, offset in after.items())
    return min(cores, 1 + records // RECORDS_PER_READER)


def find_truncations(
    last: Mapping[str, Any] | None, after: Positions, tick: Tick
) -> list[dict[str, Any]]:
    """Return a gap row per position that fell.

    Records between the offsets were read and are no longer in the log.
    """
    if last is None:
        return []
    before = last["source_to"]
    return [
        {
            "gap_scope": f"offsets partition {number}",
            "gap_from": last["polled_at"],
            "gap_to": tick.now,
            "gap_from_offset": after[number],
            "gap_to_offset": before[number],
            "gap_reason": LOG_TRUNCATED,
        }
        for number in truncated_partitions(before, after)
    ]
