"""Read the rules' data of one group in one window, with their own evaluation functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laggard.diagnosis.history.frames import Memory
from laggard.diagnosis.signals.compute import signals_of
from laggard.diagnosis.signals.group import Signals
from laggard.stream.evaluation.evaluating import lay_out
from laggard.stream.evaluation.reading import (
    Options,
    closed_windows,
    events_of,
    known_at,
    read_history,
)
from laggard.stream.evaluation.replay import memory_before


@dataclass(frozen=True, slots=True)
class Recorded:
    """Signals of a group at the end of a window, and records/s of each member's busy windows."""

    signals: Signals
    busy_rates: dict[str, tuple[float, ...]]  # by slot


def read_recorded(root: str, group: str, window_ms: int, options: Options) -> Recorded | None:
    """Read a group as of an evaluated window, by the window's begin.

    Return None if the tables hold nothing of the group.
    """
    remembered = memory_before(root, window_ms, group).memories.get(group, Memory())
    tables = read_history(root, {}, window_ms, window_ms, options, group)
    return recorded_of(tables, group, window_ms, remembered, options)


def recorded_of(
    tables: dict[str, pa.Table], group: str, window_ms: int, memory: Memory, options: Options
) -> Recorded | None:
    """Return the same of tables that were read."""
    window = next(iter(closed_windows(tables, window_ms, window_ms, options.window_seconds)), None)
    if window is None:
        return None
    history = lay_out(tables, window_ms, window_ms, options, lambda names: _is(names, group))
    frames = history.frames(
        window_ms,
        window.batch_id,
        known_at(events_of(tables), window, options),
        cluster=options.cluster,
        policy=lambda name, at: options.policy(options.cluster, name, at),
        baseline=lambda _: dict,  # only causes ask for it, and a plan does not
    )
    frame = next((candidate for candidate in frames if candidate.group == group), None)
    if frame is None:
        return None
    signals, after = signals_of(frame, memory, options.parameters)
    return Recorded(
        signals, {slot: tuple(rate for _, rate in samples) for slot, samples in after.busy.items()}
    )


def _is(names: pa.Array, group: str) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(names, group), False).to_numpy(
        zero_copy_only=False
    )
    return mask.astype(bool)
