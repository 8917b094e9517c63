"""After the offsets topic got more partitions, the records of a group's new partition count, in
whatever order read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from laggard.names import NameFilter
from laggard.stream.tick.decode import decode_records
from laggard.stream.tick.decoded import SCHEMA, read_batch
from patience import some
from stream.simulation import NOON, RECORDS, Record, Simulation, commit, end, generation

SHOWN = ("generation", "members", "offsets_partition", "group_record_offset")


@dataclass(frozen=True)
class Written:
    partition: int
    offset: int
    at: datetime
    record: Record


def life(random: Random) -> tuple[list[Written], list[Written]]:
    """Records of a group in the partition that it was in, and in the one that it is in: generations
    and commits.
    """
    old, new = random.sample(range(100), 2)
    at, number, found = NOON - timedelta(hours=1), 0, ([], [])
    for place, partition, first in ((0, old, 5000), (1, new, random.choice((3, 4000, 90_000)))):
        for offset in range(first, first + 2 * random.randint(1, 5), 2):
            at, number = at + timedelta(seconds=random.randint(1, 60)), number + 1
            members = {f"m{each}": ("t",) for each in range(random.randint(0, 3))}
            found[place].append(Written(partition, offset, at, generation(number, members)))
            found[place].append(Written(partition, offset + 1, at, commit(100 * number, at=at)))
    return found


def read(simulation: Simulation, written: list[Written]) -> None:
    """A tick that reads these records, in the order of partition and offset as Kafka's source gives
    them.
    """
    given = sorted(written, key=lambda each: (each.partition, each.offset))
    columns = [
        pa.array([each.partition for each in given], pa.int32()),
        pa.array([each.offset for each in given], pa.int64()),
        pa.array([each.at for each in given], pa.timestamp("us", tz="UTC")),
        pa.array([each.record.key for each in given], pa.binary()),
        pa.array([each.record.value for each in given], pa.binary()),
    ]
    decoded = decode_records(pa.table(columns, schema=RECORDS), NameFilter())
    simulation.tick([end(9999)], batch=read_batch(pa.Table.from_batches(decoded, SCHEMA)))


def shown(batches: list[list[Written]]) -> dict[str, Any]:
    simulation = Simulation()
    for batch in batches:
        read(simulation, batch)
    of_group = simulation.tables["group_status"].to_pylist()[0]
    [row] = simulation.tables["partition_status"].to_pylist()
    found = {name: of_group[name] for name in SHOWN}
    return found | {
        name: row[name] for name in ("committed_offset", "commit_source_partition", "lag", "status")
    }


@pytest.mark.examples
@pytest.mark.parametrize("seed", some(range(20)))
def test_the_newest_records_count_in_whatever_order_they_are_read(seed: int) -> None:
    random = Random(seed)
    old, new = life(random)
    cut = random.randint(0, len(new))
    expected = shown([new])
    assert expected["committed_offset"] == max(100, 100 * (len(old) + len(new)) // 2)
    for batches in (
        [[each] for each in (*old, *new)],  # as the job sees it live
        [old + new],  # a first start
        [new, old],  # and one in several batches, the new partition first
        [new[:cut], old + new[cut:]] if cut else [old, new],
    ):
        assert shown(batches) == expected


def test_all_records_are_counted_all_the_same() -> None:
    old, new = life(Random(1))
    given = sorted([*old, *new], key=lambda each: (each.partition, each.offset))
    columns = ([e.partition for e in given], [e.offset for e in given], [e.at for e in given])
    keys = [e.record.key for e in given], [e.record.value for e in given]
    table = pa.table(
        [pa.array(each, kind.type) for each, kind in zip((*columns, *keys), RECORDS, strict=True)],
        RECORDS,
    )
    decoded = pa.Table.from_batches(decode_records(table, NameFilter()), SCHEMA)
    counts = decoded["count"].drop_null().to_pylist()
    assert sum(each["records"] for each in counts) == len(given)
