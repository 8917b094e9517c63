"""YAML of a web-config file, read strictly, with each value as written.

No key may occur twice; anchors, tags and second documents are not allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

MAX_DEPTH = 4  # the format has three levels
NULLS = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its line; the text of a scalar, None for null."""

    line: int
    value: Value
    # written without quotes, so that YAML may read a number or a switch in it
    is_plain: bool = False


Value: TypeAlias = "str | dict[str, Node] | list[Node] | None"


class BadYaml(ValueError):  # noqa: N818 - the sentence is the error
    """An error with its place in the file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"{line}: {problem}")


def read_yaml(content: bytes) -> Node:
    """Return the single document of a file; an empty file is null."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise BadYaml(
            content[: error.start].count(b"\n") + 1, f"not UTF-8 at byte {error.start}"
        ) from error
    try:
        return _document(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadYaml(mark.line + 1 if mark else 1, error.problem or "not YAML") from error
    except yaml.YAMLError as error:
        raise BadYaml(1, " ".join(str(error).split())) from error
    except (ValueError, OverflowError) as error:  # "\U00110000" is beyond Unicode
        if isinstance(error, BadYaml):
            raise
        raise BadYaml(1, f"no text: {error}") from error


def _document(events: Iterator[Any]) -> Node:
    document: Node | None = None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if document is not None:
                raise BadYaml(_line(event), "a second document")
            document = _node(next(events), events, MAX_DEPTH)
    return document or Node(1, None)


def _node(event: Any, events: Iterator[Any], depth: int) -> Node:
    line = _line(event)
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise BadYaml(line, "anchors and aliases are not taken")
    if event.tag is not None:
        raise BadYaml(line, f"tags are not taken ({event.tag})")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event, line)
    if depth == 0:
        raise BadYaml(line, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(event, yaml.SequenceStartEvent):
        return Node(line, list(_until(yaml.SequenceEndEvent, events, depth)))
    inner = _until(yaml.MappingEndEvent, events, depth)
    table: dict[str, Node] = {}
    for key in inner:
        value = next(inner)
        if not isinstance(key.value, str):
            raise BadYaml(key.line, "a key is a text")
        if key.value in table:
            raise BadYaml(key.line, f"{key.value}: given twice")
        table[key.value] = value
    return Node(line, table)


def _until(end: type, events: Iterator[Any], depth: int) -> Iterator[Node]:
    for event in events:
        if isinstance(event, end):
            return
        yield _node(event, events, depth - 1)


def _scalar(event: Any, line: int) -> Node:
    is_plain = event.style is None
    try:
        event.value.encode()
    except UnicodeEncodeError as error:
        raise BadYaml(line, "half of a surrogate pair is no text") from error
    return Node(line, None if is_plain and event.value in NULLS else event.value, is_plain)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
