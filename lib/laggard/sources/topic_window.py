"""Changes of each watched partition in a window, from the polls inside it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from laggard.sources import snapshot as shapes

_KEY = ["topic", "topic_id", "partition"]


class TopicWindow:
    """Gathers polls until the window's end has passed, then gives the closed window's rows."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._start_ms = -1  # of the open window
        self._ticks = 0
        self._starts: pa.Table | None = None  # log starts, asked for in the window's first poll
        self._last: pa.Table | None = None  # positions of the newest poll
        self._last_at_ms = 0
        self._last_poll_id = 0
        self._base: pa.Table | None = None  # positions of the last poll of the window before
        self._base_at_ms = 0

    def is_new(self, now_ms: int) -> bool:
        """True if a poll at this time opens a window."""
        return self._floor(now_ms) != self._start_ms

    def is_closed_by(self, now_ms: int) -> bool:
        """True if a poll at this time closes a window right after its end, so that it may tell how that ended."""
        return self._last is not None and self._follows(now_ms)

    def add(
        self, poll_id: int, now_ms: int, positions: pa.Table, facts: pa.Table | None = None
    ) -> tuple[pa.Table, int]:
        """Take a poll; gives the rows and the start of the window that it closed, or no rows and 0."""
        closed, closed_start = shapes.CLOSED.empty_table(), 0
        if self.is_new(now_ms):
            if self._last is not None:
                closed, closed_start = self._close(self._last, facts), self._start_ms
                # windows nobody polled in break the series: nothing is produced across the hole
                self._base, self._base_at_ms = (self._last, self._last_at_ms) if self._follows(now_ms) else (None, 0)
            self._start_ms, self._ticks, self._starts = self._floor(now_ms), 0, positions
        self._ticks += 1
        self._last, self._last_at_ms, self._last_poll_id = positions, now_ms, poll_id
        return closed, closed_start

    def _floor(self, now_ms: int) -> int:
        return now_ms // self._window_ms * self._window_ms

    def _follows(self, now_ms: int) -> bool:
        return self._floor(now_ms) == self._start_ms + self._window_ms

    def _close(self, last: pa.Table, facts: pa.Table | None) -> pa.Table:
        rows = last.select([*_KEY, "log_end_offset", "leader_broker", "error"])
        starts = shapes.POSITIONS.empty_table() if self._starts is None else self._starts
        rows = rows.join(starts.select([*_KEY, "log_start_offset"]), _KEY, join_type="left outer")
        base = (shapes.POSITIONS.empty_table() if self._base is None else self._base).select([*_KEY, "log_end_offset"])
        base = base.rename_columns([*_KEY, "base_log_end_offset"])
        rows = rows.join(base, _KEY, join_type="left outer")
        rows = rows.join(shapes.FACTS.empty_table() if facts is None else facts, _KEY, join_type="left outer")
        rows = rows.sort_by([(name, "ascending") for name in _KEY])
        rise = pc.subtract(rows["log_end_offset"], rows["base_log_end_offset"])
        produced = pc.if_else(pc.greater_equal(rise, 0), rise, pa.scalar(None, pa.int64()))
        seconds = (self._last_at_ms - self._base_at_ms) / 1000
        # asked after the last poll of the window: what has become stable since is of the next one
        is_beyond = pc.fill_null(pc.greater(rows["last_stable_offset"], rows["log_end_offset"]), False)
        columns = {
            **{name: rows[name] for name in rows.column_names},
            "last_stable_offset": pc.if_else(is_beyond, rows["log_end_offset"], rows["last_stable_offset"]),
            "config_known": pc.fill_null(rows["config_known"], False),
            "poll_id": pa.repeat(pa.scalar(self._last_poll_id, pa.int64()), rows.num_rows),
            "ticks": pa.repeat(pa.scalar(self._ticks, pa.int32()), rows.num_rows),
            "produced": produced,
            "arrival_rate": pc.divide(pc.cast(produced, pa.float64()), max(seconds, 1e-3)),
        }
        return pa.table([columns[name] for name in shapes.CLOSED.names], schema=shapes.CLOSED)
