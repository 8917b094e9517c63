"""The audit finds no wrong row in tables of the job's own code, and finds each kind of wrong row
put into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable

from audit.roots import change, write_root
from cli.evaluated_run import evaluate, even, hot, record
from laggard.audit import reader, tables
from laggard.audit.reader import Reader
from laggard.audit.result import Tally
from laggard.audit.tables import Audit, audit_tables, chosen_tables, count_steps
from laggard.tables.published import newest_batch
from laggard.tables.readers import open_table
from patience import some
from simulator.workloads import WORKLOADS
from tables.fixtures import Row

# those that need neither exporter nor coordinators
ON_TABLES = ("I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8")
SOON = (
    "events",
    "modern_events",
    "topic_recreated",
    "group_deleted",
    "transactional",
    "retention",
    "leaderless",
)
RUNS = [pytest.param(each, marks=() if each in SOON else pytest.mark.full) for each in WORKLOADS]


def audited(root: Path, names: tuple[str, ...] = (), **versions: int) -> Audit:
    """Audit the tables, some at versions that the newest batch does not name."""
    batch = newest_batch(str(root))
    assert batch is not None
    batch.values["table_versions"].update(versions)
    begin = datetime(2020, 1, 1, tzinfo=timezone.utc)
    reader = Reader(str(root), batch, begin, batch.polled_at + timedelta(days=1))
    chosen = chosen_tables(names)
    *steps, last = audit_tables(reader, chosen)
    assert len(steps) + 1 == count_steps(reader, chosen)
    return last


def broken(audit: Audit) -> dict[str, Tally]:
    return {code: tally for code, tally in audit.tallies.items() if tally.violations}


@pytest.mark.examples
@pytest.mark.parametrize("workload", some(RUNS))
def test_tables_of_a_simulated_cluster_hold_every_invariant(workload: str, tmp_path: Path) -> None:
    write_root(tmp_path, workload, seed=3)
    audit = audited(tmp_path)
    assert broken(audit) == {}
    assert {code for code in ON_TABLES if not audit.tallies[code].checked} == set()


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("simulated")
    write_root(root, "events", seed=1)
    return root


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables with `group_windows`, which the simulated cluster has none of."""
    root = tmp_path_factory.mktemp("evaluated")
    record(root, [even(12), hot(12)])
    evaluate(root)
    found = audited(root).tallies  # these rows are made up: their offsets do not follow one another
    assert [(found[code].checked > 0, found[code].violations) for code in ("I1", "I6")] == [
        (True, 0)
    ] * 2
    return root


# damages the rows, and gives the key that the audit must name
Edit = Callable[[list[Row], Random], Row]


@dataclass(frozen=True)
class Damage:
    """A change of one table that breaks an invariant."""

    code: str
    table: str
    edit: Edit
    root: str = "simulated"


def add(name: str, number: int = 1, where: Callable[[Row], Any] = bool) -> Edit:
    """Add a number to a column of one row."""

    def edit(rows: list[Row], random: Random) -> Row:
        row = random.choice([row for row in rows if row[name] is not None and where(row)])
        row[name] += number
        return row

    return edit


def put(name: str, value: Callable[[Row], Any], where: Callable[[Row], Any] = bool) -> Edit:
    """Put another value into a column of one row."""

    def edit(rows: list[Row], random: Random) -> Row:
        row = random.choice([row for row in rows if where(row)])
        row[name] = value(row)
        return row

    return edit


def late(edit: Edit) -> Edit:
    """Damage one of the newest windows, when all partitions of the group have rows."""

    def edit_newest(rows: list[Row], random: Random) -> Row:
        newest = max(row["window_start"] for row in rows)
        return edit([row for row in rows if row["window_start"] == newest], random)

    return edit_newest


def double(rows: list[Row], random: Random) -> Row:
    row = random.choice(rows)
    rows.append(dict(row))
    return row


def drop_middle(rows: list[Row], random: Random) -> Row:
    """Remove a window of a committed partition that has one before and one after it."""
    row = random.choice([each for each in inner(rows) if each["committed_offset"] is not None])
    rows.remove(row)
    return row


def drop_newest(rows: list[Row], random: Random) -> Row:
    """Remove the newest windows of a committed partition that lives."""
    end = max(row["window_end"] for row in rows)
    row = random.choice(
        [
            each
            for each in inner(rows)
            if each["committed_offset"] is not None and has(rows, each, end)
        ]
    )
    rows[:] = [
        each
        for each in rows
        if key_of(each) != key_of(row) or each["window_start"] < row["window_start"]
    ]
    return row


def has(rows: list[Row], row: Row, end: datetime) -> bool:
    return any(each["window_end"] == end and key_of(each) == key_of(row) for each in rows)


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("group", "topic", "topic_id", "partition"))


