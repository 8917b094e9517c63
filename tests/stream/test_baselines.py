"""What a group did the day before, as a rule may ask for it."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from laggard.diagnosis.parameters import Parameters, Policy
from laggard.stream.evaluation.evaluating import Baselines
from laggard.stream.evaluation.reading import Options, read_baseline
from tables.fixtures import NOW, write_rows


def test_each_group_finds_its_own_rows_by_topic_and_one_without_any_finds_none() -> None:
    rows = [("a", "x", 1.0), ("b", "x", 2.0), ("a", "y", 3.0), ("a", "x", 4.0)]
    names = ("group", "topic", "arrival_rate")
    reads: list[int] = []

    def read() -> pa.Table:
        reads.append(1)
        return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))

    before = Baselines(read)
    asked = {group: before.of(group) for group in ("a", "b", "c")}
    assert not reads  # until a rule asks
    rates = {}
    for group, ask in asked.items():
        rates[group] = {
            topic: [row["arrival_rate"] for row in found] for topic, found in ask().items()
        }
    assert rates == {"a": {"x": [1.0, 4.0], "y": [3.0]}, "b": {"x": [2.0]}, "c": {}}
    assert len(reads) == 1


def test_where_nothing_is_stored_nobody_has_a_day_before(tmp_path: Path) -> None:
    options = Options("c", 60, Parameters(), lambda *_: Policy())
    assert Baselines(partial(read_baseline, str(tmp_path), 0, options)).of("a")() == {}


def test_the_day_before_a_window_has_no_row_of_the_window_itself(tmp_path: Path) -> None:
    """Its rows are there already when a failed write is tried again."""
    rows = [
        {
            "date": at.date(),
            "cluster": "c",
            "group": "g",
            "topic": "t",
            "window_start": at,
            "status": "ok",
        }
        for at in (NOW - timedelta(minutes=1), NOW)
    ]
    write_rows(tmp_path, "group_windows", rows)
    options = Options("c", 60, Parameters(), lambda *_: Policy())
    found = read_baseline(str(tmp_path), round(NOW.timestamp() * 1000), options)
    assert found["window_start"].to_pylist() == [NOW - timedelta(minutes=1)]
