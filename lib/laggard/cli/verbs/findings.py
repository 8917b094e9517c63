"""`laggard findings`: what the rules found, the open ones first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from laggard.answers.document import name_of
from laggard.answers.evaluated import (
    SEVERITIES,
    open_findings,
)
from laggard.answers.findings import cells
from laggard.answers.reading import Row
from laggard.answers.text.times import HELP, at_time, when
from laggard.answers.text.words import UNKNOWN, moment
from laggard.cli.asking.client import add_options
from laggard.cli.asking.documents import document_of, print_json, refuse_no_group, rendering
from laggard.cli.fail_on import FAIL_ON, exit_code
from laggard.cli.parser import accept_spans
from laggard.cli.text import terminal
from laggard.cli.text.table import Table
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.errors import NOT_FOUND, LaggardError, hint
from laggard.escape import printable
from laggard.tables.freshness import MAX_WINDOWS_BEHIND
from laggard.tables.schema.schemas import FINDINGS

if TYPE_CHECKING:
    from laggard.config import Config

_TITLES = ("SINCE", "SEVERITY", "ROLE", "CODE", "GROUP", "WHERE", "CONFIDENCE", "EVIDENCE")
_LEAST = ("CONFIDENCE", "ROLE", "EVIDENCE", "WHY", "SINCE")
_RIGHT = {"CONFIDENCE"}
_TIMES = (
    "evaluated_to",
    *(column.name for column in FINDINGS.columns if column.type == "timestamp"),
)


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
    group = None if args.group == "*" else args.group
    state = "open" if args.open else None
    document = document_of(
        args,
        config,
        "findings",
        group=group,
        code=args.code,
        severity=args.severity,
        state=state,
        since=args.since.text,
        suppressed="true" if args.all else None,
    )
    with rendering(args):
        rows = [_row(row) for row in document["findings"]]
        evaluated = _row(document["evaluated"][0])
        tables = finding_tables(rows, evaluated["evaluated_to"], evaluated["windows_behind"])
        is_known = True
        is_unseen = group is not None and not rows
        if args.fail_on or is_unseen:
            groups = document_of(args, config, "groups", group=group)["groups"]
            is_known = any(row["health"] != UNKNOWN for row in groups)
    if is_unseen:
        refuse_no_group(args, config, groups)
    _refuse_unknown_code(args.code, rows)
    if args.json:
        print_json(document)
    else:
        terminal.show(tables, no_color=args.no_color)
    return exit_code(rows, args.fail_on, is_known=is_known)


def _row(row: Row) -> Row:
    """Return a row of the document with its names and times as the tables have them."""
    names = {name: name_of(row, name) for name in ("cluster", "group") if name in row}
    times = {name: at_time(row[name]) for name in _TIMES if row.get(name) is not None}
    return row | names | times


def _refuse_unknown_code(code: str | None, rows: Sequence[Row]) -> None:
    """Raise an error for a code that neither a rule nor a recorded finding has: it is mistyped."""
    known = {*BY_CODE, *(row["code"] for row in rows)}
    if code is not None and not any(fnmatchcase(name, code.upper()) for name in known):
        raise LaggardError(
            f'no rule has the code "{printable(code)}"',
            cause=hint(code.upper(), known).removeprefix("; "),
            fix="laggard findings --all, or see docs/diagnosis.md for all codes",
            exit_code=NOT_FOUND,
        )


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
        Table(sentence, _TITLES if is_open else (), [*map(cells, is_open)], _RIGHT, least=_LEAST)
    ]
    if ended:
        ended_cells = [
            (moment(row["closed_at"]), row["close_reason"] or "-", *cells(row)) for row in ended
        ]
        tables += [Table("", ("ENDED", "WHY", *_TITLES), ended_cells, _RIGHT, least=_LEAST)]
    return tables
