"""Checks of one value against the default it replaces, and their errors."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

CODES = "list of codes such as NO_RULE_MATCHED"
_TYPE_NAMES = {
    bool: "boolean", int: "integer", str: "string", list: "list", tuple: "list of strings",
    dict: "table",
}  # fmt: skip


def typed(value: Any, default: Any, text: str | None = None) -> Any:
    """Return the value in the default's type.

    `text` is the value as written outside a TOML file.
    """
    given, wanted = type(value), type(default)
    if wanted is str and text is not None and given is not str:
        return text  # a cluster called 2024 has a name, not a number
    if (given, wanted) == (list, tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if (given, wanted) == (int, float):
        return float(value)
    if given is not wanted:
        got = _TYPE_NAMES.get(given, given.__name__)
        raise ValueError(f"expected {_TYPE_NAMES.get(wanted, 'number')}, got {got} {shown(value)}")
    return value


def is_code(text: str) -> bool:
    """Return True if the text looks like the code of a finding."""
    return re.fullmatch(r"[A-Z][A-Z0-9_]*", text) is not None


def shown(value: Any) -> str:
    """Return the value as messages show it."""
    # here and below: only needed when something is wrong, and the command line starts often
    import json

    return json.dumps(value, default=str, ensure_ascii=False)


def suggestion(key: str, known: Collection[str]) -> str:
    """Return a hint at the most similar known key.

    The match is by its full name, else by its last part in any section.
    """
    import difflib

    by_name = {dotted.rpartition(".")[2]: dotted for dotted in known}
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.85)
    near = near or [
        by_name[name]
        for name in difflib.get_close_matches(key.rpartition(".")[2], by_name, n=1, cutoff=0.85)
    ]
    return f" (did you mean {near[0]}?)" if near else ""
