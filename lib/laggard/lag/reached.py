"""End of a group's reading; no record lies beyond the log end, whatever offset is committed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import where


def reached_offset(committed: Any, log_end: Any) -> Any:
    """Return the committed offset, but at most the log end if that is known; null without a commit.

    Its differences are what was consumed: they add up from tick to tick, also across a commit at
    2^63 - 1.
    """
    return where(pc.is_valid(committed), pc.min_element_wise(committed, log_end))


def reached_by(rows: Any) -> Any:
    """Return `reached_offset` for rows of `partition_status`, as of their tick."""
    return reached_offset(rows["committed_offset"], rows["log_end_offset"])


def reached_since_base(rows: pa.Table) -> Any:
    """Return records passed since the previous window's last tick, per row; may be negative.

    The rows are those of `partition_status`.
    """
    return pc.subtract(
        reached_by(rows), reached_offset(rows["base_committed_offset"], rows["base_log_end_offset"])
    )