def inner(rows: list[Row]) -> Iterator[Row]:
    """Windows that follow one with a committed offset, and that another one follows."""
    ends = {
        (*key_of(row), row["window_end"]) for row in rows if row["committed_offset"] is not None
    }
    begins = {(*key_of(row), row["window_start"]) for row in rows}
    for row in rows:
        if (*key_of(row), row["window_start"]) in ends and (
            *key_of(row),
            row["window_end"],
        ) in begins:
            yield row


def move(name: str) -> Edit:
    """Add to what moved in a window that follows another one."""

    def edit(rows: list[Row], random: Random) -> Row:
        row = random.choice([each for each in inner(rows) if each[name] is not None])
        row[name] += 1
        return row

    return edit


def fall(rows: list[Row], random: Random) -> Row:
    """Let less than nothing be produced in the first window, which has none before it to compare
    with.
    """
    first = min(row["window_start"] for row in rows)
    row = random.choice([row for row in rows if row["window_start"] == first])
    row["produced"] = -1
    return row


def commit_back(rows: list[Row], random: Random) -> Row:
    """Let a window name a record of the offsets topic before that of the window before it."""
    row = random.choice([each for each in inner(rows) if (each["commit_source_offset"] or 0) > 0])
    row["commit_source_offset"] = -1
    return row


def count_twice(rows: list[Row], random: Random) -> Row:
    """Let the sums of a group hold a partition twice."""
    row = random.choice([row for row in rows if is_ok(row) and row["partitions_ok"]])
    row["lag"] = row["lag_known"] = 2 * row["lag"]
    row["partitions_total"] += 1
    row["partitions_ok"] += 1
    return row


def leave_out(rows: list[Row], random: Random) -> Row:
    """Let a batch begin after the end of the batch before it."""
    row = random.choice(rows[1:])
    row["source_from"] = {partition: offset + 1 for partition, offset in row["source_from"].items()}
    return row


def is_ok(row: Row) -> bool:
    return bool(row["status"] == "ok")


DAMAGES = {
    "a window twice": Damage("I1", "lag_windows", double),
    "a topic's window twice": Damage("I1", "topic_windows", double),
    "an event twice": Damage("I1", "group_events", double),
    "a partition twice": Damage("I1", "partition_status", double),
    "a group's window twice": Damage("I1", "group_windows", double, "evaluated"),
    "a window that is missing": Damage("I2", "lag_windows", drop_middle),
    "the newest windows that are missing": Damage("I2", "lag_windows", drop_newest),
    "records produced too many": Damage("I3", "lag_windows", move("produced")),
    "fewer records produced than none": Damage("I3", "lag_windows", fall),
    "fewer records of a topic produced than none": Damage("I3", "topic_windows", fall),
    "records consumed too many": Damage("I3", "lag_windows", move("consumed")),
    "a commit older than the one before": Damage("I4", "lag_windows", commit_back),
    "a commit that was not read": Damage(
        "I4",
        "lag_windows",
        add("commit_source_offset", 10**9, lambda row: row["commit_source_partition"] is not None),
    ),
    "a wrong lag": Damage("I5", "lag_windows", add("lag")),
    "a wrong lag of now": Damage("I5", "partition_status", add("lag")),
    "a lag of a partition that is not ok": Damage(
        "I5", "lag_windows", put("status", lambda _: "stale", is_ok)
    ),
    "an unknown lag of an ok partition": Damage(
        "I5", "lag_windows", put("lag", lambda _: None, is_ok)
    ),
    "a group's sum": Damage("I6", "group_history", late(add("lag_known"))),
    "a group's sum of now": Damage("I6", "group_status", add("lag_known")),
    "a group's partition that is counted twice": Damage("I6", "group_status", count_twice),
    "a group's partition that is not counted": Damage(
        "I6", "group_history", late(add("partitions_total", -1))
    ),
    "a group's largest lag": Damage("I6", "group_windows", add("lag_max"), "evaluated"),
    "a group's commits": Damage("I6", "group_windows", add("commits"), "evaluated"),
    "a group's lag though one is unknown": Damage(
        "I6", "group_history", late(put("lag", lambda _: None, is_ok))
    ),
    "a record that no count has": Damage("I7", "batches", add("records")),
    "records that no batch read": Damage("I7", "batches", leave_out),
    "more ahead than committed": Damage("I8", "lag_windows", add("ahead_records", 1)),
    "a wrong headroom": Damage("I8", "lag_windows", add("headroom_records", 1)),
    "a smallest lag above the largest": Damage("I8", "lag_windows", add("lag_min", 10**9)),
    "an offset below the log start that is ok": Damage(
        "I8",
        "partition_status",
        put("log_start_offset", lambda row: row["committed_offset"] + 1, is_ok),
    ),
}


