"""Read what closed windows are judged by: the stream and a replay over the past read it alike.

Whatever was published after a window closed is left out, by its batch id: so both see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import field

from laggard.diagnosis.frames import NAMES, NUMBERS
from laggard.diagnosis.history import kept
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.policy import Policy
from laggard.stream import standing
from laggard.tables import schemas
from laggard.tables.readers import Keep, TableMissing, open_table, read_known, table_uri

PolicyOf: TypeAlias = Callable[[str, str, datetime], Policy]  # cluster, group, time
WINDOWED = ("lag_windows", "group_history", "topic_windows")
RECENT = ("rebalances", "generations", "group_members", "group_events")
RECENT_SPAN = timedelta(hours=24)
DEPLOYS_SPAN = timedelta(days=7)
_KEYS = ("group", "topic", "topic_id", "partition", "window_start", "batch_id")
BATCHED = ("batch_id", "polled_at", "offsets_retention_minutes")
_COLUMNS = {
    "batches": BATCHED,
    "lag_windows": (*_KEYS, *NUMBERS.values(), *NAMES.values()),
    # without what no rule looks at and is dear to read
    "group_members": tuple(
        name
        for name in schemas.GROUP_MEMBERS.names
        if name not in {"source_partition", "rack", "owned", "own_generation", "subscription_version", "regex"}
    ),
}
_REPEATING = ("group", "topic", "topic_id", *NAMES.values())
BASELINE = [
    "group", "topic", "window_start", "window_end", "arrival_rate", "capacity", "members", "consumed", "lag_known",
]  # fmt: skip
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Window:
    """A window that has closed, and the batch that closed it."""

    begin_ms: int
    batch_id: int


@dataclass(frozen=True, slots=True)
class Options:
    """What judging needs of the configuration."""

    cluster: str
    window_seconds: int
    parameters: Parameters
    policy: PolicyOf


def read_history(
    root: str, versions: Mapping[str, int], begin_ms: int, end_ms: int, options: Options, keep: Keep | None = None
) -> dict[str, pa.Table]:
    """Rows that windows from `begin_ms` to `end_ms` are judged by; at the versions named, else the newest.

    Of `lag_windows`, by far the largest, only the rows that `keep` leaves.
    """
    back_ms = 1000 * options.window_seconds * (options.parameters.look_back_windows - 1)
    spans = dict.fromkeys(WINDOWED, (begin_ms - back_ms, "window_start"))
    recent_ms = begin_ms - round(RECENT_SPAN.total_seconds() * 1000)
    spans |= {name: (recent_ms, schemas.TABLES[name].time_column) for name in RECENT}
    spans["deploys"] = (begin_ms - round(DEPLOYS_SPAN.total_seconds() * 1000), "started_at")
    last_ms = end_ms + 1000 * options.window_seconds
    spans["batches"] = (begin_ms - back_ms, "polled_at")
    found = {
        name: read_span(
            root, name, versions.get(name), since, last_ms, time, keep=keep if name == "lag_windows" else None
        )
        for name, (since, time) in spans.items()
    }
    return found | _read_standing(root, versions, found, recent_ms, end_ms - begin_ms)


def _read_standing(
    root: str, versions: Mapping[str, int], found: Mapping[str, pa.Table], recent_ms: int, length_ms: int
) -> dict[str, pa.Table]:
    """The tables with the rows of generations from before the time that was read, and under "places" where they are.

    As many dates are read as groups have theirs on, whatever lies between.
    """
    history = read_span(
        root, "group_history", versions.get("group_history"), recent_ms, recent_ms + length_ms, "window_start",
        standing.COLUMNS,
    )  # fmt: skip
    before = datetime.fromtimestamp(recent_ms / 1000, timezone.utc)
    rows = found["group_history"]
    rows = rows.filter(pc.greater_equal(rows["window_start"], pa.scalar(before + RECENT_SPAN, _TIME)))
    places = standing.places(rows, history, RECENT_SPAN)
    tables = {"places": places}
    for name in standing.PLACES:
        table = open_table(root, name, versions.get(name))
        tables[name] = standing.read_older(root, table, found[name], name, places, before)
    return tables


def read_span(
    root: str,
    name: str,
    version: int | None,
    since_ms: int,
    last_ms: int,
    time: str,
    columns: Sequence[str] = (),
    keep: Keep | None = None,
) -> pa.Table:
    """Rows of a table whose time is in a range, at a version or the newest; the columns that judging needs."""
    since, last = (datetime.fromtimestamp(ms / 1000, timezone.utc) for ms in (since_ms, last_ms))
    columns = columns or _COLUMNS.get(name, schemas.TABLES[name].names)
    table = open_table(root, name, version)
    return read_known(
        table,
        table_uri(root, name),
        columns,
        (field(time) >= pa.scalar(since, _TIME)) & (field(time) <= pa.scalar(last, _TIME)),
        # an event may be told a while after it happened, never before
        files=f"date >= '{since.date()}' AND date <= '{last.date()}'",
        repeating=_REPEATING if name == "lag_windows" else (),
        keep=keep,
    )


def read_baseline(root: str, begin_ms: int, end_ms: int, options: Options) -> pa.Table:
    """What `group_windows` say about the day before windows from `begin_ms` to `end_ms`."""
    since = begin_ms - round(options.parameters.baseline_hours * 3_600_000)
    try:
        rows = read_span(root, "group_windows", None, since, end_ms, "window_start")
    except TableMissing:
        return pa.table({name: [] for name in BASELINE})
    # in one order, as sums of numbers with a fraction depend on it
    return rows.select(BASELINE).sort_by([(name, "ascending") for name in ("window_start", "group", "topic")])


def known_at(tables: Mapping[str, pa.Table], window: Window, options: Options) -> dict[str, pa.Table]:
    """The rows that were published when the window closed.

    Where time is not a window's, those of the 24 hours before its end, the oldest first; and of each group the newest
    generation from before them.
    """
    found = {}
    begin = datetime.fromtimestamp(window.begin_ms / 1000, timezone.utc)
    end = begin + timedelta(seconds=options.window_seconds)
    for name, rows in tables.items():
        known = kept(rows, pc.less_equal(rows["batch_id"], window.batch_id))
        if name in RECENT and known.num_rows:
            time = schemas.TABLES[name].time_column
            since, until = (pa.scalar(at, _TIME) for at in (end - RECENT_SPAN, end))
            # the batch that closed the window was polled after its end
            recent = kept(known, pc.and_(pc.greater_equal(known[time], since), pc.less_equal(known[time], until)))
            if name in standing.PLACES and "places" in tables:
                older = standing.of_window(known, tables["places"], standing.PLACES[name], begin, end - RECENT_SPAN)
                recent = pa.concat_tables([older, recent]) if older.num_rows else recent
            known = recent
            order = (time, "batch_id", *schemas.TABLES[name].key)
            known = _in_order(known, [column for column in order if column in known.column_names])
        found[name] = known
    return found


def _in_order(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows sorted by these columns; most often they are, and then nothing is copied."""
    places = pc.sort_indices(rows, sort_keys=[(column, "ascending") for column in columns])
    is_sorted = (places.to_numpy() == np.arange(len(places))).all()
    return rows if is_sorted else rows.take(places)


def closed_windows(tables: Mapping[str, pa.Table], begin_ms: int, end_ms: int) -> list[Window]:
    """Windows in a past range, each with the batch that closed it."""
    rows = tables["group_history"].group_by("window_start").aggregate([("batch_id", "max")])
    found = [Window(round(row["window_start"].timestamp() * 1000), row["batch_id_max"]) for row in rows.to_pylist()]
    return sorted((each for each in found if begin_ms <= each.begin_ms <= end_ms), key=lambda each: each.begin_ms)


def find_closed(root: str, versions: Mapping[str, int], begin_ms: int, end_ms: int) -> list[Window]:
    """The same, from the table."""
    rows = read_span(root, "group_history", versions.get("group_history"), begin_ms, end_ms, "window_start")
    return closed_windows({"group_history": rows}, begin_ms, end_ms)
