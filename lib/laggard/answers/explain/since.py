"""Findings of a group since a moment, for `laggard explain --since`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pyarrow.dataset import field

from laggard.answers.evaluated import names_group, newest_rows, read_rows_of_findings
from laggard.answers.explain.diagnosis import title
from laggard.answers.explain.rows import Explained
from laggard.answers.reading import Row
from laggard.answers.text.diagnosis_words import says
from laggard.answers.text.words import moment, paragraph
from laggard.errors import USAGE, LaggardError


def read_past(root: str, group: str, since: datetime, until: datetime) -> list[Row]:
    """Return the newest row of each finding that opened or ended in the range.

    Suppressed findings are included; the order is by time of opening.
    """
    if since > until:
        raise LaggardError(
            f"nothing lies between {moment(since)} and {moment(until)}",
            cause="--since is later than the end of the page's time",
            fix="laggard explain GROUP --since 2h",
            exit_code=USAGE,
        )
    mine = (field("group") == group) | field("group").is_null()
    rows = newest_rows(read_rows_of_findings(root, since, until, mine))
    past = [row for row in rows if row["group"] == group or names_group(row, group)]
    past = [row for row in past if row["opened_at"] >= since or row["event"] == "closed"]
    return sorted(past, key=lambda row: (row["opened_at"], row["code"], row["finding_id"]))


def since_section(explained: Explained) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield the section's title and lines, if --since was given."""
    if explained.past is not None and explained.since is not None:
        yield f"Since {moment(explained.since)}", _lines(explained.past)


def _lines(findings: list[Row]) -> Iterator[str]:
    shown = [row for row in findings if row["role"] != "suppressed"]
    if not shown:
        yield "  nothing was found"
    for row in shown:
        ended = f"ended {moment(row['closed_at'])}: " if row["event"] == "closed" else ""
        yield from paragraph(
            f"{moment(row['opened_at'])}, {ended or 'open: '}{says(row)} {title(row)}"
        )
    if len(shown) < len(findings):
        yield f"  - {len(findings) - len(shown)} more, explained by these: laggard findings --all"
