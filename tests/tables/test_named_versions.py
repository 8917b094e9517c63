"""Maintenance keeps what the newest `batches` row names, however old it is, and whatever was
committed after it.
"""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.published import newest_batch
from laggard.tables.readers import read_table, table_uri
from laggard.tables.schema import schemas
from laggard.tables.upkeep.maintenance import Outcome, Retention, maintain, read_done
from tables.fixtures import NOW, make_root

# what nobody names is removed now
AT_ONCE = Retention(30, 30, 30, 30, status_files_hours=0, vacuum_hours=0)
KEPT = Retention(30, 30, 30, 30, status_files_hours=1, vacuum_hours=168)
YESTERDAY = NOW - timedelta(days=1)


def write_tick(writer: Writer, batch_id: int, at: datetime, *, is_published: bool = True) -> None:
    """A batch with one row of each kind of table; one that is not published lacks its `batches`
    row.
    """
    status = {"group": "g", "partition": batch_id, "batch_id": batch_id}
    event = {"date": at.date(), "group": "g", "event_at": at, "batch_id": batch_id}
    versions = {
        "partition_status": writer.write(
            schemas.PARTITION_STATUS, to_arrow(schemas.PARTITION_STATUS, [status]), batch_id
        ),
        "group_events": writer.write(
            schemas.GROUP_EVENTS, to_arrow(schemas.GROUP_EVENTS, [event]), batch_id
        ),
    }
    if is_published:
        row = {
            "date": at.date(), "batch_id": batch_id, "kind": "tick", "polled_at": at,
            "table_versions": versions,
        }  # fmt: skip
        writer.write(schemas.BATCHES, to_arrow(schemas.BATCHES, [row]), batch_id)


def care(root: Path, retention: Retention = AT_ONCE) -> list[Outcome]:
    return maintain(str(root), retention, NOW)


def make_old(root: Path) -> None:
    """Two hundred hours ago, by the files' times."""
    long_ago = time.time() - 200 * 3600
    for each in root.rglob("*"):
        os.utime(each, (long_ago, long_ago))


def named_partitions(root: Path) -> list[int]:
    batch = newest_batch(str(root))
    assert batch is not None
    rows = read_table(
        str(root), "partition_status", batch.table_versions["partition_status"], ["partition"]
    )
    events = read_table(
        str(root), "group_events", batch.table_versions["group_events"], ["batch_id"]
    )
    assert sorted(events["batch_id"].to_pylist()) == list(range(batch.batch_id + 1))
    return list(rows["partition"].to_pylist())


def test_the_named_version_outlives_a_kill_between_two_commits_and_a_long_pause(
    tmp_path: Path,
) -> None:
    make_root(tmp_path)
    writer = Writer(str(tmp_path), "one")
    for batch_id in range(4):
        write_tick(writer, batch_id, YESTERDAY + timedelta(seconds=10 * batch_id))
    write_tick(writer, 4, YESTERDAY + timedelta(seconds=40), is_published=False)
    make_old(tmp_path)

    assert [each for each in care(tmp_path) if each.error] == []

    assert named_partitions(tmp_path) == [3]
    # the named one and the newest
    assert len(list(Path(tmp_path, "partition_status").glob("*.parquet"))) == 2
    write_tick(Writer(str(tmp_path), "one"), 4, NOW)  # the same batch again
    assert named_partitions(tmp_path) == [4]


def test_an_append_table_stays_readable_at_the_version_before_its_compaction(
    tmp_path: Path,
) -> None:
    make_root(tmp_path)
    writer = Writer(str(tmp_path), "one")
    for batch_id in range(4):
        write_tick(writer, batch_id, YESTERDAY + timedelta(seconds=10 * batch_id))
    care(tmp_path)
    care(tmp_path)
    assert len(DeltaTable(table_uri(str(tmp_path), "group_events")).file_uris()) == 1
    assert named_partitions(tmp_path) == [3]


def test_the_log_of_a_version_is_kept_while_it_is_named(tmp_path: Path) -> None:
    make_root(tmp_path)
    for name in ("partition_status", "group_events"):
        DeltaTable(table_uri(str(tmp_path), name)).alter.set_table_properties(
            {"delta.checkpointInterval": "5"}
        )
    writer = Writer(str(tmp_path), "one")
    for batch_id in range(6):
        write_tick(writer, batch_id, YESTERDAY + timedelta(seconds=10 * batch_id))
    make_old(tmp_path)
    for batch_id in range(6, 12):  # the first commit after a long pause that makes a checkpoint
        write_tick(writer, batch_id, NOW, is_published=False)
        assert named_partitions(tmp_path) == [5]
    care(tmp_path)
    assert named_partitions(tmp_path) == [5]


def test_the_log_is_short_once_nothing_in_it_is_named(tmp_path: Path) -> None:
    make_root(tmp_path)
    DeltaTable(table_uri(str(tmp_path), "batches")).alter.set_table_properties(
        {"delta.checkpointInterval": "5"}
    )
    writer = Writer(str(tmp_path), "one")
    for batch_id in range(12):
        write_tick(writer, batch_id, NOW)
        make_old(tmp_path)
    care(tmp_path)
    assert len(list(Path(tmp_path, "batches", "_delta_log").glob("*.json"))) <= 5
    assert named_partitions(tmp_path) == [11]


def test_files_of_the_day_at_hand_are_compacted_where_each_tick_adds_one(tmp_path: Path) -> None:
    make_root(tmp_path)
    writer = Writer(str(tmp_path), "one")
    for batch_id in range(3):
        write_tick(writer, batch_id, NOW)
    assert [each for each in maintain(str(tmp_path), KEPT, NOW) if each.error] == []
    files = {
        name: len(DeltaTable(table_uri(str(tmp_path), name)).file_uris())
        for name in ("batches", "group_events")
    }
    assert files == {"batches": 1, "group_events": 3}
    assert named_partitions(tmp_path) == [2]


@pytest.mark.parametrize("bad", ["lag_windows", "partition_status", "batches"])
def test_a_damaged_table_stops_only_itself(tmp_path: Path, bad: str) -> None:
    make_root(tmp_path)
    write_tick(Writer(str(tmp_path), "one"), 0, YESTERDAY)
    for entry in Path(tmp_path, bad, "_delta_log").glob("*.json"):
        entry.write_text("{")
    outcomes = care(tmp_path)
    failed = {each.table for each in outcomes if each.error}
    assert [each.table for each in outcomes] == list(schemas.TABLES)
    # without `batches` it is unknown which versions are in use: only tables that it does not name
    # are done
    evaluated = {name for name, table in schemas.TABLES.items() if table.is_of_diagnosis}
    assert failed == (set(schemas.TABLES) - evaluated if bad == "batches" else {bad})
    assert set(read_done(str(tmp_path))) == set(schemas.TABLES) - failed
