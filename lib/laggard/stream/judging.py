"""Judge a closed window's groups, and its cluster, by what `reading` read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from laggard.diagnosis.cluster import TOLD_WINDOWS, ClusterFrame
from laggard.diagnosis.columns import Ints, places_of
from laggard.diagnosis.engine import Judged, judge
from laggard.diagnosis.frames import Row
from laggard.diagnosis.grid import IsOwn
from laggard.diagnosis.history import Baseline, History, Rows
from laggard.diagnosis.memory import Memory
from laggard.stream.reading import Options, Window, known_at, read_span, told


def lay_out(
    tables: Mapping[str, pa.Table], begin_ms: int, end_ms: int, options: Options, is_own: IsOwn | None = None
) -> History:
    """The tables made ready for the windows that begin from `begin_ms` to `end_ms`; of `lag_windows` some groups."""
    look_back = options.parameters.look_back_windows
    return History(tables, begin_ms, end_ms, window_seconds=options.window_seconds, look_back=look_back, is_own=is_own)


def judge_groups(
    history: History,
    known: Rows,
    baseline: Callable[[str], Baseline],
    window: Window,
    memories: Mapping[str, Memory],
    options: Options,
) -> Iterator[Judged]:
    """Each group in a window; `known` are the rows of `known_at`."""
    frames = history.frames(
        window.begin_ms,
        window.batch_id,
        known,
        cluster=options.cluster,
        policy=lambda group, at: options.policy(options.cluster, group, at),
        baseline=baseline,
    )
    for frame in frames:
        yield judge(frame, memories.get(frame.group, Memory()), options.parameters)


def read_cluster(root: str, versions: Mapping[str, int], window: Window, options: Options) -> ClusterFrame:
    """The window as the cluster's rules see it, with the cluster's own events up to its end."""
    end_ms = window.begin_ms + 1000 * options.window_seconds
    span = end_ms - 1000 * TOLD_WINDOWS * options.window_seconds, end_ms
    events = read_span(root, "group_events", versions.get("group_events"), *span, "event_at")
    return cluster_frame(known_at(told({"group_events": events}), window, options), window, options)


def cluster_frame(known: Rows, window: Window, options: Options) -> ClusterFrame:
    """The same from rows that are there already."""
    rows = [row for row in known["group_events"] if row["group"] is None]
    return ClusterFrame(options.cluster, window.begin_ms, options.window_seconds, rows)


class Baselines:
    """Rows of the day before; read when a rule first asks, for most windows never, and made rows of by group."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read
        self._rows = pa.table({})
        self._places: dict[str, Ints] | None = None  # group -> rows of the table

    def of(self, group: str) -> Baseline:
        """What a rule may ask for, by topic."""
        return lambda: self._topics(group)

    def _topics(self, group: str) -> dict[str, list[Row]]:
        if self._places is None:
            self._rows = self._read()
            self._places = places_of(self._rows["group"])
        found: dict[str, list[Row]] = {}
        if group in self._places:
            for row in self._rows.take(self._places[group]).to_pylist():
                found.setdefault(row["topic"], []).append(row)
        return found
