"""Burrow's view of a partition: its rules over the newest ten commits, with their known weaknesses.

For people who come from Burrow 1.3.7 or newer; our own rules are in `diagnosis/`. As there, a quiet
group is rated over hours, and one commit without lag excuses the next nine, except from a rewind. A
rewind counts until a commit is back at the offset that it left. Instead of ten commits their counts
are kept: how many commits ago the offset fell, the lag was 0, and the lag fell. The commits that
one tick brings count as one.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import both, null, one_chunk, when, where

OK, SLOW, STOPPED, STALLED, REWOUND = "ok", "slow", "stopped", "stalled", "rewound"
VERDICTS = (OK, SLOW, STOPPED, STALLED, REWOUND)  # the worst last, as Burrow numbers them
COMMITS = 10  # lagcheck.intervals
LEAST_GAP_SECONDS = 1.0  # lagcheck.min-distance: commits that are closer count as one
RECENT_SECONDS = 100.0  # ten of Burrow's looks at the log ends, one each ten seconds
RATED = pa.struct(
    [
        ("commits", pa.int32()),
        ("since_rewind", pa.int32()),
        ("since_level", pa.int32()),
        ("since_fall", pa.int32()),
        ("lag", pa.int64()),
    ]
)


def rate(before: Any, lag_at_commit: Any, rewound_records: Any, is_same_topic: Any) -> pa.Array:
    """Return the counts after a tick.

    `lag_at_commit` is null if no commit came, or its lag is unknown.
    """
    before = one_chunk(before)
    is_rated, is_kept = pc.is_valid(lag_at_commit), pc.and_(is_same_topic, pc.is_valid(before))

    def carried(name: str, start: int | None) -> Any:
        value = pc.struct_field(before, name)
        return when(is_kept, value, pa.scalar(start, value.type))

    def since(name: str, happened: Any) -> Any:
        old = carried(name, COMMITS)
        grown = when(
            happened, pa.scalar(0, pa.int32()), pc.min_element_wise(pc.add(old, 1), COMMITS)
        )
        return when(is_rated, pc.cast(grown, pa.int32()), old)

    commits, lag = carried("commits", 0), carried("lag", None)
    counted = pc.cast(pc.min_element_wise(pc.add(commits, 1), COMMITS), pa.int32())
    columns = {
        "commits": when(is_rated, counted, commits),
        "since_rewind": since("since_rewind", pc.greater(rewound_records, 0)),
        "since_level": since("since_level", pc.equal(lag_at_commit, 0)),
        "since_fall": since("since_fall", pc.less(lag_at_commit, lag)),
        "lag": pc.coalesce(lag_at_commit, lag),
    }
    return pa.StructArray.from_arrays(
        [one_chunk(columns[field.name]) for field in RATED], fields=list(RATED)
    )


def rewound_from(
    before: Any, committed_offset: Any, rewound_records: Any, is_same_topic: Any
) -> Any:
    """Return the offset before a rewind until a commit reaches it again.

    The value is null if no rewind came within ten commits.
    """
    since_rewind = pc.struct_field(before["rated"].combine_chunks(), "since_rewind")
    is_held = both(is_same_topic, pc.less(since_rewind, COMMITS - 1))
    left = where(pc.greater(rewound_records, 0), before["committed_offset"])
    offset = pc.max_element_wise(where(is_held, before["rewound_from"]), left)
    return where(pc.less(committed_offset, offset), offset)


def verdicts(rated: pa.Array, row: dict[str, Any]) -> Any:
    """Return a verdict per row; null if status is not ok or under ten commits were seen live."""
    count = {field.name: pc.struct_field(rated, field.name) for field in RATED}
    pairs = COMMITS - 1  # of neighbours among the commits
    seconds = pc.multiply(
        pc.max_element_wise(row["commit_interval_seconds"], LEAST_GAP_SECONDS), float(pairs)
    )
    was_recent = pc.fill_null(pc.less(row["time_lag_seconds"], RECENT_SECONDS), False)
    cases = [
        (OK, pc.equal(row["lag"], 0)),
        (STOPPED, both(pc.greater(row["commit_age_seconds"], seconds), pc.invert(was_recent))),
        (REWOUND, both(pc.less(count["since_rewind"], pairs), pc.is_valid(row["rewound_from"]))),
        (OK, pc.less(count["since_level"], COMMITS)),
        (STALLED, pc.greater_equal(row["repeat_commits"], pairs)),
        (SLOW, pc.greater_equal(count["since_fall"], pairs)),
    ]
    verdict: Any = pa.repeat(OK, len(rated))
    for name, applies in reversed(cases):
        verdict = when(applies, pa.scalar(name), verdict)
    is_known = both(pc.is_valid(row["lag"]), pc.greater_equal(count["commits"], COMMITS))
    return when(is_known, verdict, null(pa.string()))
