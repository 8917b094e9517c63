"""`laggard query`: SQL on the published tables, without Spark."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from laggard.answers.reading import any_batch
from laggard.answers.text.times import HELP
from laggard.answers.text.words import aligned, count
from laggard.cli.parser import accept_spans
from laggard.cli.text.envelope import json_answer
from laggard.cli.text.terminal import waiting
from laggard.cli.verbs.query.notes import (
    described,
    empty_notes,
    gap_notes,
    groups_named,
    known_groups,
    missing_group,
    name_error,
    tables_shown,
)
from laggard.cli.verbs.query.output import FORMATS, STDOUT, format_of, write_json, write_rows
from laggard.cli.verbs.query.questions import (
    fill,
    fill_names,
    find_question,
    range_of,
    read_questions,
)
from laggard.cli.verbs.query.range import Range, conditions, touched_range
from laggard.cli.verbs.query.views import named_views, read_views
from laggard.errors import OK, USAGE, LaggardError
from laggard.escape import printable, printable_lines
from laggard.tables.published import Batch
from laggard.tables.readers import TableMissing, TableUnreadable, open_table, sentence_of
from laggard.tables.schema.schemas import BATCHES, TABLES, Table

if TYPE_CHECKING:
    from laggard.config import Config

_BLANK = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
# the word that decides; explain analyze runs what follows it, also a copy to a file
_READS = re.compile(
    rf"{_BLANK}(?:explain\b{_BLANK}(?:(?:analyze|verbose"
    rf"|format\s+\w+)\b{_BLANK})*(?=\(*{_BLANK}(?:select|with|values)\b))?"
    rf"\(*{_BLANK}(?:select|with|values|describe|show)\b",
    re.IGNORECASE | re.DOTALL,
)
# DataFusion's words: the query may be right
_OF_FILES = ("Parquet error", "Object Store error", "Kernel error")
_HELP = "laggard query --list"
_LOOK_SECONDS = 0.2
_SHOW = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
_DESCRIBE = re.compile(r"\s*(?:describe|desc|show\s+columns\s+from)\s+(\w+)\s*;?\s*", re.IGNORECASE)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its options."""
    parser = subparsers.add_parser(
        "query",
        help="SQL on the tables, as last published",
        description="SQL on the published tables, without a JVM.",
    )
    parser.add_argument(
        "sql", nargs="?", default="", help='for example "select * from worst_groups", "show tables"'
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="of the rows (default: table, or as the name of the file says)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="save the rows: FILE.parquet, FILE.csv or FILE.json; - is standard output, as CSV or "
        "by --format",
    )
    parser.add_argument(
        "--list", action="store_true", help="list questions, views, and tables with their columns"
    )
    parser.add_argument("--name", metavar="Q7", default="", help="answer a shipped question")
    parser.add_argument(
        "--param",
        metavar="K=V",
        action="append",
        default=[],
        help="a value for :k in the question or the SQL",
    )
    accept_spans(parser)
    parser.add_argument("--from", metavar="TIME", dest="begin", help=f"begin of the range: {HELP}")
    parser.add_argument(
        "--to",
        metavar="TIME",
        dest="end",
        help="end of the range, exclusive (default: the newest tick)",
    )


def run(args: argparse.Namespace, config: Config) -> int:
    """Answer one query, or list what can be asked."""
    if args.list:
        write_json(
            [*question_list(), *view_list(), *table_list()], sys.stdout
        ) if args.json else print(
            "\n".join([*question_lines(), "", *view_lines(), "", *list_lines()])
        )
        return OK
    values = given_values(args)
    if bool(args.name) == bool(args.sql.strip()):
        raise LaggardError(
            "one query, please" if args.sql else "no query given",
            fix='laggard query "select * from group_status" or laggard query --name Q7',
            exit_code=USAGE,
        )
    with waiting(is_quiet=getattr(args, "quiet", False)):
        rows, notes = (_answer_question if args.name else _answer_sql)(
            config.job.tables, args.name or args.sql, values
        )
    _write(args, rows, notes)
    return OK


