"""Rows of the tables to the frames that rules look at: one frame per group, nothing in it newer than the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.frames import NAMES, NUMBERS, Floats, GroupFrame, Names, Policy, Row, TopicFrame

Tables = Mapping[str, pa.Table]
Rows = TypeVar("Rows", bound=pa.Table | pa.RecordBatch)
LISTS = ("rebalances", "generations", "group_members", "group_events")  # rows of 24 h, and a generation of before
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
    facts = _facts(_within(tables["group_history"], windows), windows)
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
    window = datetime.fromtimestamp(window_ms / 1000, timezone.utc)
    return any(row["kind"] == "group_deleted" and row["event_at"] >= window for row in events[-3:])


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


def kept(rows: Rows, condition: pa.Array | pa.ChunkedArray) -> Rows:
    """The rows that meet a condition; nothing is copied where they are next to each other, as those of a time are."""
    is_kept = pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
    count, first = int(np.count_nonzero(is_kept)), int(np.argmax(is_kept)) if len(is_kept) else 0
    is_run = bool(is_kept[first : first + count].all())
    found: Rows = rows.slice(first, count) if is_run else rows.filter(condition)
    return found


def coded(column: pa.Array | pa.ChunkedArray) -> tuple[_Ints, list[str]]:
    """Text as places in a list of the distinct ones, -1 where there is none."""
    whole = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.unify_dictionaries().combine_chunks()
    return pc.fill_null(whole.indices, -1).to_numpy().astype(np.int64), whole.dictionary.to_pylist()


def _runs(codes: _Ints) -> list[tuple[int, int]]:
    """Begin and end of each run of equal numbers."""
    starts = np.flatnonzero(np.r_[len(codes) > 0, codes[1:] != codes[:-1]])
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True)) if len(codes) else []


def _topic_frames(rows: pa.Table, windows: _Ints, topics: Mapping[tuple[str, str], Row]) -> dict[str, list[TopicFrame]]:
    """Every topic of every group; a recreated topic is another one.

    All partitions of all groups are laid out at once, and a topic's arrays are a part of that.
    """
    if not rows.num_rows:
        return {}
    texts, ranks = zip(*(_ranked(rows[name]) for name in ("group", "topic", "topic_id")), strict=True)
    partitions = rows["partition"].to_numpy().astype(np.int64)
    sizes = (*(len(each) for each in texts), int(partitions.max()) + 1)
    series, row = _distinct(np.ravel_multi_index((*ranks, partitions), sizes))
    step = windows[1] - windows[0] if len(windows) > 1 else 1
    at = (pc.cast(rows["window_start"], pa.int64()).to_numpy() // 1000 - windows[0]) // step
    size, cells = (len(series), len(windows)), row * len(windows) + at
    known = set(rows.column_names)
    numbers = {key: _numbers(rows[name], size, cells) if name in known else None for key, name in NUMBERS.items()}
    names = {key: _names(rows[name], size, cells) if name in known else None for key, name in NAMES.items()}
    nan, empty = np.full(size, np.nan), np.full(size, "", object)
    found: dict[str, list[TopicFrame]] = {}
    own = series % sizes[-1]
    for low, high in _runs(series // sizes[-1]):
        group, topic, topic_id = (
            text[code] for text, code in zip(texts, np.unravel_index(series[low], sizes), strict=False)
        )
        frame = TopicFrame(
            topic,
            topic_id,
            own[low:high],
            {key: (nan if values is None else values)[low:high] for key, values in numbers.items()},
            {key: (empty if values is None else values)[low:high] for key, values in names.items()},
            topics.get((topic, topic_id), {}),
        )
        found.setdefault(group, []).append(frame)
    return found


def _ranked(column: pa.ChunkedArray) -> tuple[list[str], _Ints]:
    """The distinct texts in order, and the place of each row's among them."""
    codes, texts = coded(column)
    order = sorted(range(len(texts)), key=texts.__getitem__)
    places = np.empty(len(texts), np.int64)
    places[order] = np.arange(len(texts))
    return [texts[code] for code in order], places[codes]


def _distinct(keys: _Ints) -> tuple[_Ints, _Ints]:
    """As np.unique with the inverse, by hashes: rows are many more than keys."""
    encoded = pa.array(keys).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    places = np.empty(len(found), np.int64)
    places[order] = np.arange(len(found))
    return found[order], places[encoded.indices.to_numpy()]


def _numbers(column: pa.ChunkedArray, size: tuple[int, int], cells: _Ints) -> Floats:
    """A column as [partitions of all groups, windows]."""
    found = np.full(size, np.nan)
    found.ravel()[cells] = pc.cast(column, pa.float64()).to_numpy()
    return found


def _names(column: pa.ChunkedArray, size: tuple[int, int], cells: _Ints) -> Names:
    codes, texts = coded(column)
    found = np.full(size, -1, np.int64)
    found.ravel()[cells] = codes
    whole: Names = np.array([*texts, ""], object)[found]  # -1 is the last one
    return whole


def _facts(rows: pa.Table, windows: _Ints) -> dict[str, list[Row | None]]:
    """Of each group the newest row whole, of the others what rules look back at."""
    found: dict[str, list[Row | None]] = {}
    step = int(windows[1] - windows[0]) if len(windows) > 1 else 1
    begins = pc.cast(rows["window_start"], pa.int64()).to_numpy() // 1000
    places = ((begins - windows[0]) // step).tolist()
    for group, at, row in zip(
        rows["group"].to_pylist(), places, rows.select(["window_start", *LOOKED_BACK_AT]).to_pylist(), strict=True
    ):
        found.setdefault(group, [None] * len(windows))[at] = row
    for row in _dicts(kept(rows, pa.array(begins == windows[-1]))):
        found[row["group"]][-1] = row
    return found


def _rows_by_group(rows: pa.Table) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in _dicts(rows):
        found.setdefault(row["group"] or "", []).append(row)
    return found


def _dicts(rows: pa.Table) -> list[Row]:
    """Rows with maps as dicts, which Arrow gives as lists of pairs."""
    found: list[Row] = rows.to_pylist(maps_as_pydicts="strict") if rows.num_rows else []  # no rows cost a millisecond
    return found


def _topic_facts(rows: pa.Table, windows: _Ints) -> dict[tuple[str, str], Row]:
    """What `topic_windows` say of each topic: its configuration, and under "windows" the rows of each partition."""
    found: dict[tuple[str, str], Row] = {}
    if not rows.num_rows:
        return found
    for row in _within(rows, windows).sort_by("window_start").to_pylist():
        facts = found.setdefault((row["topic"], row["topic_id"]), {"windows": {}})
        facts |= {name: row.get(name) for name in _CONFIGURED}
        facts["windows"].setdefault(row["partition"], []).append(row)
    return found
