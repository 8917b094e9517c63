"""`laggard findings`: what the rules found, the open ones first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from laggard.cli.api.client import add_options
from laggard.cli.parser import hint
from laggard.cli.status.evaluated import (
    FAIL_ON,
    REPEATED_WITHIN,
    SEVERITIES,
    exit_code,
    is_any_known,
    open_findings,
    rank,
    read_findings,
)
from laggard.cli.status.published import (
    Row,
    is_asked,
    made_lines,
    published_batch,
    read_where,
    refuse_empty,
    warn_if_old,
)
from laggard.cli.text import terminal
from laggard.cli.text.diagnosis_words import evidence_words, where
from laggard.cli.text.table import Table
from laggard.cli.text.times import HELP, When, accept_spans, when
from laggard.cli.text.words import aligned, moment, short
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.errors import NOT_FOUND, LaggardError
from laggard.escape import finite, printable, printable_json
from laggard.tables.evaluated import newest_evaluated
from laggard.tables.freshness import MAX_WINDOWS_BEHIND
from laggard.tables.schema.schemas import FINDINGS, GROUP_STATUS

if TYPE_CHECKING:
    from laggard.config import Config

_TITLES = ("SINCE", "SEVERITY", "ROLE", "CODE", "GROUP", "WHERE", "CONFIDENCE", "EVIDENCE")
_LEAST = ("CONFIDENCE", "ROLE", "EVIDENCE", "WHY", "SINCE")
_RIGHT = {"CONFIDENCE"}
_EVIDENCE = 3  # numbers and names of a line
CLUSTER = "(cluster)"  # in the place of a group


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "findings",
        help="what the rules found, the open ones first",
        description="Findings that are open, and those that ended in the last 24 hours, worst "
        "first.",
    )
    accept_spans(parser)
    parser.add_argument(
        "--group", metavar="GLOB", default="*", help="only groups whose name matches"
    )
    parser.add_argument("--code", metavar="CODE", help="only this code; * stands for any letters")
    parser.add_argument("--severity", choices=SEVERITIES, help="only this severity")
    parser.add_argument(
        "--since",
        type=when,
        metavar="TIME",
        default=when("24h"),
        help=f"also those that ended since then: {HELP} (default: 24h)",
    )
    parser.add_argument("--open", action="store_true", help="only those that are open")
    parser.add_argument("--all", action="store_true", help="also those that another one explains")
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help="exit with 1 if a listed one of this severity or a higher one is open",
    )
    add_options(parser)


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the findings; the exit code tells of open ones only when asked to."""
    batch = published_batch(config.job.tables)
    warn_if_old(batch, config)
    window = timedelta(seconds=config.job.window_seconds)
    found = read_found(config.job.tables, batch.polled_at, window, args.since)
    chosen = [row for row in found.rows if is_wanted(row, args)]
    refuse_unknown_code(args.code, found.rows)
    if not chosen and args.group != "*":
        rows = read_where(config.job.tables, batch, GROUP_STATUS.name, ("group",))
        _refuse_unknown_group(args.group, [*rows, *found.rows])
    if args.json:
        print(
            printable_json(
                {"v": 1, "ok": True, "data": to_data(replace(found, rows=chosen))},
                datetime.isoformat,
            )
        )
    else:
        terminal.show(
            finding_tables(chosen, found.evaluated_to, found.behind), no_color=args.no_color
        )
    is_known = is_any_known(
        config.job.tables, batch.polled_at, config.job.window_seconds, args.group
    )
    return exit_code(chosen, args.fail_on, is_known=is_known)


def _refuse_unknown_group(glob: str, rows: Sequence[Row]) -> None:
    names = [row["group"] for row in rows if row["group"] is not None]
    refuse_empty(glob, [name for name in names if fnmatchcase(name, glob)], names)


def refuse_unknown_code(code: str | None, rows: Sequence[Row]) -> None:
    """Raise an error for a code that neither a rule nor a recorded finding has: it is mistyped."""
    known = {*BY_CODE, *(row["code"] for row in rows)}
    if code is not None and not any(fnmatchcase(each, code.upper()) for each in known):
        raise LaggardError(
            f'no rule has the code "{printable(code)}"',
            cause=hint(code.upper(), known).removeprefix("; "),
            fix="laggard findings --all, or see docs/diagnosis.md for all codes",
            exit_code=NOT_FOUND,
        )


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
    ranked = sorted(made_lines(rows, FINDINGS.name, _ranked), key=lambda each: each[0])
    behind = int((polled_at - (evaluated_to or polled_at)) / window)
    return Found(polled_at, evaluated_to, behind, [row for _, row in ranked])


def to_data(found: Found) -> dict[str, object]:
    """Return the findings as `--json` prints them."""
    rows = [finite(row) for row in found.rows]
    return {"evaluated_to": found.evaluated_to, "polled_at": found.polled_at, "findings": rows}


def finding_lines(rows: Sequence[Row], evaluated_to: datetime | None, behind: int) -> list[str]:
    """Return the findings as text."""
    return [line for table in finding_tables(rows, evaluated_to, behind) for line in table.lines()]


def finding_tables(rows: Sequence[Row], evaluated_to: datetime | None, behind: int) -> list[Table]:
    """Return the time up to which rules were evaluated, and the open and the ended findings."""
    if evaluated_to is None:
        return [Table("the rules have not evaluated yet: what they would find is unknown")]
    late = (
        f", {behind} windows ago: what they would find since is unknown"
        if behind > MAX_WINDOWS_BEHIND
        else ""
    )
    is_open = open_findings(rows)
    ended = [row for row in rows if row["event"] == "closed"]
    sentence = f"evaluated to {moment(evaluated_to)}{late}; {len(is_open)} open, {len(ended)} ended"
    tables = [
        Table(sentence, _TITLES if is_open else (), [*map(_cells, is_open)], _RIGHT, least=_LEAST)
    ]
    if ended:
        cells = [
            (moment(row["closed_at"]), row["close_reason"] or "-", *_cells(row)) for row in ended
        ]
        tables += [Table("", ("ENDED", "WHY", *_TITLES), cells, _RIGHT, least=_LEAST)]
    return tables


def _ranked(row: Row) -> tuple[tuple[object, ...], Row]:
    """Return a row with its sort key; raise an error if it cannot be shown."""
    aligned([_cells(row)], [False] * len(_TITLES))
    if row["event"] == "closed":
        moment(row["closed_at"])
    return order(row), row


def _cells(row: Row) -> tuple[str, ...]:
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


def is_wanted(row: Row, args: argparse.Namespace) -> bool:
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
