"""`laggard audit`: check invariants of the tables and print the rows that break them.

It answers the question: are the rows right?
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from laggard.answers.text.times import HELP, when
from laggard.answers.text.words import count, duration, moment, paragraph, percent
from laggard.cli.asking.client import Remote, add_address
from laggard.cli.parser import accept_spans
from laggard.cli.text import terminal
from laggard.cli.text.envelope import json_answer
from laggard.errors import CONFIGURATION, OK, USAGE, LaggardError
from laggard.escape import printable
from laggard.tables.schema.schemas import TABLES

if TYPE_CHECKING:
    from laggard.audit.reader import Reader
    from laggard.audit.result import AuditDocument, Tally, Totals
    from laggard.config import Config

VIOLATED, UNCHECKED = 1, 2  # exit codes
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SHOWN = 5  # examples of an invariant in text; --json has all that were kept


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "audit",
        help="are the rows right? checks the tables, and says which rows are not",
        description="Check invariants of the tables. Nothing is written. Exit 0: all hold; 1: a "
        "row breaks one, and is printed; 2: something that was asked for could not be checked.",
    )
    accept_spans(parser)
    parser.add_argument(
        "--since", type=when, metavar="TIME", help=f"only rows since then: {HELP} (default: all)"
    )
    parser.add_argument(
        "--table",
        action="append",
        choices=sorted(TABLES),
        default=[],
        metavar="NAME",
        help="only this table; repeatable",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="also ask the coordinators of up to 100 groups for their offsets",
    )
    add_address(
        parser.add_argument_group("also a running exporter: does it show what the tables say?")
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Check, print a line per invariant with examples, then facts that are no violation."""
    try:
        document = _audit(args, config)
    except LaggardError as error:
        if error.exit_code not in (USAGE, CONFIGURATION):
            error.exit_code = UNCHECKED
        raise
    code = exit_code(document.invariants)
    if args.json:
        print(json_answer(document, is_ok=code == OK))
        return code
    style = terminal.STYLES.get
    terminal.show_lines(
        page_lines(document),
        lambda line: style(line.split(" ")[0], ""),
        no_color=args.no_color,
    )
    return code


def _audit(args: argparse.Namespace, config: Config) -> AuditDocument:
    from laggard.answers.reading import published_batch
    from laggard.audit.reader import Reader
    from laggard.audit.result import AuditDocument
    from laggard.audit.tables import audit_tables, chosen_tables, count_steps
    from laggard.config import require_brokers

    batch = published_batch(config.job.tables)
    begin = args.since(batch.polled_at) if args.since else _EPOCH
    if begin > batch.polled_at:
        raise LaggardError(
            "--since names a time that nothing was recorded after",
            cause=f"{moment(begin)} is later than the newest poll, {moment(batch.polled_at)}",
            exit_code=USAGE,
        )
    if args.live:
        require_brokers(config)
    # rows of a window are written by the first batch after it; events may have the time of a
    # client's clock
    reader = Reader(config.job.tables, batch, begin, batch.polled_at + timedelta(days=1))
    tables = chosen_tables(args.table)
    steps = terminal.progress(
        audit_tables(reader, tables), count_steps(reader, tables), "steps", no_color=args.no_color
    )
    *_, audit = steps
    if args.url:
        from laggard.audit.served import check_exporter

        with _unchecked(audit.tallies["I9"]):
            check_exporter(Remote(args).ask, reader, audit.tallies["I9"])
    if args.live:
        with _unchecked(audit.tallies["I10"]):
            _check_live(reader, config, audit.tallies["I10"])
    return AuditDocument(
        batch.cluster,
        batch.batch_id,
        batch.polled_at,
        since=begin if args.since else None,
        invariants=[*audit.tallies.values()],
        facts=audit.totals,
    )


@contextmanager
def _unchecked(tally: Tally) -> Iterator[None]:
    """Print a failure to reach a source as a line of the page.

    The results of the tables are printed all the same.
    """
    try:
        yield
    except LaggardError as error:
        if error.exit_code in (USAGE, CONFIGURATION):
            raise
        tally.unchecked = error.sentence


