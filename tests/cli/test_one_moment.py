"""A page gives one lag per group and topic: that of its tick, in one form; a window's stands
nowhere beside it.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from cli.group_rows import LAGS, group, members, partitions, rebalance_row
from laggard.cli.main import main
from laggard.errors import OK
from tables.fixtures import (
    NOW,
    Row,
    batch_row,
    finding_row,
    partition_row,
    window_row,
    write_evaluated,
    write_rows,
)

IN_WINDOW = {  # a minute ago it was another lag
    "lag": 987_654, "lag_known": 987_654, "max_time_lag_seconds": 12_345.0, "partitions_total": 4,
    "partitions_material": 3, "top_partitions": [2], "time_lag_censored": False,
    "shape": "concentrated",
    "flags": [], "scale_reason": {}, "scale_verdict": "NO_HOT_PARTITION",
}  # fmt: skip
OF_WINDOW = ("987,654", "987654", "3 h 25 m", "12,345", "205 m")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(
    root: Path, topics: tuple[str, ...], rows: list[Row], windows: Row | None = None, **lag: float
) -> None:
    """A tick with these partitions, and what the rules made of the window before."""
    found = {
        "started_at": NOW - timedelta(minutes=9),
        "opened_at": NOW - timedelta(minutes=5),
        "rule": "D20",
    }
    found |= {
        "topic": "orders",
        "partitions": [2],
        "evidence": {},
        "evidence_text": {},
        "guards": {},
    }
    write_evaluated(
        root,
        windows=[window_row("checkout", topic, **IN_WINDOW | (windows or {})) for topic in topics],
        findings=[finding_row("HOT_PARTITION_ARRIVAL", "checkout", falsifier="it falls", **found)],
    )
    tables = {
        "partition_status": rows,
        "group_status": [group(**lag)],
        "group_members": members(),
        "rebalances": [rebalance_row()],
        "topic_windows": [],
    }
    versions = {name: write_rows(root, name, each) for name, each in tables.items()}
    write_rows(root, "batches", [batch_row(42, versions)])


def printed(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--set", f"job.tables={root}"]) == OK
    return capsys.readouterr().out


def test_every_lag_on_the_pages_of_a_group_is_that_of_the_tick(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lags = [1000 * lag for lag in LAGS]
    rows = [
        partition_row("checkout", "orders", n, lag=lag, time_lag_seconds=lag / 10)
        for n, lag in enumerate(lags)
    ]
    oldest, total = max(lags) / 10, sum(lags)
    write(root, ("orders",), rows, lag=total, lag_known=total, max_time_lag_seconds=oldest)
    page = printed(root, capsys, "explain", "checkout")
    assert not [each for each in OF_WINDOW if each in page]
    behind = "15 h 16 m"  # 55,000 s
    assert page.startswith(f"checkout is {behind} behind mostly on one partition of 4")
    assert f"  {total:,} records in 4 partitions\n  oldest unread record: {behind} old\n" in page
    for lag in filter(None, lags):
        assert set(re.findall(rf"\b{lag:,}\b", page)), lag
        assert str(lag) not in page  # in one form only
    status_line = next(
        line for line in printed(root, capsys, "status").splitlines() if line.startswith("checkout")
    )
    assert f" {total:,} " in status_line
    assert f" {behind} " in status_line
    assert not [each for each in OF_WINDOW if each in status_line]
    data = json.loads(printed(root, capsys, "explain", "checkout", "--json"))["data"]
    assert data["diagnosis"]["headline"] in page.replace("\n", " ")


@pytest.mark.parametrize(
    ("raw", "place", "share"),
    [("spread", "on all 6 partitions", 100), ("mixed", "mostly on 5 partitions of 6", 83.3)],
)
def test_lag_that_is_equal_on_all_partitions_is_mostly_on_none_before_it_has_lasted(
    root: Path, capsys: pytest.CaptureFixture[str], raw: str, place: str, share: float
) -> None:
    rows = [
        partition_row("checkout", "orders", n, lag=100, time_lag_seconds=60.0) for n in range(6)
    ]
    windows = {
        "shape": "mixed",
        "partitions_total": 6,
        "partitions_material": 6,
        "top_partitions": [0, 1, 2, 3, 4],
    }
    write(
        root,
        ("orders",),
        rows,
        windows | {"shape_raw": raw},
        lag=600,
        lag_known=600,
        max_time_lag_seconds=60.0,
    )
    page = printed(root, capsys, "explain", "checkout")
    assert page.startswith(f"checkout is 1 m 00 s behind {place} ")
    assert ("spread over all partitions in this window" in page) is (raw == "spread")
    assert sum(map(float, re.findall(r"([\d.]+) %  +1 m 00 s", page))) == pytest.approx(
        share, abs=0.2
    )


def test_a_lag_that_is_gone_since_the_window_is_not_given_as_one_of_now(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [partition_row("checkout", "orders", n, committed_offset=1000) for n in range(4)]
    write(root, ("orders",), rows, lag=0, lag_known=0, max_time_lag_seconds=0.0)
    page = printed(root, capsys, "explain", "checkout")
    assert page.startswith(
        "checkout has nothing unread now; at 12:00:00 it lagged mostly on one partition of 4: "
    )
    assert not [each for each in OF_WINDOW if each in page]


def test_of_several_topics_the_first_line_names_the_one_that_is_furthest_behind_now(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        *partitions(),
        partition_row("checkout", "x", 0, committed_offset=0, time_lag_seconds=99.0),
    ]
    total = sum(LAGS) + 1000
    write(root, ("orders", "x"), rows, lag=total, lag_known=total, max_time_lag_seconds=99.0)
    page = printed(root, capsys, "explain", "checkout").replace("\n", " ")
    assert page.startswith(
        "checkout is 1 m 39 s behind mostly on one partition of 4 of x and growing"
    )
    assert f"orders: {sum(LAGS):,} records, growing" in page
    assert "x: 1,000 records, growing" in page
    assert not [each for each in OF_WINDOW if each in page]
