"""Lag at the instants of a tick's commits: at its commits a group is as close to the log end as it gets."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import both, differ, seconds_between, where
from laggard.lag.tick import Tick

_LONG, _DOUBLE = pa.int64(), pa.float64()


def lag_at_commits(before: pa.Table, commit: pa.Table, now: dict[str, Any], is_same_topic: Any, tick: Tick) -> Any:
    """Smallest lag at the first and the last commit of a tick; the log end is on the line between the two polls.

    Compaction leaves of a tick's commits these two. Null without a commit, or where one of the two log ends is not
    known or the log became shorter.
    """
    is_followed = both(is_same_topic, differ(before["status"], "stale"), pc.equal(now["status"], "ok"))
    low = where(is_followed, before["log_end_offset"])
    rise = pc.subtract(now["log_end_offset"], low)
    rise = where(both(pc.greater_equal(rise, 0), pa.scalar(tick.is_caught_up)), rise)
    gap = seconds_between(now["sampled_at"], before["sampled_at"])

    def lag_at(offset: str, at: str) -> Any:
        # a coordinator's clock may be off: a commit that this tick brought was made since the one before
        share = pc.divide(seconds_between(commit[at], before["sampled_at"]), where(pc.greater(gap, 0), gap))
        share = pc.min_element_wise(pc.max_element_wise(share, 0.0, skip_nulls=False), 1.0, skip_nulls=False)
        risen = pc.cast(pc.round(pc.multiply(pc.cast(rise, _DOUBLE, safe=False), share)), _LONG, safe=False)
        return pc.max_element_wise(pc.subtract(pc.add(low, risen), commit[offset]), 0, skip_nulls=False)

    return pc.min_element_wise(
        lag_at("first_committed_offset", "first_commit_timestamp"), lag_at("committed_offset", "commit_timestamp")
    )
