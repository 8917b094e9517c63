"""Compaction while others commit: no row is lost or doubled, whoever else compacts, deletes or
appends meanwhile.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field

from laggard.errors import DAMAGED, REFUSED, TEMPORARY, LaggardError
from laggard.tables import data_files as data_files_module
from laggard.tables import unpublished
from laggard.tables.arrow import to_arrow
from laggard.tables.data_files import DataFile
from laggard.tables.delta import Writer, create_tables
from laggard.tables.lock import writer_lock
from laggard.tables.readers import open_table, table_uri
from laggard.tables.schema.schemas import GROUP_EVENTS
from laggard.tables.unpublished import remove_unpublished
from laggard.tables.upkeep import compaction
from laggard.tables.upkeep.compaction import Merge, carry_out_here, compact, plan
from laggard.tables.upkeep.maintenance import Retention, maintain
from tables.fixtures import NOW, make_root

NAME = GROUP_EVENTS.name
LATER = "9999-01-01"
RETENTION = Retention(3650, 3650, 3650, 3650, status_files_hours=1, vacuum_hours=168)


@pytest.fixture
def root(tmp_path: Path) -> str:
    found = str(tmp_path / "of é #1?+%")
    create_tables(found, [GROUP_EVENTS])
    for number in range(4):
        append(found, number)
    return found


def append(root: str, batch_id: int, days: int = 0) -> None:
    at = NOW + timedelta(days=days, milliseconds=batch_id)
    row = {
        "date": at.date(),
        "cluster": "c",
        "group": f"g{batch_id}",
        "event_at": at,
        "batch_id": batch_id,
    }
    Writer(root, "one").write(GROUP_EVENTS, to_arrow(GROUP_EVENTS, [row]), batch_id)


def batches(root: str) -> list[int]:
    return sorted(open_table(root, NAME).to_pyarrow_table()["batch_id"].to_pylist())


def after(root: str, others: object) -> compaction.CarryOut:
    """Write the files, and then let others commit before we do."""

    def carry_out(merges: Sequence[Merge]) -> Iterable[DataFile]:
        found = list(carry_out_here(merges))
        others()  # type: ignore[operator]
        return found

    return carry_out


def test_rows_and_statistics_of_the_small_files_are_those_of_the_large_one(root: str) -> None:
    append(root, 4, days=1)
    compact(root, NAME, open_table(root, NAME), (NOW + timedelta(days=1)).date().isoformat())
    table = open_table(root, NAME)
    assert batches(root) == [0, 1, 2, 3, 4]
    [merged] = [
        each
        for each in pa.table(table.get_add_actions(flatten=True)).to_pylist()
        if each["num_records"] == 4
    ]
    assert len(table.file_uris()) == 2, "the day at hand is left alone"
    assert (merged["min.batch_id"], merged["max.batch_id"], merged["null_count.batch_id"]) == (
        0,
        3,
        0,
    )
    assert (merged["min.group"], merged["max.group"], merged["null_count.member_id"]) == (
        "g0",
        "g3",
        4,
    )
    assert merged["min.event_at"] == NOW.replace(microsecond=0)
    version = table.version()
    entry = Path(table_uri(root, NAME), "_delta_log", f"{version:020d}.json").read_text()
    changes = [
        next(iter(json.loads(line).values())).get("dataChange") for line in entry.splitlines()
    ]
    assert set(changes) - {None} == {False}, "a stream that follows the table sees no new rows"


def test_the_handle_knows_the_new_file_so_that_vacuum_keeps_it(root: str) -> None:
    table = open_table(root, NAME)
    compact(root, NAME, table, LATER)
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    assert batches(root) == [0, 1, 2, 3]


def test_ticks_meanwhile_are_kept(root: str) -> None:
    compact(root, NAME, open_table(root, NAME), LATER, after(root, lambda: append(root, 7)))
    assert batches(root) == [0, 1, 2, 3, 7]
    assert len(open_table(root, NAME).file_uris()) == 2


def other_compaction(root: str) -> None:
    compact(root, NAME, open_table(root, NAME), LATER)


def compaction_of_delta_rs(root: str) -> None:
    open_table(root, NAME).optimize.compact()


def removal_of_unpublished_rows(root: str) -> None:
    assert remove_unpublished_events(root) == [NAME]


def remove_unpublished_events(root: str) -> list[str]:
    make_root(root)
    return remove_unpublished(root, 2, None)


def retention(root: str) -> None:
    open_table(root, NAME).delete(f"date < '{LATER}'")


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        (other_compaction, [0, 1, 2, 3]),
        (compaction_of_delta_rs, [0, 1, 2, 3]),
        (removal_of_unpublished_rows, [0, 1, 2]),
        (retention, []),
    ],
)
def test_of_two_that_replace_the_same_files_one_is_refused(
    root: str, others: object, kept: list[int]
) -> None:
    carry_out = after(root, lambda: others(root))  # type: ignore[operator]
    with pytest.raises(LaggardError, match="another process") as raised:
        compact(root, NAME, open_table(root, NAME), LATER, carry_out)
    assert raised.value.exit_code == TEMPORARY
    assert batches(root) == kept


def test_the_removal_of_unpublished_rows_that_meets_a_compaction_is_repeated(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_root(root)
    load, others = unpublished.load_table, [other_compaction]

    def then_others(uri: str) -> DeltaTable:
        table = load(uri)
        loads.append(uri)
        if others and loads.count(table_uri(root, NAME)) == 2:  # the first load looks for such rows
            others.pop()(root)
        return table

    loads: list[str] = []
    monkeypatch.setattr(unpublished, "load_table", then_others)
    assert remove_unpublished(root, 2, None) == [NAME]
    assert (batches(root), others) == ([0, 1, 2], [])


def test_another_commit_at_the_same_moment_makes_it_look_again(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look at the files and its commit: the library would go on and double the rows."""
    look, others = DeltaTable.update_incremental, [other_compaction]

    def then_others(delta: DeltaTable) -> None:
        look(delta)
        if others:
            others.pop()(root)

    stale = open_table(root, NAME)
    ((merge,),) = plan(root, NAME, stale, LATER).values()
    file = merge.carry_out()
    monkeypatch.setattr(compaction.DeltaTable, "update_incremental", then_others)
    with pytest.raises(LaggardError, match="another process"):
        compaction._replace(stale, merge, file, until=math.inf)
    assert batches(root) == [0, 1, 2, 3]


