"""Evaluate a closed window's groups, and its cluster, by what `reading` read of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.engine import FINDINGS, LAYOUT, Evaluated, evaluate_group, failed, failure
from laggard.diagnosis.history.frames import Memory, Row, from_json
from laggard.diagnosis.history.grid import Ints, IsOwn, coded, kept, places_of
from laggard.diagnosis.history.layout import Baseline, History, Rows, rows_of
from laggard.diagnosis.rules.cluster import OFFSETS_NEWS_WINDOWS
from laggard.diagnosis.signals.cluster import ClusterFrame
from laggard.errors import LaggardError, first_line
from laggard.stream.evaluation.reading import (
    QUARANTINE,
    RECENT,
    Options,
    Window,
    events_of,
    known_at,
    read_span,
)
from laggard.tables.arrow import to_arrow
from laggard.tables.odd_rows import Skipped, sound_rows
from laggard.tables.schema import schemas

log = logging.getLogger("laggard.diagnose")
NOT_ODD = (LaggardError, OSError, MemoryError)  # what no row of a group is the reason of
_OF_GROUPS = (*RECENT, "group_history", "deploys", "places")


def lay_out(
    tables: Mapping[str, pa.Table],
    begin_ms: int,
    end_ms: int,
    options: Options,
    is_own: IsOwn | None = None,
) -> History:
    """Prepare the tables for windows that start from `begin_ms` to `end_ms`.

    Of `lag_windows` only some groups are used.
    """
    look_back = options.parameters.look_back_windows
    return History(
        tables,
        begin_ms,
        end_ms,
        window_seconds=options.window_seconds,
        look_back=look_back,
        is_own=is_own,
    )


def evaluate_groups(
    history: History,
    known: Rows,
    baseline: Callable[[str], Baseline],
    window: Window,
    memories: Mapping[str, Memory],
    options: Options,
) -> Iterator[Evaluated]:
    """Yield the evaluation of each group in a window; `known` are the rows of `known_at`."""
    frames = history.frames(
        window.begin_ms,
        window.batch_id,
        known,
        cluster=options.cluster,
        policy=lambda group, at: options.policy(options.cluster, group, at),
        baseline=baseline,
    )
    for frame in frames:
        yield evaluate_group(frame, memories.get(frame.group, Memory()), options.parameters)


def evaluate_window(
    tables: Mapping[str, pa.Table],
    window: Window,
    memories: Mapping[str, Memory],
    baseline: Callable[[str], Baseline],
    options: Options,
    is_own: IsOwn | None = None,
) -> list[Evaluated]:
    """Evaluate each own group in a window; a group whose rows raise is set aside alone.

    The others are not set aside.

    What goes wrong in an evaluation is caught there; here it is what comes before, as all groups'
    rows become frames.
    """

    def run(own: IsOwn | None) -> list[Evaluated]:
        chosen = dict(tables)
        if own is not None:
            for name in tables.keys() & _OF_GROUPS:
                chosen[name] = kept(tables[name], pa.array(own(tables[name]["group"])))
        history = lay_out(chosen, window.begin_ms, window.begin_ms, options, own)
        return list(
            evaluate_groups(
                history,
                known_at(events_of(chosen), window, options),
                baseline,
                window,
                memories,
                options,
            )
        )

    try:
        return run(is_own)
    except NOT_ODD:
        raise
    except Exception as error:  # noqa: BLE001 - its report is a finding
        log.warning("rows of some group cannot be evaluated: %s", first_line(error))
    tables = _sound(tables, window, options)
    names = _groups(tables, is_own)
    evaluated, odd = apart(names, lambda some: run(_among(some)))
    set_aside = [
        failed(group, LAYOUT, error, memories.get(group, Memory())) for group, error in odd.items()
    ]
    return sorted([*evaluated, *set_aside], key=lambda evaluation: evaluation.group)


def apart(
    names: Sequence[str], run: Callable[[Sequence[str]], list[Evaluated]]
) -> tuple[list[Evaluated], dict[str, Exception]]:
    """Run for all names, halved until failing names are alone; return results and errors."""
    try:
        return run(names), {}
    except NOT_ODD:
        raise
    except Exception as error:  # noqa: BLE001 - its report is a finding
        if len(names) <= 1:
            return [], dict.fromkeys(names, error)
    middle = len(names) // 2
    low, high = apart(names[:middle], run), apart(names[middle:], run)
    return low[0] + high[0], low[1] | high[1]


def _sound(tables: Mapping[str, pa.Table], window: Window, options: Options) -> dict[str, pa.Table]:
    """Return the tables; a table shared by all groups is empty if its rows raise.

    Its values are then unknown.
    """
    sound_tables = dict(tables)
    for name in {"lag_windows", *_OF_GROUPS} & tables.keys():
        sound_tables[name] = sound_tables[name].schema.empty_table()
    shared = [name for name in ("topic_windows", "batches") if name in tables]
    for name in shared:
        tried = dict(sound_tables)
        for other in set(shared) - {name}:
            tried[other] = sound_tables[other].schema.empty_table()
        try:
            lay_out(tried, window.begin_ms, window.begin_ms, options)
        except NOT_ODD:
            raise
        except Exception as error:  # noqa: BLE001 - said here
            log.warning("rows of %s cannot be read and are left out: %s", name, first_line(error))
            sound_tables[name] = sound_tables[name].schema.empty_table()
    return {**tables, **{name: sound_tables[name] for name in shared}}


def _groups(tables: Mapping[str, pa.Table], is_own: IsOwn | None) -> list[str]:
    names = set[str]()
    for name in {"lag_windows", *_OF_GROUPS} & tables.keys():
        for batch in tables[name].select(["group"]).to_batches():
            names.update(group for group in coded(batch["group"])[1] if group is not None)
    groups = sorted(names)
    if is_own is None:
        return groups
    return list(compress(groups, is_own(pa.array(groups, pa.string())).tolist()))


def _among(names: Sequence[str]) -> IsOwn:
    values = pa.array(names, pa.string())

    def is_among(groups: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        mask: npt.NDArray[np.bool_] = (
            pc.is_in(groups, value_set=values).to_numpy(zero_copy_only=False).astype(bool)
        )
        return mask

    return is_among


def read_cluster(
    root: str, versions: Mapping[str, int], window: Window, options: Options
) -> ClusterFrame:
    """Return the window for the cluster's rules, with the cluster's own events up to its end."""
    end_ms = window.begin_ms + 1000 * options.window_seconds
    span = end_ms - 1000 * OFFSETS_NEWS_WINDOWS * options.window_seconds, end_ms
    events = read_span(root, "group_events", versions.get("group_events"), *span, "event_at")
    # the tick that closed it was polled after its end
    closing = window.begin_ms, end_ms + 1000 * options.window_seconds
    batches = read_span(root, "batches", None, *closing, "polled_at", ("batch_id", *QUARANTINE))
    return cluster_of(events, batches, window, options)


def cluster_of(
    events: pa.Table, batches: pa.Table, window: Window, options: Options
) -> ClusterFrame:
    """Return the window for the cluster's rules, from rows of events and batches.

    Invalid rows of groups are left out.
    """
    try:
        own = events.filter(pc.is_null(events["group"]))
        return cluster_frame(
            known_at(events_of({"group_events": own}), window, options), window, options, batches
        )
    except NOT_ODD:
        raise
    except Exception as error:  # noqa: BLE001 - said here
        log.warning("events of the cluster cannot be read and are left out: %s", first_line(error))
        return ClusterFrame(options.cluster, window.begin_ms, options.window_seconds, [])


def cluster_frame(known: Rows, window: Window, options: Options, batches: pa.Table) -> ClusterFrame:
    """Return the cluster's frame from rows at hand.

    `batches`: rows of that table; rows of an older job lack some columns.
    """
    rows = [row for row in known["group_events"] if row["group"] is None]
    frame = ClusterFrame(options.cluster, window.begin_ms, options.window_seconds, rows)
    closing = batches
    if batches.num_rows:
        closing = batches.filter(pc.equal(batches["batch_id"], window.batch_id))
    for row in rows_of(closing):
        if row.get("quarantined_groups"):
            quarantined = dict(row["quarantined"] or {})
            frame = replace(
                frame, quarantined=quarantined, quarantined_groups=row["quarantined_groups"]
            )
    return frame


class Baselines:
    """Rows of the day before, read when a rule first asks, for most windows never.

    Rows are made by group.
    """

    def __init__(self, read: Callable[[], pa.Table]) -> None:
        self._read = read
        self._rows = pa.table({})
        self._places: dict[str, Ints] | None = None  # group -> rows of the table

    def of(self, group: str) -> Baseline:
        """Return the baselines of a group that a rule may request, by topic."""
        return lambda: self._topics(group)

    def _topics(self, group: str) -> dict[str, list[Row]]:
        if self._places is None:
            self._rows = self._read()
            self._places = places_of(self._rows["group"])
        rows_by_topic: dict[str, list[Row]] = {}
        if group in self._places:
            for row in self._rows.take(self._places[group]).to_pylist():
                rows_by_topic.setdefault(row["topic"], []).append(row)
        return rows_by_topic


def memories_of(rows: pa.Table) -> dict[str, Memory]:
    """Return the memory of each group from rows of `finding_state`, without unreadable rows."""
    skipped = Skipped()
    states = sound_rows(rows, schemas.FINDING_STATE.name, skipped)
    for sentence in skipped.sentences().values():
        log.warning("%s", sentence)
    return {row["group"]: from_json(row["state"]) for row in states}


def check_rows(
    windows: Sequence[Row], findings: Sequence[Row], memories: Mapping[str, Memory]
) -> None:
    """Raise if any of it cannot be written."""
    to_arrow(schemas.GROUP_WINDOWS, windows)
    to_arrow(schemas.FINDINGS, findings)
    for memory in memories.values():
        memory.to_json()


def writable(evaluated: Evaluated) -> Evaluated:
    """Return `evaluated` without `deploys` and `scale_events` that cannot be written.

    A finding then says so.
    """
    try:
        for name, rows in evaluated.completed.items():
            to_arrow(schemas.TABLES[name], rows)
    except Exception as error:  # noqa: BLE001 - its report is the finding
        return replace(
            evaluated,
            completed={},
            observations=[*evaluated.observations, failure(FINDINGS, error)],
        )
    return evaluated
