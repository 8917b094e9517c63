"""Arrow types and schemas of the declared tables, for readers and tests without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from laggard.tables.schema.schemas import Table

_SCALARS = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_type(ddl: str) -> pa.DataType:
    """Return the Arrow type of a Spark DDL type, for the types that the tables use."""
    if ddl in _SCALARS:
        return _SCALARS[ddl]
    outer, _, rest = ddl.partition("<")
    parts = _split(rest.removesuffix(">"))
    if outer == "array":
        return pa.list_(arrow_type(parts[0]))
    if outer == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    if outer == "struct":
        named = (part.partition(":") for part in parts)
        return pa.struct([pa.field(name, arrow_type(inner)) for name, _, inner in named])
    raise ValueError(f"no Arrow type for {ddl}")


@cache
def arrow_schema(table: Table) -> pa.Schema:
    """Return the schema of a table; every column may be null, as in Delta."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in table.columns])


def to_arrow(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows of a table from dicts; a column that a dict leaves out is null."""
    schema = arrow_schema(table)
    if not rows:
        return schema.empty_table()
    return pa.Table.from_pylist(rows, schema=schema)


def _split(text: str) -> list[str]:
    """Split a text at the commas that are not inside <…>."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