def data_files(root: str, label: str = "") -> list[Path]:
    return sorted(
        Path(table_uri(root, NAME)).glob(f"date=*/{label}*.parquet"),
        key=lambda path: path.stat().st_mtime_ns,
    )


def widen(path: Path) -> None:
    """Give a file a column that this release does not know."""
    rows = pq.read_table(path, partitioning=None)
    pq.write_table(rows.append_column("of_2030", pa.array([7] * rows.num_rows, pa.int64())), path)


@pytest.mark.full
def test_many_small_files_become_one_row_group(root: str) -> None:
    for number in range(4, 100):
        append(root, number)
    compact(root, NAME, open_table(root, NAME), LATER)
    [file] = data_files(root, "merged")
    assert (pq.ParquetFile(file).num_row_groups, batches(root)) == (1, list(range(100)))


def test_a_row_group_ends_at_its_size(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files_module, "_GROUP_BYTES", 1)
    compact(root, NAME, open_table(root, NAME), LATER)
    [file] = data_files(root, "merged")
    assert (pq.ParquetFile(file).num_row_groups, batches(root)) == (4, [0, 1, 2, 3])


@pytest.mark.parametrize(
    "damage", [widen, Path.unlink, lambda path: path.write_bytes(b"PAR1 of a page")]
)
def test_a_file_that_cannot_be_merged_leaves_nothing_and_stops_no_other_date(
    root: str, damage: Callable[[Path], object]
) -> None:
    make_root(root)
    append(root, 4, days=1)
    append(root, 5, days=1)
    damage(data_files(root)[3])
    old = data_files(root)[0].with_name("part-junk.parquet")
    old.write_bytes(b"of a task that failed")
    os.utime(old, (0, 0))
    for _ in range(3):
        [outcome] = maintain(root, RETENTION, NOW + timedelta(days=9), [NAME])
        assert outcome.error
    assert [path.parent.name for path in data_files(root, "merg")] == [
        f"date={NOW.date() + timedelta(days=1)}"
    ]
    assert not old.exists(), "VACUUM goes on"


def test_a_damaged_page_leaves_no_part_of_a_file(root: str) -> None:
    """Its footer is sound, so that the new file is begun."""
    content = bytearray(data_files(root)[3].read_bytes())
    content[4:404] = bytes(400)
    data_files(root)[3].write_bytes(content)
    with pytest.raises((OSError, pa.ArrowInvalid), match=r"page|hrift"):
        compact(root, NAME, open_table(root, NAME), LATER)
    assert (data_files(root, "merg"), len(data_files(root))) == ([], 4)


