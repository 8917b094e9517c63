"""Changes by a tick's commits on each partition: commit interval, offset move, counts, lag."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    as_double,
    both,
    differ,
    equal,
    milliseconds,
    numbers,
    seconds_between,
    when,
    where,
)
from laggard.lag.commit_gaps import SUMS, NewCommits, add_gaps, sum_gaps
from laggard.lag.merged import Merged
from laggard.lag.reached import reached_by
from laggard.lag.tick import Tick, was_followed

_MOST_REPEATS = 2**31 - 1
_LONG, _DOUBLE = pa.int64(), pa.float64()


def commit_rhythm(
    merged: Merged, columns: dict[str, Any], tick: Tick, is_same_topic: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return when the group commits, and the sums of its gaps.

    Records read while catching up were thinned out by compaction and give no commit interval.
    """
    before, commit = merged.before, merged.commit
    is_first_row = pc.is_null(before["status"])
    is_followed = pc.or_(was_followed(before, tick), pc.and_(is_first_row, tick.has_history))
    is_live = pc.and_(pc.and_(merged.is_new, is_followed), tick.is_caught_up)
    newest = where(is_live, commit["commits"])
    new = NewCommits(
        numbers(newest)[0],
        milliseconds(commit["first_commit_timestamp"]),
        milliseconds(commit["commit_timestamp"]),
        milliseconds(where(is_same_topic, before["commit_timestamp"])),
    )
    gaps, interval = add_gaps(
        where(is_same_topic, before["commit_gaps"]),
        where(is_same_topic, before["commit_interval_seconds"]),
        new,
    )
    was_behind = pc.greater(
        commit["first_committed_offset"], where(is_same_topic, before["committed_offset"])
    )
    is_first = pc.or_(pc.is_null(before["committed_offset"]), pc.invert(is_same_topic))
    moved_on = where(
        pc.or_(pc.fill_null(was_behind, False), is_first), commit["first_commit_timestamp"]
    )
    progress = where(is_live, pc.coalesce(commit["progress_timestamp"], moved_on))
    is_repeated = equal(before["committed_offset"], commit["first_committed_offset"])
    carried = pc.fill_null(where(is_same_topic, before["repeat_commits"]), 0)
    repeats = when(
        pc.is_valid(progress), 0, pc.add(pc.cast(carried, _LONG), pc.cast(is_repeated, _LONG))
    )
    repeats = when(is_live, pc.add(repeats, commit["repeat_commits"]), carried)
    return {
        "repeat_commits": where(
            pc.is_valid(columns["committed_offset"]), pc.min_element_wise(repeats, _MOST_REPEATS)
        ),
        "commit_gaps": gaps,
        "commit_interval_seconds": interval,
        "progressed_at": pc.coalesce(progress, where(is_same_topic, before["progressed_at"])),
    }, sum_gaps(new, {name: where(is_live, commit[name]) for name in SUMS})


def moves(
    merged: Merged, tick: Tick, is_same_topic: Any, columns: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Measure the committed offset's fall since the previous tick, and the rates since then."""
    before = merged.before
    held = where(is_same_topic, reached_by(before))
    # no record lies beyond the log end: only from there on it is read again
    fell = pc.subtract(held, merged.commit["first_committed_offset"])
    fell_by = where(pc.and_(merged.is_new, pc.fill_null(pc.greater(fell, 0), False)), fell)
    was_live = was_followed(before, tick)

    def elapsed_by(column: str) -> Any:
        seconds = seconds_between(columns[column], before[column])
        return where(both(pc.greater(seconds, 0), was_live, pa.scalar(tick.is_caught_up)), seconds)

    elapsed = elapsed_by("sampled_at")
    # a group that is asked for its offsets may not be so at each tick
    since_answer = elapsed
    if tick.polls_commits:
        since_answer = elapsed_by("answered_at")
    arrived = pc.subtract(columns["log_end_offset"], where(is_same_topic, before["log_end_offset"]))
    consumed = pc.subtract(reached_by(columns), held)
    is_forward = pc.and_(
        pc.is_null(fell_by), pc.equal(pc.fill_null(merged.commit["rewound_records"], 0), 0)
    )
    return fell_by, {
        "arrival_rate": pc.divide(as_double(where(pc.greater_equal(arrived, 0), arrived)), elapsed),
        "consume_rate": pc.divide(as_double(where(is_forward, consumed)), since_answer),
    }


def commit_counts(merged: Merged, fell_by: Any, log_end: Any) -> dict[str, Any]:
    """Return numbers of this tick's commits, repeating commits and rewound records; 0 is measured.

    A repeating commit has the same offset as before.

    More than the whole log was not read, so it cannot be read again: a commit from beyond the log
    end fell.
    """
    commit = merged.commit
    repeats = pc.and_(
        merged.is_new, equal(merged.before["committed_offset"], commit["first_committed_offset"])
    )
    inside = where(merged.is_new, commit["rewound_records"])
    is_read = pc.fill_null(pc.less_equal(inside, log_end), True)

    def counted(name: str) -> Any:
        return when(merged.is_new, commit[name], pa.scalar(0, _LONG))

    return {
        "commits": counted("commits"),
        "noop_commits": pc.add(counted("noop_commits"), pc.cast(repeats, _LONG)),
        "rewound_records": pc.add(
            pc.fill_null(where(is_read, inside), 0), pc.fill_null(fell_by, 0)
        ),
    }


def lag_at_commits(
    before: pa.Table, commit: pa.Table, now: dict[str, Any], is_same_topic: Any, tick: Tick
) -> Any:
    """Return the smaller lag of a tick's first and last commit; log ends are interpolated.

    The interpolation is between the two polls.

    Compaction leaves of a tick's commits these two. Null without a commit, or where one of the two
    log ends is not known or the log became shorter.
    """
    is_followed = both(
        is_same_topic, differ(before["status"], "stale"), pc.equal(now["status"], "ok")
    )
    low = where(is_followed, before["log_end_offset"])
    rise = pc.subtract(now["log_end_offset"], low)
    rise = where(both(pc.greater_equal(rise, 0), pa.scalar(tick.is_caught_up)), rise)
    gap = seconds_between(now["sampled_at"], before["sampled_at"])

    def lag_at(offset: str, at: str) -> Any:
        # a coordinator's clock may be off: a commit that this tick brought was made since the one
        # before
        share = pc.divide(
            seconds_between(commit[at], before["sampled_at"]), where(pc.greater(gap, 0), gap)
        )
        share = pc.min_element_wise(
            pc.max_element_wise(share, 0.0, skip_nulls=False), 1.0, skip_nulls=False
        )
        risen = pc.cast(
            pc.round(pc.multiply(pc.cast(rise, _DOUBLE, safe=False), share)), _LONG, safe=False
        )
        return pc.max_element_wise(
            pc.subtract(pc.add(low, risen), commit[offset]), 0, skip_nulls=False
        )

    return pc.min_element_wise(
        lag_at("first_committed_offset", "first_commit_timestamp"),
        lag_at("committed_offset", "commit_timestamp"),
    )