def _write(args: argparse.Namespace, rows: pa.Table, notes: Sequence[str]) -> None:
    """Write the answer to its place, and notes about it to standard error."""
    if args.json and args.output in (None, STDOUT):
        kind = "json"
    else:
        kind = args.format or (format_of(args.output) if args.output else "table")
    write_rows(rows, kind, args.output)
    if args.json and args.output not in (None, STDOUT):
        print(json_answer({"file": args.output, "rows": rows.num_rows}))
    if not getattr(args, "quiet", False):
        sys.stdout.flush()
        if args.output not in (None, STDOUT):
            print(f"wrote {printable(args.output)}: {count(rows.num_rows, 'row')}", file=sys.stderr)
        for note in notes:
            print(printable_lines(f"laggard: {note}"), file=sys.stderr)


def _answer_question(root: str, name: str, values: Mapping[str, str]) -> tuple[pa.Table, list[str]]:
    question, batch = find_question(name), any_batch(root)
    sql, asked = (
        fill(question, values, batch.polled_at),
        range_of(question, values, batch.polled_at),
    )
    rows = run_query(root, sql)
    if (
        not rows.num_rows
        and "group" in values
        and values["group"] not in (known := known_groups(root, batch))
    ):
        raise missing_group(values["group"], known)
    return rows, _notes(root, batch, sql, rows, asked, values)


def _answer_sql(root: str, text: str, values: Mapping[str, str]) -> tuple[pa.Table, list[str]]:
    if _SHOW.fullmatch(text):
        return tables_shown(), []
    if match := _DESCRIBE.fullmatch(text):
        return described(match[1].lower()), []
    batch = any_batch(root)
    sql, asked = fill_names(text, values, batch.polled_at), range_of(None, values, batch.polled_at)
    rows = run_query(root, sql, asked)
    touched = asked if values.keys() & {"from", "to"} else touched_range(root, batch, sql, rows)
    return rows, _notes(root, batch, sql, rows, touched, {})


def _notes(
    root: str, batch: Batch, sql: str, rows: pa.Table, asked: Range, values: Mapping[str, str]
) -> list[str]:
    why = [] if rows.num_rows else empty_notes(root, batch, sql, asked, groups_named(sql, values))
    return why + gap_notes(root, batch, asked)


def given_values(args: argparse.Namespace) -> dict[str, str]:
    """Return parameters by name, those of --from and --to included."""
    values = {}
    for text in args.param:
        name, is_pair, value = text.partition("=")
        if not is_pair:
            raise LaggardError(
                f"--param {text} has no value",
                cause="it is NAME=VALUE",
                fix="--param group=payments",
                exit_code=USAGE,
            )
        values[name] = value
    ends = {"from": args.begin, "to": args.end}
    return values | {name: value for name, value in ends.items() if value is not None}


def run_question(root: str, name: str, values: Mapping[str, str]) -> pa.Table:
    """Return the rows of a shipped question; a range that is not given ends at the newest tick."""
    return run_query(root, fill(find_question(name), values, any_batch(root).polled_at))


def question_lines() -> list[str]:
    """Return the questions, each followed by its parameters with type, default and meaning."""
    lines = ["questions: laggard query --name Q1 --param group=payments"]
    for question in read_questions().values():
        cells = [
            (f"    {parameter.name}", parameter.type, parameter.default, parameter.comment)
            for parameter in question.parameters
        ]
        lines += [f"  {question.name}  {question.title}", *aligned(cells, [False] * 4)]
    return lines


def view_lines() -> list[str]:
    """Return the views, each with the meaning of a row."""
    cells = [(f"  {view.name}", view.title) for view in read_views().values()]
    return ['views: laggard query "select * from worst_groups"', *aligned(cells, [False] * 2)]


def view_list() -> list[dict[str, Any]]:
    """Return the views as data."""
    return [
        {
            "view": view.name,
            "comment": view.title,
            "columns": [{"column": name, "comment": meaning} for name, meaning in view.columns],
        }
        for view in read_views().values()
    ]


