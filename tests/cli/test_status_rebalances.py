"""`laggard status --rebalances`: how often each group rebalanced, and what the last one was."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from cli.group_rows import publish, rebalance_row
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK
from tables.fixtures import NOW, Row, group_row

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def counted(name: str, ratio: float | None, last: timedelta | None, **counts: int) -> Row:
    at = None if last is None else NOW - last
    return group_row(
        name, time_in_rebalance_ratio=ratio, last_rebalance_at=at, rebalances_total=counts
    )


def write(root: Path) -> None:
    """Two storms, a calm group, one that never rebalanced, and the row of an older job."""
    rows = {
        "calm": rebalance_row(
            NOW - 50 * HOUR, group="calm", cause="member_join", pause_max_seconds=None, moved=None
        ),
        "earlier": rebalance_row(NOW - 51 * HOUR, group="calm", cause="assignor_change"),
        "storm": rebalance_row(NOW - HOUR, group="storm", rebalance_seconds=0.5),
        "same time": rebalance_row(
            NOW - HOUR, group="calm", cause="leader_rejoin", date=(NOW - 50 * HOUR).date()
        ),
        "newer storm": rebalance_row(NOW, group="newer storm", rebalance_seconds=None, avoidable=0),
    }
    groups = [
        group_row("older job"),
        counted("never", 0.0, None),
        counted("calm", 0.0, 50 * HOUR, member_join=1, assignor_change=2),
        counted("storm", 0.25, HOUR, member_left=40),
        counted("newer storm", 0.25, timedelta(0), member_left=7),
    ]
    publish(root, {"group_status": groups, "rebalances": rows.values()})


def show(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["status", "--rebalances", *words, "--set", f"job.tables={root}"]) == OK
    return capsys.readouterr().out


def test_most_time_in_rebalance_comes_first_then_the_newest_and_unknown_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    title, *lines = show(tmp_path, capsys).splitlines()
    assert title == "prod: batch 42, 2026-11-20 12:00:00 UTC, 5 groups"
    assert [re.split(" {2,}", line) for line in lines] == [
        [
            "GROUP",
            "REBALANCES",
            "LAST END",
            "CAUSE",
            "TOOK",
            "LONGEST PAUSE",
            "MOVED",
            "AVOIDABLE",
            "LAST 10 MIN",
        ],
        [
            "newer storm",
            "7",
            "2026-11-20 12:00:00 UTC",
            "member_left",
            "unknown",
            "8 s",
            "3",
            "0",
            "25.0 %",
        ],
        [
            "storm",
            "40",
            "2026-11-20 11:00:00 UTC",
            "member_left",
            "about 0.5 s",
            "8 s",
            "3",
            "1",
            "25.0 %",
        ],
        [
            "calm",
            "3",
            "2026-11-18 10:00:00 UTC",
            "member_join",
            "about 4 s",
            "unknown",
            "unknown",
            "1",
            "0.0 %",
        ],
        ["never", "0", "-", "-", "-", "-", "-", "-", "0.0 %"],
        ["older job", *["unknown"] * 8],
    ]


@pytest.mark.parametrize(
    ("seconds", "low", "high", "text"),
    [
        (2.5, 2.5, 2.5, "2.5 s"),
        (4.0, 30, 1, "about 4 s"),
        (0.02, 30, 0.01, "probably less than 0.1 s"),
        (0.02, 0.04, 0.01, "less than 0.1 s"),
        (1.0, 30, 1, "≥ 1 s"),
        (0.01, 30, 0.01, "unknown"),
        (None, None, None, "unknown"),
    ],
)
def test_how_long_it_took_is_exact_an_estimate_a_lower_bound_or_unknown(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    seconds: float | None,
    low: float | None,
    high: float | None,
    text: str,
) -> None:
    times = {"started_low": low, "started_high": high}
    begin = {
        name: None if each is None else NOW - timedelta(seconds=each)
        for name, each in times.items()
    }
    row = rebalance_row(NOW, group="g", rebalance_seconds=seconds, **begin)
    publish(
        tmp_path,
        {"group_status": [counted("g", 0.0, timedelta(0), member_left=1)], "rebalances": [row]},
    )
    assert re.split(" {2,}", show(tmp_path, capsys).splitlines()[2])[4] == text


def test_the_data_have_exact_numbers_and_nulls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    answer = json.loads(show(tmp_path, capsys, "--json", "--limit", "1"))
    assert answer["data"]["data_timestamp"] == NOW.isoformat()
    (group,) = answer["data"]["groups"]
    assert (group["group"], group["rebalances"]) == (
        "newer storm",
        {
            "rebalances": 7,
            "rebalancing_since": None,
            "last_rebalance_at": NOW.isoformat(),
            "cause": "member_left",
            "rebalance_seconds": None,
            "least_seconds": 1.0,
            "most_seconds": 30.0,
            "pause_max_seconds": 8.0,
            "moved": 3,
            "avoidable": 0,
            "time_in_rebalance_ratio": 0.25,
        },
    )


def test_groups_are_chosen_and_counted_as_in_the_plain_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    lines = show(tmp_path, capsys, "--group", "*storm", "--limit", "1").splitlines()
    assert (len(lines), lines[-1]) == (4, "… and 1 more")
    assert (
        main(["status", "--rebalances", "--group", "nobody", "--set", f"job.tables={tmp_path}"])
        == NOT_FOUND
    )


def test_old_numbers_come_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert main(["status", "--rebalances", "--set", f"job.tables={tmp_path}"]) == OK
    assert "old: does the job run?" in capsys.readouterr().err


def test_only_the_dates_on_which_a_rebalance_ended_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    (unread,) = (tmp_path / "rebalances" / f"date={(NOW - 51 * HOUR).date()}").glob("*.parquet")
    expected = show(tmp_path, capsys, "--group", "*storm")
    unread.write_bytes(b"not a Parquet file")
    assert show(tmp_path, capsys, "--group", "*storm") == expected
