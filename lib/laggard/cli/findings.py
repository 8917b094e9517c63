"""`laggard findings`: what the rules found, the open ones first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from laggard.answers.evaluated import (
    SEVERITIES,
    is_any_known,
    open_findings,
)
from laggard.answers.findings import cells, is_wanted, read_found, to_data
from laggard.answers.reading import Row, published_batch, read_where, refuse_empty
from laggard.answers.text.times import HELP, when
from laggard.answers.text.words import moment
from laggard.cli.asking.client import add_options
from laggard.cli.fail_on import FAIL_ON, exit_code
from laggard.cli.parser import accept_spans
from laggard.cli.text import terminal
from laggard.cli.text.table import Table
from laggard.cli.text.terminal import warn_if_old
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.errors import NOT_FOUND, LaggardError, hint
from laggard.escape import printable, printable_json
from laggard.tables.freshness import MAX_WINDOWS_BEHIND
from laggard.tables.schema.schemas import GROUP_STATUS

if TYPE_CHECKING:
    from laggard.config import Config

_TITLES = ("SINCE", "SEVERITY", "ROLE", "CODE", "GROUP", "WHERE", "CONFIDENCE", "EVIDENCE")
_LEAST = ("CONFIDENCE", "ROLE", "EVIDENCE", "WHY", "SINCE")
_RIGHT = {"CONFIDENCE"}


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
        Table(sentence, _TITLES if is_open else (), [*map(cells, is_open)], _RIGHT, least=_LEAST)
    ]
    if ended:
        ended_cells = [
            (moment(row["closed_at"]), row["close_reason"] or "-", *cells(row)) for row in ended
        ]
        tables += [Table("", ("ENDED", "WHY", *_TITLES), ended_cells, _RIGHT, least=_LEAST)]
    return tables
