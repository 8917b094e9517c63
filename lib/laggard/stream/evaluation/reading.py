"""Read the inputs of the evaluation of closed windows: the stream and a replay read them alike.

Whatever was published after a window closed is left out, by its batch id: so both see the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import field

from laggard.diagnosis.history.frames import NAMES, NUMBERS, Row
from laggard.diagnosis.history.layout import CONFIGURED, LOG_ENDS, rows_of
from laggard.diagnosis.parameters import Parameters, Policy
from laggard.stream.evaluation import last_generation
from laggard.tables.arrow import arrow_schema
from laggard.tables.published import TICK
from laggard.tables.readers import Scan, TableMissing, open_table, scan_known, table_uri
from laggard.tables.schema import schemas

PolicyOf: TypeAlias = Callable[[str, str, datetime], Policy]  # cluster, group, time
PARTITIONED = ("lag_windows", "topic_windows")
RECENT = ("rebalances", "generations", "group_members", "group_events")
RECENT_SPAN = timedelta(hours=24)
DEPLOYS_SPAN = timedelta(days=7)
_KEYS = ("group", "topic", "topic_id", "partition", "window_start", "batch_id")
QUARANTINE = ("quarantined_groups", "quarantined")
BATCHED = (
    "batch_id", "polled_at", "kind", "offsets_retention_minutes", "source_to",
    "source_high_watermark", *QUARANTINE,
)  # fmt: skip
_COLUMNS = {
    "batches": BATCHED,
    "lag_windows": (*_KEYS, *NUMBERS.values(), *NAMES.values()),
    "topic_windows": (*_KEYS[1:], *LOG_ENDS.values(), *CONFIGURED),
    # without what no rule looks at and is dear to read
    "group_members": tuple(
        name
        for name in schemas.GROUP_MEMBERS.names
        if name
        not in {
            "source_partition",
            "rack",
            "owned",
            "own_generation",
            "subscription_version",
            "regex",
        }
    ),
}
_REPEATING = ("group", "topic", "topic_id", "cleanup_policy", *NAMES.values())
BASELINE = [
    "group", "topic", "window_start", "window_end", "arrival_rate", "capacity", "members",
    "consumed", "lag_known",
    "commits", "consume_rate",
]  # fmt: skip
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Window:
    """A window that has closed, and the batch that closed it."""

    begin_ms: int
    batch_id: int


@dataclass(frozen=True, slots=True)
class Options:
    """Configuration of the evaluation."""

    cluster: str
    window_seconds: int
    parameters: Parameters
    policy: PolicyOf


def read_history(
    root: str,
    versions: Mapping[str, int],
    begin_ms: int,
    end_ms: int,
    options: Options,
    group: str | None = None,
) -> dict[str, pa.Table]:
    """Return the rows by which windows from `begin_ms` to `end_ms` are evaluated.

    They are at named versions, else the newest.

    With a group no rows of others. Of `lag_windows`, by far the largest, a scan: there is never
    room for all of it.
    """
    back_ms = 1000 * options.window_seconds * (options.parameters.look_back_windows - 1)
    spans = dict.fromkeys(("group_history", "topic_windows"), (begin_ms - back_ms, "window_start"))
    recent_ms = begin_ms - round(RECENT_SPAN.total_seconds() * 1000)
    spans |= {name: (recent_ms, schemas.TABLES[name].time_column) for name in RECENT}
    spans["deploys"] = (begin_ms - round(DEPLOYS_SPAN.total_seconds() * 1000), "started_at")
    last_ms = end_ms + 1000 * options.window_seconds
    # to the tick that closed the last window
    until = {"batches": last_ms + 1000 * options.window_seconds}
    spans["batches"] = (begin_ms - back_ms, "polled_at")
    tables = {
        name: read_span(
            root, name, versions.get(name), since, until.get(name, last_ms), time, group=group
        )
        for name, (since, time) in spans.items()
    }
    tables["lag_windows"] = scan_span(
        root,
        "lag_windows",
        versions.get("lag_windows"),
        begin_ms - back_ms,
        last_ms,
        "window_start",
        group=group,
    )
    return tables | _read_last_generations(
        root, versions, tables, recent_ms, end_ms - begin_ms, group
    )


def _read_last_generations(
    root: str,
    versions: Mapping[str, int],
    recent_tables: Mapping[str, pa.Table],
    recent_ms: int,
    length_ms: int,
    group: str | None,
) -> dict[str, pa.Table]:
    """Return the tables with older generations' rows, and their places in "places".

    These generations are older than the time that was read.

    As many dates are read as groups have theirs on, whatever lies between.
    """
    history = read_span(
        root, "group_history", versions.get("group_history"), recent_ms, recent_ms + length_ms,
        "window_start",
        last_generation.COLUMNS, group,
    )  # fmt: skip
    before = datetime.fromtimestamp(recent_ms / 1000, timezone.utc)
    rows = recent_tables["group_history"]
    rows = rows.filter(
        pc.greater_equal(rows["window_start"], pa.scalar(before + RECENT_SPAN, _TIME))
    )
    places = last_generation.places(rows, history, RECENT_SPAN)
    tables = {"places": places}
    for name in last_generation.PLACES:
        table = open_table(root, name, versions.get(name))
        tables[name] = last_generation.read_older(
            root, table, recent_tables[name], name, places, before
        )
    return tables


def read_span(
    root: str,
    name: str,
    version: int | None,
    since_ms: int,
    last_ms: int,
    time: str,
    columns: Sequence[str] = (),
    group: str | None = None,
) -> pa.Table:
    """Return rows of a table in a time range, with the columns the evaluation needs.

    They are at a version or the newest.
    """
    rows = scan_span(root, name, version, since_ms, last_ms, time, columns, group)
    return pa.Table.from_batches(rows.to_batches(), rows.schema)


def scan_span(
    root: str,
    name: str,
    version: int | None,
    since_ms: int,
    last_ms: int,
    time: str,
    columns: Sequence[str] = (),
    group: str | None = None,
) -> Scan:
    """Return the rows of `read_span` as a scan, which reads them only when they are needed."""
    since = datetime.fromtimestamp(since_ms / 1000, timezone.utc)
    last = datetime.fromtimestamp(last_ms / 1000, timezone.utc)
    columns = columns or _COLUMNS.get(name, schemas.TABLES[name].names)
    wanted = (field(time) >= pa.scalar(since, _TIME)) & (field(time) <= pa.scalar(last, _TIME))
    if group is not None and "group" in schemas.TABLES[name].names:
        wanted &= field("group") == group
    return scan_known(
        open_table(root, name, version),
        table_uri(root, name),
        columns,
        wanted,
        # an event may be recorded a while after it happened, never before
        files=f"date >= '{since.date()}' AND date <= '{last.date()}'",
        repeating=_REPEATING if name in PARTITIONED else (),
    )


def read_baseline(root: str, begin_ms: int, options: Options) -> pa.Table:
    """Return rows of `group_windows` of the day before the window that begins at `begin_ms`.

    The window's own rows are there when it is evaluated again after a failed write: they do not
    count.
    """
    since = begin_ms - round(options.parameters.baseline_hours * 3_600_000)
    try:
        rows = read_span(root, "group_windows", None, since, begin_ms - 1, "window_start")
    except TableMissing:
        return arrow_schema(schemas.GROUP_WINDOWS).empty_table().select(BASELINE)
    # in one order, as sums of numbers with a fraction depend on it
    order = [("window_start", "ascending"), ("group", "ascending"), ("topic", "ascending")]
    return rows.select(BASELINE).sort_by(order)


@dataclass(frozen=True, slots=True)
class Events:
    """Rows that come one by one and not with every window, the oldest first."""

    rows: dict[str, list[Row]]  # of RECENT and of deploys
    # table -> window -> group -> times
    places: Mapping[str, Mapping[datetime, Mapping[str, Sequence[datetime]]]]


def events_of(tables: Mapping[str, pa.Table]) -> Events:
    """Return the events in the tables that were read."""
    rows: dict[str, list[Row]] = {}
    for name in (*RECENT, "deploys"):
        if name in tables:
            rows[name] = rows_of(_in_order(tables[name], name))
    places = {}
    if "places" in tables:
        for name, at in last_generation.PLACES.items():
            places[name] = last_generation.by_window(tables["places"], at)
    return Events(rows, places)


def known_at(events: Events, window: Window, options: Options) -> dict[str, list[Row]]:
    """Return the rows that were published when the window closed.

    Of RECENT those of the 24 hours before its end, and of each group the newest generation from
    before them.
    """
    begin = datetime.fromtimestamp(window.begin_ms / 1000, timezone.utc)
    end = begin + timedelta(seconds=options.window_seconds)
    since = end - RECENT_SPAN
    rows_by_table = {}
    for name, rows in events.rows.items():
        known = [row for row in rows if row["batch_id"] <= window.batch_id]
        if name in RECENT:
            time = schemas.TABLES[name].time_column
            places = last_generation.newest(events.places.get(name, {}).get(begin, {}), since)
            # the batch that closed the window was polled after its end
            known = [
                row
                for row in known
                if since <= row[time] <= end or (places and places.get(row["group"]) == row[time])
            ]
        rows_by_table[name] = known
    return rows_by_table


def _in_order(rows: pa.Table, name: str) -> pa.Table:
    """Sort a table in `RECENT` by time, then by batch and key; return other tables unchanged."""
    if name not in RECENT:
        return rows
    columns = (schemas.TABLES[name].time_column, "batch_id", *schemas.TABLES[name].key)
    order = [(column, "ascending") for column in columns if column in rows.column_names]
    if order and rows.num_rows > 1:
        return rows.sort_by(order)
    return rows


def closed_windows(
    tables: Mapping[str, pa.Table], begin_ms: int, end_ms: int, window_seconds: int
) -> list[Window]:
    """Return windows in a past range with the batch that closed each, even without groups left."""
    rows = tables["group_history"].group_by("window_start").aggregate([("batch_id", "max")])
    closed = _closed_by_ticks(tables["batches"], 1000 * window_seconds)
    for row in rows.to_pylist():
        closed[round(row["window_start"].timestamp() * 1000)] = row["batch_id_max"]
    return [Window(at, closed[at]) for at in sorted(closed) if begin_ms <= at <= end_ms]


def _closed_by_ticks(batches: pa.Table, window_ms: int) -> dict[int, int]:
    """Return the begin of each window seen whole by ticks, and the batch after it.

    Counted as `advance` counts. The ticks saw it from its begin to its end.
    """
    rows = batches.select(["batch_id", "polled_at", "kind"]).sort_by("batch_id").to_pylist()
    batch_after, opened, last = {}, None, None
    for row in rows:
        if row["kind"] == "gap":
            continue
        window = round(row["polled_at"].timestamp() * 1000) // window_ms * window_ms
        if last is not None and window > last:
            if opened == last:
                batch_after[last] = row["batch_id"]
            opened = window
        if row["kind"] != TICK:
            opened = None
        last = window
    return batch_after


def find_closed(
    root: str,
    versions: Mapping[str, int],
    begin_ms: int,
    end_ms: int,
    window_seconds: int,
    *,
    until_ms: int,
) -> list[Window]:
    """Return closed windows from the tables.

    Ticks after `until_ms` do not count, as these versions lack their rows.
    """
    wanted = "window_start", "batch_id"
    rows = read_span(
        root,
        "group_history",
        versions.get("group_history"),
        begin_ms,
        end_ms,
        "window_start",
        wanted,
    )
    around_ms = 2000 * window_seconds  # the ticks before a window tell of it as well
    ticks = read_span(root, "batches", None, begin_ms - around_ms, until_ms, "polled_at")
    return closed_windows(
        {"group_history": rows, "batches": ticks}, begin_ms, end_ms, window_seconds
    )
