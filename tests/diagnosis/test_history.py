from __future__ import annotations

from datetime import timedelta
from math import isnan
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from diagnosis.fluid import NOON
from laggard.diagnosis.frames import GroupFrame
from laggard.diagnosis.history import frames_at, kept
from laggard.tables import schemas
from laggard.tables.arrow import arrow_schema, to_arrow

WINDOWS = 5
NAMES = ("group_history", "topic_windows", "rebalances", "generations", "group_members", "group_events")


def lag_row(group: str, topic: str, topic_id: str, partition: int, window: int, chance: Random) -> dict[str, Any]:
    begin = NOON + timedelta(minutes=window)
    return {
        "date": begin.date(), "cluster": "c", "group": group, "topic": topic, "topic_id": topic_id,
        "partition": partition, "window_start": begin, "window_end": begin + timedelta(minutes=1), "batch_id": 1,
        "sampled_at": begin, "ticks": 1, "ok_ticks": 1, "poll_id": 1, "status": "ok",
        "lag": chance.choice([None, chance.randrange(1000)]), "slot": chance.choice([None, "a", "b"]),
    }  # fmt: skip


def frames(rows: pa.Table) -> list[GroupFrame]:
    tables = {name: arrow_schema(schemas.TABLES[name]).empty_table() for name in NAMES} | {"lag_windows": rows}
    newest = round((NOON + timedelta(minutes=WINDOWS - 1)).timestamp() * 1000)
    return list(frames_at(tables, newest, cluster="c", window_seconds=60, look_back=WINDOWS))


@pytest.mark.parametrize("repeating", [(), ("group", "topic", "topic_id", "slot", "status")])
def test_each_value_is_in_its_own_cell_in_whatever_order_rows_come(repeating: tuple[str, ...]) -> None:
    chance = Random(3)
    places = [(f"g{n}", topic, "id", part) for n in range(3) for topic in ("x", "y") for part in (0, 7, 11)]
    rows = [
        lag_row(*place, window, chance)
        for place in places
        for window in range(WINDOWS)
        if window == WINDOWS - 1 or chance.random() < 0.7
    ]
    chance.shuffle(rows)
    told = to_arrow(schemas.LAG_WINDOWS, rows)
    for name in repeating:
        told = told.set_column(told.schema.get_field_index(name), name, told[name].dictionary_encode())
    expected = {
        (row["group"], row["topic"], row["partition"], (row["window_start"] - NOON).seconds // 60): row for row in rows
    }
    found = frames(told)
    assert [(each.group, [topic.topic for topic in each.topics]) for each in found] == [
        (f"g{n}", ["x", "y"]) for n in range(3)
    ]
    for each in found:
        for topic in each.topics:
            assert topic.partitions.tolist() == [0, 7, 11]
            for number, part in enumerate(topic.partitions.tolist()):
                for window in range(WINDOWS):
                    row = expected.get((each.group, topic.topic, part, window), {})
                    lag = topic["lag"][number, window]
                    assert (None if isnan(lag) else lag) == row.get("lag")
                    assert topic.named("slot")[number, window] == (row.get("slot") or "")
                    assert topic.named("status")[number, window] == row.get("status", "")


def test_of_a_topic_that_was_recreated_the_one_with_rows_now_is_judged() -> None:
    chance = Random(4)
    old = [lag_row("g", "x", "old", 0, window, chance) for window in range(3)]
    new = [lag_row("g", "x", "new", 1, window, chance) for window in range(3, WINDOWS)]
    ((topic,),) = ([*each.topics] for each in frames(to_arrow(schemas.LAG_WINDOWS, old + new)))
    assert (topic.topic_id, topic.partitions.tolist()) == ("new", [1])


@pytest.mark.parametrize(
    "wanted", [[], [True, True, True], [False, True, True], [True, False, True], [None, True, False], [False] * 3]
)
def test_rows_that_meet_a_condition_are_kept_in_order(wanted: list[bool | None]) -> None:
    rows = pa.table({"number": pa.array(range(len(wanted)), pa.int64())})
    expected = [number for number, each in enumerate(wanted) if each]
    for parts in ([wanted], [wanted[:1], wanted[1:]]):
        assert kept(rows, pa.chunked_array(parts, pa.bool_()))["number"].to_pylist() == expected
