"""Which rows may be: none of groups that ended unseen, and no new ones where the table is full."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import flags, key_codes, match
from laggard.lag.merged import KEY
from laggard.stream.quarantine import Inputs


def admit(inputs: Inputs, most_rows: int) -> Inputs:
    """The same without the newest commits on partitions that have no row yet, as far as the table has no room.

    What has a row keeps it. `Batch.shed` counts what is refused, by group: the lag of such a group is not whole.
    """
    before, commits = inputs.partition_status, inputs.batch.commits
    new, old = key_codes([commits, before], KEY)
    fresh = np.flatnonzero((match(new, old) < 0) & ~flags(pc.fill_null(commits["is_deleted"], False)))
    room = max(0, most_rows - before.num_rows)
    if len(fresh) <= room:
        return inputs
    places = commits.take(pa.array(fresh)).select(["source_partition", "source_offset"])
    order = pc.sort_indices(places, [("source_offset", "ascending"), ("source_partition", "ascending")]).to_numpy()
    refused = np.zeros(commits.num_rows, dtype=bool)
    refused[fresh[order[room:]]] = True
    counted = pc.value_counts(commits.filter(pa.array(refused))["group"]).to_pylist()
    shed = {each["values"]: each["counts"] for each in counted}
    return replace(inputs, batch=replace(inputs.batch, commits=commits.filter(pa.array(~refused)), shed=shed))


def forget(inputs: Inputs, ended: Collection[str]) -> tuple[Inputs, int]:
    """The same without the rows of groups that ended unseen, and how many rows that were; one that lives stays."""
    batch = inputs.batch
    alive = {*pc.unique(batch.commits["group"]).to_pylist(), *(row["group"] for row in batch.records)}
    gone = pa.array(sorted({*ended} - alive), pa.string())

    def left(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(pc.is_in(table["group"], value_set=gone)))

    kept = Inputs(left(inputs.partition_status), left(inputs.group_status), batch)
    removed = inputs.partition_status.num_rows - kept.partition_status.num_rows
    return kept, removed + inputs.group_status.num_rows - kept.group_status.num_rows
