"""Judge a past range once more: the same functions, the same rows, and the memory of the window before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.engine import settle
from laggard.diagnosis.frames import Row
from laggard.diagnosis.memory import Memory, from_json
from laggard.stream.judging import Baselines, cluster_frame, judge_groups, lay_out
from laggard.stream.reading import (
    BASELINE,
    Options,
    Window,
    closed_windows,
    find_closed,
    known_at,
    read_baseline,
    read_history,
    told,
)
from laggard.tables.arrow import to_arrow
from laggard.tables.judged import newest_judged, read_between
from laggard.tables.schemas import FINDING_STATE, GROUP_WINDOWS

_CHUNK = 60  # windows whose history is read at once


@dataclass(frozen=True, slots=True)
class Remembered:
    """What was remembered after a window; `window_start` is None where nothing was, as at a first start."""

    window_start: datetime | None
    memories: dict[str, Memory]


@dataclass(frozen=True, slots=True)
class Step:
    """One window judged: rows of `group_windows` and of `findings`."""

    window: Window
    windows: list[Row]
    findings: list[Row]


def memory_before(root: str, begin_ms: int) -> Remembered:
    """The memory of the newest judged window that began before."""
    newest = newest_judged(root, datetime.fromtimestamp(begin_ms / 1000, timezone.utc))
    if newest is None:
        return Remembered(None, {})
    rows = read_between(root, FINDING_STATE.name, ("group", "state"), newest, newest)
    return Remembered(newest, {row["group"]: from_json(row["state"]) for row in rows.to_pylist()})


def replay(root: str, begin_ms: int, end_ms: int, remembered: Remembered, options: Options) -> Iterator[Step]:
    """Every window that begins from `begin_ms` to `end_ms` and has closed, in order; nothing is written."""
    memories, step = remembered.memories, 1000 * options.window_seconds
    baseline = _Baseline(root, begin_ms, options)
    for first_ms in range(begin_ms, end_ms + 1, _CHUNK * step):
        last_ms = min(end_ms, first_ms + (_CHUNK - 1) * step)
        if not find_closed(root, {}, first_ms, last_ms, options.window_seconds, told_ms=last_ms + 2 * step):
            continue
        tables = read_history(root, {}, first_ms, last_ms, options)
        history, read = lay_out(tables, first_ms, last_ms, options), told(tables)
        for window in closed_windows(tables, first_ms, last_ms, options.window_seconds):
            known = known_at(read, window, options)
            before = Baselines(partial(baseline.at, window.begin_ms))
            judged = list(judge_groups(history, known, before.of, window, memories, options))
            cluster = cluster_frame(known, window, options)
            windows, findings, memories = settle(judged, cluster, memories, options.parameters)
            same = {"cluster": options.cluster, "batch_id": window.batch_id}
            found = Step(window, [row | same for row in windows], [row | same for row in findings])
            baseline.add(found.windows)
            yield found


class _Baseline:
    """The day before each window: what is stored up to the first one, then what the replay itself has judged."""

    def __init__(self, root: str, begin_ms: int, options: Options) -> None:
        self._root, self._begin_ms, self._options = root, begin_ms, options
        self._span_ms = round(options.parameters.baseline_hours * 3_600_000)
        self._stored: pa.Table | None = None
        self._own: list[pa.Table] = []

    def add(self, windows: list[Row]) -> None:
        self._own.append(to_arrow(GROUP_WINDOWS, windows).select(BASELINE))

    def at(self, window_ms: int) -> pa.Table:
        if self._stored is None:
            self._stored = read_baseline(self._root, self._begin_ms, self._options)
        parts = [each for each in (self._stored, *self._own) if each.num_rows]
        if not parts:
            return self._stored
        rows = pa.concat_tables(parts)
        return rows.filter(pc.greater_equal(rows["window_start"], _at(window_ms - self._span_ms)))


def _at(ms: int) -> pa.Scalar:
    return pa.scalar(1000 * ms, pa.timestamp("us", tz="UTC"))
