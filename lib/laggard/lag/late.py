"""Records not committed within a group's service level of time lag, counted once per window.

A probe is the first offset that is not older than the service level: below it every record should
be committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    TIMESTAMP,
    both,
    differ,
    equal,
    key_codes,
    match,
    repeat,
    seconds_between,
    take,
    to_numpy,
    where,
)
from laggard.lag.tick import Tick

_KEY = ("slo_seconds", "topic", "partition")
_LONG, _DOUBLE = pa.int64(), pa.float64()


@dataclass(frozen=True, slots=True)
class Probed:
    """Service level (0: none), probe offset and probe topic id, per row of group and partition."""

    slo_seconds: pa.Array
    offset: pa.ChunkedArray
    topic_id: pa.ChunkedArray


def find_probes(keys: pa.Table, slo_seconds: Mapping[str, float], probes: pa.Table) -> Probed:
    """Return probes by row.

    `keys`: group, topic, partition. `slo_seconds`: by group. `probes`: as in the snapshot.
    """
    levels = pa.array([slo_seconds.get(group, 0.0) for group in keys["group"].to_pylist()], _DOUBLE)
    wanted = pa.table(
        {"slo_seconds": levels, "topic": keys["topic"], "partition": keys["partition"]}
    )
    row_codes, probe_codes = key_codes([wanted, probes], _KEY)
    probed = take(probes, match(row_codes, probe_codes))
    return Probed(levels, probed["offset"], probed["topic_id"])


def count_late(
    before: pa.Table, now: Mapping[str, Any], probed: Probed | None, tick: Tick, is_same_topic: Any
) -> dict[str, Any]:
    """Return probe offset, matured records and late records of the status rows after a tick.

    The columns are `probe_offset`, `window_matured_records` and `window_late_records`.

    Probes come with the tick that opens a window and are compared with those of the window before.
    """
    names = ("probe_offset", "window_matured_records", "window_late_records")
    start = repeat(tick.window_start, TIMESTAMP, before.num_rows)
    if probed is None or not tick.opens_window:
        continues = both(equal(before["window_start"], start), tick.counts)
        return {name: where(continues, before[name]) for name in names}
    was = where(pc.not_equal(probed.topic_id, ""), probed.topic_id)
    is_now = where(pc.not_equal(now["topic_id"], ""), now["topic_id"])
    is_its_topic = pc.invert(differ(was, is_now))
    offset = where(is_its_topic, probed.offset)
    follows = equal(
        before["window_start"], pc.subtract(start, pa.scalar(tick.window, pa.duration("us")))
    )
    previous = where(
        both(follows, is_same_topic, differ(before["status"], "stale")), before["probe_offset"]
    )
    # timestamps may be out of order: what has matured once stays so
    reached = where(pc.is_valid(offset), pc.max_element_wise(offset, previous))
    matured = pc.subtract(reached, previous)
    unread = pc.subtract(reached, now["committed_offset"])
    late = pc.max_element_wise(
        pc.min_element_wise(unread, matured, skip_nulls=False), 0, skip_nulls=False
    )
    return dict(
        zip(
            names,
            (reached, matured, where(_is_resolved(before, now, probed, tick), late)),
            strict=True,
        )
    )


def _is_resolved(before: pa.Table, now: Mapping[str, Any], probed: Probed, tick: Tick) -> Any:
    """Return True if the group commits often enough for a count of late records.

    Otherwise records done and not yet committed would count as late.
    """
    groups = pa.table({"group": now["group"]})
    (group,) = key_codes([groups], ["group"])
    interval = _group_median(group, pc.cast(now["commit_interval_seconds"], _DOUBLE))
    tick_seconds = seconds_between(
        repeat(tick.now, TIMESTAMP, before.num_rows), before["sampled_at"]
    )
    needed = pc.add(pc.multiply(interval, 2.0), pc.coalesce(tick_seconds, 0.0))
    return pc.greater_equal(probed.slo_seconds, needed)


def _group_median(group: Any, seconds: Any) -> pa.Array:
    """Return, for each row, the lower median of its group's known values; null if none is known."""
    values = to_numpy(seconds)
    order = np.lexsort((values, group))  # NaN last
    ordered = group[order]
    first = np.searchsorted(ordered, group)
    known = np.bincount(group, ~np.isnan(values), minlength=int(group.max(initial=-1)) + 1).astype(
        np.int64
    )[group]
    median = values[order][np.minimum(first + np.maximum(known - 1, 0) // 2, len(values) - 1)]
    return pa.array(median, _DOUBLE, mask=known == 0)
