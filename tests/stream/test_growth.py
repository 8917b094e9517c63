"""A topic that gets partitions, seen by a poll or first by a commit."""

from __future__ import annotations

import pyarrow as pa
import pytest

from laggard.lag.merged import merge
from laggard.sources.snapshot import POSITIONS
from laggard.stream.tick.decoded import COLUMNS
from laggard.stream.tick.events import grown_topics
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema import schemas
from stream.simulation import Simulation, commit, end, generation


def grown(*, committed: bool, polled: int, subscribed: bool = True) -> dict[str, dict[str, int]]:
    """Of a topic whose partitions 0 and 1 are known: partition 2 is new."""
    known = [{"group": "g", "topic": "t", "partition": partition} for partition in range(2)]
    before = pa.Table.from_pylist(known, schema=arrow_schema(schemas.PARTITION_STATUS))
    new = {"group": "g", "topic": "t", "partition": 2, "source_partition": 0, "source_offset": 9}
    commits = pa.Table.from_pylist([new] if committed else [], schema=COLUMNS["commit"])
    poll = [
        {"topic": "t", "topic_id": "i", "partition": partition, "log_end_offset": 5}
        for partition in range(polled)
    ]
    pairs = (
        pa.table({"group": ["g"], "topic": ["t"]})
        if subscribed
        else pa.table({"group": [], "topic": []})
    )
    pairs = pairs.cast(pa.schema([("group", pa.string()), ("topic", pa.string())]))
    merged = merge(before, commits, pa.Table.from_pylist(poll, schema=POSITIONS), pairs)
    return grown_topics(merged, before, {"g": {"topics": ["t"] if subscribed else None}})


@pytest.mark.parametrize(
    ("committed", "polled", "subscribed", "expected"),
    [
        (False, 3, True, {"g": {"t": 3}}),
        (True, 3, True, {"g": {"t": 3}}),
        (True, 2, True, {}),  # a client may name any partition: it counts when a poll shows it
        (False, 2, True, {}),
        (True, 3, False, {}),
    ],
    ids=[
        "polled",
        "polled and committed",
        "committed before the poll",
        "as before",
        "nobody subscribes",
    ],
)
def test_more_partitions_than_before(
    committed: bool, polled: int, subscribed: bool, expected: dict[str, dict[str, int]]
) -> None:
    assert grown(committed=committed, polled=polled, subscribed=subscribed) == expected


def test_a_partition_that_was_committed_before_any_poll_showed_it_is_new_when_one_does() -> None:
    job = Simulation()
    for _ in range(2):
        job.tick([end(9)], [generation(1, {"m": ("t",)}), commit(5)], metadata_poll_id=0)
    job.tick([end(9)], [commit(5, partition=1)], metadata_poll_id=0)
    assert "partitions_added" not in job.events()
    job.tick([end(9), end(9, partition=1)])
    assert job.events().count("partitions_added") == 1
    job.tick([end(9), end(9, partition=1)])
    assert job.events().count("partitions_added") == 1
