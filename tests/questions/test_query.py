"""What `laggard query` does beside SQL: files, values, ranges, near names, gaps, and why an answer
is empty.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from laggard.cli.main import main
from laggard.cli.verbs.query.output import number, replace_file
from laggard.cli.verbs.query.questions import fill_names
from laggard.cli.verbs.query.verb import run_query
from laggard.errors import NOT_FOUND, OK, USAGE
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import TABLES
from questions.kit import rebalance, window, write_tables
from questions.view_rows import GAP, tables
from tables.fixtures import NOW, batch_row, group_row

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of the last minutes, and a gap that began two hours ago."""
    folder: Path = tmp_path_factory.mktemp("tables")
    events = [rebalance(-1), rebalance(-300)]
    windows = [window(-180, lag=7), window(-2, lag=123_456, slope=0.0123456)]
    write_tables(
        folder,
        {"rebalances": events, "group_windows": windows, "group_status": [group_row("payments")]},
    )
    gap = to_arrow(TABLES["batches"], [batch_row(1, {}, **GAP)])
    Writer(str(folder), "test").write(TABLES["batches"], gap, 2)
    return folder


def call(root: Path, *words: str) -> int:
    return main(["--set", f"job.tables={root}", "query", *words])


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_the_name_of_the_file_says_the_format(
    root: Path, tmp_path: Path, capsys: Capture, kind: str
) -> None:
    path = tmp_path / f"rows.{kind}"
    assert (
        call(root, "-o", str(path), 'select "group", lag, slope from group_windows order by lag')
        == OK
    )
    assert capsys.readouterr().out == ""
    read = {
        "parquet": lambda: pq.read_table(path).to_pylist(),
        "csv": lambda: [
            {
                "group": row["group"],
                "lag": int(row["lag"]),
                "slope": float(row["slope"]) if row["slope"] else None,
            }
            for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        ],
        "json": lambda: json.loads(path.read_text(encoding="utf-8"))["data"],
    }
    assert read[kind]() == [
        {"group": "g", "lag": 7, "slope": None},
        {"group": "g", "lag": 123_456, "slope": 0.0123456},
    ]
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ((), "a\n1\n"),
        (("--format", "csv"), "a\n1\n"),
        (("--format", "json"), '"data"'),
        (("--json",), '"data"'),
    ],
)
def test_a_dash_is_standard_output(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    words: tuple[str, ...],
    printed: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(root, *words, "-o", "-", "select 1 as a") == OK
    found = capsys.readouterr().out
    assert found == printed if found.startswith("a") else json.loads(found)["data"] == [{"a": 1}]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_parquet_goes_to_a_pipe_and_not_to_a_terminal(root: Path, tmp_path: Path) -> None:
    words = ["--format", "parquet", "-o", "-", "select 1 as a"]
    command = [sys.executable, "-m", "laggard", "--set", f"job.tables={root}", "query", *words]
    done = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    assert pq.read_table(pa.BufferReader(done.stdout)).to_pylist() == [{"a": 1}]
    controller, terminal = os.openpty()
    refused = subprocess.run(
        command, stdout=terminal, stderr=subprocess.PIPE, check=False, text=True, cwd=tmp_path
    )
    os.close(terminal)
    os.close(controller)
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        USAGE,
        "laggard: Parquet is not shown on a terminal",
    )


def test_a_file_that_cannot_be_written_is_said(root: Path, tmp_path: Path, capsys: Capture) -> None:
    assert call(root, "-o", str(tmp_path / "none" / "rows.csv"), "select 1 as a") == NOT_FOUND
    assert capsys.readouterr().err.splitlines()[0].startswith("laggard: cannot write")


def test_a_file_that_was_written_is_said_beside_the_answer(
    root: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = str(tmp_path / "rows.csv")
    for words in ((), ("--json",)):
        assert call(root, *words, "-o", path, "select 1 as a union all select 2") == OK
        printed = capsys.readouterr()
        assert printed.err.splitlines() == [f"wrote {path}: 2 rows"]
        assert bool(printed.out) == bool(words)
    assert call(root, "-q", "-o", path, "select 1 as a") == OK
    assert capsys.readouterr().err == ""


def test_infinity_is_a_text_in_json(root: Path, capsys: Capture) -> None:
    assert call(root, "--json", "select cast('inf' as double) as drain_seconds") == OK
    printed = capsys.readouterr().out
    assert json.loads(printed)["data"] == [{"drain_seconds": "Infinity"}]


def test_times_and_durations_in_json_are_those_of_the_other_verbs(
    root: Path, capsys: Capture
) -> None:
    sql = (
        "select max(polled_at) as at, max(date) as day, make_array(max(polled_at)) as list,"
        " max(polled_at) - (max(polled_at) - interval '90 minutes') as span from batches"
    )
    assert call(root, "--json", sql) == OK
    [row] = json.loads(capsys.readouterr().out)["data"]
    at, day = NOW.isoformat(), NOW.date().isoformat()
    assert row == {"at": at, "day": day, "span": 5400.0, "list": [at]}


def test_numbers_of_a_table_can_be_read_and_names_stay(root: Path, capsys: Capture) -> None:
    assert (
        call(
            root,
            "select lag, slope, 123456 as batch_id, 1234 as n from group_windows order by lag "
            "desc limit 1",
        )
        == OK
    )
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "123,456",
        "0.0123",
        "123456",
        "1,234",
    ]
    assert [number(value) for value in (12.0, 12.3456, 12345.678, 0.5, -0.00012345,
    float("-inf"))] == [
        "12.0", "12.346", "12,345.7", "0.5", "-0.000123", "-infinity",
    ]  # fmt: skip