def _check_live(reader: Reader, config: Config, tally: Tally) -> None:
    from laggard.audit.live import check_coordinators
    from laggard.sources.brokers import Brokers
    from laggard.tables.freshness import max_age

    patience = max_age(config.job.tick_seconds, config.exporter.max_age_seconds)
    with closing(Brokers.of(config.cluster)) as brokers:
        check_coordinators(reader, brokers, config.cluster.request_timeout_seconds, patience, tally)


def exit_code(invariants: Sequence[Tally]) -> int:
    """Return 1 if a row breaks an invariant, else 2 if something could not be checked, else 0."""
    if any(tally.violations for tally in invariants):
        return VIOLATED
    return UNCHECKED if any(tally.unchecked for tally in invariants) else OK


def page_lines(audit: AuditDocument) -> Iterator[str]:
    """Yield a line per invariant with examples of violating rows, the other counts, a summary."""
    since = "all rows" if audit.since is None else f"rows since {moment(audit.since)}"
    yield f"{audit.cluster}: batch {audit.batch_id}, {moment(audit.polled_at)}; {since}"
    for tally in audit.invariants:
        yield from _tally_lines(tally)
    for fact in _facts(audit.facts):
        yield from paragraph(fact, "note  ", "      ")
    broken = sum(bool(tally.violations) for tally in audit.invariants)
    verdict = f"{count(broken, 'invariant')} broken" if broken else "all that were checked hold"
    unchecked = sum(bool(tally.unchecked) for tally in audit.invariants)
    yield verdict + (f"; {unchecked} could not be checked" if unchecked else "")


def _tally_lines(tally: Tally) -> Iterator[str]:
    """Yield the result of one invariant, with the first of the rows that break it."""
    rule = f"{tally.code:<4}{tally.rule}"
    if tally.violations:
        yield f"fail  {rule}: not in {tally.violations:,} of {tally.checked:,}"
    for row in tally.samples[:_SHOWN]:
        key = " ".join(f"{name}={_shown(value)}" for name, value in row.key.items())
        yield (
            f"      {row.table} {key}: {row.what}: expected {_shown(row.expected)}, found "
            f"{_shown(row.found)}"
        )
    if tally.unchecked:
        yield from paragraph(f"{rule}: not checked: {tally.unchecked}", "warn  ", "      ")
    elif tally.checked and not tally.violations:
        yield f"ok    {rule}: {tally.checked:,} checked"


def _facts(totals: Totals) -> Iterator[str]:
    """Yield facts that are not violations.

    They are time that was not watched, statuses, odd records and corrections.
    """
    yield from (
        f"not watched: {reason} {duration(seconds)}"
        for reason, seconds in totals.gap_seconds.items()
    )
    for reason, number in totals.gaps.items():
        if reason not in totals.gap_seconds:
            yield f"gap {reason}: {number:,}"
    yield from (
        f"dead letters, {reason}: {number:,}" for reason, number in totals.dead_letters.items()
    )
    if totals.gaps_known_since:
        yield (
            f"not looked for: missing windows before {moment(totals.gaps_known_since)}, as "
            "batches has no row"
        )
    if totals.unknown_records:
        yield f"records of unknown types: {totals.unknown_records:,} of {totals.records:,}"
    if totals.reconciled:
        yield f"corrections after asking the coordinators: {totals.reconciled:,}"
    if rows := totals.statuses.total():
        shares = [
            f"{status} {percent(number / rows)}" for status, number in totals.statuses.most_common()
        ]
        yield (
            f"rows of lag_windows by status: {', '.join(shares)}; ahead of the poll: "
            f"{percent(totals.ahead / rows)}"
        )


def _shown(value: Any) -> str:
    if value is None:
        return "unknown"
    return printable(value.isoformat() if isinstance(value, datetime) else str(value))
