"""Judge a closed window's groups, and its cluster, by what `reading` read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.cluster import ClusterFrame
from laggard.diagnosis.engine import Judged, judge
from laggard.diagnosis.frames import Row
from laggard.diagnosis.history import frames_at, kept
from laggard.diagnosis.memory import Memory
from laggard.stream.reading import Options, Window, known_at, read_span


def judge_groups(
    tables: Mapping[str, pa.Table],
    baseline: Callable[[], pa.Table],
    window: Window,
    memories: Mapping[str, Memory],
    options: Options,
) -> Iterator[Judged]:
    """Each group of the tables in a window; `tables` are those of `known_at`."""
    later = _Baselines(baseline)
    frames = frames_at(
        tables,
        window.begin_ms,
        cluster=options.cluster,
        window_seconds=options.window_seconds,
        look_back=options.parameters.look_back_windows,
        policy=lambda group, at: options.policy(options.cluster, group, at),
        baseline=later.of,
    )
    for frame in frames:
        yield judge(frame, memories.get(frame.group, Memory()), options.parameters)


def read_cluster(root: str, versions: Mapping[str, int], window: Window, options: Options) -> ClusterFrame:
    """The window as the cluster's rules see it, with its own events."""
    span = window.begin_ms, window.begin_ms
    events = read_span(root, "group_events", versions.get("group_events"), *span, "event_at")
    return cluster_frame(known_at({"group_events": events}, window, options), window, options)


def cluster_frame(tables: Mapping[str, pa.Table], window: Window, options: Options) -> ClusterFrame:
    """The same from rows that are there already."""
    events = tables["group_events"]
    rows = kept(events, pc.is_null(events["group"])).to_pylist(maps_as_pydicts="strict")
    return ClusterFrame(options.cluster, window.begin_ms, options.window_seconds, rows)


class _Baselines:
    """Rows of the day before, by group and topic; read when a rule first asks, for most windows never."""

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read
        self._found: dict[str, dict[str, list[Row]]] | None = None

    def of(self, group: str) -> Callable[[], Mapping[str, Sequence[Row]]]:
        """What a rule may ask for."""

        def rows() -> Mapping[str, Sequence[Row]]:
            if self._found is None:
                self._found = {}
                for row in self._read().to_pylist():
                    self._found.setdefault(row["group"], {}).setdefault(row["topic"], []).append(row)
            return self._found.get(group, {})

        return rows
