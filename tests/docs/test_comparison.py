"""The page that compares says of each tool when it was read, and links to what shows a claim about
laggard.
"""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ")
]
READ = [row for row in ROWS if len(row) == 4][1:]
CLAIMS = [row for row in ROWS if len(row) == 8 and row[1] != "laggard"]


def test_every_other_tool_is_read_at_a_commit_and_a_date() -> None:
    assert [row[0] for row in READ[1:]] == re.findall(
        r"^\| \| laggard \| (.+) \|$", PAGE, re.MULTILINE
    )[0].split(" | ")
    for pattern in (r"`[0-9a-f]{7}`", r"\b20\d\d-\d\d-\d\d\b"):
        assert [row[0] for row in READ[1:] if not re.search(pattern, row[1])] == []


def test_every_claim_about_laggard_links_to_what_shows_it() -> None:
    assert len(CLAIMS) > 20
    assert [row[0] for row in CLAIMS if row[1] != "–" and "](" not in row[1]] == []


def test_every_row_has_a_cell_for_each_tool() -> None:
    assert {len(row) for row in ROWS} == {4, 8}
