"""Members that were left with fewer partitions: whether their pace fell with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.order import lower_median
from laggard.diagnosis.signals.view import Flags, View

_MIN_WINDOWS, _MAX_WINDOWS = 3, 10  # busy ones, on either side
_FELL = 0.85  # of the pace before; that of a slow member stays what it was, whatever it works on


@dataclass(frozen=True, slots=True)
class Shed:
    """What a member did while busy before and after it was left with fewer partitions, records/s."""

    before: float
    after: float
    kept: frozenset[tuple[str, int]]  # what it had before and still has

    @property
    def is_slower(self) -> bool:
        """Whether it lost pace, as no slow member would: something that it kept takes most of its time."""
        return self.after <= _FELL * self.before


def shed(view: View, slot: str) -> Shed | None:
    """The newest time a member got fewer partitions and kept some; None if it did not, or was not busy for long."""
    held = np.concatenate([topic.frame.named("slot") == slot for topic in view.topics])
    now = held[:, -1]
    changed = np.flatnonzero((held != now[:, None]).any(axis=0))
    had_more = (held & now[:, None]).any(axis=0) & (held.sum(axis=0) > now.sum())
    if not had_more.any():
        return None
    last = int(np.flatnonzero(had_more)[-1])
    alike = (held == held[:, last, None]).all(axis=0)
    alike[last + 1 :] = False
    after = np.arange(held.shape[1]) > changed[-1] + 1  # a rebalance lies in the first window after it
    rates = [_busy_rates(view, chosen, windows) for chosen, windows in ((held[:, last], alike), (now, after))]
    if min(map(len, rates)) < _MIN_WINDOWS:
        return None
    places = [(topic.frame.topic, int(each)) for topic in view.topics for each in topic.frame.partitions]
    kept = frozenset(places[row] for row in np.flatnonzero(held[:, last] & now))
    before, later = (lower_median(each[-_MAX_WINDOWS:].tolist()) for each in rates)
    return Shed(before, later, kept)


def _busy_rates(view: View, chosen: Flags, windows: Flags) -> Floats:
    """Records/s of the chosen partitions in those windows in which they had more to read all the time."""
    consume, lowest = (np.concatenate([topic.frame[name] for topic in view.topics]) for name in ("consume", "lag_min"))
    floor = float(np.concatenate([topic.floor for topic in view.topics])[chosen].sum())
    total = consume[chosen].sum(axis=0)
    found: Floats = total[windows & (lowest[chosen].sum(axis=0) > floor) & ~np.isnan(total)]
    return found
