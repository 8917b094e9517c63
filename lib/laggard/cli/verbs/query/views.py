"""Views that every reader can make: the self-explanatory statements of conf/sql/views.sql."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from laggard.conf import conf_file

_HEAD = re.compile(r"-- (\w+)  (.+)")


@dataclass(frozen=True, slots=True)
class View:
    """A view; `sql` is the whole statement that makes it."""

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]  # name and meaning
    sql: str


@cache
def read_views() -> dict[str, View]:
    """Return all views by name, in their order."""
    text = conf_file("sql/views.sql").read_text(encoding="utf-8")
    statements = text.partition("\n\n")[2].split(";\n")
    return {view.name: view for view in map(_parse, filter(str.strip, statements))}


def _parse(statement: str) -> View:
    comment, _, body = statement.strip().partition("create view ")
    head, *lines = comment.splitlines()
    match = _HEAD.fullmatch(head)
    if match is None or not body.startswith(f"{match[1]} as"):
        raise ValueError(f"views.sql: {head!r} does not name the view below it")
    columns = [re.split(r"\s{2,}", line.removeprefix("--").strip()) for line in lines]
    return View(
        match[1],
        match[2],
        tuple((name, meaning) for name, meaning in columns),
        "create view " + body,
    )


def named_views(sql: str) -> list[View]:
    """Return the views that a query may name."""
    words = set(re.findall(r"\w+", sql))
    return [view for view in read_views().values() if view.name in words]
