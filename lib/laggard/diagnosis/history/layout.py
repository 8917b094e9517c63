"""Rows of the tables to the frames for rules: one frame per group.

Nothing in a frame is newer than the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.history.frames import (
    NAMES,
    NUMBERS,
    Floats,
    GroupFrame,
    Hidden,
    Row,
    TopicFrame,
)
from laggard.diagnosis.history.grid import Grid, Ints, IsOwn, Part, kept, listed, milliseconds
from laggard.diagnosis.parameters import Policy

# what is below the high watermark of a tick was written by then, and is known once it has been read
COLUMNS = ("polled_at", "source_to", "source_high_watermark")


def hidden_commits(
    batches: pa.Table | None, windows: npt.NDArray[np.int64], window_seconds: int
) -> Callable[[int | None], Hidden | None]:
    """Return the hidden commits of the groups of an offsets partition.

    Return None if the partition is not known.
    """
    if batches is None or not batches.num_rows:
        return lambda _: None
    rows = batches.sort_by([("polled_at", "ascending"), ("batch_id", "ascending")])
    at = pc.cast(rows["polled_at"], pa.int64()).to_numpy() / 1e6  # microseconds
    ends = windows / 1000 + window_seconds
    last = np.searchsorted(at, ends) - 1  # the poll at the end of a window is the next one's
    recorded = (last >= 0) & (at[last] >= ends - window_seconds)
    read, high = (_by_partition(rows[name]) for name in COLUMNS[1:])

    @cache
    def of(partition: int | None) -> Hidden | None:
        if partition is None or partition not in high or partition not in read:
            return None
        written = np.fmax.accumulate(high[partition])
        to = read[partition][last]
        is_recorded = recorded & ~np.isnan(to) & ~np.isnan(written[last])
        # the newest tick by which nothing had been written that is not read by now
        seen = np.minimum(
            np.searchsorted(np.where(np.isnan(written), -np.inf, written), to, side="right") - 1,
            last,
        )
        least = np.where(seen < last, at[last] - at[np.minimum(seen + 1, last)], 0.0)
        most = at[last] - at[np.maximum(seen, 0)]
        return Hidden(np.where(is_recorded, least, np.nan), np.where(is_recorded, most, np.nan))

    return of


def _by_partition(column: pa.ChunkedArray) -> dict[int, Floats]:
    """Return a column of maps as one array per key with a value for each row.

    The value is NaN if a row has none.
    """
    found: dict[int, Floats] = {}
    place = 0
    for chunk in column.chunks:
        begins = chunk.offsets.to_numpy()
        rows = place + np.repeat(np.arange(len(chunk)), np.diff(begins))
        keys, values = (
            each.to_numpy()[begins[0] : begins[-1]] for each in (chunk.keys, chunk.items)
        )
        for key in np.unique(keys).tolist():
            mine = keys == key
            found.setdefault(key, np.full(len(column), np.nan))[rows[mine]] = values[mine]
        place += len(chunk)
    return found


# rows of 24 h, and a generation of before
LISTS = ("rebalances", "generations", "group_members", "group_events")
LOOKED_BACK_AT = (  # of group_history
    "group_state", "members", "idle_members", "generation", "group_epoch", "commit_gaps_total",
    "commit_gap_ms_total",
    "commit_gap_squares_total",
)  # fmt: skip
CONFIGURED = ("retention_seconds", "retention_bytes", "cleanup_policy", "config_known")
LOG_ENDS = {"stable": "last_stable_offset", "end": "log_end_offset"}
Baseline = Callable[[], Mapping[str, Sequence[Row]]]  # topic -> group_windows of the last 24 h
Rows = Mapping[str, Sequence[Row]]  # of LISTS and of deploys, those known in a window


class History:
    """Rows of the tables, laid out once for all windows from `begin_ms` to `end_ms`.

    These are the windows that the object evaluates.

    The tables hold rows of these windows and of `look_back` - 1 before the first, `lag_windows`
    also of other groups than one's own.
    """

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        begin_ms: int,
        end_ms: int,
        *,
        window_seconds: int,
        look_back: int,
        is_own: IsOwn | None = None,
    ) -> None:
        self._seconds, self._look_back = window_seconds, look_back
        step = 1000 * window_seconds
        self._windows = np.arange(
            begin_ms - (look_back - 1) * step, end_ms + 1, step, dtype=np.int64
        )
        self._lags = Grid(
            tables["lag_windows"],
            ("group", "topic", "topic_id"),
            NUMBERS,
            NAMES,
            self._windows,
            is_own,
        )
        topics = tables["topic_windows"]
        self._configured = topics.select(
            [name for name in CONFIGURED if name in topics.column_names]
        )
        topics = topics.append_column("row", pa.array(np.arange(topics.num_rows)))
        self._topics = Grid(
            topics, ("topic", "topic_id"), {**LOG_ENDS, "row": "row"}, {}, self._windows
        )
        self._facts = _Facts(tables["group_history"], self._windows, look_back)
        batches = tables.get("batches")
        self._hidden_of = hidden_commits(batches, self._windows, window_seconds)
        wanted = ["batch_id", "offsets_retention_minutes"]
        self._retentions = (
            [] if batches is None else batches.select(wanted).sort_by("batch_id").to_pylist()
        )

    def frames(
        self,
        window_ms: int,
        batch_id: int,
        rows: Rows,
        *,
        cluster: str,
        policy: Callable[[str, datetime], Policy] = lambda *_: Policy(),
        baseline: Callable[[str], Baseline] = lambda _: dict,
    ) -> Iterator[GroupFrame]:
        """Yield frames of all groups with a row in the window from `window_ms`.

        The row is one of `lag_windows` or `group_history`.

        A group that was deleted in the window has no such row any more, and a frame a last time.
        Rows of the tables are those that were published up to a batch.
        """
        last = int(np.searchsorted(self._windows, window_ms)) + 1
        first = last - self._look_back
        windows = self._windows[first:last]
        end = datetime.fromtimestamp(window_ms / 1000 + self._seconds, timezone.utc)
        topic_facts = self._topic_facts(first, last, batch_id)
        known = self._facts.of(first, last, batch_id)
        lists = {name: _by_group(rows.get(name, ())) for name in (*LISTS, "deploys")}
        retention = self._retention_minutes(batch_id)
        deleted = _deleted(lists["group_events"], window_ms)
        # a broker takes commits of a group without a name; in findings that is the cluster
        for group in sorted({*self._lags.leaders, *known, *deleted} - {""}):
            parts = self._lags.parts(group, first, last, batch_id)
            topics = _living([_topic_frame(part, topic_facts) for part in parts])
            history = known.get(group, [None] * len(windows))
            if history[-1] is None and not topics and group not in deleted:
                continue  # it ended before this window
            yield GroupFrame(
                cluster=cluster,
                group=group,
                window_seconds=self._seconds,
                windows=windows,
                topics=topics,
                facts=history,
                rebalances=lists["rebalances"].get(group, []),
                generations=lists["generations"].get(group, []),
                members=lists["group_members"].get(group, []),
                events=lists["group_events"].get(group, []),
                policy=policy(group, end),
                baseline=baseline(group),
                deploys=lists["deploys"].get(group, []),
                offsets_retention_minutes=retention,
                hidden=self._hidden(history[-1] or {}, first, last),
            )

    def _retention_minutes(self, batch_id: int) -> float | None:
        """Return the brokers' retention of offsets by the newest batch that reports it.

        Return None if no batch reports it.
        """
        recorded = [
            each["offsets_retention_minutes"]
            for each in self._retentions
            if each["batch_id"] <= batch_id
        ]
        return next((float(each) for each in reversed(recorded) if each is not None), None)

    def _hidden(self, fact: Row, first: int, last: int) -> Hidden | None:
        hidden = self._hidden_of(fact.get("offsets_partition"))
        return None if hidden is None else Hidden(hidden.least[first:last], hidden.most[first:last])

    def _topic_facts(self, first: int, last: int, batch_id: int) -> dict[tuple[str, ...], Row]:
        """Return each topic's newest configuration, and the result of `_held_back`.

        That result is under "windows".
        """
        grid = self._topics
        parts = [
            part for topic in grid.leaders for part in grid.parts(topic, first, last, batch_id)
        ]
        configured = (
            self._configured.take([_newest_row(part) for part in parts]).to_pylist()
            if parts
            else []
        )
        return {
            part.key: dict.fromkeys(CONFIGURED) | facts | {"windows": _held_back(part)}
            for part, facts in zip(parts, configured, strict=True)
        }


class _Facts:
    """Rows of `group_history`: of evaluated windows whole, of earlier windows only some.

    Of the earlier windows it has the columns that rules look back at.
    """

    def __init__(self, rows: pa.Table, windows: Ints, look_back: int) -> None:
        begins = milliseconds(rows["window_start"])
        is_within = (begins >= windows[0]) & (begins <= windows[-1])
        rows, begins = kept(rows, pa.array(is_within)), begins[is_within]
        self._rows: dict[str, list[tuple[int, Row | None]]] = {}
        places = np.searchsorted(windows, begins).tolist()
        # tables of an older job lack some
        wanted = [name for name in LOOKED_BACK_AT if name in rows.column_names]
        names = ("window_start", *wanted)
        short = zip(*(listed(rows[name]) for name in names), strict=True)
        for group, at, batch_id, cells in zip(
            listed(rows["group"]), places, rows["batch_id"].to_numpy().tolist(), short, strict=True
        ):
            if group not in self._rows:
                self._rows[group] = [(0, None)] * len(windows)
            self._rows[group][at] = batch_id, dict(zip(names, cells, strict=True))
        evaluated = kept(rows, pa.array(begins >= windows[look_back - 1]))
        self._whole = {(row["group"], row["window_start"]): row for row in rows_of(evaluated)}

    def of(self, first: int, last: int, batch_id: int) -> dict[str, list[Row | None]]:
        """Return by group its rows of these windows; None if there is none.

        Rows are those published up to a batch.
        """
        found = {}
        for group, cells in self._rows.items():
            known = [row if batch <= batch_id else None for batch, row in cells[first:last]]
            if known[-1] is not None:
                known[-1] = self._whole[group, known[-1]["window_start"]]
            if any(row is not None for row in known):
                found[group] = known
        return found


def rows_of(table: pa.Table) -> list[Row]:
    """Return rows with maps as dicts, which Arrow gives as lists of pairs."""
    # none cost a millisecond
    found: list[Row] = table.to_pylist(maps_as_pydicts="strict") if table.num_rows else []
    return found


def _topic_frame(part: Part, facts: Mapping[tuple[str, ...], Row]) -> TopicFrame:
    _, topic, topic_id = part.key
    numbers = part.numbers
    is_uncounted = np.isnan(numbers["commits"])
    # commits are polled: lag at one is not known
    if (is_uncounted & np.isfinite(numbers["lag_min"])).any():
        numbers = {
            **numbers,
            "envelope": np.where(is_uncounted, numbers["lag_min"], numbers["envelope"]),
        }
    # a share is late of matured: both count only where both are known
    numbers = {
        **numbers,
        "matured": np.where(np.isnan(numbers["late"]), np.nan, numbers["matured"]),
    }
    return TopicFrame(
        topic, topic_id, part.partitions, numbers, part.names, facts.get((topic, topic_id), {})
    )


def _newest_row(part: Part) -> int:
    """Return the table index of a row of the newest window that has a row.

    Each row of that window has the topic's configuration.
    """
    window = int(np.nonzero(part.is_known)[1].max())
    return int(np.fmax.reduce(part.numbers["row"][:, window]))


def _held_back(part: Part) -> dict[int, list[Row]]:
    """Return the last stable offset and log end of each known window by partition.

    They are returned if they differ in any window.
    """
    stable, end = part.numbers["stable"], part.numbers["end"]
    rows: dict[int, list[Row]] = {}
    for row in np.flatnonzero((stable < end).any(axis=1)):
        rows[int(part.partitions[row])] = [
            {column: _offset(part.numbers[name][row, at]) for name, column in LOG_ENDS.items()}
            for at in np.flatnonzero(part.is_known[row])
        ]
    return rows


def _offset(value: float) -> int | None:
    return None if np.isnan(value) else int(value)


def _by_group(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["group"] or "", []).append(row)
    return found


def _deleted(events: Mapping[str, Sequence[Row]], window_ms: int) -> set[str]:
    """Return groups that were deleted in the window, by the events of each."""
    window = datetime.fromtimestamp(window_ms / 1000, timezone.utc)
    newest = ((group, row) for group, rows in events.items() for row in rows[-3:])
    return {
        group
        for group, row in newest
        if row["kind"] == "group_deleted" and row["event_at"] >= window
    }


def _living(topics: Sequence[TopicFrame]) -> list[TopicFrame]:
    """Return topics with a row in the newest window, each once.

    Of a topic recreated in that window, it is the one that is read.

    A topic that the group had under another id before says so in its facts.
    """
    chosen: dict[str, TopicFrame] = {}
    former: dict[str, str] = {}
    for each in topics:
        status = each.named("status")[:, -1]
        if not (status != "").any():
            former[each.topic] = each.topic_id
            continue
        other = chosen.get(each.topic)
        if other is None or (status == "ok").sum() >= (other.named("status")[:, -1] == "ok").sum():
            chosen[each.topic] = each
    return [
        replace(each, facts=each.facts | {"former_topic_id": former[name]})
        if name in former
        else each
        for name, each in chosen.items()
    ]
