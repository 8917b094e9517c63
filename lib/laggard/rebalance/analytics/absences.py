"""Absence of a static member that rejoined within its generation, estimated from its last commit.

The absence is not recorded.

An upper bound: it is longer than the absence by what the member did not commit any more, most
often less than an interval of commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from laggard.rebalance.analytics.times import seconds_between
from laggard.rebalance.parameters import RebalanceParameters

Row = Mapping[str, Any]
Place = tuple[str, str | None, int]  # group, topic, partition
_KEY = ["group", "topic", "partition"]


def absence_seconds(
    replacements: Sequence[Row], before: pa.Table, edges: pa.Table, parameters: RebalanceParameters
) -> list[float | None]:
    """Return seconds since the newest commit on partitions of each replacement.

    `before`: rows of `partition_status`.

    None if it has no partitions, or they were idle: a member that is away for longer than a
    session has expired.
    """
    if not replacements:
        return []
    groups = pa.array(sorted({row["group"] for row in replacements}), pa.string())
    commits: dict[Place, list[tuple[int, datetime]]] = {}
    for table, offset in ((before, "commit_source_offset"), (edges, "source_offset")):
        is_known = pc.and_(pc.is_valid(table["commit_timestamp"]), pc.is_valid(table[offset]))
        is_wanted = pc.and_(pc.is_in(table["group"], value_set=groups), is_known)
        for row in table.filter(is_wanted).select([*_KEY, offset, "commit_timestamp"]).to_pylist():
            place = row["group"], row["topic"], row["partition"]
            commits.setdefault(place, []).append((row[offset], row["commit_timestamp"]))
    return [_seconds(row, commits, parameters) for row in replacements]


def _seconds(
    row: Row,
    commits: Mapping[Place, Iterable[tuple[int, datetime]]],
    parameters: RebalanceParameters,
) -> float | None:
    places = [(row["group"], each["topic"], each["partition"]) for each in row["held"] or ()]
    commits_before = [
        at
        for place in places
        for offset, at in commits.get(place, ())
        if offset < row["source_offset"]
    ]
    milliseconds = row["session_timeout_ms"]
    session = parameters.modern_session_seconds if milliseconds is None else milliseconds / 1000
    seconds = seconds_between(row["record_timestamp"], max(commits_before, default=None))
    return seconds if seconds is not None and seconds <= session else None
