"""A group's newest generation is evaluated however old it is, by stream and replay, and little is
read for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cli.evaluated_run import OPTIONS, evaluate, even, record
from diagnosis.fluid import NOON
from laggard.stream.evaluation.reading import Window, events_of, known_at, read_history
from laggard.stream.evaluation.replay import memory_before, replay
from laggard.tables.arrow import to_arrow
from laggard.tables.readers import TableUnreadable
from laggard.tables.schema.schemas import FINDINGS
from stream.simulation import NOON as START
from stream.simulation import Record, Simulation, commit, end, generation, group_tombstone
from tables.fixtures import make_root, write_rows

Row = dict[str, Any]
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
LAST = 12  # window


def milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def evaluated(root: Path, joined_at: datetime) -> list[Row]:
    """Findings about a group whose sessions hold two heartbeats."""
    record(
        root,
        [even(LAST + 1, group="payments")],
        joined_at=joined_at,
        session_timeout_ms=8_000,
        topics=["orders"],
    )
    evaluate(root, first=LAST - 2)
    rows: list[Row] = (
        DeltaTable(str(root / "findings")).to_pyarrow_table().select(FINDINGS.names).to_pylist()
    )
    return rows


def test_members_of_long_ago_are_evaluated_as_those_of_an_hour_ago(tmp_path: Path) -> None:
    lately, long_ago = (
        evaluated(tmp_path / name, NOON - age) for name, age in (("a", DAY / 24), ("b", 100 * DAY))
    )
    assert "TIMEOUT_RATIO" in {row["code"] for row in lately}
    assert list(map(repr, long_ago)) == list(map(repr, lately))


def test_a_replay_finds_members_of_long_ago_too(tmp_path: Path) -> None:
    stored = evaluated(tmp_path, NOON - 100 * DAY)
    begin, last = (milliseconds(NOON + number * MINUTE) for number in (LAST - 2, LAST))
    steps = replay(str(tmp_path), begin, last, memory_before(str(tmp_path), begin), OPTIONS)
    found = to_arrow(FINDINGS, [row for step in steps for row in step.findings]).to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, stored))


class Recorded:
    """Generations with two members each, and what `group_history` says of them in some windows."""

    def __init__(self, root: Path) -> None:
        self.root = root
        make_root(root)

    def generation(
        self, group: str, number: int, at: datetime, *, batch: int = 1, members: int = 2
    ) -> None:
        place = {
            "date": at.date(), "cluster": "prod", "group": group, "generation_kind": "classic",
            "generation": number,
            "source_partition": 3, "source_offset": number, "record_timestamp": at, "status": "ok",
            "batch_id": batch,
        }  # fmt: skip
        write_rows(
            self.root,
            "generations",
            [place | {"kind": "sync", "member_count": members, "live_read": True}],
        )
        write_rows(
            self.root,
            "group_members",
            [place | {"member_id": f"{number}-{each}"} for each in range(members)],
        )

    def history(
        self, group: str, start: datetime, at: datetime, roster_at: datetime | None = None
    ) -> None:
        row = {
            "date": start.date(), "cluster": "prod", "group": group, "window_start": start,
            "window_end": start + MINUTE, "batch_id": 5, "generation_at": at,
            "roster_at": roster_at or at,
        }  # fmt: skip
        write_rows(self.root, "group_history", [row])

    def known(self, *starts: datetime) -> list[dict[str, list[tuple[str, int]]]]:
        """Group and generation of the rows known in each window, windows read at once."""
        tables = read_history(
            str(self.root), {}, milliseconds(starts[0]), milliseconds(starts[-1]), OPTIONS
        )
        read = events_of(tables)
        windows = [known_at(read, Window(milliseconds(start), 7), OPTIONS) for start in starts]
        return [
            {name: named(each[name]) for name in ("generations", "group_members")}
            for each in windows
        ]


def named(rows: Iterable[Row]) -> list[tuple[str, int]]:
    return [(row["group"], row["generation"]) for row in rows]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def test_only_the_newest_generation_of_long_ago_is_read(recorded: Recorded) -> None:
    for number, days in ((6, 60), (7, 40)):
        recorded.generation("g", number, NOON - days * DAY)
    recorded.generation("other", 3, NOON - 40 * DAY)  # at the same time
    recorded.history("g", NOON, NOON - 40 * DAY)
    assert recorded.known(NOON) == [
        {"generations": [("g", 7)], "group_members": [("g", 7), ("g", 7)]}
    ]


def test_the_generation_that_stood_before_the_first_one_of_the_day_stays_known(
    recorded: Recorded,
) -> None:
    recorded.generation("g", 7, NOON - 40 * DAY)
    recorded.generation("g", 8, NOON + 90 * MINUTE / 60)
    recorded.history("g", NOON - DAY, NOON - 40 * DAY)
    recorded.history("g", NOON, NOON - 40 * DAY)
    recorded.history("g", NOON - DAY + MINUTE, NOON - 40 * DAY)
    recorded.history("g", NOON + MINUTE, NOON + 90 * MINUTE / 60)
    first, second = recorded.known(NOON, NOON + MINUTE)
    assert [first["generations"], second["generations"]] == [[("g", 7)], [("g", 7), ("g", 8)]]


def test_a_generation_of_the_day_is_known_once_and_until_the_next_one_after_it(
    recorded: Recorded,
) -> None:
    """What is old in the last of the windows read at once was not in the first of them."""
    turned = NOON - DAY + 10 * MINUTE
    recorded.generation("g", 7, turned)
    for number in range(15):
        recorded.history("g", NOON + number * MINUTE, turned)
    windows = recorded.known(*(NOON + number * MINUTE for number in range(15)))
    assert [each["generations"] for each in windows] == [[("g", 7)]] * 15


def test_members_are_those_of_the_generation_and_nobody_s_where_it_is_empty(
    recorded: Recorded,
) -> None:
    recorded.generation("g", 7, NOON - 40 * DAY)
    recorded.generation("g", 8, NOON - 30 * DAY, members=0)
    recorded.history("g", NOON, NOON - 30 * DAY, roster_at=NOON - 40 * DAY)
    assert recorded.known(NOON) == [{"generations": [("g", 8)], "group_members": []}]


def test_a_member_that_returned_within_its_generation_is_of_its_newest_roster(
    recorded: Recorded,
) -> None:
    recorded.generation("g", 7, NOON - 40 * DAY)
    place = {
        "generation_kind": "classic",
        "generation": 7,
        "source_partition": 3,
        "source_offset": 70,
        "batch_id": 1,
    }
    at = NOON - 5 * DAY
    row = {
        "date": at.date(),
        "cluster": "prod",
        "group": "g",
        "record_timestamp": at,
        "member_id": "back",
    }
    write_rows(recorded.root, "group_members", [place | row])
    recorded.history("g", NOON, NOON - 40 * DAY, roster_at=at)
    assert recorded.known(NOON) == [{"generations": [("g", 7)], "group_members": [("g", 7)]}]


def test_a_member_that_is_reported_later_of_a_generation_of_long_ago_is_known_from_then_on(
    recorded: Recorded,
) -> None:
    recorded.generation("g", 7, NOON - 40 * DAY)
    for start in (NOON, NOON + MINUTE):
        recorded.history("g", start, NOON - 40 * DAY)
    before = recorded.known(NOON)
    recorded.generation("g", 7, NOON - 40 * DAY, batch=6, members=1)
    (after,) = recorded.known(NOON + MINUTE)
    assert [len(each["group_members"]) for each in (*before, after)] == [2, 3]


def test_what_was_published_later_is_not_known(recorded: Recorded) -> None:
    recorded.generation("g", 7, NOON - 40 * DAY, batch=8)
    recorded.history("g", NOON, NOON - 40 * DAY)
    assert recorded.known(NOON) == [{"generations": [], "group_members": []}]


@pytest.mark.parametrize("gone", [(60, 50, 30), (40,)])
def test_dates_on_which_nobody_stands_are_not_read(
    recorded: Recorded, gone: tuple[int, ...]
) -> None:
    for days in (60, 50, 40, 30):
        recorded.generation("g", 100 - days, NOON - days * DAY)
    recorded.history("g", NOON, NOON - 40 * DAY)
    remove(files_of(recorded.root, [NOON - days * DAY for days in gone]))
    with pytest.raises(TableUnreadable) if 40 in gone else nullcontext():
        assert recorded.known(NOON)[0]["generations"] == [("g", 60)]


def files_of(root: Path, days: Iterable[datetime]) -> list[Path]:
    names = [f"date={day.date()}/*.parquet" for day in days]
    tables = (root / "generations", root / "group_members")
    return [file for table, name in product(tables, names) for file in table.glob(name)]


def remove(files: list[Path]) -> None:
    assert files
    for file in files:
        file.unlink()


def test_a_table_of_an_older_job_names_no_places(recorded: Recorded) -> None:
    recorded.generation("g", 7, NOON - 40 * DAY)
    row = {
        "date": NOON.date(),
        "group": "g",
        "window_start": NOON,
        "window_end": NOON + MINUTE,
        "batch_id": 5,
    }
    write_rows(recorded.root, "group_history", [row])
    assert recorded.known(NOON) == [{"generations": [], "group_members": []}]


# what the first query says of where they are


def places(job: Simulation) -> tuple[datetime | None, datetime | None]:
    row = job.groups["g"]
    return row["generation_at"], row["roster_at"]


def tick(job: Simulation, *records: Record) -> datetime:
    job.tick([end(100)], records)
    return job.now


def test_the_places_are_those_of_the_newest_rows() -> None:
    job = Simulation()
    static = {"s1": "id", "s2": "id"}
    joined = tick(job, generation(1, {"s1": ("t",)}, static=static), commit(5))
    assert places(job) == (joined, joined)
    tick(job, commit(6))
    assert places(job) == (joined, joined)
    back = tick(job, generation(1, {"s2": ("t",)}, static=static))
    assert places(job) == (joined, back)
    emptied = tick(job, generation(2))
    assert places(job) == (emptied, back)
    newest = {
        name: max(row["record_timestamp"] for row in job.history[name])
        for name in ("generations", "group_members")
    }
    assert places(job) == (newest["generations"], newest["group_members"])
    tick(job, group_tombstone(), commit(None))
    again = tick(job, generation(1, {"m": ("t",)}), commit(5))
    assert places(job) == (again, again)


def test_a_group_that_an_older_job_has_read_gets_its_places_from_what_it_kept() -> None:
    job = Simulation()
    joined = tick(job, generation(1, {"m": ("t",)}), commit(5))
    status = job.tables["group_status"]
    for name in ("generation_at", "roster_at"):
        where = status.schema.get_field_index(name)
        status = status.set_column(
            where, status.schema.field(where), pa.nulls(1, status.schema.field(where).type)
        )
    job.tables["group_status"] = status
    for _ in range(6):
        tick(job)
    (row,) = job.history["group_history"]
    assert (row["generation_at"], row["roster_at"]) == (joined, joined)
    assert joined > START


def test_a_window_keeps_the_places_of_its_last_tick() -> None:
    job = Simulation()
    joined = tick(job, generation(1, {"m": ("t",)}), commit(5))
    for _ in range(6):
        tick(job)
    (row,) = job.history["group_history"]
    assert (row["generation_at"], row["roster_at"]) == (joined, joined)
