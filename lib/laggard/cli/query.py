"""`laggard query`: SQL on the published tables, without Spark."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa
from deltalake import QueryBuilder
from deltalake.exceptions import DeltaError

from laggard.cli.questions import fill, find_question, read_questions
from laggard.cli.times import HELP, accept_spans
from laggard.cli.views import named_views
from laggard.cli.words import UNKNOWN, aligned
from laggard.errors import OK, TEMPORARY, USAGE, LaggardError
from laggard.escape import printable, printable_json
from laggard.tables.readers import Batch, TableMissing, TableUnreadable, newest_batch, open_table, sentence_of
from laggard.tables.schemas import BATCHES, TABLES

if TYPE_CHECKING:
    from laggard.config import Config

_READS = ("select", "with", "values", "describe", "show", "explain")
_OF_FILES = ("Parquet error", "Object Store error", "Kernel error")  # DataFusion's words: the query may be right
_HELP = "laggard query --list"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verb and its options."""
    parser = subparsers.add_parser(
        "query", help="SQL on the tables, as last published", description="SQL on the published tables, without a JVM."
    )
    parser.add_argument("sql", nargs="?", default="", help='for example "select * from group_status"')
    parser.add_argument(
        "--format", choices=tuple(_WRITERS), default="table", help="how rows are printed (default: table)"
    )
    parser.add_argument("--list", action="store_true", help="list the questions, and the tables with their columns")
    parser.add_argument("--name", metavar="Q7", default="", help="answer a shipped question")
    parser.add_argument("--param", metavar="K=V", action="append", default=[], help="a parameter of the question")
    accept_spans(parser)
    parser.add_argument("--from", metavar="TIME", dest="begin", help=f"begin: {HELP}")
    parser.add_argument("--to", metavar="TIME", dest="end", help="end (default: the newest tick)")


def run(args: argparse.Namespace, config: Config) -> int:
    """Answer one query, or list what can be asked."""
    as_json = args.json
    if args.list:
        _write_json([*question_list(), *table_list()], sys.stdout) if as_json else print(
            "\n".join([*question_lines(), "", *list_lines()])
        )
        return OK
    values = given_values(args)
    if args.name and not args.sql:
        rows = run_question(config.job.tables, args.name, values)
    elif args.sql.strip() and not args.name and not values:
        rows = run_query(config.job.tables, args.sql)
    elif values and not args.name:
        raise LaggardError("parameters belong to a question", fix="laggard query --name Q7 --to …", exit_code=USAGE)
    else:
        raise LaggardError(
            "one query, please" if args.sql else "no query given",
            fix='laggard query "select * from group_status" or laggard query --name Q7',
            exit_code=USAGE,
        )
    _WRITERS["json" if as_json else args.format](rows, sys.stdout)
    return OK


def given_values(args: argparse.Namespace) -> dict[str, str]:
    """Parameters by name, those of --from and --to included."""
    values = {}
    for text in args.param:
        name, is_pair, value = text.partition("=")
        if not is_pair:
            raise LaggardError(
                f"--param {text} has no value", cause="it is NAME=VALUE", fix="--param group=payments", exit_code=USAGE
            )
        values[name] = value
    ends = {"from": args.begin, "to": args.end}
    return values | {name: value for name, value in ends.items() if value is not None}


def run_question(root: str, name: str, values: Mapping[str, str]) -> pa.Table:
    """Rows of a shipped question; times that are not said go back from the newest tick."""
    question = find_question(name)
    return run_query(root, fill(question, values, _newest(root).polled_at))


def question_lines() -> list[str]:
    """Questions, and under each its parameters with type, default and meaning."""
    lines = ["questions: laggard query --name Q1 --param group=payments"]
    for question in read_questions().values():
        cells = [(f"    {each.name}", each.type, each.default, each.comment) for each in question.parameters]
        lines += [f"  {question.name}  {question.title}", *aligned(cells, [False] * 4)]
    return lines


