"""Parameters of questions, their checks, and an error for each wrong value."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import translate
from typing import Any

from laggard.answers.evaluated import LEVELS, SEVERITIES
from laggard.answers.groups import SORTS
from laggard.answers.text.times import HELP, When, when
from laggard.escape import escape_label
from laggard.lag.burrow import VERDICTS

FIRST_PAGE, MAX_PAGE = 500, 5000
MAX_BACK = timedelta(days=30)
MAX_REBALANCES = 1000
MAX_TEXT = 300  # characters of a parameter
MAX_LABEL = 1024  # also a name that is shown cut fits
_MAX_CURSOR = 8192  # which has a name in it, in base64
DATA_STATUSES = ("ok", "partial", "stale")


class ApiError(Exception):
    """A question without a possible answer: HTTP code, our own code, a sentence, right values.

    The right values show a correct question.
    """

    def __init__(
        self, status: int, code: str, message: str, choices: Sequence[str] = (), **more: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.document = {
            "error": {"code": code, "message": message, "choices": list(choices), **more}
        }


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query."""

    name: str
    text: str
    read: Callable[[str], Any]
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    default: Any = None
    longest: int = MAX_TEXT
    is_needed: bool = False


class Glob:
    """A pattern of names, compiled for one question.

    fnmatch keeps 32,768 patterns, and clients invent them.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            self._match = re.compile(translate(text)).match
        except re.error:
            raise ArgumentTypeError(f"expected a glob, got {text!r}") from None

    def fits(self, name: str) -> bool:
        """Return True if the pattern matches a name, either exact or as escaped for labels."""
        return bool(self._match(name) or self._match(escape_label(name)))

    def __str__(self) -> str:
        return self._text


def _text(value: str) -> str:
    return value


def _code(value: str) -> Glob:
    return Glob(value.upper())


def _one_of(*values: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in values:
            raise ArgumentTypeError(f"expected one of {', '.join(values)}, got {value!r}")
        return value

    return read


def _whole(most: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0
        if not 0 < number <= most:
            raise ArgumentTypeError(f"expected a number from 1 to {most}, got {value!r}")
        return number

    return read


def _seconds(value: str) -> float:
    # float would take 1_0, nan and digits of other scripts
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", value):
        raise ArgumentTypeError(f"expected seconds, got {value!r}")
    return float(value)


def _flag(value: str) -> bool:
    return _one_of("true", "false")(value) == "true"


def _choice(name: str, text: str, *values: str, default: str | None = None) -> Parameter:
    return Parameter(name, text, _one_of(*values), {"type": "string", "enum": [*values]}, default)


def _number(name: str, text: str, most: int, default: int | None = None) -> Parameter:
    return Parameter(
        name, text, _whole(most), {"type": "integer", "minimum": 1, "maximum": most}, default
    )


_GLOB = "glob on the name, as it is or as the metrics have it"
CLUSTER = Parameter("cluster", f"cluster; {_GLOB}", Glob)
ONE_CLUSTER = Parameter("cluster", "cluster of the group, if several have one of this name", _text)
GROUP = Parameter("group", f"group; {_GLOB}", Glob, longest=MAX_LABEL)
PAGE = (
    _number("limit", "most entries in one answer", MAX_PAGE, FIRST_PAGE),
    Parameter("after", "`next` of the answer before", _text, longest=_MAX_CURSOR),
)
TOPIC = Parameter("topic", "only this topic of the group", _text)
GROUPS = (
    CLUSTER,
    GROUP,
    Parameter("topic", "only groups with a topic whose name matches the glob", Glob),
    Parameter(
        "search",
        "part of the group's, owner's or team's name; upper and lower case are the same",
        _text,
    ),
    Parameter("state", "Kafka's state of the group, as Stable", _text),
    _choice("health", "worst severity of an open finding, else what the lag says", *LEVELS),
    _choice("verdict", "worst verdict of a partition", *VERDICTS),
    _choice("status", "how far the lag is known", *DATA_STATUSES),
    Parameter("team", f"team of the policy; {_GLOB}", Glob),
    Parameter(
        "min_time_lag_seconds",
        "only groups known to be so far behind",
        _seconds,
        {"type": "number", "minimum": 0},
    ),
    _choice("sort", "order; severity is that of `laggard status`", *SORTS, default=SORTS[0]),
    Parameter(
        "rebalances",
        "true: also rebalances so far and the last one, as `laggard status --rebalances`",
        _flag,
        {"type": "boolean"},
        default="false",
    ),
    *PAGE,
)
FINDINGS = (
    CLUSTER,
    GROUP,
    Parameter("code", "code; * stands for any letters", _code),
    _choice("severity", "only this severity", *SEVERITIES),
    _choice("state", "only open ones, or only those that ended", "open", "closed"),
    Parameter(
        "since",
        f"also those that ended since then, at most {MAX_BACK.days}d back: {HELP}",
        when,
        default="24h",
    ),
    Parameter(
        "suppressed",
        "true: also those that another finding explains",
        _flag,
        {"type": "boolean"},
        default="false",
    ),
    *PAGE,
)
LABEL = Parameter(
    "group",
    "name of the group as in the labels of the metrics, else as it is",
    _text,
    longest=MAX_LABEL,
    is_needed=True,
)
PAGE_LINES = Parameter(
    "page",
    "true: also the lines that `laggard explain` prints",
    _flag,
    {"type": "boolean"},
    default="false",
)
_SINCE = Parameter("since", "also what was found since then, and the rebalances since then", when)
ONE_GROUP = (
    ONE_CLUSTER,
    TOPIC,
    _SINCE,
    _number("limit", "most partitions, the worst first", MAX_PAGE, FIRST_PAGE),
    PAGE_LINES,
)
GROUP_BY_LABEL = (LABEL, *ONE_GROUP)
EXPLAIN = (
    ONE_CLUSTER,
    TOPIC,
    Parameter("at", f"show the group at this time: {HELP}", when),
    _SINCE,
    _number("limit", "most rebalances; default 5, with since 1000", MAX_REBALANCES),
    _number("partitions", "most partitions, the furthest behind first", MAX_PAGE, MAX_PAGE),
)
CLUSTERS: tuple[Parameter, ...] = ()
OPENAPI: tuple[Parameter, ...] = ()


def refuse_long(since: When | None, end: datetime) -> None:
    """Refuse a range that takes too long to read."""
    if since is not None and since(end) < end - MAX_BACK:
        raise ApiError(
            400,
            "bad_parameter",
            f"since: expected at most {MAX_BACK.days}d before the time of the page",
        )


def read_parameters(pairs: Sequence[tuple[str, str]], known: Sequence[Parameter]) -> dict[str, Any]:
    """Return every parameter by its name; None if it is not given.

    An unknown or malformed parameter is an error.
    """
    by_name = {parameter.name: parameter for parameter in known}
    given = _given(pairs, by_name)
    values: dict[str, Any] = {}
    for name, parameter in by_name.items():
        text = given.get(name, parameter.default)
        if text is None and parameter.is_needed:
            raise ApiError(400, "bad_parameter", f"{name}: is needed here")
        try:
            values[name] = None if text is None else parameter.read(str(text))
        except ArgumentTypeError as error:
            choices = [str(value) for value in parameter.schema.get("enum", ())]
            raise ApiError(400, "bad_parameter", f"{name}: {error}", choices) from error
    return values


def _given(pairs: Sequence[tuple[str, str]], by_name: Mapping[str, Parameter]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in by_name:
            raise ApiError(
                400, "unknown_parameter", f"no parameter {escape_label(name)!r} here", list(by_name)
            )
        if name in given:
            raise ApiError(400, "repeated_parameter", f"{name} is given twice")
        if len(value) > by_name[name].longest:
            longest = by_name[name].longest
            raise ApiError(
                400,
                "bad_parameter",
                f"{name}: expected at most {longest} characters, got {len(value)}",
            )
        given[name] = value
    return given
