"""The API about a group with thousands of partitions: an answer stays small, and so does what it
takes.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from exporter.api_kit import Asker, api_of
from exporter.harness import LIMIT_SECONDS
from laggard.answers.history import partition_series
from laggard.exporter import api as api_module
from laggard.tables.arrow import arrow_schema
from laggard.tables.schema.schemas import LAG_WINDOWS, PARTITION_STATUS
from tables.fixtures import CLUSTER, NOW, batch_row, group_row, write_arrow, write_rows

PARTITIONS, WINDOWS = 3000, 60
MINUTE = timedelta(minutes=1)


def filled(table: object, rows: int, **columns: object) -> pa.Table:
    """Columns that are given, as arrays or one value for all; the others are null."""
    schema = arrow_schema(table)  # type: ignore[arg-type]
    arrays = []
    for each in schema:
        value = columns.get(each.name)
        given = value if isinstance(value, (np.ndarray, list)) else [value] * rows
        arrays.append(pa.array(given, each.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def windows(start: datetime, **columns: object) -> pa.Table:
    numbers = np.arange(PARTITIONS)
    same = {
        "date": start.date(),
        "cluster": CLUSTER,
        "group": "big",
        "topic": "t",
        "topic_id": "",
        "batch_id": 1,
    }
    facts = {
        "window_start": start,
        "partition": numbers,
        "lag": numbers,
        "status": "ok",
        "slot": "c",
    }
    return filled(LAG_WINDOWS, PARTITIONS, **(same | facts | columns))


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine answer late."""
    monkeypatch.setattr(api_module, "ANSWER_SECONDS", LIMIT_SECONDS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`big`, whose partition n lags by n records, and two windows of the last hour
    without a row.
    """
    root = tmp_path_factory.mktemp("tables")
    numbers = np.arange(PARTITIONS)
    ok = {
        "cluster": CLUSTER,
        "group": "big",
        "topic": "t",
        "topic_id": "",
        "status": "ok",
        "batch_id": 1,
        "poll_id": 1,
    }
    offsets = {
        "committed_offset": 0,
        "log_end_offset": numbers,
        "log_start_offset": 0,
        "lag": numbers,
    }
    times = {"sampled_at": NOW, "commit_timestamp": NOW, "time_lag_seconds": numbers.astype(float)}
    facts = {"partition": numbers, "time_lag_censored": False, "verdict": "ok"}
    numbers_of = [number for number in range(1, WINDOWS + 1) if number not in (2, 5)]
    history = pa.concat_tables([windows(NOW - number * MINUTE) for number in numbers_of])
    versions = {
        "partition_status": write_arrow(
            root,
            "partition_status",
            filled(PARTITION_STATUS, PARTITIONS, **(ok | offsets | times | facts)),
        ),
        "group_status": write_rows(root, "group_status", [group_row("big", members=1)]),
        "topic_windows": write_rows(root, "topic_windows", []),
        "lag_windows": write_arrow(root, "lag_windows", history),
    }
    write_rows(root, "batches", [batch_row(274, versions)])
    return root


@pytest.fixture(scope="module")
def asker(root: Path) -> Iterator[Asker]:
    with api_of(root) as asker:
        yield asker


def test_one_group_shows_its_worst_partitions_and_counts_all(asker: Asker) -> None:
    found = asker("groups/big")
    assert found["group"]["partitions"]["total"] == PARTITIONS
    assert [row["partition"] for row in found["partitions"]] == list(range(2999, 2499, -1))
    assert [row["partition"] for row in found["partitions"] if row["history"]] == list(
        range(2999, 2799, -1)
    )
    assert len(asker("groups/big?limit=3")["partitions"]) == 3


def test_what_has_no_history_is_not_read_into_objects(root: Path) -> None:
    """As objects, 3000 partitions of 60 windows take more than 100 MB, and hold up every other
    thread meanwhile.
    """
    tracemalloc.start()
    try:
        _, found = partition_series(
            str(root), "big", NOW, 60, [("t", place) for place in range(200)]
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found) == 200
    assert peak < 20_000_000


def test_a_window_without_a_row_is_null_in_its_place(asker: Asker) -> None:
    found = asker("groups/big?limit=1")
    assert found["window_starts"] == [
        (NOW - number * MINUTE).isoformat() for number in range(WINDOWS, 0, -1)
    ]
    assert found["partitions"][0]["history"]["lag"][-6:] == [2999, None, 2999, 2999, None, 2999]


def test_a_topic_that_is_made_again_shows_the_new_one_in_the_window_that_has_both(
    tmp_path: Path,
) -> None:
    def row(number: int, topic_id: str, lag: int) -> dict[str, object]:
        start = NOW - number * MINUTE
        same = {
            "date": start.date(),
            "cluster": CLUSTER,
            "group": "g",
            "topic": "t",
            "partition": 0,
            "status": "ok",
        }
        return {**same, "window_start": start, "topic_id": topic_id, "lag": lag, "batch_id": 1}

    for rows in ([row(2, "new", 3), row(3, "old", 900), row(2, "old", 950)], [row(1, "new", 4)]):
        write_rows(tmp_path, "lag_windows", rows)
    _, found = partition_series(str(tmp_path), "g", NOW, 60, [("t", 0)])
    assert found["t", 0]["lag"][-3:] == [900, 3, 4]
