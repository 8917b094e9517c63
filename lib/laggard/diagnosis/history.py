"""Rows of the tables to the frames that rules look at: one frame per group, nothing in it newer than the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.frames import NAMES, NUMBERS, GroupFrame, Policy, Row, TopicFrame

Tables = Mapping[str, pa.Table]
LISTS = ("rebalances", "generations", "group_members", "group_events")  # read as rows, of the last 24 h
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

    The tables hold rows of that window and of `look_back` - 1 before it, in `LISTS` of 24 hours; all were published by
    the end of the window.
    """
    step = 1000 * window_seconds
    windows = np.arange(window_ms - (look_back - 1) * step, window_ms + 1, step, dtype=np.int64)
    end = datetime.fromtimestamp((window_ms + step) / 1000, timezone.utc)
    lags = _by_group(_within(tables["lag_windows"], windows))
    facts = {name: _facts(rows, windows) for name, rows in _by_group(_within(tables["group_history"], windows)).items()}
    lists = {name: _rows_by_group(tables[name]) for name in LISTS}
    topics = _topic_facts(tables["topic_windows"], windows)
    for group in sorted(lags.keys() | facts.keys()):
        found = [_topic_frame(rows, windows, topics) for rows in _topics(lags.get(group))]
        known = facts.get(group, [None] * len(windows))
        if known[-1] is None and not any((each.named("status")[:, -1] != "").any() for each in found):
            continue  # it ended before this window
        yield GroupFrame(
            cluster,
            group,
            window_seconds,
            windows,
            [each for each in found if (each.named("status")[:, -1] != "").any()],
            known,
            lists["rebalances"].get(group, []),
            lists["generations"].get(group, []),
            lists["group_members"].get(group, []),
            lists["group_events"].get(group, []),
            policy(group, end),
            baseline(group),
        )


def _within(rows: pa.Table, windows: _Ints) -> pa.Table:
    low, high = (pa.scalar(int(at) * 1000, pa.int64()) for at in (windows[0], windows[-1]))
    at = pc.cast(rows["window_start"], pa.int64())
    return rows.filter(pc.and_(pc.greater_equal(at, low), pc.less_equal(at, high)))


def _by_group(rows: pa.Table) -> dict[str, pa.Table]:
    """Rows of each group, as slices of one sorted table."""
    if not rows.num_rows:
        return {}
    order = [(name, "ascending") for name in ("group", "topic", "topic_id", "partition") if name in rows.column_names]
    rows = rows.sort_by(order).combine_chunks()
    names = rows["group"].combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy()
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    ends = np.r_[starts[1:], len(codes)]
    found = names.dictionary.to_pylist()
    return {found[codes[low]]: rows.slice(low, high - low) for low, high in zip(starts, ends, strict=True)}


def _topics(rows: pa.Table | None) -> list[pa.Table]:
    """Rows of each topic, by its id: a recreated topic is another one."""
    if rows is None:
        return []
    names = pc.binary_join_element_wise(rows["topic"], rows["topic_id"], "\0").combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy()
    return [rows.filter(pa.array(codes == code)) for code in range(len(names.dictionary))]


def _topic_frame(rows: pa.Table, windows: _Ints, topics: Mapping[tuple[str, str], Row]) -> TopicFrame:
    partitions, row = np.unique(rows["partition"].to_numpy(), return_inverse=True)
    column = (pc.cast(rows["window_start"], pa.int64()).to_numpy() // 1000 - windows[0]) // (
        windows[1] - windows[0] if len(windows) > 1 else 1
    )
    topic, topic_id = rows["topic"][0].as_py(), rows["topic_id"][0].as_py()
    size = len(partitions), len(windows)

    def numbers(name: str) -> npt.NDArray[np.float64]:
        found = np.full(size, np.nan)
        if name in rows.column_names:
            found[row, column] = pc.cast(rows[name], pa.float64()).to_numpy(zero_copy_only=False)
        return found

    def names(name: str) -> npt.NDArray[np.object_]:
        found = np.full(size, "", object)
        if name in rows.column_names:
            found[row, column] = pc.fill_null(rows[name], "").to_numpy(zero_copy_only=False)
        return found

    return TopicFrame(
        topic,
        topic_id,
        partitions.astype(np.int64),
        {key: numbers(name) for key, name in NUMBERS.items()},
        {key: names(name) for key, name in NAMES.items()},
        topics.get((topic, topic_id), {}),
    )


def _facts(rows: pa.Table, windows: _Ints) -> list[Row | None]:
    found: list[Row | None] = [None] * len(windows)
    step = int(windows[1] - windows[0]) if len(windows) > 1 else 1
    for row in _dicts(rows):
        found[(_milliseconds(row["window_start"]) - int(windows[0])) // step] = row
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
