"""`laggard plan`: what it forecasts is what the verdict was found by, and a change of it follows
from arithmetic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cli.declared import data_of
from cli.evaluated_run import OPTIONS, evaluate, even, hot, record
from diagnosis.fluid import Fluid, Row
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE
from laggard.stream.evaluation.reading import read_history
from laggard.stream.evaluation.replay import memory_before

WINDOWS = 24
SHORT, HOT, CALM = "billing", "fraud", "calm"


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`billing`: 3 members of 1000 records/s, 3600 arrive; `fraud`: a hot partition; `calm`: never
    busy.
    """
    arrival = np.full((12, WINDOWS), 150.0)
    arrival[:, 5:] = 300.0
    short = Fluid(arrival, np.full((3, WINDOWS), 1000.0), group=SHORT)
    groups = [short, hot(WINDOWS, group=HOT), even(WINDOWS, arrival=900.0, group=CALM)]
    place = tmp_path_factory.mktemp("planned")
    record(place, groups)
    evaluate(place, 8)
    return place


def plan(root: Path, *words: str) -> int:
    return main(["plan", *words, "--set", f"job.tables={root}", "--set", "cluster.name=prod"])


def data(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert plan(root, *words, "--json") == OK
    found: dict[str, Any] = data_of("plan", capsys)
    return found


def newest(root: Path, group: str) -> Row:
    """The newest row of group_windows, by which `laggard explain` gives the verdict."""
    rows: list[Row] = DeltaTable(str(root / "group_windows")).to_pyarrow_table().to_pylist()
    row = max((row for row in rows if row["group"] == group), key=lambda row: row["window_start"])
    return row | {"scale_reason": dict(row["scale_reason"])}


@pytest.mark.parametrize("group", [SHORT, HOT, CALM])
def test_a_plan_of_todays_members_agrees_with_the_verdict(
    root: Path, capsys: pytest.CaptureFixture[str], group: str
) -> None:
    found, row = data(root, capsys, group), newest(root, group)
    assert (found["verdict"], found["members_desired"]) == (
        row["scale_verdict"],
        row["members_desired"],
    )
    assert found["now"] == found["then"]
    assert found["capacity_rate"]["value"] == row["scale_reason"].get("capacity_rate")


def test_a_plan_of_the_members_to_have_drains_as_the_verdict_says(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = newest(root, SHORT)
    found = data(root, capsys, SHORT, "--members", str(row["members_desired"]))
    reason = row["scale_reason"]
    assert row["scale_verdict"].startswith("YES")
    seconds = found["then"]["drain_seconds"]["value"] / reason["drain_at_desired_seconds"]
    assert 1 <= seconds <= 1.1  # the verdict counts what was unread at the newest commits
    assert plan(root, SHORT) == OK
    assert "begins with what was unread at the newest commits" in " ".join(
        capsys.readouterr().out.split()
    )
    assert found["cost"]["moved_partitions"]["value"] == reason["moved_partitions"]


def test_twice_the_members_have_half_the_load(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(root, capsys, SHORT, "--members", "6")
    assert found["now"]["largest_rate"] == pytest.approx(1200, rel=0.03)
    assert found["then"]["largest_rate"] == pytest.approx(600, rel=0.03)
    assert [len(each["partitions"]) for each in found["then"]["loads"]] == [2] * 6
    drain, lag = found["then"]["drain_seconds"], sum(each["lag"] for each in found["then"]["loads"])
    assert drain["value"] == pytest.approx(lag / 6 / (1000 - 600), rel=0.1)
    assert drain["p10"] <= drain["value"] <= drain["p90"]


def test_a_sticky_assignor_may_pair_partitions_otherwise(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def gaps(*words: str) -> set[str]:
        return {each["code"] for each in data(root, capsys, SHORT, *words)["not_known"]}

    # two members get three of 12
    assert "pairing_unknown" in gaps("--assignor", "sticky", "--members", "5")
    assert "pairing_unknown" not in gaps("--assignor", "sticky", "--members", "6") | gaps(
        "--members", "5"
    )


def test_the_rate_is_a_factor(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(root, capsys, SHORT, "--members", "6", "--rate", "×1.5")
    assert found["then"]["largest_rate"] == pytest.approx(900, rel=0.03)
    assert found["members_desired"] == 12


def test_more_members_than_partitions_idle(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(root, capsys, SHORT, "--members", "15")
    assert (found["then"]["idle_members"], len(found["then"]["loads"])) == (3, 12)


def test_no_number_of_members_drains_a_hot_partition(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(root, capsys, HOT, "--members", "12", "--sweep")
    assert found["hot_partitions"] == [{"topic": "orders", "partition": 7}]
    assert {each["drain_seconds"]["value"] for each in found["sweep"]} == {"Infinity"}
    assert plan(root, HOT, "--members", "12") == OK
    assert "orders-7. No number of members" in " ".join(capsys.readouterr().out.split())


def test_a_capacity_that_was_never_seen_is_unknown(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(root, capsys, CALM, "--members", "2")
    assert found["then"]["drain_seconds"] == {"value": None, "p10": None, "p90": None}
    assert "capacity_unknown" in {each["code"] for each in found["not_known"]}
    assert data(root, capsys, CALM, "--partitions", "24")["then"]["drain_seconds"]["value"] is None
    assert found["then"]["largest_rate"] == pytest.approx(450, rel=0.03)


def test_the_cost_is_unknown_without_a_recorded_rebalance(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(root, capsys, SHORT, "--members", "6")
    assert found["cost"]["pause_max_seconds"]["value"] is None
    assert "pauses_unknown" in {each["code"] for each in found["not_known"]}
    assert data(root, capsys, SHORT)["cost"]["rebalances"] == 0


def test_more_partitions_share_what_arrives(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = data(root, capsys, SHORT, "--members", "24", "--partitions", "24")
    assert found["then"]["largest_rate"] == pytest.approx(150, rel=0.03)
    assert (found["then"]["idle_members"], found["members_ceiling"]) == (0, 24)


@pytest.mark.full
def test_the_sweep_marks_the_members_to_have(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(root, SHORT, "--sweep") == OK
    page = capsys.readouterr().out
    lines = [
        line
        for line in page.splitlines()
        if "members to have" in line and line.lstrip()[0].isdigit()
    ]
    assert [int(line.split()[0]) for line in lines] == [newest(root, SHORT)["members_desired"]]


def test_a_plan_reads_no_row_of_another_group(root: Path) -> None:
    begin_ms = round(newest(root, SHORT)["window_start"].timestamp() * 1000)
    tables = read_history(str(root), {}, begin_ms, begin_ms, OPTIONS, SHORT)
    read = {
        name: pa.Table.from_batches(rows.to_batches(), rows.schema) for name, rows in tables.items()
    }
    of_group = {
        name: set(rows["group"].to_pylist())
        for name, rows in read.items()
        if "group" in rows.schema.names
    }
    assert {
        "lag_windows",
        "group_history",
        "generations",
        "group_members",
        "places",
    } <= of_group.keys()
    assert set().union(*of_group.values()) == {SHORT}
    assert set(memory_before(str(root), begin_ms, SHORT).memories) == {SHORT}


def test_a_group_that_is_not_there_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(root, "biling") == NOT_FOUND
    assert SHORT in capsys.readouterr().err


def test_before_the_first_evaluated_window_the_advice_is_to_wait_so_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [even(3, group=CALM)])
    assert plan(tmp_path, CALM) == TEMPORARY
    said = capsys.readouterr().err
    assert "the rules have evaluated no window yet" in said
    assert "fix: ask again in 2 m" in said
    assert "--at" not in said
    assert plan(tmp_path, CALM, "--at", "2026-11-20T12:03:06") == TEMPORARY
    assert "fix: ask for a later moment" in capsys.readouterr().err


def test_while_the_rules_are_behind_the_advice_is_a_moment_that_they_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [even(WINDOWS, group=CALM)])
    evaluate(tmp_path, 8, 11)
    assert plan(tmp_path, CALM) == TEMPORARY
    assert "--at 2026-11-20T12:12:00" in capsys.readouterr().err  # the end of window 11


@pytest.mark.parametrize("words", [("--partitions", "12"), ("--partitions", "6")])
def test_partitions_are_only_added(root: Path, words: tuple[str, ...]) -> None:
    assert plan(root, SHORT, *words) == USAGE


@pytest.mark.parametrize(
    "words", [("--topic", "nosuch"), ("--members", "10001"), ("--assignor", "uniform")]
)
def test_what_cannot_be_is_refused(root: Path, words: tuple[str, ...]) -> None:
    try:
        found = plan(root, SHORT, *words)
    except SystemExit as stopped:
        found = int(stopped.code or 0)
    assert found == USAGE


def test_with_a_hot_partition_another_rate_has_no_members_to_have(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data(root, capsys, HOT, "--rate", "1.0001")["members_desired"] is None


def test_a_sweep_has_each_number_up_to_the_ceiling(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(root, capsys, SHORT, "--members", "500", "--sweep")
    assert [each["members"] for each in found["sweep"]] == [*range(1, 14), 500]