@pytest.mark.parametrize("group", ["g", "it's", "' or 1=1 --"])
def test_a_value_is_a_value_whatever_it_looks_like(root: Path, capsys: Capture, group: str) -> None:
    sql = "select :group as name, 1 as n where :least < 2"
    assert (
        call(root, "--format", "csv", "--param", f"group={group}", "--param", "least=1", sql) == OK
    )
    assert next(csv.reader(capsys.readouterr().out.splitlines()[1:])) == [group, "1"]


def test_a_range_narrows_the_tables_of_history_and_not_those_of_now(
    root: Path, capsys: Capture
) -> None:
    counted = (
        "select (select count(*) from group_windows) as n, (select count(*) from group_status) as g"
    )
    for words, expected in (
        ((), "2,1"),
        (("--from", "1h"), "1,1"),
        (("--from", "4h", "--to", "-2h"), "1,1"),
    ):
        assert call(root, "--format", "csv", *words, counted) == OK
        assert capsys.readouterr().out.splitlines()[1] == expected
    assert (
        call(
            root,
            "--format",
            "csv",
            "--from",
            "1h",
            "select count(*) as n from rebalances where ended_at > :from",
        )
        == OK
    )
    assert capsys.readouterr().out.splitlines()[1] == "1"


def test_show_tables_and_describe_say_what_there_is(root: Path, capsys: Capture) -> None:
    assert call(root, "--format", "csv", "SHOW TABLES;") == OK
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert {row["kind"] for row in rows} == {"table", "view"}
    assert len(rows) == len(TABLES) + 11
    assert call(root, "--format", "csv", "describe lag_windows") == OK
    described = csv.DictReader(capsys.readouterr().out.splitlines())
    assert tuple(row["column"] for row in described) == TABLES["lag_windows"].names


@pytest.mark.parametrize(
    ("sql", "code", "what", "cause"),
    [
        ("select * from lag_window", NOT_FOUND, 'no table "lag_window"', "near names: lag_windows"),
        (
            "select grup from group_status",
            USAGE,
            'no column "grup" in group_status',
            "near names: group",
        ),
        ("select lagg from slo_daily", USAGE, 'no column "lagg" in slo_daily', ""),
        (
            "select moved from group_status",
            USAGE,
            'no column "moved" in group_status',
            "a column of rebalances",
        ),
        ("describe group_statu", NOT_FOUND, 'no table "group_statu"', "near names: group_status"),
    ],
)
def test_a_name_that_is_not_there_brings_near_ones(
    root: Path, capsys: Capture, sql: str, code: int, what: str, cause: str
) -> None:
    assert call(root, sql) == code
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"laggard: {what}"
    assert cause in said[1]
    assert said[2].startswith("fix: laggard query")


def test_an_answer_over_a_gap_says_so(root: Path, capsys: Capture) -> None:
    said = (
        "1 gap without observation in this range: 2026-11-20 10:00:00 UTC to 2026-11-20 10:30:00 "
        "UTC (job_down)"
    )
    for words in (
        ("--name", "Q7"),
        ("--from", "3h", "select 1 as a"),
        ("select window_start from group_windows",),
    ):
        assert call(root, *words) == OK
        assert said in capsys.readouterr().err
    for words in (
        ("--name", "Q7", "--from", "1h"),
        ("select count(*) as n from group_status",),
        ("-q", "--name", "Q7"),
    ):
        assert call(root, *words) == OK
        assert "gap" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("select * from group_status where \"group\" = 'paymnts'",), 'no group "paymnts"'),
        (
            ("--from", "2026-01-01", "--to", "2026-01-02", "select * from rebalances"),
            "older ones are not kept",
        ),
        (
            ("--from", "2026-12-01", "select * from rebalances"),
            "begins after the newest row of rebalances, of 2026-11-20",
        ),
        (
            ("--from", "2h", "--to", "-100m", "select * from rebalances"),
            "1 gap without observation in this range",
        ),
        (("select * from findings",), "findings has no rows yet"),
        (("select * from rebalances where moved > 5",), "no row meets the conditions"),
    ],
)
def test_an_empty_answer_says_why(
    root: Path, capsys: Capture, words: tuple[str, ...], said: str
) -> None:
    assert call(root, *words) == OK
    assert said in capsys.readouterr().err


