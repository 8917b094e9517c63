"""Write the rows of an answer: an aligned table for people, CSV, JSON and Parquet for machines."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import sys
from collections.abc import Callable
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from laggard.answers.text.words import UNKNOWN, aligned
from laggard.cli.text.envelope import json_answer
from laggard.errors import NOT_FOUND, USAGE, LaggardError
from laggard.escape import printable

FORMATS = ("table", "csv", "json", "parquet")
STDOUT = "-"
# numbers that name something: nobody reads their thousands
_NAMES = re.compile(
    r"(^|_)(id|partition|generation|epoch|version|broker|coordinator|offset|seq|year|rule)$"
    r"|_offset_"
)


def write_rows(rows: pa.Table, kind: str, target: str | None) -> None:
    """Print rows in a format, or save them; a file is there in whole or not at all."""
    _refuse_twins(rows.column_names)
    if kind == "parquet" and (target is None or (target == STDOUT and sys.stdout.isatty())):
        raise LaggardError(
            "Parquet is not shown on a terminal",
            cause="it is a binary format",
            fix="add -o rows.parquet to the command, or -o - and a pipe",
            exit_code=USAGE,
        )
    try:
        if target == STDOUT and kind == "parquet":
            _write_parquet(rows)
        elif target in (None, STDOUT):
            _print(rows, kind, sys.stdout)
        else:
            save(target, lambda path: _write(rows, kind, path), "rows.csv")
    except pa.ArrowNotImplementedError as error:
        raise LaggardError(
            f"{kind} cannot hold these rows",
            cause=str(error),
            fix="save them as text: -o rows.csv",
            exit_code=USAGE,
        ) from error


def save(target: str, write: Callable[[Path], object], example: str) -> None:
    """Write a file in whole or not at all.

    A link remains a link; a pipe or a device is written to.
    """
    if not target or "\0" in target:
        raise LaggardError("-o names no file", fix=f"for example -o {example}", exit_code=USAGE)
    path = Path(target)
    try:
        if path.exists() and not path.is_file():
            write(path)
        else:
            replace_file(Path(os.path.realpath(target)), write)
    except OSError as error:
        raise LaggardError(
            f"cannot write {target}",
            cause=error.strerror or str(error),
            fix=f"name a file in a folder that is there, as -o {example}",
            exit_code=NOT_FOUND,
        ) from error


def replace_file(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside the path, then put it in its place with the mode of the old one."""
    unfinished = path.with_name(f".laggard.{os.getpid()}")  # never longer than a name may be
    try:
        write(unfinished)
        if path.exists():
            unfinished.chmod(path.stat().st_mode & 0o7777)
        unfinished.replace(path)
    except BaseException:  # Ctrl-C too
        unfinished.unlink(missing_ok=True)
        raise


def _write(rows: pa.Table, kind: str, path: Path) -> None:
    if kind == "parquet":
        pq.write_table(_plain_texts(rows), path)
        return
    with path.open("w", encoding="utf-8", newline="") as out:
        _print(rows, kind, out)


def _write_parquet(rows: pa.Table) -> None:
    """Write Parquet to standard output in one piece, as a pipe cannot seek."""
    sink = pa.BufferOutputStream()
    pq.write_table(_plain_texts(rows), sink)
    sys.stdout.flush()
    sys.stdout.buffer.write(sink.getvalue())


def _refuse_twins(names: list[str]) -> None:
    """Raise an error if two columns share a name.

    JSON and readers of CSV would silently keep one of them.
    """
    twin = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twin is not None:
        raise LaggardError(
            f'two columns are named "{printable(twin)}"',
            cause="the answer would lose one of them",
            fix=f'name them apart: select a."{printable(twin)}" as one, b."{printable(twin)}" as '
            "other",
            exit_code=USAGE,
        )


def format_of(target: str) -> str:
    """Return the format that a file name's suffix gives; CSV for standard output."""
    if target == STDOUT:
        return "csv"
    kind = Path(target).suffix.removeprefix(".").lower()
    if kind not in FORMATS[1:]:
        raise LaggardError(
            f"-o {target}: the format is unknown",
            cause="the name does not end in .parquet, .csv or .json, and there is no --format",
            fix="for example -o rows.parquet",
            exit_code=USAGE,
        )
    return kind


def _print(rows: pa.Table, kind: str, out: TextIO) -> None:
    {"table": write_table, "csv": _write_csv, "json": write_json}[kind](rows, out)


def _plain_texts(rows: pa.Table) -> pa.Table:
    """Return the same rows with strings in place of Arrow's string views.

    Few Parquet readers support these views.
    """
    plain = [
        field.with_type(pa.string()) if field.type == pa.string_view() else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(plain))


def write_table(rows: pa.Table, out: TextIO) -> None:
    """Write the columns side by side, with numbers that can be read at a glance."""
    is_right = [
        pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in rows.schema.types
    ]
    cells = [tuple(_cell(name, value) for name, value in row.items()) for row in _records(rows)]
    for line in aligned([tuple(map(printable, rows.column_names)), *cells], is_right):
        print(line, file=out)


def _write_csv(rows: pa.Table, out: TextIO) -> None:
    # a file gets every byte, so that it can be read back; a terminal nothing that steers it
    shown = printable if out.isatty() else str
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([shown(name) for name in rows.column_names])
    writer.writerows(
        ["" if value is None else shown(_plain(value)) for value in row.values()]
        for row in _records(rows)
    )


def write_json(rows: pa.Table | list[dict[str, Any]], out: TextIO) -> None:
    """Write one JSON object.

    Infinite values are the text Infinity, times are ISO 8601, durations are seconds.
    """
    records = rows if isinstance(rows, list) else _records(rows)
    out.write(json_answer(records, text_of=_in_json) + "\n")


def _in_json(value: Any) -> Any:
    if isinstance(value, (date, time)):  # a datetime is a date, too
        return value.isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _records(rows: pa.Table) -> list[dict[str, Any]]:
    columns = [_values(column) for column in rows.columns]
    return [
        dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except (OverflowError, ValueError, KeyError):  # one odd value must not cost the others
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> Any:
    """Return the Python value.

    For a time outside the calendar it is its number, for invalid text the error.
    """
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except OverflowError:
        number, unit = getattr(scalar, "value", UNKNOWN), getattr(scalar.type, "unit", "")
        return f"<{number} {unit} since 1970>"
    except (ValueError, KeyError) as error:
        return f"<{error}>"


def _cell(name: str, value: Any) -> str:
    # a client chooses the names: they must not steer the terminal
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int) and not isinstance(value, bool) and not _NAMES.search(name):
        return f"{value:,}"
    text = "null" if value is None else _plain(value)
    return text if text.isprintable() else json.dumps(value, default=str)


def number(value: float) -> str:
    """Return a number with its significant digits only: 12,345.7, 12.346, 0.0123."""
    if not math.isfinite(value):
        return str(value).replace("inf", "infinity")
    if abs(value) >= 100 or value == round(value, 1):
        return f"{value:,.1f}"
    return f"{value:.3f}".rstrip("0") if abs(value) >= 1 else f"{value:.3g}"


def _plain(value: Any) -> str:
    return (
        json.dumps(value, default=str, ensure_ascii=False)
        if isinstance(value, (dict, list))
        else str(value)
    )
