"""The shipped questions: SQL files in conf/sql that explain themselves, with named parameters.

A file begins with a comment: the question, then its parameters (name, type, default, meaning) and
its columns.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

from laggard.answers.text.times import when
from laggard.answers.text.words import moment
from laggard.cli.verbs.query.range import Range
from laggard.conf import conf_file
from laggard.errors import NOT_FOUND, USAGE, LaggardError
from laggard.tables.schema.schemas import TABLES

_TITLE = re.compile(r"-- (Q\d+) (.+)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
# what loses nothing as a number: 007 and a row of 22 digits are names
_EXACT = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,9})?", re.ASCII)
_TEXTS = "|".join(
    {
        column.name
        for table in TABLES.values()
        for column in table.columns
        if column.type == "string"
    }
)
_COMPARED = re.compile(
    rf'"?\b(?:{_TEXTS})"?\s*(?:=|<>|!=|(?:not\s+)?(?:i?like|in\s*\((?:[^()]*,)?))\s*$',
    re.IGNORECASE,
)
_COMPARES = re.compile(rf'\s*(?:=|<>|!=)\s*(?:"?\w+"?\.)?"?(?:{_TEXTS})\b', re.IGNORECASE)
_BEFORE = re.compile(r"(\d+) (hour|day)s? before :to")
# what stands inside quotes or a comment is no parameter
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|--[^\n]*|(?<!:):([a-z_]+)""")
_FROM = re.compile(r"(?:from|join)\s+(\w+)")
REQUIRED, NOW, NULL = "required", "now", "null"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A named value of a question."""

    name: Annotated[str, "name, for --param"]
    type: Annotated[str, "text, number or timestamp"]
    default: Annotated[str, "a value, or the word required, now or null"]
    comment: Annotated[str, "meaning"]


@dataclass(frozen=True, slots=True)
class Question:
    """A file of conf/sql."""

    name: str  # Q7
    title: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, str], ...]  # name and meaning
    sql: str
    tables: tuple[str, ...]


def read_questions() -> dict[str, Question]:
    """Return all questions by name, in their order."""
    return {
        question.name: question
        for question in (parse(path) for path in sorted(conf_file("sql").glob("q*.sql")))
    }


def find_question(name: str) -> Question:
    """Return the question with this name in any case, such as Q7 or q7."""
    questions = read_questions()
    if name.upper() not in questions:
        raise LaggardError(
            f"no question {name!r}", cause="", fix="laggard query --list", exit_code=NOT_FOUND
        )
    return questions[name.upper()]


def parse(path: Path) -> Question:
    """Return a question from its file."""
    text = path.read_text(encoding="utf-8")
    head = text[: text.index("\n\n")].splitlines()
    title = _TITLE.fullmatch(head[0])
    if title is None:
        raise ValueError(f"{path.name} does not begin with its question")
    sections: dict[str, list[list[str]]] = {"Parameters": [], "Columns": []}
    rows: list[list[str]] = []
    for line in (comment.removeprefix("--") for comment in head[1:]):
        if line.strip() in sections:
            rows = sections[line.strip()]
        elif line.startswith("   "):
            rows.append(re.split(r"\s{2,}", line.strip()))
    body = re.sub(r"--[^\n]*", "", text)
    return Question(
        title[1],
        title[2],
        tuple(Parameter(name.removeprefix(":"), *rest) for name, *rest in sections["Parameters"]),
        tuple((name, meaning) for name, meaning in sections["Columns"]),
        text,
        tuple(name for name in TABLES if name in _FROM.findall(body)),
    )


def fill(question: Question, values: Mapping[str, str], now: datetime) -> str:
    """Return the SQL with parameters as literals.

    Values come from `values` if given, else from the defaults at the time of the tick.
    """
    known = {parameter.name: parameter for parameter in question.parameters}
    for name in values:
        if name not in known:
            raise LaggardError(
                f"{question.name} has no parameter {name!r}",
                cause="it has " + ", ".join(known),
                fix=f"laggard query --list shows them; give --param {next(iter(known))}=…",
                exit_code=USAGE,
            )
    given = {name: _literal(question, parameter, values, now) for name, parameter in known.items()}
    return _TOKEN.sub(
        lambda match: given[match[1]] if match[1] in given else match[0], question.sql
    )


def fill_names(sql: str, values: Mapping[str, str], now: datetime) -> str:
    """Return a user's SQL with each `:name` replaced by a literal.

    The literal is a time for :from and :to, else a number or a text.

    What is compared with a column of texts is a text, also when it has digits only.
    """
    texts = {"to": NOW, **values}

    def literal(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return match[0]
        if name not in texts:
            raise LaggardError(
                f"the query needs {name}",
                cause=f":{name} stands for a value",
                fix=f"add --param {name}=…",
                exit_code=USAGE,
            )
        if name in ("from", "to"):
            return _time_literal(_moment(texts[name], now, now))
        is_text = _COMPARED.search(sql, 0, match.start()) or _COMPARES.match(sql, match.end())
        return (
            texts[name]
            if _EXACT.fullmatch(texts[name]) and not is_text
            else _text_literal(texts[name])
        )

    filled = _TOKEN.sub(literal, sql)
    unused = values.keys() - {match[1] for match in _TOKEN.finditer(sql)} - {"from", "to"}
    if unused:
        raise LaggardError(
            f"the query has no :{min(unused)}",
            fix=f"write :{min(unused)} where its value belongs",
            exit_code=USAGE,
        )
    return filled


def range_of(question: Question | None, values: Mapping[str, str], now: datetime) -> Range:
    """Return the time range of a question; without a question that of --from and --to."""
    texts = (
        {parameter.name: parameter.default for parameter in question.parameters} if question else {}
    )
    texts |= values
    end = _moment(texts["to"], now, now) if "to" in texts else None
    begin = _moment(texts["from"], end or now, now) if "from" in texts else None
    if begin and end and begin > end:
        raise LaggardError(
            "the range ends before it begins",
            cause=f"it begins at {moment(begin)} and ends at {moment(end)}",
            fix="for example --from 3h --to 2h, counted back from the newest tick",
            exit_code=USAGE,
        )
    return Range(begin, end)


def _literal(
    question: Question, parameter: Parameter, values: Mapping[str, str], now: datetime
) -> str:
    is_given = parameter.name in values
    text = values[parameter.name] if is_given else parameter.default
    if text == REQUIRED and not is_given:
        raise LaggardError(
            f"{question.name} needs {parameter.name}",
            cause=parameter.comment,
            fix=f"laggard query --name {question.name} --param {parameter.name}=…",
            exit_code=USAGE,
        )
    if text == NULL and not is_given:
        return NULL
    if parameter.type == "timestamp":
        moment = _moment(text, _moment(values.get("to", NOW), now, now), now)
        return _time_literal(moment)
    if parameter.type == "number":
        if not _NUMBER.fullmatch(text):
            raise LaggardError(
                f"{parameter.name} must be a number",
                cause=f"{text!r}",
                fix="for example 20",
                exit_code=USAGE,
            )
        return text
    return _text_literal(text)


def _text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _time_literal(moment: datetime) -> str:
    return f"cast('{moment.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}Z' as timestamp)"


def _moment(text: str, end: datetime, now: datetime) -> datetime:
    before = _BEFORE.fullmatch(text)
    if before:
        return end - timedelta(**{before[2] + "s": int(before[1])})
    try:
        return when(text)(now)
    except ArgumentTypeError as error:
        raise LaggardError(
            f"{text!r} is not a time",
            cause=str(error),
            fix="for example --from 2h --to now",
            exit_code=USAGE,
        ) from error
