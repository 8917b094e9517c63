"""Rows of `topic_windows` for the window that a poll closed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import TIMESTAMP, build, repeat
from laggard.lag.tick import Tick
from laggard.sources.snapshot import Snapshot
from laggard.tables.arrow import arrow_schema
from laggard.tables.schemas import TOPIC_WINDOWS


def topic_windows(snapshot: Snapshot, tick: Tick) -> pa.Table:
    """Rows of `topic_windows` for the window that this poll closed."""
    closed = snapshot.closed
    start = pa.scalar(snapshot.window_start_ms * 1000, TIMESTAMP).as_py()
    is_missing = pc.fill_null(pc.equal(closed["error"], "UNKNOWN_TOPIC_OR_PARTITION"), False)
    unknown = pc.if_else(is_missing, "topic_missing", "no_end_offset")
    rows = closed.num_rows
    # a poll that an older job left in the checkpoint does not say how far the start moved
    columns = {name: closed[name] for name in closed.column_names}
    columns |= {
        "date": repeat(start.date(), pa.date32(), rows),
        "cluster": repeat(tick.cluster, pa.string(), rows),
        "window_start": repeat(start, TIMESTAMP, rows),
        "window_end": repeat(start + tick.window, TIMESTAMP, rows),
        "status": pc.if_else(pc.is_valid(closed["log_end_offset"]), "ok", unknown),
        "batch_id": repeat(tick.batch_id, pa.int64(), rows),
    }
    return build(arrow_schema(TOPIC_WINDOWS), columns)
