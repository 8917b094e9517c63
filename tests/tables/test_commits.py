"""What the job writes is what every reader of Delta finds, once, and the state is read back whole
however it is cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from laggard.errors import INTERNAL, LaggardError
from laggard.stream.tick.advance_stage import State
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.data_files import read_files, write_files
from laggard.tables.delta import Writer, create_tables
from laggard.tables.readers import table_uri
from laggard.tables.schema import schemas
from tables.fixtures import NOW, make_root

LATE = datetime(2026, 11, 20, 23, 59, 59, 999_500, tzinfo=timezone.utc)


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    make_root(tmp_path)
    return Writer(str(tmp_path), "one")


def statuses(groups: Sequence[str]) -> pa.Table:
    return to_arrow(
        schemas.PARTITION_STATUS,
        [{"group": group, "topic": "t", "partition": 0} for group in groups],
    )


def events(*times: datetime) -> pa.Table:
    rows = [{"date": at.date(), "group": "g", "event_at": at, "batch_id": 7} for at in times]
    return to_arrow(schemas.GROUP_EVENTS, rows)


def at(bounds: dict[str, str]) -> datetime:
    return datetime.fromisoformat(bounds["event_at"].replace("Z", "+00:00"))


def stored(writer: Writer, table: schemas.Table) -> pa.Table:
    return DeltaTable(table_uri(writer.root, table.name)).to_pyarrow_table()


def test_a_batch_is_committed_once_per_table_and_checkpoint(writer: Writer) -> None:
    first = writer.write(schemas.GROUP_EVENTS, events(NOW), 7)

    assert writer.write(schemas.GROUP_EVENTS, events(NOW), 7) == first
    assert writer.write(schemas.GROUP_EVENTS, events(NOW), 6) == first
    assert Writer(writer.root, "one").write(schemas.GROUP_EVENTS, events(NOW), 7) == first
    assert stored(writer, schemas.GROUP_EVENTS).num_rows == 1
    assert Writer(writer.root, "another").write(schemas.GROUP_EVENTS, events(NOW), 7) == first + 1
    assert writer.write(schemas.GROUP_EVENTS, events(NOW), 8) == first + 2


def test_a_status_table_is_replaced_and_may_become_empty(writer: Writer) -> None:
    writer.write(schemas.PARTITION_STATUS, statuses(["a", "b"]), 1)
    version = writer.write(schemas.PARTITION_STATUS, statuses(["c"]), 2)

    assert stored(writer, schemas.PARTITION_STATUS)["group"].to_pylist() == ["c"]
    assert writer.rows("partition_status") == 1
    writer.commit(schemas.PARTITION_STATUS, [], 3)
    assert stored(writer, schemas.PARTITION_STATUS).num_rows == 0
    assert read_files(schemas.PARTITION_STATUS, writer.file_uris("partition_status", version))[
        "group"
    ].to_pylist() == ["c"]


def test_rows_lie_in_the_partition_of_their_date(writer: Writer) -> None:
    writer.write(schemas.GROUP_EVENTS, events(LATE, LATE + timedelta(seconds=1), NOW), 7)

    table = DeltaTable(table_uri(writer.root, "group_events"))
    assert sorted(part["date"] for part in table.partitions()) == ["2026-11-20", "2026-11-21"]
    of_next_day = table.to_pyarrow_table(filters=[("date", "=", date(2026, 11, 21))])
    assert of_next_day["date"].to_pylist() == [date(2026, 11, 21)]


def test_statistics_never_hide_a_row(writer: Writer) -> None:
    rows = events(LATE, NOW)
    (file,) = write_files(table_uri(writer.root, "group_events"), schemas.GROUP_EVENTS, rows)

    stats = json.loads(file.stats)
    assert stats["numRecords"] == 2
    assert at(stats["minValues"]) <= NOW
    assert at(stats["maxValues"]) >= LATE
    assert stats["nullCount"]["topic"] == 2
    assert "topic" not in stats["minValues"]


def test_an_impossible_lag_is_refused_as_the_tables_check_would(writer: Writer) -> None:
    rows = to_arrow(schemas.PARTITION_STATUS, [{"group": "g", "lag": -1}])
    with pytest.raises(LaggardError, match="lag = -1") as raised:
        writer.write(schemas.PARTITION_STATUS, rows, 1)
    assert raised.value.exit_code == INTERNAL


def test_a_column_that_an_older_file_lacks_is_unknown(writer: Writer, tmp_path: Path) -> None:
    old = tmp_path / "old.parquet"
    pq.write_table(statuses(["a"]).select(["group", "topic"]), old)

    rows = read_files(schemas.PARTITION_STATUS, [str(old)])
    assert rows.schema.names == list(schemas.PARTITION_STATUS.names)
    assert rows.select(["group", "lag"]).to_pylist() == [{"group": "a", "lag": None}]


def test_a_table_of_an_older_version_gets_the_new_columns_and_keeps_its_rows(
    tmp_path: Path,
) -> None:
    path = table_uri(str(tmp_path), "group_events")
    whole = arrow_schema(schemas.GROUP_EVENTS)
    older = pa.schema(
        [field for field in whole if field.name not in ("records", "source_partition")]
    )
    DeltaTable.create(path, older, partition_by=["date"])
    write_deltalake(path, events(NOW).select(older.names), mode="append")

    create_tables(str(tmp_path))
    Writer(str(tmp_path), "one").write(schemas.GROUP_EVENTS, events(LATE), 1)

    rows = DeltaTable(path).to_pyarrow_table()
    assert set(rows.column_names) == set(whole.names)
    assert sorted(rows["event_at"].to_pylist()) == [NOW, LATE]
    assert rows["records"].to_pylist() == [None, None]


@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_every_group_of_the_state_is_read_by_exactly_one_task(
    tmp_path: Path, cut: int, shards: int
) -> None:
    groups = [f"group-{number}" for number in range(50)] + ["Ω", "part-0-of-2-x"]
    folder = table_uri(str(tmp_path / "half-of-2-of-3-"), "partition_status")
    Path(folder).mkdir(parents=True)
    before = State(
        str(tmp_path), {"partition_status": _written(folder, statuses(groups), 1, 0)}, cut
    )
    files: list[str] = []
    for shard in range(cut):
        files += _written(folder, before.read(schemas.PARTITION_STATUS, shard), cut, shard)

    after = State(str(tmp_path), {"partition_status": files}, shards)
    read: list[Any] = [
        name
        for shard in range(shards)
        for name in after.read(schemas.PARTITION_STATUS, shard)["group"].to_pylist()
    ]
    assert sorted(read) == sorted(groups)


def _written(folder: str, rows: pa.Table, cut: int, shard: int) -> list[str]:
    files = write_files(folder, schemas.PARTITION_STATUS, rows, f"part-{shard}-of-{cut}")
    assert sum(json.loads(file.stats)["numRecords"] for file in files) == rows.num_rows
    assert pc.count_distinct(rows["group"]).as_py() == rows.num_rows
    return [f"{folder}/{file.path}" for file in files]
