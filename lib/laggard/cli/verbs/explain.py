"""`laggard explain GROUP`: a group's activity, readers, and rebalance reasons in plain words."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from laggard.answers.evaluated import Health, counted
from laggard.answers.explain.asked import Asked
from laggard.answers.explain.data import to_data
from laggard.answers.explain.page import page_lines
from laggard.answers.questions import MAX_REBALANCES
from laggard.answers.text.times import HELP, when
from laggard.answers.text.words import UNKNOWN
from laggard.cli.asking.client import Document, Remote, add_options, in_path
from laggard.cli.fail_on import FAIL_ON, exit_code
from laggard.cli.parser import accept_spans
from laggard.cli.text.envelope import json_answer
from laggard.cli.text.terminal import waiting, warn_if_old
from laggard.errors import DAMAGED, LaggardError, first_line
from laggard.escape import escape_label, printable_lines

if TYPE_CHECKING:
    from laggard.config import Config


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "explain",
        help="one group in plain words: state, lag, members, rebalances and what is not known",
        description="One group in plain words: diagnosis, state, lag, members, rebalances and what "
        "is not known.",
    )
    accept_spans(parser)
    parser.add_argument("group", help="name of the group, as `laggard status` prints it")
    parser.add_argument(
        "--limit",
        type=_positive,
        metavar="N",
        help="show at most N rebalances (default: 5, with --since all)",
    )
    parser.add_argument("--topic", metavar="TOPIC", help="only this topic of the group")
    parser.add_argument(
        "--since",
        type=when,
        metavar="TIME",
        help="also what was found since then, and only rebalances since",
    )
    parser.add_argument(
        "--at", type=when, metavar="TIME", help=f"show the group at this time: {HELP}"
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help="exit with 1 if a finding of this severity or a higher one is open",
    )
    add_options(parser)


def run(args: argparse.Namespace, config: Config) -> int:
    """Print the page, or the same as data."""
    if args.url:
        return _from_exporter(args)
    with naming_odd_rows(args.group):
        with waiting(is_quiet=args.quiet):
            asked = Asked(
                args.group,
                args.limit,
                args.topic,
                args.at,
                args.since,
            )
            explained = asked.read(config.job.tables, config.job.window_seconds)
        page = _json(to_data(explained)) if args.json else "\n".join(page_lines(explained))
    if args.at is None:
        warn_if_old(explained.batch, config)
    print(page)
    return exit_code(
        explained.diagnosis.findings, args.fail_on, is_known=explained.diagnosis.is_known
    )


def _from_exporter(args: argparse.Namespace) -> int:
    """Print the page of one group, or its data."""
    remote = Remote(args)
    at = None if args.at is None else args.at.text
    since = None if args.since is None else args.since.text
    answer = remote.get(
        f"explain/{in_path(args.group)}",
        topic=args.topic,
        limit=_limit(args.limit),
        at=at,
        since=since,
    )
    with remote.reading():
        explained, text = answer["explain"], "\n".join(answer["page"])
        rows, windows = (
            explained["diagnosis"]["findings"] or (),
            explained["diagnosis"].get("windows") or [],
        )
        is_known = Health(windows, counted(rows)).level != UNKNOWN
    print(_json(explained) if args.json else printable_lines(text))
    return exit_code(rows, args.fail_on, is_known=is_known)


def _limit(asked: int | None) -> int | None:
    """Return `asked`, limited to the number of rebalances that an exporter returns.

    If `asked` was more, print a line.
    """
    if asked is None or asked <= MAX_REBALANCES:
        return asked
    fix = f"without --url, where the tables are, --limit {asked:,} has all"
    print(
        f"laggard: an exporter answers with {MAX_REBALANCES:,} rebalances at most; {fix}",
        file=sys.stderr,
    )
    return MAX_REBALANCES


def _json(data: Document) -> str:
    return json_answer(data)


@contextmanager
def naming_odd_rows(group: str) -> Iterator[None]:
    """Turn what rows raise that no job writes into an error about the rows of the group."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise LaggardError(
            f'the rows of group "{escape_label(group)}" hold values that no job writes',
            cause=f"{type(error).__name__}: {first_line(error)}",
            fix="laggard query shows the rows; if these are as they should be, report it with "
            "the traceback of -v",
            exit_code=DAMAGED,
        ) from error


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return number
