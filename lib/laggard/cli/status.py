"""`laggard status`: every group's state and lag now, worst first, from the newest batch."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING

from laggard.answers.evaluated import read_health
from laggard.answers.groups import (
    SORTS,
    GroupLine,
    Healths,
    cells,
    group_lines,
    order,
    read_snapshot,
)
from laggard.answers.reading import refuse_empty, title_of, warn_of
from laggard.answers.text.words import UNKNOWN
from laggard.cli import rebalance_table
from laggard.cli.asking.client import add_options
from laggard.cli.fail_on import FAIL_ON, FOUND, at_least, unknown_code
from laggard.cli.rebalance_table import Page, content_of
from laggard.cli.text import terminal
from laggard.cli.text.table import Table
from laggard.cli.text.terminal import warn_if_old
from laggard.errors import INTERRUPTED, OK, USAGE, LaggardError
from laggard.escape import printable_json
from laggard.exporter.snapshot import Snapshot
from laggard.tables.sift import Skipped

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
    return show(args, config, read_page)


def show(
    args: argparse.Namespace,
    config: Config,
    read: Callable[[argparse.Namespace, Config], Page],
) -> int:
    """Print the page that `read` returns once, or every tick."""
    _refuse_pairs(args)
    if args.watch:
        try:
            terminal.watch(
                lambda: read(args, config)[0], config.job.tick_seconds, no_color=args.no_color
            )
        except KeyboardInterrupt:
            return INTERRUPTED
    table, content = read(args, config)
    severe = at_least(args.fail_on)
    # of all: the most severe may be beyond --limit
    healths = {group.get("health") for group in content["groups"]}
    content["groups"] = content["groups"][: args.limit or None]
    if args.json:
        print(printable_json({"v": 1, "ok": True, "data": content}, datetime.isoformat))
    else:
        terminal.show([table], no_color=args.no_color)
    if healths.intersection(severe):
        return FOUND
    return OK if healths - {UNKNOWN} else unknown_code(args.fail_on)


def read_page(args: argparse.Namespace, config: Config) -> Page:
    """Read the table, and the same as data."""
    if args.rebalances:
        return rebalance_table.read_page(args, config)
    skipped = Skipped()
    snapshot = read_snapshot(config.job.tables, skipped)
    warn_of(skipped)
    warn_if_old(snapshot.batch, config)
    chosen = replace(
        snapshot, groups=[row for row in snapshot.groups if fnmatchcase(row["group"], args.group)]
    )
    refuse_empty(args.group, chosen.groups, (row["group"] for row in snapshot.groups))
    healths = read_health(config.job.tables, snapshot.batch.polled_at, config.job.window_seconds)
    groups = sorted(group_lines(chosen, healths), key=lambda line: order(line, args.sort))
    sentence = title_of(snapshot.batch, len(groups))
    table = table_of(sentence, groups, args.limit, has_rules=bool(healths))
    return table, content_of(snapshot.cluster, snapshot.batch, groups)


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
