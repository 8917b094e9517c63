"""Maintenance: fewer files, old days gone, not a row lost or doubled, and Spark's own Delta reads
the result alike.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from laggard.stream.job.session import start_session
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.readers import table_uri
from laggard.tables.schema import schemas
from laggard.tables.upkeep.maintenance import Retention, maintain
from set_clock import Clock
from tables.fixtures import NOW, make_root

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]
KEPT_DAYS, HOUR = 30, 3600
MAINTAIN = """
import sys
from datetime import datetime, timezone
from laggard.tables.upkeep.maintenance import Retention, maintain
outcomes = maintain(sys.argv[1], Retention(30, 30, 30, 30, 1, 168), datetime.now(timezone.utc))
print([each for each in outcomes if each.error])
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = start_session("local[2]", {})
    yield session
    session.stop()


def event(writer: Writer, batch_id: int, at: datetime) -> None:
    row = {"date": at.date(), "cluster": "c", "group": "g", "event_at": at, "batch_id": batch_id}
    writer.write(schemas.GROUP_EVENTS, to_arrow(schemas.GROUP_EVENTS, [row]), batch_id)


@pytest.mark.full
def test_a_day_of_care(tmp_path: Path, spark: SparkSession) -> None:
    root = str(tmp_path / "of é #1?+%")
    make_root(root)
    writer = Writer(root, "one")
    recent = [NOW - timedelta(days=1, minutes=minute) for minute in range(8)]
    for number, at in enumerate([NOW - timedelta(days=KEPT_DAYS + 1), *recent]):
        event(writer, number, at)
    for number in range(3):
        rows = to_arrow(schemas.PARTITION_STATUS, [{"group": "g", "partition": number}])
        writer.write(schemas.PARTITION_STATUS, rows, number)
    folder = Path(table_uri(root, "partition_status"))
    left_by_a_failed_task = Path(
        table_uri(root, "group_events"), f"date={recent[0].date()}", "part-0-of-1-x.parquet"
    )
    left_by_a_failed_task.write_bytes(b"half a file")
    long_ago = time.time() - 200 * 3600
    os.utime(left_by_a_failed_task, (long_ago, long_ago))
    retention = Retention(
        KEPT_DAYS, KEPT_DAYS, KEPT_DAYS, KEPT_DAYS, status_files_hours=0, vacuum_hours=168
    )

    assert [each for each in maintain(root, retention, NOW) if each.error] == []

    events = DeltaTable(table_uri(root, "group_events"))
    assert sorted(events.to_pyarrow_table()["event_at"].to_pylist()) == sorted(recent)
    assert len(events.file_uris()) == 1
    assert spark.read.format("delta").load(table_uri(root, "group_events")).count() == len(recent)
    followed = (
        spark.readStream.format("delta")
        .load(table_uri(root, "group_events"))
        .writeStream.queryName("followed")
    )
    followed.format("memory").trigger(availableNow=True).start().awaitTermination()
    assert spark.table("followed").count() == len(recent)
    assert [row["partition"] for row in DeltaTable(str(folder)).to_pyarrow_table().to_pylist()] == [
        2
    ]
    assert len(list(folder.glob("*.parquet"))) == 1
    assert not left_by_a_failed_task.exists()
    event(writer, 99, NOW)  # the job goes on after it
    assert writer.rows("group_events") == len(recent) + 1


@pytest.mark.full  # for its compiler
def test_a_file_just_written_is_kept_though_the_clock_was_set_forward(tmp_path: Path) -> None:
    """A batch writes its files before it commits them; VACUUM compares their times with the
    machine's clock.
    """
    root, clock = str(tmp_path / "tables"), Clock(tmp_path)
    make_root(root)
    Writer(root, "one").write(
        schemas.PARTITION_STATUS, to_arrow(schemas.PARTITION_STATUS, [{"group": "g"}]), 0
    )
    folder = Path(table_uri(root, "partition_status"))
    just_written, left_over = folder / "part-0-of-1-new.parquet", folder / "part-0-of-1-old.parquet"
    just_written.write_bytes(b"of the batch at hand")
    left_over.write_bytes(b"of a batch that failed")
    os.utime(left_over, (time.time() - 3 * HOUR,) * 2)
    clock.set(6 * HOUR)

    maintained = subprocess.run(
        [sys.executable, "-c", MAINTAIN, root],
        env={**os.environ, **clock.environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (maintained.returncode, maintained.stdout) == (0, "[]\n"), maintained
    assert just_written.exists()
    assert not left_over.exists()
