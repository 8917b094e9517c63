"""Times stored by earlier ticks, moved to a clock that was set since.

Rates and ages stay those of true seconds.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import TIMESTAMP
from laggard.lag.time_lag import EndPoints, read_end_points, to_column

# the others in the row are data: times of commits
_OWN_TIMES = ("sampled_at", "base_at", "answered_at", "base_answered_at")


def on_the_clock(rows: pa.Table, shift: timedelta | None) -> pa.Table:
    """Return `partition_status` rows with their own times moved by `shift`.

    The times are left out if `shift` is unknown.
    """
    if shift == timedelta(0):
        return rows
    columns = {name: _moved(rows[name], shift) for name in _OWN_TIMES} | {
        "end_points": _points(rows, shift)
    }
    for name, column in columns.items():
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(place), column)
    return rows


def _moved(times: pa.ChunkedArray, shift: timedelta | None) -> pa.Array:
    if shift is None:
        return pa.nulls(len(times), TIMESTAMP)
    return pc.add(times, pa.scalar(shift, pa.duration("us")))


def _points(rows: pa.Table, shift: timedelta | None) -> pa.Array:
    kind = rows["end_points"].type
    if shift is None:
        return pa.array([[]] * rows.num_rows, kind)
    points = read_end_points(rows["end_points"])
    moved = points.times + round(shift / timedelta(microseconds=1))
    return to_column(EndPoints(points.starts, points.log_ends, moved)).cast(kind)
