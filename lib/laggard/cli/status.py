"""`laggard status`: every group's state and lag now, worst first, from the newest batch."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from laggard.answers.document import name_of
from laggard.answers.groups import (
    SORTS,
    GroupLine,
    Healths,
    cells,
    group_lines,
)
from laggard.answers.reading import Row, title_of
from laggard.answers.text.times import at_time
from laggard.answers.text.words import UNKNOWN, count, moment
from laggard.cli import rebalance_table
from laggard.cli.asking.client import Document, add_options
from laggard.cli.asking.documents import document_of, print_json, refuse_no_group, rendering
from laggard.cli.fail_on import FAIL_ON, FOUND, at_least, unknown_code
from laggard.cli.text import terminal
from laggard.cli.text.table import Table
from laggard.errors import INTERRUPTED, OK, USAGE, LaggardError
from laggard.escape import escape_label, printable_lines
from laggard.exporter.snapshot import Snapshot

if TYPE_CHECKING:
    from laggard.config import Config

TITLES = (
    "GROUP", "HEALTH", "FINDING", "VERDICT", "STATE", "MEMBERS", "LAG", "TIME LAG",
    "WORST PARTITION", "GENERATION",
    "DATA", "SHAPE",
)  # fmt: skip
_OF_RULES = {"HEALTH", "FINDING", "VERDICT", "SHAPE"}
_LEAST = ("GENERATION", "SHAPE", "MEMBERS", "STATE", "DATA", "WORST PARTITION", "VERDICT")
_RIGHT = {"MEMBERS", "LAG", "TIME LAG", "GENERATION"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "status",
        help="state and lag of every group now",
        description="Groups, worst first, from the newest batch.",
    )
    parser.add_argument("--watch", action="store_true", help="show again every tick until Ctrl-C")
    parser.add_argument(
        "--group", metavar="GLOB", default="*", help="only groups whose name matches"
    )
    parser.add_argument(
        "--sort",
        choices=SORTS,
        default=SORTS[0],
        help="order (default: severity, then time lag); unknown comes last",
    )
    parser.add_argument(
        "--rebalances",
        action="store_true",
        help="rebalances of each group so far, and the last one, in place of lag",
    )
    parser.add_argument(
        "--limit",
        type=_limit,
        default=0,
        metavar="N",
        help="show at most N groups, the first (0: all)",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help="exit with 1 if a group has an open finding of this severity or a higher one",
    )
    add_options(parser)


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected a number, 0 or more, got {text!r}")
    return int(text)


def _refuse_pairs(args: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    if args.watch and args.json:
        raise LaggardError(
            "--watch and --json exclude each other",
            cause="the answer in JSON is one document",
            fix="laggard status --json, as often as you like",
            exit_code=USAGE,
        )
    if args.fail_on and (args.watch or args.rebalances):
        raise LaggardError(
            f"--fail-on and {'--watch' if args.watch else '--rebalances'} exclude each other",
            cause="it goes by the health of the groups at one time",
            fix=f"laggard status --fail-on {args.fail_on}",
            exit_code=USAGE,
        )
    if args.rebalances and args.sort != SORTS[0]:
        raise LaggardError(
            "--sort and --rebalances exclude each other",
            cause="rebalances have an order of their own: the group with most comes first",
            fix="laggard status --rebalances",
            exit_code=USAGE,
        )


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the table once, or every tick."""
    _refuse_pairs(args)
    if args.watch:
        try:
            terminal.watch(
                lambda: _read(args, config)[0], config.job.tick_seconds, no_color=args.no_color
            )
        except KeyboardInterrupt:
            return INTERRUPTED
    table, document = _read(args, config)
    severe = at_least(args.fail_on)
    # of all: the most severe may be beyond --limit
    healths = {group["health"] for group in document["groups"]}
    document["groups"] = document["groups"][: args.limit or None]
    if args.json:
        print_json(document)
    else:
        terminal.show([table], no_color=args.no_color)
    if healths.intersection(severe):
        return FOUND
    return OK if healths - {UNKNOWN} else unknown_code(args.fail_on)


def _read(args: argparse.Namespace, config: Config) -> tuple[Table, Document]:
    """Return the groups as a table and as a document."""
    group = None if args.group == "*" else args.group
    rebalances = "true" if args.rebalances else None
    document = document_of(
        args, config, "groups", group=group, sort=args.sort, rebalances=rebalances
    )
    found = document["groups"]
    refuse_no_group(args, config, found)
    with rendering(args):
        cluster = name_of(document["clusters"][0], "cluster")
        title = printable_lines(
            f"{escape_label(cluster)}: batch {document['batch_id']}, "
            f"{moment(at_time(document['data_timestamp']))}, {count(len(found), 'group')}"
        )
        if args.rebalances:
            shown = rebalance_table.lines_of(found)
            table = rebalance_table.table_of(title, shown, args.limit)
            by_name = {name_of(row, "group"): row for row in found}
            document["groups"] = [by_name[line.group] for line in shown]
        else:
            lines = [_line(row) for row in found]
            # a verdict of UNKNOWN_INPUT is an evaluation, too
            has_rules = any(line.health != UNKNOWN or line.verdict for line in lines)
            table = table_of(title, lines, args.limit, has_rules=has_rules)
        # of an answer that was tampered with
        rows = [[printable_lines(cell) for cell in cells] for cells in table.rows]
    return replace(table, rows=rows), document


def status_lines(
    snapshot: Snapshot, limit: int = 0, healths: Healths = MappingProxyType({})
) -> list[str]:
    """Return a title and a line per group, the worst first.

    The columns of the rules are left out if the rules have not evaluated.
    """
    groups = group_lines(snapshot, healths)
    return table_of(
        title_of(snapshot.batch, len(groups)), groups, limit, has_rules=bool(healths)
    ).lines()


def table_of(sentence: str, groups: Sequence[GroupLine], limit: int, *, has_rules: bool) -> Table:
    """Return the table of the groups, in the given order, below its sentence."""
    titles = [name for name in TITLES if has_rules or name not in _OF_RULES]
    if not has_rules:
        sentence += "; health and verdict unknown: the rules have not evaluated it"
    rows = [[cells(line)[name] for name in titles] for line in groups]
    return Table(sentence, titles, rows, _RIGHT, limit, [name for name in _LEAST if name in titles])


def _line(row: Row) -> GroupLine:
    worst = row["worst"]
    lag_is_exact, time_is_exact = row["lag"] is not None, row["time_lag_seconds"] is not None
    lag = row["lag"] if lag_is_exact else row["lag_known"]
    return GroupLine(
        group=name_of(row, "group"),
        state=row["state"],
        members=row["members"],
        lag=lag,
        lag_is_exact=lag_is_exact,
        time_lag_seconds=row["time_lag_known_seconds"],
        time_lag_is_exact=time_is_exact,
        worst_partition="" if worst is None else f"{name_of(worst, 'topic')}-{worst['partition']}",
        generation=row["generation"],
        status=row["status"],
        health=row["health"],
        finding=row["finding"],
        shape=row["shape"],
        verdict=row["scale_verdict"],
    )
