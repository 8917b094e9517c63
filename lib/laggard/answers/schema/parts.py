"""Parts of a JSON Schema, made from a table's columns, from the fields of a class, or by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laggard.tables.schema.schemas import Table

Schema = dict[str, Any]
_FORMATS = {"timestamp": "date-time", "date": "date"}
_SCALARS = {
    "string": "string",
    "int": "integer",
    "bigint": "integer",
    "double": "number",
    "boolean": "boolean",
}
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
NUMBER_OR_NULL: Schema = {"type": ["number", "null"]}


def or_null(schema: Schema) -> Schema:
    """Return the schema extended by null, which means unknown."""
    if "type" in schema and isinstance(schema["type"], str):
        enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return schema | {"type": [schema["type"], "null"]} | enum
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list of any length, also an empty one."""
    return {"type": "array", "items": items}


def ref(name: str) -> Schema:
    """Return a reference to one of `SCHEMAS` by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(
    properties: Mapping[str, Schema], optional: Iterable[str] = (), text: str = ""
) -> Schema:
    """Return the schema of an object with these keys, all required except the optional ones."""
    required = [name for name in properties if name not in set(optional)]
    schema: Schema = {"type": "object", "properties": dict(properties), "required": required}
    return schema | {"description": text} if text else schema


def of_type(ddl: str) -> Schema:
    """Return the schema of a Spark DDL type; every value may be null, also nested ones."""
    if ddl in _FORMATS:
        return {"type": ["string", "null"], "format": _FORMATS[ddl]}
    if ddl in _SCALARS:
        return {"type": [_SCALARS[ddl], "null"]}
    outer, _, rest = ddl.partition("<")
    inner = rest.removesuffix(">")
    if outer == "array":
        return {"type": ["array", "null"], "items": of_type(inner)}
    if outer == "map":
        return {
            "type": ["object", "null"],
            "additionalProperties": of_type(inner.partition(",")[2]),
        }
    parts = (part.partition(":") for part in inner.split(","))
    return or_null(object_of({name: of_type(kind) for name, _, kind in parts}))


def columns(table: Table, names: Iterable[str]) -> dict[str, Schema]:
    """Return the schemas of a table's columns, with their comments."""
    by_name = {column.name: column for column in table.columns}
    return {
        name: of_type(by_name[name].type)
        | {
            "description": by_name[name].comment
            + (f"; null: {by_name[name].null}" if by_name[name].null else "")
        }
        for name in names
    }


def without(table: Table, *left_out: str) -> dict[str, Schema]:
    """Return the schemas of all columns of a table but these."""
    return columns(table, (name for name in table.names if name not in left_out))
