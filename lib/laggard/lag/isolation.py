"""Log end that a group can read; with committed records only, it is the last stable offset."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import when, where
from laggard.lag.merged import Merged

NO_STABLE_OFFSET = "NO_STABLE_OFFSET"  # the poll did not ask for it, or the broker did not give it


def readable_ends(merged: Merged, read_committed: Collection[str]) -> Merged:
    """Return rows with the polled `log_end_offset` as these groups see it.

    The value is null if the last stable offset is unknown.

    An open transaction holds the last stable offset back. A commit between it and the log end
    proves that the group reads beyond it, whatever its policy says: then it has read all that it
    can.
    """
    positions, before, commit = merged.positions, merged.before, merged.commit
    applies = pc.is_in(
        merged.keys["group"], value_set=pa.array(sorted(read_committed), pa.string())
    )
    end, stable = positions["log_end_offset"], positions["last_stable_offset"]
    committed = when(merged.is_new, commit["committed_offset"], before["committed_offset"])
    passed = pc.min_element_wise(committed, end, skip_nulls=False)
    readable = where(pc.is_valid(stable), pc.max_element_wise(stable, passed))
    is_unknown = pc.and_(pc.and_(applies, pc.is_valid(end)), pc.is_null(stable))
    columns: dict[str, Any] = {name: positions[name] for name in positions.column_names} | {
        "log_end_offset": when(applies, readable, end),
        "error": when(is_unknown, NO_STABLE_OFFSET, positions["error"]),
    }
    return replace(merged, positions=pa.table(columns))
