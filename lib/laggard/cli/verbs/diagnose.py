"""`laggard diagnose`: evaluate a past range again without Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from laggard.answers.reading import Row, is_asked, published_batch, refuse_empty
from laggard.answers.schema.parts import list_of, object_of, without
from laggard.answers.text.diagnosis_words import evidence_words, where
from laggard.answers.text.times import HELP, when
from laggard.answers.text.words import aligned, count, moment, short
from laggard.cli.parser import accept_spans
from laggard.cli.text.envelope import json_answer
from laggard.cli.text.terminal import progress
from laggard.errors import OK, REFUSED, USAGE, LaggardError
from laggard.tables.schema.schemas import FINDINGS

if TYPE_CHECKING:
    from laggard.config import Config
    from laggard.stream.evaluation.replay import Step

_TITLES = ("AT", "EVENT", "SEVERITY", "ROLE", "CODE", "GROUP", "WHERE", "CONFIDENCE", "EVIDENCE")
_RIGHT = {"CONFIDENCE"}
_EVIDENCE = 3


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "diagnose",
        help="evaluate a past range again",
        description="Evaluate the windows of a past range again and print the findings as they "
        "would be. Nothing that is stored changes.",
    )
    accept_spans(parser)
    parser.add_argument(
        "--from",
        dest="begin",
        type=when,
        required=True,
        metavar="TIME",
        help=f"begin of the range: {HELP}",
    )
    parser.add_argument(
        "--to",
        dest="end",
        type=when,
        default=when("now"),
        metavar="TIME",
        help="end of the range, exclusive (default: the newest tick)",
    )
    parser.add_argument(
        "--group", metavar="GLOB", default="*", help="only findings of groups whose name matches"
    )
    parser.add_argument(
        "--output", metavar="DIR", help="write group_windows and findings to this new place"
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Evaluate and print; also write the rows to a new place if asked to."""
    root, seconds = config.job.tables, config.job.window_seconds
    begin_ms, end_ms = _asked_windows(args, root, seconds)
    if args.output:
        _refuse_tables_at(args.output)
    steps, before = _replayed(args, config, begin_ms, end_ms)
    findings = [*chain.from_iterable(step.findings for step in steps)]
    if steps:
        refuse_empty(args.group, [*findings, *chain.from_iterable(step.windows for step in steps)])
    if args.output:
        _write(args.output, steps)
    if args.json:
        rows = [{name: value for name, value in row.items() if name != "date"} for row in findings]
        data = Diagnosed(len(steps), before, rows, args.output)
        print(json_answer(data))
    else:
        print("\n".join(_lines(findings, len(steps), before, args.output)))
    return OK


def _asked_windows(args: argparse.Namespace, root: str, seconds: int) -> tuple[int, int]:
    """Give the begin in ms of the first and of the last window; up to the newest tick at most."""
    polled_at = published_batch(root).polled_at
    asked_end = args.end(polled_at)
    windows = window_range(args.begin(polled_at), min(asked_end, polled_at), seconds)
    if asked_end > polled_at and not args.quiet:
        print(f"laggard: evaluated up to the newest tick, of {moment(polled_at)}", file=sys.stderr)
    return windows


def _replayed(
    args: argparse.Namespace, config: Config, begin_ms: int, end_ms: int
) -> tuple[list[Step], datetime | None]:
    """Evaluate the windows again; return also the end of the window of their initial memory.

    That end is None if they begin from nothing.
    """
    from laggard.stream.evaluation.reading import Options
    from laggard.stream.evaluation.replay import memory_before, replay

    root, seconds = config.job.tables, config.job.window_seconds
    options = Options(config.cluster.name, seconds, config.diagnosis.thresholds, config.policies.of)
    remembered = memory_before(root, begin_ms)
    total = (end_ms - begin_ms) // (1000 * seconds) + 1
    replayed = replay(root, begin_ms, end_ms, remembered, options)
    steps = [
        _only(step, args.group)
        for step in progress(replayed, total, "windows", no_color=args.no_color)
    ]
    start = remembered.window_start
    return steps, None if start is None else start + timedelta(seconds=seconds)


def window_range(begin: datetime, end: datetime, seconds: int) -> tuple[int, int]:
    """Begin in ms of the first and of the last window that lie between two moments."""
    step = 1000 * seconds
    first = -(-round(begin.timestamp() * 1000) // step) * step
    last = round(end.timestamp() * 1000) // step * step - step
    if last < first:
        raise LaggardError(
            f"no window of {seconds} s lies between {moment(begin)} and {moment(end)}",
            fix="laggard diagnose --from 2h --to now",
            exit_code=USAGE,
        )
    return first, last


def _only(step: Step, glob: str) -> Step:
    """Return the rows of a step that belong to the requested groups.

    Rows of the cluster are returned only if all groups are requested.
    """
    from laggard.stream.evaluation.replay import Step

    return Step(
        step.window,
        *([row for row in rows if is_asked(row, glob)] for rows in (step.windows, step.findings)),
    )


def _lines(
    findings: Sequence[Row], windows: int, before: datetime | None, output: str | None
) -> list[str]:
    began = (
        "without earlier state, as no window before it was evaluated: findings that were open "
        "then are not known"
        if before is None
        else f"with the state stored at {moment(before)}"
    )
    lines = [
        f"{count(windows, 'window')} evaluated, {began}; {count(len(findings), 'row')} of findings"
    ]
    if findings:
        lines += aligned([_TITLES, *map(_cells, findings)], [name in _RIGHT for name in _TITLES])
    return [*lines, f"written to {output}"] if output else lines


def _cells(row: Row) -> tuple[str, ...]:
    return (
        moment(row["at"]),
        row["event"],
        row["severity"],
        row["role"],
        row["code"],
        "(cluster)" if row["group"] is None else short(row["group"]),
        where(row) or "-",
        f"{row['confidence']:.2f}",
        evidence_words(row, _EVIDENCE) or "-",
    )


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """The document of `laggard diagnose`."""

    windows_evaluated: Annotated[int, "windows of the range"]
    remembered_at: Annotated[
        datetime | None,
        "end of the window before, whose memory it began with; null: with none",
    ]
    findings: Annotated[
        list[Row],
        "rows as they would be, in their order",
        list_of(object_of(without(FINDINGS, "date"))),
    ]
    output: Annotated[str | None, "place that --output wrote to; null: nothing was written"]


def _refuse_tables_at(root: str) -> None:
    from laggard.tables.readers import TableMissing, open_table
    from laggard.tables.schema.schemas import TABLES

    for name in TABLES:
        try:
            open_table(root, name)
        except TableMissing:
            continue
        raise LaggardError(
            f"{root} holds tables already",
            cause=f"{root.rstrip('/')}/{name} is there, and a replay never writes over history",
            fix="choose a place that is empty",
            exit_code=REFUSED,
        )


def _write(root: str, steps: Sequence[Step]) -> None:
    from laggard.tables.arrow import to_arrow
    from laggard.tables.delta import Writer, create_tables
    from laggard.tables.schema.schemas import GROUP_WINDOWS

    create_tables(root, (GROUP_WINDOWS, FINDINGS))
    writer = Writer(root, "replay")
    for table, rows in (
        (GROUP_WINDOWS, [row for step in steps for row in step.windows]),
        (FINDINGS, [row for step in steps for row in step.findings]),
    ):
        if rows:
            writer.write(table, to_arrow(table, rows), steps[-1].window.batch_id)