def test_what_a_killed_process_had_written_is_removed(root: str) -> None:
    left = data_files(root)[0].with_name("merging-of-a-killed-process.parquet")
    left.write_bytes(b"PAR1")
    compact(root, NAME, open_table(root, NAME), LATER)
    assert (left.exists(), batches(root)) == (False, [0, 1, 2, 3])


def test_columns_that_a_later_release_added_to_the_table_are_kept(root: str) -> None:
    open_table(root, NAME).alter.add_columns([Field("of_2030", "long")])
    widen(data_files(root)[3])
    compact(root, NAME, open_table(root, NAME), LATER)
    assert sorted(open_table(root, NAME).to_pyarrow_table()["of_2030"].to_pylist(), key=str) == [
        7,
        None,
        None,
        None,
    ]
    assert len(open_table(root, NAME).file_uris()) == 1


def test_columns_that_the_table_has_not_are_not_lost(root: str) -> None:
    widen(data_files(root)[3])
    with pytest.raises(LaggardError, match="columns that its table has not") as raised:
        compact(root, NAME, open_table(root, NAME), LATER)
    assert raised.value.exit_code == DAMAGED
    assert (data_files(root, "merg"), len(data_files(root))) == ([], 4)


def vacuum_of_another_process(root: str) -> None:
    """One that does not compact itself, after this one was suspended for longer than
    `vacuum_hours`.
    """
    [merged] = data_files(root, "merged")
    os.utime(merged, (time.time() - 2 * 3600,) * 2)
    open_table(root, NAME).vacuum(1, dry_run=False, enforce_retention_duration=False, full=True)


def test_a_new_file_that_vacuum_deleted_is_not_committed(root: str) -> None:
    with pytest.raises(LaggardError, match="VACUUM") as raised:
        compact(
            root,
            NAME,
            open_table(root, NAME),
            LATER,
            after(root, lambda: vacuum_of_another_process(root)),
        )
    assert raised.value.exit_code == TEMPORARY
    assert batches(root) == [0, 1, 2, 3]


def test_a_new_file_that_vacuum_may_be_about_to_delete_is_not_committed(root: str) -> None:
    with pytest.raises(LaggardError, match="VACUUM"):
        compact(root, NAME, open_table(root, NAME), LATER, max_seconds=0.0)
    assert batches(root) == [0, 1, 2, 3]


def test_a_compaction_of_delta_rs_that_began_before_doubles_rows_so_it_is_forbidden(
    root: str,
) -> None:
    """Nothing of ours can refuse it (docs/storage.md); when this fails, the library
    has learned to.
    """
    stale = open_table(root, NAME)
    compact(root, NAME, open_table(root, NAME), LATER)
    stale.optimize.compact()
    assert batches(root) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_column_that_an_older_file_lacks_is_null(root: str) -> None:
    for path in Path(table_uri(root, NAME)).glob("date=*/*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns("slot"), path)
    compact(root, NAME, open_table(root, NAME), LATER)
    assert batches(root) == [0, 1, 2, 3]
    assert open_table(root, NAME).to_pyarrow_table()["slot"].null_count == 4


def test_files_are_packed_by_size_and_large_ones_stay(
    root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = max(pa.table(open_table(root, NAME).get_add_actions())["size_bytes"].to_pylist())
    monkeypatch.setattr(compaction, "_WANTED_BYTES", 2 * size)
    assert [
        len(each.paths) for each in plan(root, NAME, open_table(root, NAME), LATER)[str(NOW.date())]
    ] == [2, 2]
    monkeypatch.setattr(compaction, "_SMALL_BYTES", 10)
    assert plan(root, NAME, open_table(root, NAME), LATER) == {}


@pytest.mark.full
def test_the_job_for_maintenance_compacts_and_is_refused_while_another_process_writes_to_the_disk(
    root: str,
) -> None:
    make_root(root)
    days = (datetime.now(timezone.utc) - NOW).days - 2  # the job has the machine's clock
    for number in range(4, 7):
        append(root, number, days)
    script = Path(__file__).parents[2] / "jobs" / "maintain_tables.py"
    command = [sys.executable, str(script), "--set", f"job.tables={json.dumps(root)}"]
    with writer_lock(root):
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (refused.returncode, "another process writes" in refused.stderr) == (REFUSED, True)
    assert len(open_table(root, NAME).file_uris()) == 7
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    dates = pa.table(open_table(root, NAME).get_add_actions(flatten=True))[
        "partition.date"
    ].to_pylist()
    assert dates.count((NOW + timedelta(days=days)).date()) == 1
    assert batches(root)[-3:] == [4, 5, 6]
