"""The floor below which lag is only what lies between two commits, and the lag above it.

All functions take arrays [partitions, windows] with NaN if a value is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laggard.diagnosis.history.frames import Floats, GroupFrame, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Flags
from laggard.rebalance.parameters import DEFAULTS

_FLOOR_INTERVALS = fixed("floor_intervals", DEFAULTS.floor_intervals, "commit intervals of arrivals, and one record")
# as the defaults have it: the ticks themselves are not in the history
TICK_SHARE = fixed("tick_share", 1 / 6, "of a window")
ENVELOPE_TICKS = fixed("envelope_ticks", 2, "ticks of arrivals, which the log end at a commit may be off by")
ENVELOPE_INTERVALS = fixed("envelope_intervals", 0.25, "commit intervals of arrivals, if that is more")
_EVEN_INTERVALS = fixed("even_intervals", 1.25, "commit intervals, up to which the longest gap is one of a timer")
_EVEN_WINDOWS = fixed("even_windows", 15, "windows in which they must have been even")
_BATCH_GAPS = fixed("batch_gaps", 1.5, "times the longest gap, of commits that come after batches")
_COUNT_DEVIATIONS = fixed(
    "count_deviations", 3, "standard deviations by which a count of records that come at random varies"
)
_MATERIAL_SLO_SHARE = fixed("material_slo_share", 0.2, "of the time-lag objective")
_HIDDEN_INTERVALS = fixed("hidden_intervals", 2.0, "commit intervals for which commits are hidden")


@dataclass(frozen=True, slots=True)
class Floors:
    """Records below which lag is what commits make of it, [partitions, windows] both."""

    momentary: Floats  # of the lag at any time
    at_commit: Floats  # of what a commit leaves, which is next to nothing where the reader keeps up


@dataclass(frozen=True, slots=True)
class Left:
    """Lag of each window and the floor that it has to be above to count, [partitions, windows] each.

    It is the lag at the newest commit while that is fresh: what arrived since tells when the next commit comes.
    """

    newest: Floats  # at the end of the window
    least: Floats  # smallest in it
    floor: Floats


def floors(frame: TopicFrame, arrival: Floats, window_seconds: int, parameters: Parameters) -> Floors:
    """Lag that the commit interval alone makes: twice what arrives between two of them, and one record.

    Commits of batches that take now long, now short are as far apart as the longest that was seen and was no stall;
    more arrives between them as soon as more arrives at all. `arrival` is a mean over some windows.

    A timer commits at even gaps, and leaves what came in a batch, which is short beside them. Where gaps are uneven,
    commits come after batches, and leave what came in the longest. Counts of records that come at random scatter.
    """
    known = frame["interval"]
    interval = np.where(np.isnan(known), window_seconds, known)
    is_rhythm = frame["frozen"] < parameters.stall_ci * interval
    longest = np.maximum.accumulate(np.where(is_rhythm, frame["frozen"], 0.0), axis=1)
    rate = np.fmax(arrival, frame["arrival"])
    momentary: Floats = _FLOOR_INTERVALS * rate * np.maximum(interval, longest) + 1.0
    is_seen = np.cumsum(~np.isnan(known), axis=1) >= _EVEN_WINDOWS
    # members of a group are the same program: one that commits after batches shows what all of them do
    is_even = is_seen & (np.fmax.reduce(longest / interval, axis=0, initial=0.0) <= _EVEN_INTERVALS)
    seconds = np.maximum(ENVELOPE_TICKS * TICK_SHARE * window_seconds, ENVELOPE_INTERVALS * interval)
    records = rate * np.where(is_even, seconds, _BATCH_GAPS * np.maximum(interval, longest))
    return Floors(momentary, np.fmin(momentary, records + _COUNT_DEVIATIONS * np.sqrt(records) + 1.0))


def lag_left(frame: TopicFrame, floor: Floors, at_commits: Floats) -> Left:
    """Return what was left to read in each window; `at_commits` is the newest lag at a commit, NaN if it is old."""
    is_old = np.isnan(at_commits)
    if not is_old.any():
        newest, least = (np.minimum(lag, at_commits) for lag in (frame["lag"], frame["lag_min"]))
        return Left(newest, least, floor.at_commit)
    newest, least = (np.where(is_old, lag, np.minimum(lag, at_commits)) for lag in (frame["lag"], frame["lag_min"]))
    return Left(newest, least, np.where(is_old, floor.momentary, floor.at_commit))


def material(frame: TopicFrame, left: Left, slo_seconds: float, parameters: Parameters) -> Flags:
    """Return where lag is above the floor; with an SLO it must also be a fifth of it in time."""
    found: Flags = left.newest > np.fmax(left.floor, parameters.min_lag_records)
    if slo_seconds:
        found = found & ~(frame["time_lag"] <= _MATERIAL_SLO_SHARE * slo_seconds)
    return found


def unseen(frame: TopicFrame, group: GroupFrame) -> Flags:
    """Windows at whose end commits of more than one interval are hidden: the group's position then is not known."""
    if group.hidden is None:
        return np.zeros(frame["lag"].shape, np.bool_)
    interval = frame["interval"][:, -1:]
    rhythm = _HIDDEN_INTERVALS * np.where(np.isnan(interval), group.window_seconds, interval)
    found: Flags = group.hidden.least > rhythm
    return found
