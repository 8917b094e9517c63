"""Evaluate a past range again: same functions, same rows, memory of the window before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.dataset import field

from laggard.diagnosis.engine import Evaluated, settle_apart
from laggard.diagnosis.history.frames import Memory, Row
from laggard.diagnosis.history.layout import History
from laggard.stream.evaluation.evaluating import (
    NOT_ODD,
    Baselines,
    check_rows,
    cluster_of,
    evaluate_groups,
    evaluate_window,
    lay_out,
    memories_of,
    writable,
)
from laggard.stream.evaluation.reading import (
    BASELINE,
    Events,
    Options,
    Window,
    closed_windows,
    events_of,
    find_closed,
    known_at,
    read_baseline,
    read_history,
)
from laggard.tables.arrow import to_arrow
from laggard.tables.evaluated import newest_evaluated, read_between
from laggard.tables.schema.schemas import FINDING_STATE, GROUP_WINDOWS

_CHUNK = 60  # windows whose history is read at once


@dataclass(frozen=True, slots=True)
class Remembered:
    """Memory after a window; `window_start` is None if nothing was, as at a first start."""

    window_start: datetime | None
    memories: dict[str, Memory]


@dataclass(frozen=True, slots=True)
class Step:
    """One evaluated window: rows of `group_windows` and of `findings`."""

    window: Window
    windows: list[Row]
    findings: list[Row]


def memory_before(root: str, begin_ms: int, group: str | None = None) -> Remembered:
    """Return the memory of the newest evaluated window that began before a time.

    It is for one group only, if `group` is given.
    """
    newest = newest_evaluated(root, datetime.fromtimestamp(begin_ms / 1000, timezone.utc))
    if newest is None:
        return Remembered(None, {})
    only = None
    if group is not None:
        only = field("group") == group
    rows = read_between(root, FINDING_STATE.name, ("group", "state"), newest, newest, only)
    return Remembered(newest, memories_of(rows))


def replay(
    root: str, begin_ms: int, end_ms: int, remembered: Remembered, options: Options
) -> Iterator[Step]:
    """Yield every closed window from `begin_ms` to `end_ms`, in order; nothing is written.

    Every window begins in this range.
    """
    memories, step = remembered.memories, 1000 * options.window_seconds
    baseline = _Baseline(root, begin_ms, options)
    for first_ms in range(begin_ms, end_ms + 1, _CHUNK * step):
        last_ms = min(end_ms, first_ms + (_CHUNK - 1) * step)
        if not find_closed(
            root, {}, first_ms, last_ms, options.window_seconds, until_ms=last_ms + 2 * step
        ):
            continue
        tables = read_history(root, {}, first_ms, last_ms, options)
        laid_out = _laid_out(tables, first_ms, last_ms, options)
        for window in closed_windows(tables, first_ms, last_ms, options.window_seconds):
            before = Baselines(partial(baseline.at, window.begin_ms))
            evaluated = _evaluate(tables, laid_out, window, memories, before, options)
            evaluated = list(map(writable, evaluated))
            cluster = cluster_of(tables["group_events"], tables["batches"], window, options)
            windows, findings, memories = settle_apart(
                evaluated, cluster, memories, options.parameters, check_rows
            )
            same = {"cluster": options.cluster, "batch_id": window.batch_id}
            result = Step(window, [row | same for row in windows], [row | same for row in findings])
            baseline.add(result.windows)
            yield result


def _laid_out(
    tables: Mapping[str, pa.Table], first_ms: int, last_ms: int, options: Options
) -> tuple[History, Events] | None:
    """Return the tables laid out for all windows at once; None if rows of some group raise."""
    try:
        return lay_out(tables, first_ms, last_ms, options), events_of(tables)
    except NOT_ODD:
        raise
    # then each window by itself, as the stream does, which says what it is
    except Exception:  # noqa: BLE001
        return None


def _evaluate(
    tables: Mapping[str, pa.Table],
    laid_out: tuple[History, Events] | None,
    window: Window,
    memories: Mapping[str, Memory],
    before: Baselines,
    options: Options,
) -> list[Evaluated]:
    if laid_out is not None:
        try:
            known = known_at(laid_out[1], window, options)
            return list(evaluate_groups(laid_out[0], known, before.of, window, memories, options))
        except NOT_ODD:
            raise
        except Exception:  # noqa: BLE001, S110 - said below
            pass
    return evaluate_window(tables, window, memories, before.of, options)


class _Baseline:
    """Day before each window: stored rows up to the first one, then the replay's own rows."""

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
        parts = list(filter(len, (self._stored, *self._own)))
        if not parts:
            return self._stored
        rows = pa.concat_tables(parts)
        return rows.filter(pc.greater_equal(rows["window_start"], _at(window_ms - self._span_ms)))


def _at(ms: int) -> pa.Scalar:
    return pa.scalar(1000 * ms, pa.timestamp("us", tz="UTC"))
