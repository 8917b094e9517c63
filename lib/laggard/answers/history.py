"""The windows behind charts: a group's lag and time lag, a partition's lag, times not watched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from operator import itemgetter
from typing import Any

import pyarrow.compute as pc
from pyarrow.dataset import Expression, field, scalar

from laggard.tables.evaluated import read_between
from laggard.tables.odd_rows import Skipped, holdable, sift_columns
from laggard.tables.published import Batch
from laggard.tables.readers import open_table, read_known, table_uri
from laggard.tables.schema.schemas import BATCHES, GROUP_WINDOWS, LAG_WINDOWS

WINDOWS = 60
MOST_POINTS = 480  # of a chart over a range
MAX_DRAWN = 200  # partitions of one group with a history: the worst ones
_OF_PARTITION = ("lag", "time_lag_seconds", "status", "slot", "time_lag_censored")

Place = tuple[str, int]
Series = dict[str, list[Any]]
Seen = tuple["float | None", bool]  # seconds, and True if they are a lower bound


class GroupSeries:
    """Time lag of each group of one root by window.

    After the first look only new windows are read.
    """

    def __init__(self, root: str, window_seconds: int) -> None:
        self._root = root
        self._window = timedelta(seconds=window_seconds)
        self._by_window: dict[datetime, dict[str, Seen]] = {}

    def upto(self, end: datetime) -> dict[str, list[Seen]]:
        """Return the largest known time lag of each window by group, newest last.

        The windows have ended by `end`; None is unknown.
        """
        newest = end - self._window
        first = newest - (WINDOWS - 1) * self._window
        self._by_window = {
            start: rows for start, rows in self._by_window.items() if first <= start <= newest
        }
        since = max(self._by_window, default=first - self._window) + self._window
        if since <= newest:
            self._read(since, newest)
        starts = [newest - number * self._window for number in reversed(range(WINDOWS))]
        groups = {group for rows in self._by_window.values() for group in rows}
        return {
            group: [self._by_window.get(start, {}).get(group, (None, False)) for start in starts]
            for group in groups
        }

    def _read(self, since: datetime, until: datetime) -> None:
        columns = ("group", "window_start", "max_time_lag_seconds", "time_lag_censored", "status")
        rows = holdable(read_between(self._root, GROUP_WINDOWS.name, columns, since, until))
        if not rows.num_rows:
            return
        is_bound = pc.or_(
            pc.fill_null(rows["time_lag_censored"], False), pc.not_equal(rows["status"], "ok")
        )
        rows = rows.append_column("is_bound", pc.fill_null(is_bound, True).cast("int8"))
        aggregates = [("max_time_lag_seconds", "max"), ("is_bound", "max")]
        worst = rows.group_by(["group", "window_start"]).aggregate(aggregates)
        names = ("group", "window_start", "max_time_lag_seconds_max", "is_bound_max")
        for group, start, seconds, bound in zip(
            *(worst[name].to_pylist() for name in names), strict=True
        ):
            self._by_window.setdefault(start, {})[group] = (seconds, bool(bound))


def partition_series(
    root: str, group: str, until: datetime, window_seconds: int, places: Sequence[Place]
) -> tuple[list[datetime], Mapping[Place, Series]]:
    """Return starts of the newest windows, and the data of some partitions of a group in them.

    Without a row the data is None.

    Only rows of these partitions become objects: of a group with 20,000 all took 20 s and 600 MB.
    """
    starts = newest_windows(until, window_seconds)
    condition = (field("group") == group) & _among(places)
    names = ("topic", "topic_id", "partition", "window_start", *_OF_PARTITION)
    table = holdable(read_between(root, LAG_WINDOWS.name, names, starts[0], starts[-1], condition))
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    # of each topic by its id: last and first window
    ages: dict[tuple[str, str], tuple[datetime, datetime]] = {}
    for topic, topic_id, _, start, *_ in rows:
        last, first = ages.get((topic, topic_id), (start, start))
        ages[topic, topic_id] = max(last, start), min(first, start)
    # a topic that was made again has two rows in one window: the newer one counts, so it is the
    # later here
    rows.sort(key=lambda row: ages[row[0], row[1]])
    number_of = {start: number for number, start in enumerate(starts)}
    by_partition: dict[Place, Series] = {}
    for topic, _, partition, start, *values in rows:
        if start in number_of:  # else of windows that were longer or shorter
            series = by_partition.setdefault(
                (topic, partition), {name: [None] * len(starts) for name in _OF_PARTITION}
            )
            for name, value in zip(_OF_PARTITION, values, strict=True):
                series[name][number_of[start]] = value
    return starts, by_partition


def group_series(
    root: str, group: str, topic: str | None, starts: Sequence[datetime]
) -> Series | None:
    """Return lag of a group, or of one of its topics, in these windows.

    The result is None if the rules evaluated none of the windows.
    """
    names = (
        "topic",
        "window_start",
        "lag",
        "lag_known",
        "max_time_lag_seconds",
        "time_lag_censored",
        "status",
    )
    condition = field("group") == group
    if topic is not None:
        condition &= field("topic") == topic
    table = read_between(root, GROUP_WINDOWS.name, names, starts[0], starts[-1], condition)
    rows = holdable(table).to_pylist()
    if not rows:
        return None
    has_odd = len(rows) < len(table)  # a topic may be left out of any window
    by_start: dict[datetime, list[dict[str, Any]]] = {start: [] for start in starts}
    for row in rows:
        if row["window_start"] in by_start:  # else of windows that were longer or shorter
            by_start[row["window_start"]].append(row)
    lacking = _lacking(by_start.values())
    windows = [
        _of_window(window, lacks=lacks or has_odd)
        for window, lacks in zip(by_start.values(), lacking, strict=True)
    ]
    return {name: [window[name] for window in windows] for name in windows[0]}


def range_series(
    root: str,
    group: str,
    topic: str | None,
    since: datetime,
    until: datetime,
    window_seconds: int,
) -> dict[str, Any]:
    """Return the lag of a range in points: each has the largest value of its windows.

    A point is unknown, or its time lag a lower bound, if one of its windows is.
    """
    seconds = max((until - since).total_seconds(), window_seconds)
    starts = newest_windows(until, window_seconds, math.ceil(seconds / window_seconds))
    width = math.ceil(len(starts) / MOST_POINTS)
    firsts = range(0, len(starts), width)
    series = group_series(root, group, topic, starts)
    if series is not None:
        points = [_point(series, slice(first, first + width)) for first in firsts]
        series = {name: [point[name] for point in points] for name in series}
    return {
        "starts": [starts[first] for first in firsts],
        "point_seconds": width * window_seconds,
        "history": series,
    }


def _point(series: Series, windows: slice) -> dict[str, Any]:
    lags, exact = series["lag"][windows], series["time_lag_is_exact"][windows]
    known = {
        name: max((value for value in series[name][windows] if value is not None), default=None)
        for name in ("lag_known", "time_lag_seconds")
    }
    return {"lag": None if None in lags else max(lags), **known, "time_lag_is_exact": all(exact)}


def gaps_between(
    root: str, batch: Batch, begin: datetime | None, end: datetime | None
) -> list[dict[str, Any]]:
    """Return the times of a range without observation, earliest first; None is an open end.

    A reason that is no text is unknown.
    """
    if begin is end is None:
        return []
    table = open_table(root, BATCHES.name, batch.version)
    files = f"date >= '{begin.date()}'" if begin else ""
    names = ["gap_from", "gap_to", "gap_reason", "gap_scope"]
    gap_rows = read_known(
        table, table_uri(root, BATCHES.name), names, field("kind") == "gap", files
    )
    gap_rows = sift_columns(gap_rows, BATCHES.name, ("gap_from", "gap_to"), Skipped())
    gaps: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in gap_rows.to_pylist():
        first, last = row["gap_from"], row["gap_to"]
        if (begin and last <= begin) or (end and first >= end):
            continue
        gaps[first, last, row["gap_reason"]] = row
    return sorted(gaps.values(), key=itemgetter("gap_from"))


def _of_window(rows: Sequence[Mapping[str, Any]], *, lacks: bool) -> dict[str, Any]:
    seconds = _known(rows, "max_time_lag_seconds", max)
    is_sound = all(row["status"] == "ok" and not row["time_lag_censored"] for row in rows)
    return {
        "lag": None if lacks else _whole(rows, "lag"),
        "lag_known": _known(rows, "lag_known", sum),
        "time_lag_seconds": seconds,
        "time_lag_is_exact": not lacks and seconds is not None and is_sound,
    }


def _lacking(windows: Iterable[Sequence[Mapping[str, Any]]]) -> list[bool]:
    """Return True for each window without a topic that has rows before and after it.

    The sums of such a window are lower bounds.
    """
    topics = [{row["topic"] for row in rows} for rows in windows]
    before: list[set[str]] = []
    for names in topics:
        before.append((before[-1] | names) if before else names)
    after: list[set[str]] = []
    for names in reversed(topics):
        after.append((after[-1] | names) if after else names)
    return [
        bool(early & late - names)
        for early, late, names in zip(before, reversed(after), topics, strict=True)
    ]


def _whole(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    """Add up over all topics; None if one of them is not known."""
    values = [row[name] for row in rows]
    return None if not values or None in values else sum(values)


def _known(rows: Sequence[Mapping[str, Any]], name: str, fold: Callable[[Any], Any]) -> Any:
    values = [row[name] for row in rows if row[name] is not None]
    return fold(values) if values else None


def newest_windows(until: datetime, window_seconds: int, count: int = WINDOWS) -> list[datetime]:
    """Return the starts of the newest windows that had closed by then, the newest last."""
    end = int(until.timestamp() // window_seconds) * window_seconds
    starts = (end - number * window_seconds for number in range(count, 0, -1))
    return [datetime.fromtimestamp(start, timezone.utc) for start in starts]


def _among(places: Sequence[Place]) -> Expression:
    """Return a condition for the rows of these partitions."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    condition = scalar(False)
    for topic, partitions in by_topic.items():
        condition |= (field("topic") == topic) & field("partition").isin(partitions)
    return condition
