"""Rows of the tables to the frames that rules look at: one frame per group, nothing in it newer than the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.frames import NAMES, NUMBERS, GroupFrame, Policy, Row, TopicFrame

Tables = Mapping[str, pa.Table]
LISTS = (
    "rebalances",
    "generations",
    "group_members",
    "group_events",
)  # rows of 24 h, and a generation of before
LOOKED_BACK_AT = ("group_state", "members", "idle_members", "generation", "group_epoch")  # of group_history
_CONFIGURED = ("retention_seconds", "retention_bytes", "cleanup_policy", "config_known")
_Ints = npt.NDArray[np.int64]


def frames_at(
    tables: Tables,
    window_ms: int,
    *,
    cluster: str,
    window_seconds: int,
    look_back: int,
    policy: Callable[[str, datetime], Policy] = lambda *_: Policy(),
    baseline: Callable[[str], Callable[[], Mapping[str, Sequence[Row]]]] = lambda _: dict,
) -> Iterator[GroupFrame]:
    """Frames of all groups with a row of `lag_windows` or `group_history` in the window that begins at `window_ms`.

    A group that was deleted in the window has no such row any more, and a frame a last time.
    The tables hold rows of that window and of `look_back` - 1 before it, in `LISTS` of 24 hours; all were published by
    the end of the window.
    """
    step = 1000 * window_seconds
    windows = np.arange(window_ms - (look_back - 1) * step, window_ms + 1, step, dtype=np.int64)
    end = datetime.fromtimestamp((window_ms + step) / 1000, timezone.utc)
    found = _topic_frames(
        _within(tables["lag_windows"], windows), windows, _topic_facts(tables["topic_windows"], windows)
    )
    facts = {name: _facts(rows, windows) for name, rows in _by_group(_within(tables["group_history"], windows))}
    lists = {name: _rows_by_group(tables[name]) for name in LISTS}
    deploys = _rows_by_group(tables["deploys"]) if "deploys" in tables else {}
    retention = _offsets_retention(tables["batches"]) if "batches" in tables else None
    deleted = {group for group, rows in lists["group_events"].items() if _was_deleted(rows, window_ms)}
    for group in sorted(found.keys() | facts.keys() | deleted):
        topics = _living(found.get(group, ()))
        known = facts.get(group, [None] * len(windows))
        if known[-1] is None and not topics and group not in deleted:
            continue  # it ended before this window
        yield GroupFrame(
            cluster,
            group,
            window_seconds,
            windows,
            topics,
            known,
            lists["rebalances"].get(group, []),
            lists["generations"].get(group, []),
            lists["group_members"].get(group, []),
            lists["group_events"].get(group, []),
            policy(group, end),
            baseline(group),
            deploys.get(group, []),
            retention,
        )


def _offsets_retention(rows: pa.Table) -> float | None:
    """The newest that a broker told, in minutes."""
    known = rows.filter(pc.is_valid(rows["offsets_retention_minutes"])).sort_by("batch_id")
    return float(known["offsets_retention_minutes"][-1].as_py()) if known.num_rows else None


def _was_deleted(events: Sequence[Row], window_ms: int) -> bool:
    return any(row["kind"] == "group_deleted" and _milliseconds(row["event_at"]) >= window_ms for row in events[-3:])


def _living(topics: Sequence[TopicFrame]) -> list[TopicFrame]:
    """Topics with a row in the newest window, each once: of a topic that was recreated in it the one that is read.

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
        replace(each, facts=each.facts | {"former_topic_id": former[name]}) if name in former else each
        for name, each in chosen.items()
    ]


def _within(rows: pa.Table, windows: _Ints) -> pa.Table:
    low, high = (pa.scalar(int(at) * 1000, pa.int64()) for at in (windows[0], windows[-1]))
    at = pc.cast(rows["window_start"], pa.int64())
    return kept(rows, pc.and_(pc.greater_equal(at, low), pc.less_equal(at, high)))


def kept(rows: pa.Table, condition: pa.ChunkedArray) -> pa.Table:
    """The rows that meet a condition; nothing is copied where all of them do."""
    return rows if pc.all(condition, min_count=0).as_py() else rows.filter(condition)