@pytest.mark.examples
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]
)
@pytest.mark.parametrize("name", some(DAMAGES))
def test_a_wrong_row_is_found_and_named(
    name: str, seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    damage, key = DAMAGES[name], {}
    root = request.getfixturevalue(damage.root)
    change(
        root, tmp_path / "t", damage.table, lambda rows: key.update(damage.edit(rows, Random(seed)))
    )
    found = broken(audited(tmp_path / "t"))
    assert damage.code in found
    samples = found[damage.code].samples
    assert any(each.table == damage.table and names(each.key, key) for each in samples), (
        key,
        samples,
    )


def names(key: Mapping[str, Any], row: Row) -> bool:
    """True if the key of an example names this row; a record may be named by its batch and offsets
    partition.
    """
    row = row | {"offsets partition": next(iter(dict(row.get("source_from") or {})), None)}
    return all(row[name] == value for name, value in key.items())


def test_a_hole_is_excused_by_a_gap_or_by_the_deletion_of_its_offset(
    simulated: Path, tmp_path: Path
) -> None:
    gone: Row = {}
    change(
        simulated,
        tmp_path / "hole",
        "lag_windows",
        lambda rows: gone.update(drop_middle(rows, Random(4))),
    )
    assert set(broken(audited(tmp_path / "hole"))) >= {"I2"}
    begin, end = gone["window_start"], gone["window_end"]
    gap = {
        "kind": "gap",
        "gap_seq": 1,
        "gap_scope": "all",
        "gap_from": begin,
        "gap_to": end,
        "gap_reason": "job_down",
    }
    for name, table, row in (
        ("gap", "batches", gap),
        ("deleted", "group_events", {"kind": "offset_deleted", "event_at": begin} | place_of(gone)),
    ):
        change(tmp_path / "hole", tmp_path / name, table, partial(append_like_last, row=row))
        assert "I2" not in broken(audited(tmp_path / name)), name


def append_like_last(rows: list[Row], row: Row) -> None:
    rows.append(rows[-1] | row)


def place_of(row: Row) -> Row:
    return {name: row[name] for name in ("group", "topic", "partition")}


def test_a_deletion_of_another_partition_excuses_nothing(simulated: Path, tmp_path: Path) -> None:
    gone: Row = {}
    change(
        simulated,
        tmp_path / "hole",
        "lag_windows",
        lambda rows: gone.update(drop_middle(rows, Random(4))),
    )
    other = place_of(gone) | {
        "partition": gone["partition"] + 1,
        "kind": "offset_deleted",
        "event_at": gone["window_start"],
    }
    change(
        tmp_path / "hole",
        tmp_path / "other",
        "group_events",
        lambda rows: rows.append(rows[-1] | other),
    )
    assert "I2" in broken(audited(tmp_path / "other"))


def test_only_the_tables_that_were_asked_for_are_read(simulated: Path, tmp_path: Path) -> None:
    change(simulated, tmp_path / "t", "lag_windows", lambda rows: add("lag")(rows, Random(1)))
    assert broken(audited(tmp_path / "t", ("batches",))) == {}
    assert set(broken(audited(tmp_path / "t", ("lag_windows",)))) >= {"I5"}


def test_facts_that_are_no_violation_are_counted(simulated: Path) -> None:
    totals = audited(simulated).totals
    assert totals.batches > 10
    assert totals.records > 100
    assert totals.statuses["ok"] > 100
    assert totals.gaps == {}


def test_history_that_is_read_in_many_parts_gives_the_same(
    simulated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(simulated, tmp_path / "t", "lag_windows", lambda rows: drop_middle(rows, Random(4)))
    change(tmp_path / "t", tmp_path / "u", "group_events", lambda rows: double(rows, Random(4)))
    whole = audited(tmp_path / "u")
    monkeypatch.setattr(reader, "ROWS", 7)
    monkeypatch.setattr(tables, "HASHES", 5)
    parts = audited(tmp_path / "u")
    assert {"I1", "I2"} <= {*broken(whole)}
    assert parts.totals == whole.totals
    counts = {code: (tally.checked, tally.violations) for code, tally in whole.tallies.items()}
    assert {
        code: (tally.checked, tally.violations) for code, tally in parts.tallies.items()
    } == counts


def test_each_table_is_opened_once(simulated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a bucket that takes longer than to read some hours of it."""
    opened: list[str] = []

    def open_noted(root: str, name: str, version: int | None) -> DeltaTable:
        opened.append(name)
        return open_table(root, name, version)

    monkeypatch.setattr(reader, "open_table", open_noted)
    audited(simulated)
    assert sorted(opened) == sorted({*opened})
    assert len(opened) > 5
