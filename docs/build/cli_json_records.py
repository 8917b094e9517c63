"""Schemas of the records of `laggard decode`, from the tables that the decoder uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from laggard.answers.schema.parts import TEXT, WHOLE, Schema, list_of, object_of, or_null, ref
from laggard.wire import primitives as read
from laggard.wire.decode import OutcomeName
from laggard.wire.schemas import RECORD_TYPES
from laggard.wire.structs import NEWEST, Field, Nested, Table

_HEX: Schema = TEXT | {"description": "bytes in hex"}
_KINDS: Mapping[Any, Schema] = {
    **dict.fromkeys(
        (read.read_int8, read.read_int16, read.read_uint16, read.read_int32, read.read_int64), WHOLE
    ),
    **dict.fromkeys(
        (
            read.read_uuid,
            read.read_nonzero_uuid,
            read.read_string,
            read.read_nullable_string,
            read.read_compact_string,
            read.read_compact_nullable_string,
            read.read_lossy_string,
            read.read_compact_lossy_string,
        ),
        TEXT,
    ),
    **dict.fromkeys((read.read_bytes, read.read_compact_bytes), _HEX),
}
_NULLABLE = {
    read.read_nonzero_uuid,
    read.read_nullable_string,
    read.read_compact_nullable_string,
    read.nullable,
    read.tagged_nullable,
    read.nullable_array_of,
    read.compact_nullable_array_of,
}


def _of_fields(fields: Sequence[Field]) -> Schema:
    """Return schema of a field, which is in its table twice if its encoding changed."""
    field = fields[-1]
    reader = field.reader
    if isinstance(reader, Nested):
        struct = of_table(reader.table)
        found = (
            struct if reader.around in {read.nullable, read.tagged_nullable} else list_of(struct)
        )
        is_nullable = reader.around in _NULLABLE
    else:
        found = _KINDS.get(reader, {"type": "array"})  # the others read lists of texts or numbers
        is_nullable = reader in _NULLABLE
    is_everywhere = field.tag is None and (fields[0].since, field.until) == (0, NEWEST)
    return or_null(found) if is_nullable or (field.default is None and not is_everywhere) else found


def of_table(table: Table, text: str = "") -> Schema:
    """Return schema of a struct with every field of its table.

    This includes the fields that its version does not have.
    """
    found: dict[str, list[Field]] = {}
    for field in table:
        found.setdefault(field.name, []).append(field)
    return object_of({name: _of_fields(fields) for name, fields in found.items()}, text=text)


_PLACE = "group-coordinator/src/main/resources/common/message"
RECORDS: dict[str, Schema] = {
    f"{each.name}{part}": of_table(
        table, f"{each.name}{part}.json in {_PLACE} of Kafka, names in snake case"
    )
    for each in RECORD_TYPES.values()
    for part, table in (("Key", each.key), ("Value", each.value))
}
DECODED = list_of(
    object_of(
        {
            "outcome": TEXT
            | {
                "enum": [*get_args(OutcomeName), "invalid_input"],
                "description": "invalid_input: the line is not of its form; malformed: its bytes "
                "are no record",
            },
            "error": TEXT
            | {
                "description": "kind of the fault, or the line and what is wrong with it; only "
                "with one"
            },
            **{
                part.lower(): {
                    "anyOf": [ref(name) for name in RECORDS if name.endswith(part)],
                    "description": f"{part.lower()} of the record; only if it could be decoded",
                }
                for part in ("Key", "Value")
            },
        },
        ["error", "key", "value"],
    )
) | {"description": "one for each line of the input, in their order"}