def test_a_question_about_a_group_that_is_not_there_is_refused(root: Path, capsys: Capture) -> None:
    assert call(root, "--name", "Q7", "--param", "group=paymens") == NOT_FOUND
    assert capsys.readouterr().err.splitlines()[:2] == [
        'laggard: no group "paymens"',
        "cause: near names: payments",
    ]


def test_a_view_reads_only_the_range(root: Path) -> None:
    assert "lag_hourly" not in tables()
    assert run_query(
        str(root), "select windows from lag_hourly order by hour_start"
    ).to_pylist() == [
        {"windows": 1},
        {"windows": 1},
    ]


@pytest.mark.parametrize("kind", ["table", "csv", "json"])
def test_two_columns_of_one_name_are_refused(root: Path, capsys: Capture, kind: str) -> None:
    sql = 'select a."group", b."group" from group_status a join group_status b on true'
    assert call(root, "--format", kind, sql) == USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith('laggard: two columns are named "group"')


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(root: Path, tmp_path: Path) -> None:
    path, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    path.touch(0o600)
    link.symlink_to(path.name)
    assert call(root, "-o", str(link), "select 1 as a") == OK
    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == "a\n1\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {path.name, link.name}


def test_a_pipe_is_written_to(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert call(root, "-o", str(path), "select 1 as a") == OK
    assert os.read(end, 99) == b"a\n1\n"
    os.close(end)
    assert path.is_fifo()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-o", "", "select 1 as a"), USAGE, "-o names no file"),
        (("--format", "csv", "-o", ".", "select 1 as a"), NOT_FOUND, "cannot write ."),
        (
            ("-o", "rows.parquet", "select interval '1' month as a"),
            USAGE,
            "parquet cannot hold these rows",
        ),
    ],
)
def test_what_cannot_be_saved_says_why(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture,
    words: tuple[str, ...], code: int,
    said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert call(root, *words) == code
    assert capsys.readouterr().err.startswith(f"laggard: {said}")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(unfinished: Path) -> None:
        unfinished.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    path = tmp_path / "rows.csv"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, interrupted)
    assert {each.name: each.read_text(encoding="utf-8") for each in tmp_path.iterdir()} == {
        "rows.csv": "before"
    }


@pytest.mark.parametrize(
    ("sql", "value", "filled"),
    [
        ("select :g as x", "007", "select '007' as x"),
        ("select :g as x", "1" * 22, f"select '{'1' * 22}' as x"),
        ("lag > :g", "42", "lag > 42"),
        ("limit :g", "5", "limit 5"),
        ('"group" = :g', "42", "\"group\" = '42'"),
        (':g = a."group"', "42", "'42' = a.\"group\""),
        ('a."group" in (:g)', "42", "a.\"group\" in ('42')"),
        ("topic <> :g", "3", "topic <> '3'"),
    ],
)
def test_what_is_compared_with_a_name_is_a_name(sql: str, value: str, filled: str) -> None:
    assert fill_names(sql, {"g": value}, NOW) == filled


def test_a_group_named_42_can_be_asked_for(root: Path, capsys: Capture) -> None:
    assert call(root, "--param", "g=42", 'select * from group_status where "group" = :g') == OK
    assert 'no group "42"' in capsys.readouterr().err


def test_a_text_that_is_no_number_is_no_damage(root: Path, capsys: Capture) -> None:
    assert call(root, 'select * from group_status where "group" = 42') == USAGE
    said = capsys.readouterr().err
    assert said.startswith("laggard: the query failed")
    assert "doctor" not in said


@pytest.mark.parametrize(
    "sql",
    [
        "explain analyze copy (select 1 as a) to '{}'",
        "EXPLAIN (ANALYZE) copy (select 1 as a) to '{}'",
        "explain/* */ analyze -- x\n copy (select 1 as a) to '{}'",
        "copy (select 1 as a) to '{}'",
    ],
)
def test_a_query_writes_no_file(root: Path, tmp_path: Path, capsys: Capture, sql: str) -> None:
    path = tmp_path / "copied.csv"
    assert call(root, sql.format(path)) == USAGE
    assert capsys.readouterr().err.startswith("laggard: only queries that read are allowed")
    assert not path.exists()


@pytest.mark.parametrize(
    "sql", ["explain analyze select 1 as a", "-- a comment\n/* one more */ (select 1 as a)"]
)
def test_a_query_that_reads_is_answered(root: Path, sql: str) -> None:
    assert call(root, sql) == OK
