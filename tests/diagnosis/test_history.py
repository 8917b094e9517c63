from __future__ import annotations

from datetime import timedelta
from itertools import product
from math import isnan
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from diagnosis.fluid import NOON
from laggard.diagnosis.history.frames import GroupFrame
from laggard.diagnosis.history.grid import kept
from laggard.diagnosis.history.layout import History
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.schema import schemas

WINDOWS = 5
TOPICS = (("x", "id"), ("y", "old"), ("y", "new"))
NAMES = (
    "group_history",
    "topic_windows",
    "rebalances",
    "generations",
    "group_members",
    "group_events",
)


def lag_row(
    group: str, topic: str, topic_id: str, partition: int, window: int, chance: Random
) -> dict[str, Any]:
    begin = NOON + timedelta(minutes=window)
    return {
        "date": begin.date(), "cluster": "c", "group": group, "topic": topic, "topic_id": topic_id,
        "partition": partition, "window_start": begin, "window_end": begin + timedelta(minutes=1),
        "batch_id": 1,
        "sampled_at": begin, "ticks": 1, "ok_ticks": 1, "poll_id": 1, "status": "ok",
        "lag": chance.choice([None, chance.randrange(1000)]),
        "slot": chance.choice([None, "a", "b"]),
    }  # fmt: skip


def frames(rows: pa.Table) -> list[GroupFrame]:
    tables = {name: arrow_schema(schemas.TABLES[name]).empty_table() for name in NAMES} | {
        "lag_windows": rows
    }
    newest = round((NOON + timedelta(minutes=WINDOWS - 1)).timestamp() * 1000)
    history = History(tables, newest, newest, window_seconds=60, look_back=WINDOWS)
    return list(history.frames(newest, 1, {}, cluster="c"))


@pytest.mark.parametrize("repeating", [(), ("group", "topic", "topic_id", "slot", "status")])
def test_each_value_is_in_its_own_cell_in_whatever_order_rows_come(
    repeating: tuple[str, ...],
) -> None:
    chance = Random(3)
    places = [
        (f"g{n}", topic, "id", part) for n, topic, part in product(range(3), ("x", "y"), (0, 7, 11))
    ]
    rows = [
        lag_row(*place, window, chance)
        for place in places
        for window in range(WINDOWS)
        if window == WINDOWS - 1 or chance.random() < 0.7
    ]
    chance.shuffle(rows)
    rows_of_windows = to_arrow(schemas.LAG_WINDOWS, rows)
    for name in repeating:
        rows_of_windows = rows_of_windows.set_column(
            rows_of_windows.schema.get_field_index(name),
            name,
            rows_of_windows[name].dictionary_encode(),
        )
    expected = {
        (
            row["group"],
            row["topic"],
            row["partition"],
            (row["window_start"] - NOON).seconds // 60,
        ): row
        for row in rows
    }
    found = frames(rows_of_windows)
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


def test_of_a_topic_that_was_recreated_the_one_with_rows_now_is_evaluated() -> None:
    chance = Random(4)
    old = [lag_row("g", "x", "old", 0, window, chance) for window in range(3)]
    new = [lag_row("g", "x", "new", 1, window, chance) for window in range(3, WINDOWS)]
    ((topic,),) = ([*each.topics] for each in frames(to_arrow(schemas.LAG_WINDOWS, old + new)))
    assert (topic.topic_id, topic.partitions.tolist()) == ("new", [1])


@pytest.mark.parametrize(
    "wanted",
    [
        [],
        [True, True, True],
        [False, True, True],
        [True, False, True],
        [None, True, False],
        [False] * 3,
    ],
)
def test_rows_that_meet_a_condition_are_kept_in_order(wanted: list[bool | None]) -> None:
    rows = pa.table({"number": pa.array(range(len(wanted)), pa.int64())})
    expected = [number for number, each in enumerate(wanted) if each]
    for parts in ([wanted], [wanted[:1], wanted[1:]]):
        assert kept(rows, pa.chunked_array(parts, pa.bool_()))["number"].to_pylist() == expected


def shown(found: list[GroupFrame]) -> list[Any]:
    """All that frames hold of lag_windows and group_history."""
    held = []
    for each in found:
        for topic in each.topics:
            of_topic = (topic.topic, topic.topic_id, topic.partitions.tolist(), topic.facts)
            numbers = [np.nan_to_num(own, nan=-1.0).tolist() for own in topic.numbers.values()]
            names = [own.tolist() for own in topic.names.values()]
            held.append((each.group, each.facts, *of_topic, *numbers, *names))
    return held