def run_query(root: str, sql: str) -> pa.Table:
    """Rows of a query over the tables at the versions that the newest `batches` row names."""
    words = re.sub(r"^(\s*--[^\n]*\n)+", "", sql).split(maxsplit=1)  # the question may stand above as a comment
    if not words or words[0].lower().lstrip("(") not in _READS:
        raise LaggardError("only queries that read are answered", cause=f"{sql[:60]!r}", fix=_HELP, exit_code=USAGE)
    batch = _newest(root)
    builder = QueryBuilder()
    versions: dict[str, int | None] = {**published_versions(batch)}
    versions |= {name: None for name, table in TABLES.items() if table.is_judged}  # as it is now
    for name, version in versions.items():
        with suppress(TableMissing) if version is None else nullcontext():  # an older job made none
            builder.register(name, open_table(root, name, version))
    for view in named_views(sql):
        builder.execute(view.sql)
    try:
        return _interruptible(lambda: pa.table(builder.execute(sql)))
    except (DeltaError, pa.ArrowInvalid) as error:
        cause = sentence_of(error)
        if any(word in cause for word in _OF_FILES):
            raise TableUnreadable(root, cause) from error
        raise LaggardError("the query failed", cause=cause, fix=_HELP, exit_code=USAGE) from error


def _interruptible(work: Callable[[], pa.Table]) -> pa.Table:
    """The result of native code, beside which Ctrl-C is heard; the process then ends without it."""
    return ThreadPoolExecutor(1).submit(work).result()


def _newest(root: str) -> Batch:
    batch = newest_batch(root)
    if batch is None:
        raise LaggardError(
            "nothing is published yet", cause=f"{root}/batches has no tick", fix="laggard run", exit_code=TEMPORARY
        )
    return batch


def published_versions(batch: Batch) -> dict[str, int]:
    """Table to version; `batches` itself at the version the row was read at."""
    named = {name: version for name, version in batch.table_versions.items() if name in TABLES}
    return {**named, BATCHES.name: batch.version}


def question_list() -> list[dict[str, Any]]:
    """The questions as data."""
    return [
        {"question": each.name, "title": each.title, "parameters": [asdict(one) for one in each.parameters]}
        for each in read_questions().values()
    ]


def list_lines() -> list[str]:
    """Tables, and under each its columns with type and meaning."""
    lines: list[str] = []
    for table in TABLES.values():
        lines += ["", f"{table.name}: {table.comment}"] if lines else [f"{table.name}: {table.comment}"]
        cells = [
            (f"  {column.name}", column.type, column.comment + (f"; null: {column.null}" if column.null else ""))
            for column in table.columns
        ]
        lines += aligned(cells, [False] * 3)
    return lines


def table_list() -> list[dict[str, Any]]:
    """The tables as data."""
    return [
        {
            "table": table.name,
            "comment": table.comment,
            "columns": [
                {"column": column.name, "type": column.type, "comment": column.comment, "null": column.null}
                for column in table.columns
            ],
        }
        for table in TABLES.values()
    ]


def _write_table(rows: pa.Table, out: TextIO) -> None:
    is_right = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in rows.schema.types]
    cells = [tuple(_cell(value) for value in row.values()) for row in _records(rows)]
    for line in aligned([tuple(map(printable, rows.column_names)), *cells], is_right):
        print(line, file=out)


def _write_csv(rows: pa.Table, out: TextIO) -> None:
    # a file gets every byte, so that it can be read back; a terminal nothing that steers it
    shown = printable if out.isatty() else str
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([shown(name) for name in rows.column_names])
    writer.writerows(
        ["" if value is None else shown(_plain(value)) for value in row.values()] for row in _records(rows)
    )


def _write_json(rows: pa.Table | list[dict[str, Any]], out: TextIO) -> None:
    records = rows if isinstance(rows, list) else _records(rows)
    out.write(printable_json({"v": 1, "ok": True, "data": records}, str) + "\n")


def _records(rows: pa.Table) -> list[dict[str, Any]]:
    columns = [_values(column) for column in rows.columns]
    return [dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except (OverflowError, ValueError, KeyError):  # one odd value must not cost the others
        return [_value(each) for each in column]


def _value(scalar: pa.Scalar) -> Any:
    """The value; of a time outside the calendar its number, of bytes that are no text a note."""
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except OverflowError:
        number, unit = getattr(scalar, "value", UNKNOWN), getattr(scalar.type, "unit", "")
        return f"<{number} {unit} since 1970>"
    except (ValueError, KeyError) as error:
        return f"<{error}>"


def _cell(value: Any) -> str:
    # a client chooses the names: they must not steer the terminal
    if isinstance(value, str):
        return printable(value)
    text = "null" if value is None else _plain(value)
    return text if text.isprintable() else json.dumps(value, default=str)


def _plain(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


_WRITERS = {"table": _write_table, "csv": _write_csv, "json": _write_json}
