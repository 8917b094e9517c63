"""Check documents against a JSON Schema, and list what of it no document has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

_TIMES = FormatChecker(())


@_TIMES.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    """ISO 8601 in UTC, with its offset."""
    return not isinstance(value, str) or (
        value[10:11] == "T" and datetime.fromisoformat(value).utcoffset() == timedelta()
    )


def strict(schema: Any) -> Any:
    """The same schema without room for keys that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: strict(each) for name, each in schema.items()}
    if (
        "properties" in found
        and isinstance(found["properties"], dict)
        and "object" in found.get("type", ())
    ):
        found["additionalProperties"] = False
    return found


def faults(schema: Mapping[str, Any], document: Any) -> list[str]:
    """Where a document is not what the schema says: a key too many or too few, a type, a time that
    is none.
    """
    return [f"{each.json_path}: {each.message}" for each in validator(schema).iter_errors(document)]


def validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(schema, format_checker=_TIMES)


Path = tuple[str | int, ...]


def keys(schema: Mapping[str, Any], document: Any) -> Iterator[Path]:
    """Path of each key of a document that the schema names; of a list the first element stands for
    all.
    """
    for path, _ in _keys(schema, schema, document, ()):
        if not any(isinstance(step, int) and step > 0 for step in path):
            yield path


def unseen(schema: Mapping[str, Any], documents: Iterable[Any]) -> set[str]:
    """Dotted paths of declared keys that have no value but null in any of the documents."""
    seen = set()
    for document in documents:
        for path, value in _keys(schema, schema, document, ()):
            if value is not None:
                seen.add(".".join(step for step in path if isinstance(step, str)))
    return set(_declared(schema, schema, ())) - seen


def _declared(
    whole: Mapping[str, Any], schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[str]:
    for part in _parts(whole, schema):
        for name, each in part.get("properties", {}).items():
            yield ".".join((*path, name))
            yield from _declared(whole, each, (*path, name))
        if "items" in part:
            yield from _declared(whole, part["items"], path)


def _keys(
    whole: Mapping[str, Any], schema: Mapping[str, Any], value: Any, path: Path
) -> Iterator[tuple[Path, Any]]:
    for part in _parts(whole, schema):
        if isinstance(value, list) and "items" in part:
            for number, each in enumerate(value):
                yield from _keys(whole, part["items"], each, (*path, number))
        if isinstance(value, dict):
            for name, each in part.get("properties", {}).items():
                if name in value:
                    yield (*path, name), value[name]
                    yield from _keys(whole, each, value[name], (*path, name))


def _parts(whole: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema, and those that it refers to."""
    yield schema
    for each in schema.get("anyOf", ()):
        yield from _parts(whole, each)
    if "$ref" in schema:
        yield from _parts(whole, whole["$defs"][schema["$ref"].rpartition("/")[2]])
