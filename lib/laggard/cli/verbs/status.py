"""`laggard status`: every group's state and lag now, worst first, from the newest batch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from laggard.answers.document import name_of
from laggard.answers.groups import SORTS, ClusterGroups, cells
from laggard.answers.reading import Row
from laggard.answers.rebalances import RebalanceLine, order
from laggard.answers.rebalances import cells as rebalance_cells
from laggard.answers.text.times import at_time
from laggard.answers.text.words import UNKNOWN, count, moment
from laggard.cli.asking.client import Document, add_options
from laggard.cli.asking.documents import document_of, print_json, refuse_no_group, rendering
from laggard.cli.fail_on import FAIL_ON, FOUND, at_least, unknown_code
from laggard.cli.text import terminal
from laggard.cli.text.table import Table
from laggard.errors import INTERRUPTED, OK, USAGE, LaggardError
from laggard.escape import escape_label, printable_lines

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
_REBALANCES = (
    "GROUP", "REBALANCES", "LAST END", "CAUSE", "TOOK", "LONGEST PAUSE", "MOVED", "AVOIDABLE",
    "LAST 10 MIN",
)  # fmt: skip
_LEAST_OF_REBALANCES = ("AVOIDABLE", "TOOK", "MOVED")
_RIGHT_OF_REBALANCES = {
    "REBALANCES", "TOOK", "LONGEST PAUSE", "MOVED", "AVOIDABLE", "LAST 10 MIN",
}  # fmt: skip
_TIMES = ("last_rebalance_at", "rebalancing_since")


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
    refuse_no_group(args, config, document["groups"])
    with rendering(args):
        cluster = name_of(document["clusters"][0], "cluster")
        title = title_of(
            cluster,
            document["batch_id"],
            at_time(document["data_timestamp"]),
            len(document["groups"]),
        )
        if args.rebalances:
            table, document["groups"] = rebalance_table(title, document["groups"], args.limit)
        else:
            table = table_of(title, document["groups"], args.limit)
    return table, document


def status_lines(groups: ClusterGroups) -> list[str]:
    """Return a title and a line per group, the worst first."""
    batch, rows = groups.batch, [*groups.groups.values()]
    title = title_of(batch.cluster, batch.batch_id, batch.polled_at, len(rows))
    return table_of(title, rows).lines()


def title_of(cluster: str, batch_id: int, polled_at: datetime, groups: int) -> str:
    """Return the title above the table: the cluster, the batch and the time of the poll."""
    return printable_lines(
        f"{escape_label(cluster)}: batch {batch_id}, {moment(polled_at)}, {count(groups, 'group')}"
    )


def table_of(title: str, groups: Sequence[Row], limit: int = 0) -> Table:
    """Return the table of documents of groups, in their order.

    The columns of the rules are left out if the rules have evaluated no group.
    """
    titles, least = [*TITLES], [*_LEAST]
    # a verdict of UNKNOWN_INPUT is an evaluation, too
    if all(row["health"] == UNKNOWN and not row["scale_verdict"] for row in groups):
        title += "; health and verdict unknown: the rules have not evaluated it"
        titles = [name for name in titles if name not in _OF_RULES]
        least = [name for name in least if name not in _OF_RULES]
    # an exporter's answer may have been tampered with
    rows = [[printable_lines(cells(group)[name]) for name in titles] for group in groups]
    return Table(title, titles, rows, _RIGHT, limit, least)


def rebalance_table(title: str, groups: Sequence[Row], limit: int) -> tuple[Table, list[Row]]:
    """Return the table of the groups' rebalances, and the groups in its order.

    The group that rebalances most of the time comes first. Groups whose rebalances cannot be read
    are named on standard error.
    """
    lines, lost = [], []
    for row in groups:
        group, facts = name_of(row, "group"), row["rebalances"]
        if facts is None:
            lost.append(escape_label(group))
            continue
        times = {name: None if facts[name] is None else at_time(facts[name]) for name in _TIMES}
        lines.append((RebalanceLine(group=group, **(facts | times)), row))
    if lost:
        names = printable_lines(", ".join(sorted(lost)[:10]))
        print(
            f"laggard: {count(len(lost), 'group')} left out, as the rows of their rebalances "
            f"cannot be read: {names}",
            file=sys.stderr,
        )
    lines.sort(key=lambda pair: order(pair[0]))
    rows = [[printable_lines(cell) for cell in rebalance_cells(line)] for line, _ in lines]
    table = Table(title, _REBALANCES, rows, _RIGHT_OF_REBALANCES, limit, _LEAST_OF_REBALANCES)
    return table, [row for _, row in lines]