def run_query(root: str, sql: str, asked: Range | None = None) -> pa.Table:
    """Return rows of a query over the tables at the versions that the newest `batches` row names.

    Of a range that is asked for, tables of history have only what lies in it.
    """
    if not _READS.match(sql):  # the question may stand above as a comment
        raise LaggardError(
            "only queries that read are allowed", cause=f"{sql[:60]!r}", fix=_HELP, exit_code=USAGE
        )
    return open_session(root, asked)(sql)


def open_session(root: str, asked: Range | None = None) -> Callable[[str], pa.Table]:
    """Give the function that answers SQL of ours or of a user.

    It serves several questions about the same versions.
    """
    builder = QueryBuilder()
    for name, version in _versions(any_batch(root)).items():
        with suppress(TableMissing) if version is None else nullcontext():  # an older job made none
            _register(builder, root, TABLES[name], version, asked or Range())
    made: set[str] = set()

    def ask(sql: str) -> pa.Table:
        try:
            for view in named_views(sql):
                if view.name not in made:
                    builder.execute(view.sql)
                    made.add(view.name)
            return _interruptible(lambda: pa.table(builder.execute(sql)))
        except (DeltaError, pa.ArrowInvalid) as error:
            raise _failure(error, root, sql) from error

    return ask


def _failure(error: Exception, root: str, sql: str) -> LaggardError:
    """Make the error that says if the tables cannot be read or the query is wrong."""
    cause = sentence_of(error)
    if any(word in cause for word in _OF_FILES) and "CastError" not in cause:
        return TableUnreadable(root, cause)
    wrong = name_error(str(error), sql)
    return wrong or LaggardError("the query failed", cause=cause, fix=_HELP, exit_code=USAGE)


def _versions(batch: Batch) -> dict[str, int | None]:
    """Map table to version.

    `batches` itself is at that of the row; tables of the diagnosis are at their newest, as
    None.
    """
    named = {name: version for name, version in batch.table_versions.items() if name in TABLES}
    newest = {name: None for name, table in TABLES.items() if table.is_of_diagnosis}
    return {**named, BATCHES.name: batch.version, **newest}


def _register(
    builder: QueryBuilder, root: str, table: Table, version: int | None, asked: Range
) -> None:
    delta = open_table(root, table.name, version)
    kept = conditions(table, asked)
    if not kept:
        builder.register(table.name, delta)
        return
    builder.register(f"whole_{table.name}", delta)
    builder.execute(
        f"create view {table.name} as select * from whole_{table.name} "  # noqa: S608
        f"where {' and '.join(kept)}"
    )


def _interruptible(work: Callable[[], pa.Table]) -> pa.Table:
    """Return the result of native code run in a thread, so that Ctrl-C is handled.

    After Ctrl-C the process ends without the result.
    """
    future = ThreadPoolExecutor(1).submit(work)
    # a signal that another thread got does not end a wait without limit
    while not wait([future], _LOOK_SECONDS).done:
        pass
    return future.result()


def question_list() -> list[dict[str, Any]]:
    """Return the questions as data."""
    return [
        {
            "question": question.name,
            "title": question.title,
            "parameters": question.parameters,
        }
        for question in read_questions().values()
    ]


def list_lines() -> list[str]:
    """Return the tables, each followed by its columns with type and meaning."""
    lines: list[str] = []
    for table in TABLES.values():
        lines += (
            ["", f"{table.name}: {table.comment}"] if lines else [f"{table.name}: {table.comment}"]
        )
        cells = [
            (
                f"  {column.name}",
                column.type,
                column.comment + (f"; null: {column.null}" if column.null else ""),
            )
            for column in table.columns
        ]
        lines += aligned(cells, [False] * 3)
    return lines


def table_list() -> list[dict[str, Any]]:
    """Return the tables as data."""
    return [
        {
            "table": table.name,
            "comment": table.comment,
            "columns": [
                {
                    "column": column.name,
                    "type": column.type,
                    "comment": column.comment,
                    "null": column.null,
                }
                for column in table.columns
            ],
        }
        for table in TABLES.values()
    ]
