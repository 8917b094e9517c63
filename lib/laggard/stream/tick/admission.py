"""Rows that may be: none of groups that ended unseen, and no new ones where the table is full."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import islice
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laggard.lag.arrays import flags, key_codes, match, of_groups, tuples
from laggard.lag.merged import KEY
from laggard.stream.tick.quarantine import Inputs

MOST_NAMED = 1000  # refused partitions of a group that are remembered by name
OTHERS = ("", -1)  # stands for more of them: it never ends by itself

Partition = tuple[str, int]  # topic, partition


def admit(inputs: Inputs, room: int, group_room: int) -> tuple[Inputs, int]:
    """Return the inputs without newest commits on partitions that have no row.

    A commit is left out as far as the table has no room.

    What has a row keeps it. The second result counts what is refused. `Batch.refused` names by
    group what was refused in this tick or before and got no row since: the lag of such a group is
    not whole. Groups without any row are named up to `group_room`, as a client may invent them
    without end. `Batch.room` is what is left.
    """
    before, commits = inputs.partition_status, inputs.batch.commits
    new, old = key_codes([commits, before], KEY)
    fresh = np.flatnonzero(
        (match(new, old) < 0) & ~flags(pc.fill_null(commits["is_deleted"], False))
    )
    is_refused = np.zeros(commits.num_rows, dtype=bool)
    if len(fresh) > room:
        places = commits.take(pa.array(fresh)).select(["source_partition", "source_offset"])
        order = pc.sort_indices(
            places, [("source_offset", "ascending"), ("source_partition", "ascending")]
        ).to_numpy()
        is_refused[fresh[order[room:]]] = True
    refused, taken = commits.filter(pa.array(is_refused)), commits.filter(pa.array(~is_refused))
    names = _without_row(inputs, refused, taken)
    if refused.num_rows:
        rowless = names.keys() - set(inputs.group_status["group"].to_pylist())
        for group in sorted(rowless - {*pc.unique(taken["group"]).to_pylist()})[group_room:]:
            del names[group]
    left = max(0, room - len(fresh))
    return replace(
        inputs, batch=replace(inputs.batch, commits=taken, refused=names, room=left)
    ), refused.num_rows


def _without_row(inputs: Inputs, refused: pa.Table, taken: pa.Table) -> dict[str, list[Partition]]:
    """Return by group the partitions with a refused commit, now or before, and none taken since."""
    names_by_group = _refused_before(inputs)
    for group, *partition in tuples(refused, KEY):
        names_by_group.setdefault(group, {})[tuple(partition)] = None
    for group, *partition in tuples(of_groups(taken, names_by_group), KEY):
        names_by_group[group].pop(tuple(partition), None)
    return {group: _bounded(names) for group, names in names_by_group.items() if names}


def _refused_before(inputs: Inputs) -> dict[str, dict[Partition, None]]:
    status, answers = inputs.group_status, inputs.batch.answers
    before = status.filter(pc.greater(pc.fill_null(status["shed_keys"], 0), 0)).select(
        ["group", "refused"]
    )
    # an answer of the coordinator names all offsets: what of it has no row was refused now
    complete = {*answers.gone, *answers.complete}
    names_by_group: dict[str, dict[Partition, None]] = {}
    for row in before.to_pylist():
        names: Iterable[Partition] = [OTHERS]  # a row of an older job has no names
        if row["refused"] is not None:
            names = map(itemgetter("topic", "partition"), row["refused"])
        if row["group"] not in complete:
            names_by_group[row["group"]] = dict.fromkeys(names)
    return names_by_group


def _bounded(names: dict[Partition, None]) -> list[Partition]:
    if len(names) <= MOST_NAMED:
        return list(names)
    return [*islice((name for name in names if name != OTHERS), MOST_NAMED), OTHERS]


def forget(inputs: Inputs, ended: Collection[str]) -> tuple[Inputs, int]:
    """Return inputs without rows of groups ended unseen, and the number of rows removed.

    Live groups stay.
    """
    batch = inputs.batch
    alive = {
        *pc.unique(batch.commits["group"]).to_pylist(),
        *(row["group"] for row in batch.records),
    }
    gone = pa.array(sorted({*ended} - alive), pa.string())

    def left(table: pa.Table) -> pa.Table:
        return table.filter(pc.invert(pc.is_in(table["group"], value_set=gone)))

    remaining = Inputs(left(inputs.partition_status), left(inputs.group_status), batch)
    removed = inputs.partition_status.num_rows - remaining.partition_status.num_rows
    return remaining, removed + inputs.group_status.num_rows - remaining.group_status.num_rows
