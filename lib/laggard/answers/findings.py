"""Findings that are open, and those that ended since a moment."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from laggard.answers.evaluated import REPEATED_WITHIN, SEVERITIES, rank, read_findings
from laggard.answers.reading import Row, is_asked, made_lines
from laggard.answers.text.diagnosis_words import evidence_words, where
from laggard.answers.text.times import When
from laggard.answers.text.words import aligned, moment, short
from laggard.tables.evaluated import newest_evaluated
from laggard.tables.schema.schemas import FINDINGS

_EVIDENCE = 3  # numbers and names of a line
CLUSTER = "(cluster)"  # in the place of a group


@dataclass(frozen=True, slots=True)
class Found:
    """Findings that were open or ended since a moment, in the order of reading."""

    polled_at: datetime
    evaluated_to: datetime | None  # end of the newest window that the rules evaluated
    behind: int  # windows that have closed since
    rows: list[Row]


def read_found(root: str, polled_at: datetime, window: timedelta, from_when: When) -> Found:
    """Return the newest row of each finding that is open, or ended since a moment."""
    start = newest_evaluated(root)
    evaluated_to = None if start is None else start + window
    # what is open has a row of the last hour before the rules' newest window, which may be long ago
    since = from_when(polled_at)
    rows = (
        []
        if evaluated_to is None
        else read_findings(root, min(since, evaluated_to - REPEATED_WITHIN), evaluated_to)
    )
    rows = [row for row in rows if row["event"] != "closed" or row["at"] >= since]
    ranked = sorted(made_lines(rows, FINDINGS.name, _ranked), key=lambda pair: pair[0])
    behind = int((polled_at - (evaluated_to or polled_at)) / window)
    return Found(polled_at, evaluated_to, behind, [row for _, row in ranked])


def _ranked(row: Row) -> tuple[tuple[object, ...], Row]:
    """Return a row with its sort key; raise an error if it cannot be shown."""
    aligned([cells(row)], [False] * len(cells(row)))
    if row["event"] == "closed":
        moment(row["closed_at"])
    return order(row), row


def cells(row: Row) -> tuple[str, ...]:
    """Return the finding in words, in the order of the table's columns."""
    return (
        moment(row["started_at"]),
        row["severity"],
        row["role"],
        row["code"],
        CLUSTER if row["group"] is None else short(row["group"]),
        where(row) or "-",
        f"{row['confidence']:.2f}",
        evidence_words(row, _EVIDENCE) or "-",
    )


def is_wanted(row: Row, args: Namespace) -> bool:
    """Return True if the options ask for this row."""
    return (
        (args.all or row["role"] != "suppressed")
        and is_asked(row, args.group)
        and (args.code is None or fnmatchcase(row["code"], args.code.upper()))
        and (args.severity is None or row["severity"] == args.severity)
        and not (args.open and row["event"] == "closed")
    )


def order(row: Row) -> tuple[object, ...]:
    """Open ones by severity, group and role; then those that ended, the newest first."""
    if row["event"] == "closed":
        return (1, -row["closed_at"].timestamp(), row["finding_id"])
    severity = (
        SEVERITIES.index(row["severity"]) if row["severity"] in SEVERITIES else len(SEVERITIES)
    )
    return (0, severity, row["group"] or "", *rank(row))
