"""The newest windows of what is drawn small: a group's time lag, a partition's lag."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyarrow.dataset import field

from laggard.tables.judged import read_between
from laggard.tables.schemas import GROUP_WINDOWS, LAG_WINDOWS

WINDOWS = 60
MAX_PARTITIONS = 200  # of one group; the worst ones
_OF_PARTITION = ("lag", "time_lag_seconds", "status", "slot")

Series = dict[str, list[Any]]


class GroupSeries:
    """Time lag of each group of one root by window; after the first look only windows that are new are read."""

    def __init__(self, root: str, window_seconds: int) -> None:
        self._root = root
        self._window = timedelta(seconds=window_seconds)
        self._by_window: dict[datetime, dict[str, float | None]] = {}

    def upto(self, end: datetime) -> dict[str, list[float | None]]:
        """Each group's largest known time lag in the windows that ended by then, the newest last; None is unknown."""
        newest = end - self._window
        first = newest - (WINDOWS - 1) * self._window
        self._by_window = {start: rows for start, rows in self._by_window.items() if first <= start <= newest}
        since = max(self._by_window, default=first - self._window) + self._window
        if since <= newest:
            self._read(since, newest)
        starts = [newest - number * self._window for number in reversed(range(WINDOWS))]
        groups = {group for rows in self._by_window.values() for group in rows}
        return {group: [self._by_window.get(start, {}).get(group) for start in starts] for group in groups}

    def _read(self, since: datetime, until: datetime) -> None:
        columns = ("group", "window_start", "max_time_lag_seconds")
        rows = read_between(self._root, GROUP_WINDOWS.name, columns, since, until)
        worst = rows.group_by(["group", "window_start"]).aggregate([("max_time_lag_seconds", "max")])
        for group, start, seconds in zip(*(worst[name].to_pylist() for name in worst.column_names), strict=True):
            by_name = dict(zip(worst.column_names, (group, start, seconds), strict=True))
            self._by_window.setdefault(by_name["window_start"], {})[by_name["group"]] = by_name[
                "max_time_lag_seconds_max"
            ]


def partition_series(
    root: str, group: str, until: datetime, window_seconds: int
) -> tuple[list[datetime], Mapping[tuple[str, int], Series]]:
    """Starts of the newest windows, and what each partition of a group had in them; None if there is no row."""
    window = timedelta(seconds=window_seconds)
    columns = ("topic", "partition", "window_start", *_OF_PARTITION)
    since = until - (WINDOWS + 1) * window
    rows = read_between(root, LAG_WINDOWS.name, columns, since, until, field("group") == group)
    starts = sorted(set(rows["window_start"].to_pylist()))[-WINDOWS:]
    place = {start: number for number, start in enumerate(starts)}
    found: dict[tuple[str, int], Series] = {}
    for row in _dicts(rows):
        number = place.get(row["window_start"])
        if number is not None:
            key = row["topic"], row["partition"]
            series = found.setdefault(key, {name: [None] * len(starts) for name in _OF_PARTITION})
            for name in _OF_PARTITION:
                series[name][number] = row[name]
    return starts, found


def _dicts(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist()
    return found
