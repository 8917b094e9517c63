"""One odd row costs its own group's line or page only, in every verb: what the others show is the
same, byte for byte.

Each table in turn holds a group for each odd value of each of its columns, in the newest row of
that group.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cli.evaluated_run import MINUTE, evaluate, hot, record
from cli.group_rows import rebalance_row
from diagnosis.fluid import NOON
from laggard.cli.main import main
from laggard.errors import DAMAGED, INTERNAL, NOT_FOUND, OK
from laggard.tables.arrow import arrow_schema, to_arrow
from laggard.tables.data_files import DataFile
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import TABLES
from tables.fixtures import batch_row, make_root, write_rows
from tables.odd import odd_arrays

WINDOWS = 13
SOUND, MODEL = "sound", "model"
END = NOON + WINDOWS * MINUTE
POLLED_AT = END + timedelta(seconds=5)
UNTOUCHED = {"batches", "dead_letters"}  # of no group
OF_A_GROUP = sorted(
    name for name, table in TABLES.items() if "group" in table.names and name not in UNTOUCHED
)
# the rules do not read them
SHOWN_ONLY = {"partition_status", "group_status", "group_windows", "findings"}
NAMED = "odd {}"
Tables = dict[str, pa.Table]


def _marks(name: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if name in ("group_status", "findings") else (pytest.mark.nightly,)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Every table of two groups with the same history: a hot partition, findings, a rebalance,
    events, a deploy.
    """
    root = tmp_path_factory.mktemp("history")
    events = [_event(group) for group in (SOUND, MODEL)]
    record(root, [hot(WINDOWS, group) for group in (SOUND, MODEL)], events)
    ended_at = END - 5 * MINUTE
    rows = [rebalance_row(ended_at, group=group) for group in (SOUND, MODEL)]
    write_rows(root, "rebalances", rows)
    for name in ("deploys", "scale_events"):
        write_rows(root, name, [_of_members(name, group) for group in (SOUND, MODEL)])
    evaluate(root, 6)
    found = {
        name: DeltaTable(str(root / name))
        .to_pyarrow_table()
        .select(TABLES[name].names)
        .cast(arrow_schema(TABLES[name]))
        for name in TABLES
        if name != "batches" and (root / name).exists()
    }
    counted = {"rebalances_total": {"member_left": 1}, "last_rebalance_at": ended_at}
    found["group_status"] = to_arrow(
        TABLES["group_status"],
        [row | counted for row in found["group_status"].to_pylist(maps_as_pydicts="strict")],
    )
    return found


def _event(group: str) -> dict[str, Any]:
    return {
        "date": NOON.date(), "cluster": "prod", "group": group, "event_id": "e", "status": "ok",
        "batch_id": 101,
        "event_at": END - 3 * MINUTE, "kind": "offset_skip", "topic": "orders", "partition": 3,
        "from_offset": 5,
        "to_offset": 1005, "records": 1000,
    }  # fmt: skip


def _of_members(name: str, group: str) -> dict[str, Any]:
    at = END - 4 * MINUTE
    times = {column.name: at for column in TABLES[name].columns if column.type == "timestamp"}
    return times | {
        "date": at.date(),
        "cluster": "prod",
        "group": group,
        "status": "ok",
        "batch_id": 102,
    }


def _renamed(rows: pa.Table, name: str) -> pa.Table:
    return rows.set_column(
        rows.column_names.index("group"), "group", pa.array([name] * len(rows), pa.string())
    )


def odd_tables(history: Tables, name: str) -> tuple[Tables, list[str]]:
    """The tables with a group for each odd value of one table, in its newest row; and which column
    group k has odd.
    """
    model = {
        each: rows.filter(pc.equal(rows["group"], MODEL))
        for each, rows in history.items()
        if each in OF_A_GROUP
    }
    time = TABLES[name].time_column
    odd: list[pa.Table] = []
    columns = []
    mine = model[name].sort_by([(time, "descending")]) if time else model[name]
    for index, column in enumerate(mine.column_names):
        if column in ("date", "cluster") or (name, column) == ("group_history", "batch_id"):
            continue  # which batch closed a window is read from the rows of all groups
        for value in odd_arrays(mine.schema.field(column).type):
            rows = _renamed(mine, NAMED.format(len(columns)))
            rest = rows[column].combine_chunks().slice(1)
            odd.append(
                rows.set_column(index, rows.schema.field(index), pa.chunked_array([value, rest]))
            )
            columns.append(column)
    names = [NAMED.format(number) for number in range(len(columns))]
    found = {}
    for each, rows in history.items():
        sound = (
            rows
            if each not in OF_A_GROUP
            else rows.filter(pc.fill_null(pc.not_equal(rows["group"], MODEL), fill_value=True))
        )
        if each in OF_A_GROUP:
            more = odd if each == name else [_renamed(model[each], group) for group in names]
            half = len(more) // 2  # rows may come before and after
            sound = pa.concat_tables([*more[:half], sound, *more[half:]])
        found[each] = sound
    return found, columns