def _by_group(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows of each group, as slices of one sorted table."""
    rows = rows.sort_by("group").combine_chunks()
    for low, high in _runs(_codes(rows["group"])):
        yield rows["group"][low].as_py(), rows.slice(low, high - low)


def _codes(column: pa.ChunkedArray) -> _Ints:
    """A number per distinct name."""
    found: _Ints = column.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return found


def _runs(codes: _Ints) -> list[tuple[int, int]]:
    """Begin and end of each run of equal numbers."""
    starts = np.flatnonzero(np.r_[len(codes) > 0, codes[1:] != codes[:-1]])
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True)) if len(codes) else []


def _topic_frames(rows: pa.Table, windows: _Ints, topics: Mapping[tuple[str, str], Row]) -> dict[str, list[TopicFrame]]:
    """Every topic of every group; a recreated topic is another one. Columns are converted once for all of them."""
    rows = rows.sort_by([(name, "ascending") for name in ("group", "topic", "topic_id", "partition")])
    partitions = rows["partition"].to_numpy().astype(np.int64)
    step = windows[1] - windows[0] if len(windows) > 1 else 1
    at = (pc.cast(rows["window_start"], pa.int64()).to_numpy() // 1000 - windows[0]) // step
    known = set(rows.column_names)
    numbers = {
        key: pc.cast(rows[name], pa.float64()).to_numpy() if name in known else np.full(rows.num_rows, np.nan)
        for key, name in NUMBERS.items()
    }
    names = {
        key: pc.fill_null(rows[name], "").to_numpy() if name in known else np.full(rows.num_rows, "", object)
        for key, name in NAMES.items()
    }
    found: dict[str, list[TopicFrame]] = {}
    places = [_codes(rows[name]) for name in ("group", "topic", "topic_id")]
    for low, high in _runs(np.ravel_multi_index(places, [each.max(initial=0) + 1 for each in places])):
        own, row = np.unique(partitions[low:high], return_inverse=True)
        size, where = (len(own), len(windows)), (row, at[low:high])
        group, topic, topic_id = (rows[name][low].as_py() for name in ("group", "topic", "topic_id"))
        frame = TopicFrame(
            topic,
            topic_id,
            own,
            {key: _laid_out(values[low:high], size, where, np.nan) for key, values in numbers.items()},
            {key: _laid_out(values[low:high], size, where, "") for key, values in names.items()},
            topics.get((topic, topic_id), {}),
        )
        found.setdefault(group, []).append(frame)
    return found


def _laid_out(values: Any, size: tuple[int, int], where: tuple[_Ints, _Ints], unknown: Any) -> Any:
    """Values as [partitions, windows]."""
    found = np.full(size, unknown, values.dtype)
    found[where] = values
    return found


def _facts(rows: pa.Table, windows: _Ints) -> list[Row | None]:
    """The newest row whole, of the others what rules look back at."""
    found: list[Row | None] = [None] * len(windows)
    step = int(windows[1] - windows[0]) if len(windows) > 1 else 1
    for row in rows.select(["window_start", *LOOKED_BACK_AT]).to_pylist():
        found[(_milliseconds(row["window_start"]) - int(windows[0])) // step] = row
    if found[-1] is not None:
        is_newest = pc.equal(pc.cast(rows["window_start"], pa.int64()), int(windows[-1]) * 1000)
        found[-1] = _dicts(rows.filter(is_newest))[-1]
    return found


def _rows_by_group(rows: pa.Table) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in _dicts(rows):
        found.setdefault(row["group"] or "", []).append(row)
    return found


def _dicts(rows: pa.Table) -> list[Row]:
    """Rows with maps as dicts, which Arrow gives as lists of pairs."""
    found: list[Row] = rows.to_pylist(maps_as_pydicts="strict")
    return found


def _topic_facts(rows: pa.Table, windows: _Ints) -> dict[tuple[str, str], Row]:
    """What `topic_windows` say of each topic: its configuration, and under "windows" the rows of each partition."""
    found: dict[tuple[str, str], Row] = {}
    for row in _within(rows, windows).sort_by("window_start").to_pylist():
        facts = found.setdefault((row["topic"], row["topic_id"]), {"windows": {}})
        facts |= {name: row.get(name) for name in _CONFIGURED}
        facts["windows"].setdefault(row["partition"], []).append(row)
    return found


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
