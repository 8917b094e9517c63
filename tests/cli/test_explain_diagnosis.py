"""The diagnosis on the page of `laggard explain`, from histories that the code of the stream has
evaluated.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.declared import data_of
from cli.evaluated_run import evaluate, even, hot, record
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE

WINDOWS = 20


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`fraud` with a hot partition from 12:10 on, `billing` with too few members, `checkout`
    without trouble.
    """
    root = tmp_path_factory.mktemp("evaluated")
    record(
        root,
        [hot(WINDOWS), even(WINDOWS, 4000.0, group="billing"), even(WINDOWS, group="checkout")],
    )
    evaluate(root, 8)
    return root


def explain(root: Path, *words: str) -> int:
    return main(["explain", *words, "--set", f"job.tables={root}"])


def page(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, str]:
    """Section to its text on one line; under "" the lines before the first section."""
    assert explain(root, *words) == OK
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    first, *sections = text.split("\n\n")
    found = {"": " ".join(first.split("\n")[:-1])}
    for section in sections:
        title, *lines = section.splitlines()
        found[title] = " ".join(line.strip() for line in lines)
    return found


def data(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert explain(root, *words, "--json") == OK
    found: dict[str, Any] = data_of("explain", capsys)
    return found


def test_the_first_line_says_what_is_wrong_and_whether_consumers_help(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 10 minutes of 1500 arrivals/s against 1000 records/s of its owner: 150 records/s of the other
    # 3 come on top
    behind = data(evaluated, capsys, "fraud")["diagnosis"]["windows"][0]["max_time_lag_seconds"]
    minutes, seconds = divmod(int(behind), 60)
    assert page(evaluated, capsys, "fraud")[""] == (
        f"fraud is {minutes} m {seconds:02d} s behind mostly on one partition of 12 and growing:"
        " adding consumers would NOT help"
    )
    assert page(evaluated, capsys, "billing")[""].endswith(
        "behind on all 12 partitions and growing: adding consumers would help, 3 → 6"
    )


def test_the_cause_stands_with_its_evidence_and_with_what_would_prove_it_wrong(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = page(evaluated, capsys, "fraud")
    assert found["Cause"].startswith(
        "A few partitions get more records than one member can handle. HOT_PARTITION_ARRIVAL"
    )
    assert "on orders 7, warn, confidence 0.90, since 2026-11-20 12:1" in found["Cause"]
    # not 520, as when this was found: no member had been busy for long then
    assert "best capacity 1,000 records/s" in found["Cause"]
    assert (
        "Partitions, confidence, checks and names are of 2026-11-20 12:12:00 UTC, 8 m 00 s before"
        in found["Cause"]
    )
    assert found["Cause"].endswith("Wrong if an owner reads as much as arrives on one of them.")
    assert found["Do first"].startswith("1. Sample keys of these partitions")
    assert found["Mistakes to avoid"].startswith(
        "- Do not add consumers for these partitions: a partition has one owner per group."
    )
    assert "ASSIGNMENT_IMBALANCE" in found["Also found"]


def test_the_shape_names_the_partitions_that_carry_the_lag_and_who_reads_them(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partitions = {
        row["partition"]: row["lag"] for row in data(evaluated, capsys, "fraud")["partitions"]
    }
    share = 100 * partitions[7] / sum(partitions.values())
    found = page(evaluated, capsys, "fraud")["Shape"]
    assert "growing; concentrated: few partitions have most of it READ BY" in found
    assert re.search(rf"app on 10.0.0.1  7 +{partitions[7]:,}  {share:.1f} %  +\d m \d\d s$", found)
    # where it is spread, every reader has its line
    spread = page(evaluated, capsys, "billing")["Shape"]
    assert [
        re.search(rf"app on 10.0.0.{n}  {4 * n}-{4 * n + 3} ", spread) is not None for n in range(3)
    ] == [True] * 3


def test_the_verdict_stands_with_its_numbers(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hot_one = page(evaluated, capsys, "fraud")["Would more consumers help?"]
    assert hot_one.startswith("No: one partition gets 1,")
    assert "the best member does 1,000 records/s, and a partition has one owner." in hot_one
    # 6 do 6000 records/s, 2000 more than arrive; 20 m 20 s of 1000 records/s wait: within the 15
    # minutes wanted
    short = page(evaluated, capsys, "billing")["Would more consumers help?"]
    assert short.startswith("Yes: 3 → 6 members. Drain time with them: 10 m 10 s.")
    assert "Cost: one eager rebalance that moves 10 partitions." in short


def test_the_forecast_says_never_and_unknown(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert page(evaluated, capsys, "billing")["Forecast"] == (
        "orders: does not drain at the current rate; not even with every member at its capacity; "
        "whether retention takes unread records is unknown"
    )
    assert (
        "every member at its capacity" not in page(evaluated, capsys, "fraud")["Forecast"]
    )  # one partition, one owner
    assert (
        "When retention takes unread records (orders)"
        in page(evaluated, capsys, "billing")["Not known"]
    )


def test_a_group_without_trouble_has_no_section_of_the_diagnosis(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = page(evaluated, capsys, "checkout")
    assert found[""] == "checkout keeps up: nothing to do"
    assert {"Cause", "Shape", "Do first", "Forecast", "Would more consumers help?"}.isdisjoint(
        found
    )


def test_the_past_is_reported_as_it_was(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = page(evaluated, capsys, "fraud", "--at", "2026-11-20T12:09:59Z")
    assert found[""] == "fraud keeps up: nothing to do"
    then = data(evaluated, capsys, "fraud", "--at", "2026-11-20T12:12:30")
    # the newest window that had ended by then
    assert then["polled_at"] == "2026-11-20T12:12:00+00:00"
    assert then["diagnosis"]["evaluated_to"] == then["polled_at"]
    assert then["group"]["lag"] == sum(row["lag"] for row in then["partitions"])
    assert [row["code"] for row in then["diagnosis"]["findings"]] == ["HOT_PARTITION_ARRIVAL"]
    assert len(then["members"]) == 3
    now = data(evaluated, capsys, "fraud")
    assert now["group"]["lag"] > then["group"]["lag"]
    codes = [row["code"] for row in now["diagnosis"]["findings"]]
    assert codes == ["HOT_PARTITION_ARRIVAL", "ASSIGNMENT_IMBALANCE"]  # that came a minute later


def test_a_span_counts_back_from_the_newest_poll(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # polled at 12:20:05, so an 8 minutes earlier is 12:12:05
    assert (
        data(evaluated, capsys, "fraud", "--at", "-8m")["polled_at"] == "2026-11-20T12:12:00+00:00"
    )


@pytest.mark.parametrize("text", ["yesterday", "-2x", "-", "2026-13-01"])
def test_a_time_that_is_none_is_a_wrong_use(
    evaluated: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert explain(evaluated, "fraud", f"--at={text}") == USAGE
    assert "--at" in capsys.readouterr().err


def test_a_time_before_all_history_says_so(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(evaluated, "fraud", "--at", "2026-11-01T00:00") == NOT_FOUND
    assert (
        "nothing is recorded of the 24 hours before 2026-11-01 00:00:00 UTC"
        in capsys.readouterr().err
    )


def test_the_data_hold_what_the_page_says(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = data(evaluated, capsys, "billing")["diagnosis"]
    assert (found["verdict"], found["members_desired"], found["windows_behind"]) == ("YES", 6, 0)
    assert found["windows"][0]["drain_seconds"] == "Infinity"
    assert found["windows"][0]["loss_seconds"] is None
    (finding,) = found["findings"]
    assert found["primary_finding_id"] == finding["finding_id"]
    assert finding["advice"][0] == "Add members up to 6; never more than 12."
    assert page(evaluated, capsys, "billing")[""] == found["headline"]


def test_an_open_finding_changes_the_exit_code_only_when_asked(evaluated: Path) -> None:
    assert explain(evaluated, "fraud") == OK
    assert explain(evaluated, "fraud", "--fail-on", "page") == OK
    assert explain(evaluated, "fraud", "--fail-on", "warn") == 1
    assert explain(evaluated, "checkout", "--fail-on", "warn") == OK


def test_rules_that_have_not_evaluated_yet_are_not_guessed_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [hot(3)])
    found = page(tmp_path, capsys, "fraud")
    assert found[""].endswith("records behind; the rules have not evaluated yet")
    assert (
        found["Diagnosis"]
        == "The rules have not evaluated a window yet: shape, cause and verdict are unknown."
    )
    assert data(tmp_path, capsys, "fraud")["diagnosis"]["verdict"] is None
    assert explain(tmp_path, "fraud", "--fail-on", "warn") == TEMPORARY


def test_rules_that_are_behind_do_not_speak_of_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [hot(14)])
    evaluate(tmp_path, 7, 7)
    found = page(tmp_path, capsys, "fraud")
    assert found[""].endswith("records behind; the rules are 6 windows behind")
    assert found["Diagnosis"] == (
        "The rules have evaluated up to 2026-11-20 12:08:00 UTC, 6 windows ago: shape, cause and "
        "verdict of now are unknown. Those of then: laggard explain fraud --at 2026-11-20T12:08:00"
    )
    assert "Cause" not in found
    evaluate(tmp_path, 8, 8)
    # 5 windows are still reported
    assert data(tmp_path, capsys, "fraud")["diagnosis"]["is_current"] is True


def test_the_status_has_shape_and_verdict_of_the_newest_evaluated_window(
    evaluated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--set", f"job.tables={evaluated}"]) == OK
    _, titles, *lines = capsys.readouterr().out.splitlines()
    assert titles.split()[:4] == ["GROUP", "HEALTH", "FINDING", "VERDICT"]
    assert {line.split()[0]: (*line.split()[1:4], line.split()[-1]) for line in lines} == {
        "fraud": ("warn", "HOT_PARTITION_ARRIVAL", "NO_HOT_PARTITION", "concentrated"),
        "billing": ("warn", "CAPACITY_SHORTAGE", "YES", "spread"),
        "checkout": ("ok", "-", "NOT_NEEDED", "none"),
    }


def test_the_status_leaves_them_out_while_nothing_is_evaluated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, [hot(3)])
    assert main(["status", "--set", f"job.tables={tmp_path}"]) == OK
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == "DATA"
    assert main(["status", "--set", f"job.tables={tmp_path}", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["data"]["groups"][0]["verdict"] is None
