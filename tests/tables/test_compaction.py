"""Compaction while others commit: no row is lost or doubled, whoever else compacts, deletes or appends meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from laggard.errors import CONFIGURATION, REFUSED, TEMPORARY, LaggardError
from laggard.tables import compaction
from laggard.tables.arrow import to_arrow
from laggard.tables.compaction import Merge, carry_out_here, compact, plan
from laggard.tables.data_files import DataFile, write_files
from laggard.tables.delta import Writer, create_tables
from laggard.tables.lock import writer_lock
from laggard.tables.readers import open_table, table_uri
from laggard.tables.schemas import GROUP_EVENTS
from laggard.tables.unpublished import remove_unpublished
from tables.fixtures import NOW

NAME = GROUP_EVENTS.name
LATER = "9999-01-01"


@pytest.fixture
def root(tmp_path: Path) -> str:
    found = str(tmp_path / "of é #1?+%")
    create_tables(found, [GROUP_EVENTS])
    for number in range(4):
        append(found, number)
    return found


def append(root: str, batch_id: int, days: int = 0) -> None:
    at = NOW + timedelta(days=days, milliseconds=batch_id)
    row = {"date": at.date(), "cluster": "c", "group": f"g{batch_id}", "event_at": at, "batch_id": batch_id}
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
    [merged] = [each for each in pa.table(table.get_add_actions(flatten=True)).to_pylist() if each["num_records"] == 4]
    assert len(table.file_uris()) == 2, "the day at hand is left alone"
    assert (merged["min.batch_id"], merged["max.batch_id"], merged["null_count.batch_id"]) == (0, 3, 0)
    assert (merged["min.group"], merged["max.group"], merged["null_count.member_id"]) == ("g0", "g3", 4)
    assert merged["min.event_at"] == NOW.replace(microsecond=0)
    version = table.version()
    entry = Path(table_uri(root, NAME), "_delta_log", f"{version:020d}.json").read_text()
    changes = [next(iter(json.loads(line).values())).get("dataChange") for line in entry.splitlines()]
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
    create_tables(root)
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
def test_of_two_that_replace_the_same_files_one_is_refused(root: str, others: object, kept: list[int]) -> None:
    with pytest.raises(LaggardError, match="another process") as raised:
        compact(root, NAME, open_table(root, NAME), LATER, after(root, lambda: others(root)))  # type: ignore[operator]
    assert raised.value.exit_code == TEMPORARY
    assert batches(root) == kept


def test_another_commit_at_the_same_moment_makes_it_look_again(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its look at the files and its commit: the library would go on and double the rows."""
    look, others = DeltaTable.update_incremental, [other_compaction]

    def then_others(delta: DeltaTable) -> None:
        look(delta)
        if others:
            others.pop()(root)

    stale = open_table(root, NAME)
    merges = plan(root, NAME, stale, LATER)
    files = [each for found in merges.values() for each in carry_out_here(found)]
    monkeypatch.setattr(compaction.DeltaTable, "update_incremental", then_others)
    with pytest.raises(LaggardError, match="another process"):
        compaction._replace(stale, *merges.values(), files)
    assert batches(root) == [0, 1, 2, 3]


def test_files_of_a_later_release_are_left_alone(root: str) -> None:
    uri = table_uri(root, NAME)
    file = Path(write_files(uri, GROUP_EVENTS, to_arrow(GROUP_EVENTS, [{"date": NOW.date()}]))[0].path)
    path = Path(uri, file)
    pq.write_table(pq.read_table(path).append_column("of_2030", pa.array([1])), path)
    with pytest.raises(LaggardError, match="does not know") as raised:
        Merge(root, NAME, str(NOW.date()), (str(file),)).carry_out()
    assert raised.value.exit_code == CONFIGURATION


def test_a_column_that_an_older_file_lacks_is_null(root: str) -> None:
    for path in Path(table_uri(root, NAME)).glob("date=*/*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns("slot"), path)
    compact(root, NAME, open_table(root, NAME), LATER)
    assert batches(root) == [0, 1, 2, 3]
    assert open_table(root, NAME).to_pyarrow_table()["slot"].null_count == 4


def test_files_are_packed_by_size_and_large_ones_stay(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = max(pa.table(open_table(root, NAME).get_add_actions())["size_bytes"].to_pylist())
    monkeypatch.setattr(compaction, "_WANTED_BYTES", 2 * size)
    assert [len(each.paths) for each in plan(root, NAME, open_table(root, NAME), LATER)[str(NOW.date())]] == [2, 2]
    monkeypatch.setattr(compaction, "_SMALL_BYTES", 10)
    assert plan(root, NAME, open_table(root, NAME), LATER) == {}


def test_the_job_for_maintenance_compacts_and_is_refused_while_another_process_writes_to_the_disk(root: str) -> None:
    create_tables(root)
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
    dates = pa.table(open_table(root, NAME).get_add_actions(flatten=True))["partition.date"].to_pylist()
    assert dates.count((NOW + timedelta(days=days)).date()) == 1
    assert batches(root)[-3:] == [4, 5, 6]