def write(root: Path, tables: Tables, polled_at: datetime) -> Path:
    """Publish the tables as one batch, in files without statistics: delta-rs' writer ends the
    process over some.
    """
    make_root(root)
    writer = Writer(str(root), "odd")
    versions = {}
    for name, rows in tables.items():
        files = [_data_file(root / name, rows, date) for date in _dates(rows, name)]
        versions[name] = writer.commit(TABLES[name], files, 1)
    write_rows(root, "batches", [batch_row(1000, versions, polled_at)])
    return root


def _dates(rows: pa.Table, name: str) -> list[Any]:
    return [None] if TABLES[name].overwritten else pc.unique(rows["date"]).to_pylist()


def _data_file(place: Path, rows: pa.Table, date: Any) -> DataFile:
    path = "part.parquet" if date is None else f"date={date}/part.parquet"
    if date is not None:
        rows = rows.filter(pc.equal(rows["date"], pa.scalar(date))).drop_columns("date")
    (place / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, place / path, write_statistics=False, store_schema=False)
    stats = json.dumps({"numRecords": len(rows)})
    return DataFile(
        path, (place / path).stat().st_size, {} if date is None else {"date": str(date)}, 0, stats
    )


def run(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words, "--set", f'job.tables="{root}"'])
    shown = capsys.readouterr()
    assert code != INTERNAL, f"{' '.join(words)}: {shown.err}"
    assert "Traceback" not in shown.err
    return code, shown.out, shown.err


def sound_output(
    root: Path, capsys: pytest.CaptureFixture[str], *, with_diagnose: bool
) -> dict[str, Any]:
    """What each verb says of the sound group."""

    def data(*words: str) -> Any:
        code, out, err = run(root, capsys, *words, "--json")
        assert code == OK, f"{' '.join(words)}: {err}"
        return json.loads(out, parse_constant=pytest.fail)["data"]

    def of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for row in rows if row["group"] == SOUND]

    found = {
        "status": of(data("status")["groups"]),
        "rebalances": of(data("status", "--rebalances")["groups"]),
        "findings": of(data("findings", "--all")["findings"]),
    }
    for words in ([], ["--at", "-2m"], ["--since", "-10m"], ["--topic", "orders"]):
        found[f"explain {words}"] = data("explain", SOUND, *words)
        found[f"page {words}"] = run(root, capsys, "explain", SOUND, *words)[1]
    if with_diagnose:
        found["diagnose"] = of(data("diagnose", "--from", "-2m", "--to", "-0s")["findings"])
    for words in (["status"], ["status", "--rebalances"], ["findings"]):
        assert run(root, capsys, *words)[0] == OK
    return found


@pytest.fixture(scope="module")
def expected(history: Tables, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("sound"), history, POLLED_AT)


@pytest.mark.full
@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in OF_A_GROUP])
def test_what_is_said_of_a_sound_group_is_the_same(
    history: Tables, expected: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, _ = odd_tables(history, name)
    root = write(tmp_path / "odd", tables, POLLED_AT)
    is_read = name not in SHOWN_ONLY
    found = sound_output(root, capsys, with_diagnose=is_read)
    wanted = sound_output(expected, capsys, with_diagnose=is_read)
    for verb in wanted:
        assert found[verb] == wanted[verb], verb


@pytest.mark.full
@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in OF_A_GROUP])
def test_the_page_of_an_odd_group_ends_with_a_name(
    history: Tables, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, columns = odd_tables(history, name)
    root = write(tmp_path / "odd", tables, POLLED_AT)
    # the last value of each column
    chosen = {column: number for number, column in enumerate(columns)}
    chosen |= {f"{column} null": columns.index(column) for column in columns}
    for what, number in chosen.items():
        for words in ([], ["--at", "-2m"]):
            code, _, err = run(root, capsys, "explain", NAMED.format(number), *words)
            assert code in (OK, NOT_FOUND, DAMAGED), f"{what}: {err}"
