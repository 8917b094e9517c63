"""Reading tables at what is published, and the errors by name when that is not possible."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow.dataset import field

from laggard.tables import log, published
from laggard.tables.arrow import arrow_schema, arrow_type
from laggard.tables.published import newest_batch
from laggard.tables.readers import (
    TableMissing,
    TableUnreadable,
    read_known,
    read_newest,
    read_table,
    table_uri,
)
from laggard.tables.schema.schemas import TABLES
from tables.fixtures import (
    NOW,
    batch_row,
    partition_row,
    topic_row,
    write_arrow,
    write_batch,
    write_rows,
)

TIMESTAMP = pa.timestamp("us", tz="UTC")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a log whose newest entries do not say: the table is loaded."""

    def fail(uri: str) -> int:
        raise ValueError(uri)

    monkeypatch.setattr(log, "newest_version", fail)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_the_newest_batch_is_the_tick_or_backfill_with_the_largest_id(
    tmp_path: Path, request: pytest.FixtureRequest, *, is_loaded: bool
) -> None:
    if is_loaded:
        request.getfixturevalue("loaded")
    for batch_id, kind in ((1, "tick"), (2, "backfill"), (3, "tick"), (9, "gap")):
        write_rows(
            tmp_path, "batches", [batch_row(batch_id, {"partition_status": batch_id}, kind=kind)]
        )
    batch = newest_batch(str(tmp_path))
    assert batch is not None
    assert (batch.batch_id, batch.kind, batch.cluster, batch.polled_at) == (3, "tick", "prod", NOW)
    assert (batch.table_versions, batch.version) == ({"partition_status": 3}, 3)
    assert batch.values["source_to"] == {0: 15, 3: 20}


def test_there_is_no_batch_in_an_empty_log_or_one_with_gaps_only(tmp_path: Path) -> None:
    write_rows(tmp_path, "batches", [])
    empty = newest_batch(str(tmp_path))
    write_rows(tmp_path, "batches", [batch_row(1, {}, kind="gap")])
    assert (empty, newest_batch(str(tmp_path))) == (None, None)


@pytest.mark.usefixtures("loaded")
def test_the_newest_batch_opens_one_file_of_a_long_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(5):
        write_rows(
            tmp_path,
            "batches",
            [batch_row(day * 10 + n, {}, NOW + timedelta(days=day, seconds=n)) for n in range(10)],
        )
    opened: list[int] = []
    read = published.read_declared

    def counting(
        table: DeltaTable, root: str, name: str, columns: list[str], predicate: str | None = None
    ) -> pa.Table:
        opened.append(len(table.file_uris(file_pruning_predicate=predicate)))
        return read(table, root, name, columns, predicate)

    monkeypatch.setattr(published, "read_declared", counting)
    batch = newest_batch(str(tmp_path))
    assert (batch and batch.batch_id, opened) == (49, [1])


def test_a_row_of_an_older_job_has_nothing_in_the_columns_that_came_later(tmp_path: Path) -> None:
    schema = pa.schema(
        [field for field in arrow_schema(TABLES["batches"]) if field.name != "clock"]
    )
    rows = pa.Table.from_pylist([batch_row(7, {})], schema=schema)
    write_deltalake(str(tmp_path / "batches"), rows, partition_by=["date"])
    batch = newest_batch(str(tmp_path))
    assert batch is not None
    assert (batch.batch_id, batch.values["clock"], batch.clock_at) == (7, None, NOW)


@pytest.mark.parametrize("entries", [0, 1, 5, 99, 100, 101, 203])
def test_the_newest_entry_of_a_log_is_found_in_a_dozen_looks(tmp_path: Path, entries: int) -> None:
    folder = tmp_path / "batches" / "_delta_log"
    folder.mkdir(parents=True)
    for version in range(7, 7 + entries):  # earlier ones have expired
        (folder / f"{version:020}.json").touch()
    (folder / "_last_checkpoint").write_text('{"version": 7}')
    if entries:
        assert log.newest_version(str(tmp_path / "batches")) == 6 + entries
    else:
        with pytest.raises(ValueError, match="has no entry 7"):
            log.newest_version(str(tmp_path / "batches"))


