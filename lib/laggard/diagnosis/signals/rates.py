"""Rates: means over windows, and between commits that are rarer than windows."""

from __future__ import annotations

import numpy as np

from laggard.diagnosis.history.frames import Floats
from laggard.diagnosis.parameters import fixed

RATE_COMMITS = fixed("rate_commits", 3, "gaps between commits that a rate is taken over at least")
_RECENT_GAPS = fixed("recent_gaps", 2, "times the longest gap, since the newest commit")


def rolling_mean(values: Floats, windows: int) -> Floats:
    """Mean of the known values among the newest `windows` up to each window, NaN if none is known."""
    known = ~np.isnan(values)
    if known.all():  # nearly always, and three times as fast
        sums = np.cumsum(values, axis=1)
        sums[:, windows:] = sums[:, windows:] - sums[:, :-windows]
        means: Floats = sums / np.minimum(np.arange(1, values.shape[1] + 1), windows)
        return means
    sums = np.cumsum(np.where(known, values, 0.0), axis=1)
    counts = np.cumsum(known, axis=1)
    sums[:, windows:] = sums[:, windows:] - sums[:, :-windows]
    counts[:, windows:] = counts[:, windows:] - counts[:, :-windows]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def rates_at_commits(consumed: Floats) -> Floats:
    """Records/s over the newest `RATE_COMMITS` gaps, or fewer, at each window with a commit but the first.

    A mean over windows would count one commit too many or too few of those that are rarer than windows.
    """
    at = np.flatnonzero(consumed > 0)
    done = np.cumsum(consumed[at])
    before = np.maximum(np.arange(1, len(at)) - RATE_COMMITS, 0)
    found: Floats = (done[1:] - done[before]) / (at[1:] - at[before])
    return found


def falls_behind(left: Floats, least_rate: float, window_seconds: int) -> bool:
    """True if at each commit, those of `RATE_COMMITS` gaps and of one before, more was left than at the commit before.

    `left` [windows] is the lag at commits in records, NaN in a window without one, `least_rate` in records/s what it
    must have grown by. The first gap may be the one in which there began to be too much to do.
    """
    at = np.flatnonzero(~np.isnan(left))[-RATE_COMMITS - 2 :]
    if len(at) < RATE_COMMITS + 2:
        return False
    gaps = np.diff(at)
    is_recent = len(left) - 1 - at[-1] <= _RECENT_GAPS * gaps.max()
    return bool(is_recent and (np.diff(left[at]) > least_rate * gaps * window_seconds).all())
