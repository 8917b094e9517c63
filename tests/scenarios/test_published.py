"""The page has a summary of each long table, and the CSV beside it has the whole table."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.published import LONG, publish, read_rows, shorten, write_rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scenarios.md"
CODES = """\
| code | alarm | runs that must | precision | recall | delay | later than allowed | where not |
|---|:-:|--:|--:|--:|--:|--:|---|
| ARRIVAL_SKEW |  | 25 | 1.000 | 1.000 | 0, 0 | 0 |  |
| CAPACITY_SHORTAGE | yes | 375 | 1.000 | 1.000 | 8, 37 | 1 |  |
| REBALANCE_STORM | yes | 200 | 0.995 | 1.000 | 1, 1 | 0 | SC65 wrong 1 |
"""
SCENARIOS = """\
| scenario | | runs | clean | primary right | verdict right | with other members | instead |
|---|---|--:|--:|--:|--:|--:|---|
| SC01 | too much | 40 | 1.000 | 1.000 | 1.000 | 1.000 |  |
| SC02 | a burst | 200 | 0.995 | 0.990 | – | – | SLOW_MEMBER 2 |
"""
DRAWN = """\
## Clusters drawn at random

| what happens to the group | minutes | verdict right at once |
|---|--:|--:|
| hang | 20 | 0.900 |
| skew | 10 | 1.000 |

Most frequent wrong verdicts:

| in | minutes |
|---|--:|
| hang: UNKNOWN for YES | 2 |
"""


def test_codes_that_were_wrong_or_late_stay_on_the_page_and_all_are_rows() -> None:
    page, rows = shorten(CODES)
    assert "1 codes were always right and never late" in page
    assert "| CAPACITY_SHORTAGE | yes | 375 | 1.000 | 1.000 | 8, 37 | 1 |  |" in page
    assert "| REBALANCE_STORM | yes | 200 | 0.995" in page
    assert "ARRIVAL_SKEW" not in page
    assert ("by code", "ARRIVAL_SKEW", "runs that must", "25") in rows
    assert len(rows) == 3 * 7


def test_scenarios_are_summed_by_subject_and_those_below_1_are_named() -> None:
    page, rows = shorten(SCENARIOS)
    assert "| capacity | 2 | 240 | 239 |" in page
    assert (
        "- SC02, a burst: clean 0.995, primary right 0.990 of 200 runs; instead SLOW_MEMBER 2"
        in page
    )
    assert "SC01" not in page
    assert ("by scenario", "SC01", "says", "too much") in rows


def test_each_half_of_the_page_survives_the_other(tmp_path: Path) -> None:
    page = tmp_path / "scenarios.md"
    publish(page, f"# Scenarios\n\n{CODES}")
    publish(page, DRAWN)
    publish(page, f"# Scenarios\n\n{CODES.replace('375', '400')}")
    text = page.read_text(encoding="utf-8")
    assert "below 0.97 for 1 of 2: hang 0.900." in text
    assert "hang: UNKNOWN for YES (2 minutes)." in text
    assert "| 400 |" in text
    rows = read_rows(page.with_suffix(".csv").read_text(encoding="utf-8"))
    assert ("by code", "CAPACITY_SHORTAGE", "runs that must", "400") in rows
    assert ("drawn: by fault", "skew", "minutes", "10") in rows
    assert len(rows) == len(set(rows)) == 3 * 7 + 2 * 2 + 1


def test_rows_of_a_table_that_is_empty_now_are_removed(tmp_path: Path) -> None:
    page = tmp_path / "scenarios.md"
    publish(page, f"# Scenarios\n\n{CODES}")
    publish(page, "# Scenarios\n\n" + "\n".join(CODES.splitlines()[:2]) + "\n")
    assert read_rows(page.with_suffix(".csv").read_text(encoding="utf-8")) == []


def test_the_published_file_has_every_run_that_the_page_counts() -> None:
    text = PAGE.with_suffix(".csv").read_text(encoding="utf-8")
    rows = read_rows(text)
    assert write_rows(rows) == text
    assert {row[0] for row in rows} == set(LONG.values())
    runs = [int(value) for table, _, column, value in rows if (table, column) == LISTED]
    assert f"- {sum(runs)} runs of {len(runs)} scenarios" in PAGE.read_text(encoding="utf-8")


LISTED = ("by scenario", "runs")


@pytest.mark.parametrize("head", LONG)
def test_no_long_table_is_left_on_the_page(head: str) -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    tables = [number for number, line in enumerate(lines) if line.startswith(head)]
    for number in tables:
        rows = [line for line in lines[number : number + 31] if line.startswith("|")]
        assert len(rows) < 31
