"""--from and --to of `laggard query`: what they leave of each table, and the gaps that an answer
crosses.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK, USAGE
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import TABLES
from questions.kit import at, finding, rebalance, window, write_tables
from questions.view_rows import GAP
from tables.fixtures import batch_row, group_row

Capture = pytest.CaptureFixture[str]
GAP_SAID = (
    "1 gap without observation in this range: 2026-11-20 10:00:00 UTC to 2026-11-20 10:30:00 UTC "
    "(job_down)"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Windows around a gap from 10:00 to 10:30, and a page that opened long before
    the newest tick.
    """
    folder: Path = tmp_path_factory.mktemp("tables")
    minutes = (-180, -90, -4, -3, -2)
    tables = {
        "group_windows": [window(minute, lag=1) for minute in minutes],
        "rebalances": [rebalance(-3)],
        "findings": [finding(-200, "HOT_PARTITION", "g", severity="page")],
        "group_status": [group_row("g"), group_row("h", max_time_lag_seconds=90.0)],
    }
    write_tables(folder, tables)
    gap = batch_row(1, {}, polled_at=at(-30), **GAP)
    Writer(str(folder), "test").write(TABLES["batches"], to_arrow(TABLES["batches"], [gap]), 2)
    return folder


def call(root: Path, *words: str) -> int:
    return main(["--set", f"job.tables={root}", "query", "--format", "csv", *words])


def test_a_finding_that_opened_before_the_range_is_open_in_it(root: Path, capsys: Capture) -> None:
    sql = 'select "group", severity from worst_groups order by place limit 1'
    for words in ((), ("--from", "5m"), ("--from", "2h", "--to", "1h")):
        assert call(root, *words, sql) == OK
        assert capsys.readouterr().out.splitlines()[1] == "g,page"
    assert call(root, "--to", "2026-11-20T08:00", "select count(*) as n from findings") == OK
    assert capsys.readouterr().out.splitlines()[1] == "0"


@pytest.mark.parametrize(
    ("sql", "begin", "end", "expected"),
    [
        # of 11:56, 11:57 and 11:58
        ("select count(*) as n from group_windows", "11:56", "11:57", "1"),
        ("select count(*) as n from group_windows", "11:56", "11:58", "2"),
        ("select count(*) as n from rebalances", "11:56", "11:57", "1"),  # an event, at 11:57
    ],
)
def test_a_window_that_begins_at_the_end_is_not_read(
    root: Path, capsys: Capture, sql: str, begin: str, end: str, expected: str
) -> None:
    assert call(root, "--from", begin, "--to", end, sql) == OK
    assert capsys.readouterr().out.splitlines()[1] == expected


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("10:00", "11:00", 1),
        ("10:10", "10:20", 1),
        ("09:00", "10:00", 0),
        ("10:30", "12:00", 0),
        ("08:00", "12:00", 1),
    ],
)
def test_a_gap_is_in_the_ranges_that_it_lies_in(
    root: Path, capsys: Capture, begin: str, end: str, expected: int
) -> None:
    assert call(root, "--from", begin, "--to", end, "select reason from gaps") == OK
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 1 + expected
    assert ("1 gap without" in printed.err) == bool(expected)


def test_ticks_of_a_range_are_those_polled_in_it(root: Path, capsys: Capture) -> None:
    assert call(root, "--from", "1m", "select kind from batches") == OK
    assert capsys.readouterr().out.splitlines() == ["kind", "tick"]


@pytest.mark.parametrize(
    ("sql", "is_said"),
    [
        ("select avg(lag) as mean from group_windows", True),
        ("select windows from lag_hourly", True),
        ("select hour_start from lag_hourly where hour_start < '2026-11-20T11:00:00Z'", True),
        ("select date, hours from idle_capacity", True),
        (
            "select window_start from group_windows where window_start > '2026-11-20T11:00:00Z'",
            False,
        ),
        ("select * from worst_groups", False),
        ("select * from gaps", False),
        ("select * from group_status", False),
        ("select 1 as a", False),
    ],
)
def test_an_answer_says_which_gaps_its_tables_have(
    root: Path, capsys: Capture, sql: str, is_said: bool
) -> None:
    assert call(root, sql) == OK
    assert (GAP_SAID in capsys.readouterr().err) == is_said


@pytest.mark.parametrize("words", [("select 1 as a",), ("--name", "Q7")])
def test_a_range_that_ends_before_it_begins_is_refused(
    root: Path, capsys: Capture, words: tuple[str, ...]
) -> None:
    assert call(root, "--from", "2h", "--to", "3h", *words) == USAGE
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "laggard: the range ends before it begins"
    assert "2026-11-20 10:00:00 UTC" in said[1]
    assert "2026-11-20 09:00:00 UTC" in said[1]


def test_an_empty_view_says_that_the_range_ends_before_its_rows(
    root: Path, capsys: Capture
) -> None:
    assert (
        call(root, "--from", "2019-01-01", "--to", "2019-01-02", "select * from lag_hourly") == OK
    )
    assert "ends before the first row of group_windows, of 2026-11-20" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["GROUP_STATUS", "Worst_Groups"])
def test_a_name_in_capitals_brings_ours(root: Path, capsys: Capture, name: str) -> None:
    assert call(root, f"select * FROM {name}") == NOT_FOUND  # noqa: S608 - names of this test
    assert f"near names: {name.lower()}" in capsys.readouterr().err