def test_windows_that_are_laid_out_together_are_those_laid_out_one_by_one() -> None:
    """Groups and partitions come and go, and some rows are published later than others of their
    window.
    """
    chance = Random(5)
    count = 3 * WINDOWS
    places = [
        (f"g{n}", topic, topic_id, part)
        for n, (topic, topic_id), part in product(range(3), TOPICS, (0, 7, 11))
    ]
    alive = {place: sorted(chance.sample(range(count), 2)) for place in places}
    rows = [
        lag_row(*place, window, chance) | {"batch_id": window + chance.choice([1, 1, 1, 3])}
        for place, (first, last) in alive.items()
        for window in range(first, last)
    ]
    batches = {(row["group"], row["window_start"]): row["batch_id"] for row in rows}
    facts = [
        {"group": group, "window_start": at, "batch_id": batch, "members": batch}
        for (group, at), batch in batches.items()
    ]
    ends = [
        topic_row(*topic, part, window, chance)
        for topic, part, window in product(TOPICS, (0, 7), range(count))
    ]
    tables = {
        "lag_windows": to_arrow(schemas.LAG_WINDOWS, rows),
        "group_history": to_arrow(schemas.TABLES["group_history"], facts),
        "topic_windows": to_arrow(schemas.TOPIC_WINDOWS, ends),
    }
    starts = [
        round((NOON + timedelta(minutes=window)).timestamp() * 1000) for window in range(count)
    ]
    together = History(tables, starts[0], starts[-1], window_seconds=60, look_back=WINDOWS)
    seen = 0
    for window, start in enumerate(starts):
        batch = window + 1
        known = {
            name: table.filter(
                pc.and_(
                    pc.less_equal(table["batch_id"], batch),
                    pc.less_equal(
                        table["window_start"], pa.scalar(NOON + timedelta(minutes=window))
                    ),
                )
            )
            for name, table in tables.items()
        }
        alone = History(known, start, start, window_seconds=60, look_back=WINDOWS)
        expected = shown(list(alone.frames(start, batch, {}, cluster="c")))
        assert shown(list(together.frames(start, batch, {}, cluster="c"))) == expected
        seen += len(expected)
    assert seen > count


def topic_row(
    topic: str, topic_id: str, partition: int, window: int, chance: Random
) -> dict[str, Any]:
    end = 1000 + 10 * window
    return {
        "topic": topic, "topic_id": topic_id, "partition": partition,
        "window_start": NOON + timedelta(minutes=window),
        "batch_id": window + 1, "log_end_offset": end,
        "last_stable_offset": chance.choice([end, 900, None]),
        "retention_seconds": 60 * window, "config_known": True,
    }  # fmt: skip


def test_log_ends_are_reported_of_partitions_that_something_held_back() -> None:
    chance = Random(6)
    rows = [
        topic_row("x", "id", part, window, chance) for part in range(4) for window in range(WINDOWS)
    ]
    free = [
        row | {"last_stable_offset": row["log_end_offset"]} for row in rows if row["partition"] == 3
    ]
    rows = [row for row in rows if row["partition"] != 3] + free
    tables = {
        "lag_windows": to_arrow(
            schemas.LAG_WINDOWS, [lag_row("g", "x", "id", 0, WINDOWS - 1, chance)]
        ),
        "group_history": arrow_schema(schemas.TABLES["group_history"]).empty_table(),
        "topic_windows": to_arrow(schemas.TOPIC_WINDOWS, rows),
    }
    newest = round((NOON + timedelta(minutes=WINDOWS - 1)).timestamp() * 1000)
    history = History(tables, newest, newest, window_seconds=60, look_back=WINDOWS)
    ((topic,),) = ([*each.topics] for each in history.frames(newest, WINDOWS, {}, cluster="c"))
    of_partition = {part: [row for row in rows if row["partition"] == part] for part in range(4)}
    held = {
        part: own
        for part, own in of_partition.items()
        if any(row["last_stable_offset"] == 900 for row in own)
    }
    assert 0 < len(held) < 4
    names = ("last_stable_offset", "log_end_offset")
    expected = {}
    for part, own in held.items():
        expected[part] = [{name: row[name] for name in names} for row in own]
    assert topic.facts["windows"] == expected
    assert (topic.facts["retention_seconds"], topic.facts["cleanup_policy"]) == (
        60 * (WINDOWS - 1),
        None,
    )


def test_a_group_without_a_name_is_not_taken_for_the_cluster() -> None:
    rows = [
        lag_row(group, "x", "id", 0, window, Random(3))
        for group in ("", "g")
        for window in range(WINDOWS)
    ]
    assert [each.group for each in frames(to_arrow(schemas.LAG_WINDOWS, rows))] == ["g"]


def test_records_mature_only_where_is_known_how_many_were_late() -> None:
    place = ("g", "x", "id")
    known = lag_row(*place, 0, WINDOWS - 1, Random(1)) | {"matured_records": 10, "late_records": 10}
    unknown = lag_row(*place, 1, WINDOWS - 1, Random(1)) | {
        "matured_records": 990,
        "late_records": None,
    }
    (group,) = frames(to_arrow(schemas.LAG_WINDOWS, [known, unknown]))
    (topic,) = group.topics
    assert topic["matured"][:, -1].tolist() == pytest.approx([10, np.nan], nan_ok=True)
    assert topic["late"][:, -1].tolist() == pytest.approx([10, np.nan], nan_ok=True)
