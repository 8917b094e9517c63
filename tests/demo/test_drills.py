"""Drills on a real broker with real consumers: the diagnosis names the trouble, and nothing of the
group beside it.
"""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from laggard.tables.readers import open_table, read_table

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.e2e]
TIME_LIMIT_SECONDS = 600
TABLES = ("group_windows", "findings", "finding_state", "lag_windows", "group_history")
Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One drill: the page at its end, the job's log, and the rows of its tables."""

    exit_code: int
    page: str
    log: list[str]
    rows: dict[str, list[Row]]

    def newest_window(self, group: str) -> Row:
        """The last window of the group that was evaluated."""
        return max(
            (row for row in self.rows["group_windows"] if row["group"] == group),
            key=lambda row: row["window_start"],
        )

    def opened(self, group: str, code: str) -> Row:
        """The first row of the group's finding with this code."""
        found = [
            row for row in self.rows["findings"] if (row["group"], row["code"]) == (group, code)
        ]
        return min(found, key=lambda row: row["at"])


def run_drill(folder: Path, drill: str) -> Outcome:
    options = ["--scenario", drill, "--work", str(folder), "--listen", "127.0.0.1:0"]
    command = [sys.executable, "-m", "laggard", "demo", *options]
    with (folder / "printed").open("w") as out, (folder / "notes").open("w") as notes:
        done = subprocess.run(
            command, stdout=out, stderr=notes, timeout=TIME_LIMIT_SECONDS, check=False
        )
    printed, log = (folder / "printed").read_text(), (folder / "job.log").read_text()
    print((folder / "notes").read_text(), printed.rpartition("At the end:")[2], log)
    root = str(folder / "tables")
    rows = {
        name: read_table(root, name, open_table(root, name).version()).to_pylist()
        for name in TABLES
    }
    return Outcome(
        done.returncode, printed.rpartition("\nlaggard explain ")[2], log.splitlines(), rows
    )


@pytest.fixture(
    scope="module",
    params=[
        "stuck-member",
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("hot-key", "slow-group")),
    ],
)
def outcome(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Outcome]:
    return request.param, run_drill(tmp_path_factory.mktemp(request.param), request.param)


def test_the_diagnosis_names_the_trouble_and_what_not_to_do(outcome: tuple[str, Outcome]) -> None:
    drill, seen = outcome
    newest = seen.newest_window("billing")
    code, verdicts = {
        "stuck-member": ("PARTITION_STALLED", {"NO_STALLED"}),
        "hot-key": ("HOT_PARTITION_ARRIVAL", {"NO_HOT_PARTITION"}),
        "slow-group": ("CAPACITY_SHORTAGE", {"YES", "YES_PARTIAL"}),
    }[drill]
    assert (seen.exit_code, newest["primary_code"]) == (0, code)
    assert newest["scale_verdict"] in verdicts


def test_the_finding_and_the_page_name_the_place(outcome: tuple[str, Outcome]) -> None:
    drill, seen = outcome
    if drill == "stuck-member":
        found = seen.opened("billing", "PARTITION_STALLED")
        # all partitions of a member that stand together are one finding, about the member
        assert (found["scope"], found["partitions"]) == ("member", [])
        owned = [row for row in seen.rows["lag_windows"] if row["slot"] == found["subject"]]
        assert {row["group"] for row in owned} == {"billing"}
        assert found["subject"].split("/")[0] in seen.page
    elif drill == "hot-key":
        found = seen.opened("billing", "HOT_PARTITION_ARRIVAL")
        assert (found["topic"], found["partitions"]) == ("orders", [4])
        assert "orders-4" in seen.page
    else:
        found = seen.opened("billing", "CAPACITY_SHORTAGE")
        # 60 records/s arrive, two members handle 20 each
        evidence = dict(found["evidence"])
        assert evidence["arrival_rate"] == pytest.approx(60, rel=0.1)
        assert evidence["consume_rate"] == pytest.approx(40, rel=0.2)


def test_the_healthy_group_beside_it_is_left_alone(outcome: tuple[str, Outcome]) -> None:
    _, seen = outcome
    assert [
        row["code"]
        for row in seen.rows["findings"]
        if row["group"] == "checkout" and row["severity"] != "info"
    ] == []
    assert seen.newest_window("checkout")["scale_verdict"] == "NOT_NEEDED"


def test_every_window_is_evaluated_once_and_remembered(outcome: tuple[str, Outcome]) -> None:
    _, seen = outcome
    times = Counter(
        (row["group"], row["topic"], row["window_start"]) for row in seen.rows["group_windows"]
    )
    assert set(times.values()) == {1}
    evaluated = {row["window_start"] for row in seen.rows["group_windows"]}
    remembered = {row["window_start"] for row in seen.rows["finding_state"]}
    # a window that lasts, by the stop
    cut_off = {start for start in evaluated if start > max(remembered)}
    evaluated -= cut_off
    assert len(cut_off) <= 1
    assert (evaluated - remembered, max(remembered)) == (set(), max(evaluated))
    closed = {row["window_start"] for row in seen.rows["group_history"]}
    assert {start for start in closed if min(evaluated) <= start <= max(evaluated)} == evaluated
    # as when a stop interrupts a window
    assert [line for line in seen.log if "StackOverflow" in line] == []
    assert [row["subject"] for row in seen.rows["findings"] if row["code"] == "RULE_FAILED"] == []