def test_the_newest_batch_needs_no_loading_after_any_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits, checkpoints of the log, compaction, VACUUM and gap rows, in any order."""
    uri = str(tmp_path / "batches")
    write_rows(tmp_path, "batches", [])
    DeltaTable(uri).alter.set_table_properties({"delta.checkpointInterval": "5"})
    loads: list[str] = []
    load = published.open_table
    monkeypatch.setattr(
        published, "open_table", lambda *where: loads.append(where[1]) or load(*where)
    )
    for batch_id in range(23):
        write_rows(tmp_path, "batches", [batch_row(batch_id, {})])
        if batch_id % 4 == 1:
            DeltaTable(uri).optimize.compact()
        if batch_id % 4 == 2:
            DeltaTable(uri).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
        if batch_id % 4 == 3:
            write_rows(tmp_path, "batches", [batch_row(batch_id, {}, kind="gap", gap_seq=1)])
        batch = newest_batch(str(tmp_path))
        assert batch is not None
        assert (batch.batch_id, batch.version) == (batch_id, DeltaTable(uri).version())
        assert batch.values["date"] == NOW.date()
    assert loads == []
    DeltaTable(uri).optimize.compact()
    DeltaTable(uri).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    batch = newest_batch(str(tmp_path))  # its own file is gone: the table says where its row is now
    assert (batch and batch.batch_id, loads) == (22, ["batches"])


@pytest.mark.usefixtures("loaded")
def test_files_without_statistics_are_found_by_date(tmp_path: Path) -> None:
    schema = arrow_schema(TABLES["batches"])
    for day in (1, 0):
        rows = pa.Table.from_pylist([batch_row(day, {}, NOW + timedelta(days=day))], schema=schema)
        write_deltalake(
            str(tmp_path / "batches"),
            rows,
            mode="append",
            partition_by=["date"],
            configuration={"delta.dataSkippingNumIndexedCols": "0"},
        )
    batch = newest_batch(str(tmp_path))
    assert (batch and batch.batch_id) == 1


def test_a_table_is_read_at_exactly_the_version(tmp_path: Path) -> None:
    versions = [
        write_rows(tmp_path, "partition_status", [partition_row("g", "t", n)]) for n in range(3)
    ]
    read = [
        read_table(str(tmp_path), "partition_status", version, ["partition"])[
            "partition"
        ].to_pylist()
        for version in versions
    ]
    assert read == [[0], [1], [2]]


def test_an_append_table_gives_the_rows_of_its_newest_batch_below_the_version(
    tmp_path: Path,
) -> None:
    for batch_id in (1, 2, 3):
        write_rows(tmp_path, "topic_windows", [topic_row("t", batch_id, batch_id=batch_id)])
    assert read_newest(str(tmp_path), "topic_windows", 1, ["partition"]).to_pylist() == [
        {"partition": 2}
    ]


def test_an_empty_append_table_gives_no_rows(tmp_path: Path) -> None:
    write_rows(tmp_path, "topic_windows", [])
    assert read_newest(str(tmp_path), "topic_windows", 0, ["partition"]).num_rows == 0


def test_a_column_that_may_be_null_is_null_in_the_table_of_an_older_job(tmp_path: Path) -> None:
    row = partition_row("g", "t", 0)
    written = pa.Table.from_pylist([row], schema=arrow_schema(TABLES["partition_status"]))
    write_deltalake(table_uri(str(tmp_path), "partition_status"), written.drop_columns("verdict"))
    rows = read_table(str(tmp_path), "partition_status", 0)
    assert rows.column_names == list(TABLES["partition_status"].names)
    assert (rows["verdict"].to_pylist(), rows["lag"].to_pylist()) == ([None], [row["lag"]])
    write_deltalake(
        table_uri(str(tmp_path), "partition_status"),
        written.drop_columns("status"),
        mode="overwrite",
        schema_mode="overwrite",
    )
    with pytest.raises(TableUnreadable, match="columns missing: status"):
        read_table(str(tmp_path), "partition_status", 1)


def test_what_cannot_be_read_has_a_name_and_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(TableMissing) as missing:
        newest_batch(str(tmp_path))
    write_batch(tmp_path)
    with pytest.raises(TableUnreadable, match="version 7") as version:
        read_table(str(tmp_path), "group_status", 7)
    with pytest.raises(TableUnreadable, match="columns missing: nope"):
        read_table(str(tmp_path), "group_status", 0, ["group", "nope"])
    assert all(error.value.fix for error in (missing, version))
    # our own bytes
    assert str(pickle.loads(pickle.dumps(version.value))) == str(version.value)  # noqa: S301


def test_a_file_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    version = write_rows(tmp_path, "partition_status", [partition_row("g", "t", 0)])
    for path in (tmp_path / "partition_status").glob("*.parquet"):
        path.unlink()
    with pytest.raises(TableUnreadable):
        read_table(str(tmp_path), "partition_status", version)


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("bigint", pa.int64()),
        ("timestamp", TIMESTAMP),
        ("map<int,timestamp>", pa.map_(pa.int32(), TIMESTAMP)),
        (
            "array<struct<at:timestamp,n:map<string,bigint>>>",
            pa.list_(pa.struct([("at", TIMESTAMP), ("n", pa.map_(pa.string(), pa.int64()))])),
        ),
    ],
)
def test_spark_types_have_their_arrow_type(ddl: str, expected: pa.DataType) -> None:
    assert arrow_type(ddl) == expected


def test_every_declared_column_has_an_arrow_type_and_others_are_refused() -> None:
    assert [arrow_schema(table).names for table in TABLES.values()] == [
        list(table.names) for table in TABLES.values()
    ]
    with pytest.raises(ValueError, match="no Arrow type for decimal"):
        arrow_type("decimal")


@pytest.mark.parametrize(
    ("column", "odd"),
    [
        ("window_start", pa.array([2**62], pa.timestamp("us", tz="UTC"))),
        ("topic", pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())),
    ],
)
def test_a_value_that_statistics_cannot_hold_hides_no_other_row(
    tmp_path: Path, column: str, odd: pa.Array
) -> None:
    rows = pa.Table.from_pylist(
        [topic_row("a", 0), topic_row("a", 1)], schema=arrow_schema(TABLES["topic_windows"])
    )
    values = pa.chunked_array([rows[column].combine_chunks().slice(1), odd])
    write_arrow(
        tmp_path, "topic_windows", rows.set_column(rows.column_names.index(column), column, values)
    )
    uri = table_uri(str(tmp_path), "topic_windows")
    wanted = (field("topic") == "a") & (
        field("window_start") < pa.scalar(NOW, pa.timestamp("us", tz="UTC"))
    )
    found = read_known(DeltaTable(uri), uri, ("date", "partition"), wanted)
    assert found.to_pylist() == [{"date": NOW.date(), "partition": 0}]
