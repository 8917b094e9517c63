"""Parts of the schemas in docs/cli-json, made from what laggard declares.

A key that a class declares is taken from there, with its type. A field without a meaning is an
error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from laggard.answers.schema_parts import FLAG, TEXT, TIME, WHOLE, Schema, list_of, or_null

_SCALARS: Mapping[object, Schema] = {
    str: TEXT,
    int: WHOLE,
    float: {"type": "number"},
    bool: FLAG,
    datetime: TIME,
    Any: {},
    Counter: {"type": "object", "additionalProperties": WHOLE},
    Mapping: {"type": "object"},
}


def said(schema: Schema, text: str) -> Schema:
    """Return the schema with its meaning."""
    return schema | {"description": text}


def of_hint(hint: Any) -> Schema:
    """Return schema of a type annotation."""
    outer, inner = get_origin(hint), get_args(hint)
    if outer in {Union, UnionType}:
        return or_null(of_hint(next(each for each in inner if each is not type(None))))
    if outer in {tuple, list}:
        return list_of(of_hint(inner[0]))
    found = _SCALARS.get(outer or hint)
    if found is None:
        raise TypeError(f"no schema is declared for {hint}")
    return found


def of_class(kind: type, texts: Mapping[str, str], but: Iterable[str] = ()) -> dict[str, Schema]:
    """Return fields of a dataclass with their meaning.

    `but` names the fields that are not printed, or are elsewhere.
    """
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.name not in set(but)]
    if set(names) != set(texts):
        raise ValueError(f"{kind.__name__} has {names}, and a meaning is given for {sorted(texts)}")
    return {name: said(of_hint(hints[name]), texts[name]) for name in names}


CLUSTER = {"cluster": said(TEXT, "name of the Kafka cluster")}
GROUP_TEXT = "consumer group, as it is"
