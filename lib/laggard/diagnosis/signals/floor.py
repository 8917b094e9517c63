"""The floor below which lag is only what lies between two commits, and the lag above it.

All functions take arrays [partitions, windows] with NaN if a value is not known.
"""

from __future__ import annotations

import numpy as np

from laggard.diagnosis.history.frames import Floats, GroupFrame, TopicFrame
from laggard.diagnosis.parameters import Parameters, fixed
from laggard.diagnosis.signals.group import Flags
from laggard.rebalance.parameters import DEFAULTS

_FLOOR_INTERVALS = fixed("floor_intervals", DEFAULTS.floor_intervals, "commit intervals of arrivals, and one record")
_MATERIAL_SLO_SHARE = fixed("material_slo_share", 0.2, "of the time-lag objective")
_HIDDEN_INTERVALS = fixed("hidden_intervals", 2.0, "commit intervals for which commits are hidden")


def floors(frame: TopicFrame, arrival: Floats, window_seconds: int, parameters: Parameters) -> Floats:
    """Lag that the commit interval alone makes: twice what arrives between two of them, and one record.

    Commits of batches that take now long, now short are as far apart as the longest that was seen and was no stall;
    more arrives between them as soon as more arrives at all. `arrival` is a mean over some windows.
    """
    interval = np.where(np.isnan(frame["interval"]), window_seconds, frame["interval"])
    is_rhythm = frame["frozen"] < parameters.stall_ci * interval
    longest = np.maximum.accumulate(np.where(is_rhythm, frame["frozen"], 0.0), axis=1)
    found: Floats = _FLOOR_INTERVALS * np.fmax(arrival, frame["arrival"]) * np.maximum(interval, longest) + 1.0
    return found


def material(frame: TopicFrame, floor: Floats, slo_seconds: float, parameters: Parameters) -> Flags:
    """Return where lag is above the floor; with an SLO it must also be a fifth of it in time.

    In a window with a commit it is the lag at that commit: between two of them lag tells when the next one comes.
    """
    limit = np.fmax(floor, parameters.min_lag_records)
    lag, at_commit = frame["lag"], frame["envelope"]
    found: Flags = np.where(np.isnan(at_commit), lag, np.minimum(lag, at_commit)) > limit
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
