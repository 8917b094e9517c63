"""Documents declared as classes: their JSON Schema and their JSON.

A field with a meaning, `Annotated[int, "rows that break it"]`, is a key of the document; a mapping
beside the meaning is added to its schema. A field without a meaning is not printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from math import isnan
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from laggard.answers.schema.parts import (
    FLAG,
    NUMBER_OR_NULL,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    list_of,
    object_of,
    or_null,
)

Unsure = Annotated[float, NUMBER_OR_NULL]  # NaN is unknown, and null in the document
_SCALARS: Mapping[object, Schema] = {
    str: TEXT,
    int: WHOLE,
    float: {"type": "number"},
    bool: FLAG,
    datetime: TIME,
    Any: {},
    Counter: {"type": "object", "additionalProperties": WHOLE},
    dict: {"type": "object"},
    Mapping: {"type": "object"},
}


@cache
def keys(kind: type) -> Mapping[str, Any]:
    """Return the fields of a class that have a meaning, with their types."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint for name, hint in hints.items() if any(map(_is_text, _notes(hint)))}


def printed(value: Any) -> Any:
    """Return a value with its documents as JSON has them; an unknown number (NaN) is null."""
    if hints := keys(value.__class__):
        return {name: _of_field(getattr(value, name), hint) for name, hint in hints.items()}
    if isinstance(value, list | tuple):
        return [printed(entry) for entry in value]
    if isinstance(value, dict):
        return {name: printed(entry) for name, entry in value.items()}
    return value


def _of_field(value: Any, hint: Any) -> Any:
    if isinstance(value, float) and isnan(value) and NUMBER_OR_NULL in _notes(hint):
        return None
    return printed(value)


def schema_of(hint: Any) -> Schema:
    """Return the schema of a type, or of a class that is a document.

    Raises TypeError for a type that no document may have.
    """
    outer, inner = get_origin(hint), get_args(hint)
    if outer is Annotated:
        return schema_of(inner[0]) | _of_notes(inner[1:])
    if outer in {Union, UnionType}:
        return or_null(schema_of(next(kind for kind in inner if kind is not type(None))))
    if outer in {tuple, list}:
        return list_of(schema_of(inner[0]))
    if outer is Literal:
        return TEXT | {"enum": list(inner)}
    schema = _SCALARS.get(outer or hint)
    if schema is not None:
        return schema
    if isinstance(hint, type) and (hints := keys(hint)):
        return object_of({name: schema_of(hints[name]) for name in hints})
    raise TypeError(f"no schema is declared for {hint}")


def _notes(hint: Any) -> Iterator[Any]:
    if get_origin(hint) is Annotated:
        yield from get_args(hint)[1:]


def _of_notes(notes: Iterable[Any]) -> Schema:
    schema: Schema = {}
    for note in notes:
        schema |= {"description": note} if _is_text(note) else note
    return schema


def _is_text(note: Any) -> bool:
    return isinstance(note, str)
