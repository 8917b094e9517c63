"""Flows through each topic of a group since the previous tick, and sums since the group is known.

The sums are kept per group and topic, not per partition: they must not fall when a partition's row
is retired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import (
    add_saturating,
    both,
    by_name,
    equal,
    key_codes,
    one_chunk,
    sum_groups,
    when,
    where,
)
from laggard.lag.loss.overtaken import Overtaken
from laggard.lag.reached import reached_by
from laggard.lag.tick import Tick, was_followed

COUNTS = (
    "produced",
    "consumed",
    "lost",
    "commits",
    "noop_commits",
    "rewinds",
    "rewound_records",
    "ahead",
)
OUTCOMES = ("skips", "matured", "late")
_PAIR = ("group", "topic")
_ZERO = pa.scalar(0, pa.int64())


def partition_flows(
    before: pa.Table,
    now: dict[str, Any],
    counts: dict[str, Any],
    fell_by: Any,
    overtaken: Overtaken,
    *,
    is_same_topic: Any,
    tick: Tick,
) -> dict[str, Any]:
    """Return columns `COUNTS` per row of this tick; 0 if two ticks cannot be compared.

    `rewinds` are those at the border of the batch. Of lost records those count that are certain.
    """
    is_live = both(is_same_topic, was_followed(before, tick), pa.scalar(tick.is_caught_up))
    moved = add_saturating(
        pc.subtract(reached_by(now), reached_by(before)), counts["rewound_records"]
    )
    is_forward = pc.equal(counts["rewound_records"], 0)
    return {
        "produced": _rise(pc.subtract(now["log_end_offset"], before["log_end_offset"]), is_live),
        # a rewind does not take back what was consumed
        "consumed": _rise(when(is_forward, overtaken.consumed, moved), is_live),
        "lost": overtaken.lost,
        "ahead": pc.cast(equal(pc.greater(now["ahead_records"], 0), True), pa.int64()),
        "rewinds": pc.cast(pc.is_valid(fell_by), pa.int64()),
        **counts,
    }


def partition_outcomes(rows: pa.Table, is_skip: Any, tick: Tick) -> dict[str, Any]:
    """Return columns `OUTCOMES` per row of this tick.

    Records that matured are counted by the tick that opens a window, with those of them that were
    late; where it is not known which were, neither.
    """
    matured, late = rows["window_matured_records"], rows["window_late_records"]
    is_counted = both(pc.is_valid(matured), pc.is_valid(late), pa.scalar(tick.opens_window))
    return {
        "skips": pc.cast(is_skip, pa.int64()),
        "matured": pc.fill_null(where(is_counted, matured), 0),
        "late": pc.fill_null(where(is_counted, late), 0),
    }


def add_flows(
    counters: pa.Table,
    column: str,
    counts: Sequence[str],
    flows: pa.Table,
    groups: pa.Array,
    topics: pa.Array | None,
) -> pa.Array:
    """Return a column of sums per topic, such as topic_counters, for these groups, in order.

    `counters`: columns group and the one so far. `flows`: columns group, topic and the counts, one
    row or more. `topics`: those that are still there; sums of others, which have no flows either,
    end. None: it is not known.
    """
    lists = counters[column].combine_chunks()
    flat = lists.flatten()
    names = counters["group"].combine_chunks().take(pc.list_parent_indices(lists))
    old = pa.table(
        {
            "group": names,
            "topic": flat.field("topic"),
            **{name: flat.field(name) for name in counts},
        }
    )
    if topics is not None:
        old = old.filter(pc.is_in(old["topic"], value_set=topics))
    new = flows.select([*_PAIR, *counts])
    # what is new begins with zeros, so that who watches the counts sees the first ones rise
    now, then = key_codes([new, old], _PAIR)
    is_known = np.isin(now, then)
    risen = by_name(new)
    for name in counts:
        risen[name] = where(pa.array(is_known), new[name])
    new = pa.table(risen)
    sums = sum_groups(pa.concat_tables([old, new]), _PAIR, counts)
    group_index = pc.index_in(sums["group"], value_set=groups)
    sums = (
        sums.append_column("place", group_index)
        .filter(pc.is_valid(group_index))
        .sort_by([("place", "ascending"), ("topic", "ascending")])
    )
    lengths = np.bincount(sums["place"].to_numpy(), minlength=len(groups))
    columns = [sums["topic"], *(pc.fill_null(sums[f"{name}_sum"], 0) for name in counts)]
    values = pa.StructArray.from_arrays(
        list(map(one_chunk, columns)), fields=list(lists.type.value_type)
    )
    return pa.ListArray.from_arrays(
        pa.array(np.r_[0, np.cumsum(lengths)], pa.int32()), values
    ).cast(lists.type)


def _rise(difference: Any, is_known: Any) -> Any:
    return pc.max_element_wise(pc.fill_null(where(is_known, difference), 0), _ZERO)
