"""Key and value of one record to exactly one outcome, for any bytes."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from laggard.wire.errors import ErrorKind, WireError
from laggard.wire.primitives import Reader, read_int16
from laggard.wire.schemas import RECORD_TYPES
from laggard.wire.structs import Struct, struct_reader

OutcomeName: TypeAlias = Literal["record", "tombstone", "unsupported", "malformed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of decoding one record; a decoded key is kept, the error only after a failure."""

    outcome: OutcomeName
    record_type: int | None = None
    value_version: int | None = None
    key: Struct | None = None
    value: Struct | None = None
    error: ErrorKind | None = None
    field: str | None = None

    @property
    def group(self) -> str | None:
        """Return the key's group, named `group` in types 0 to 2 and `group_id` in later ones."""
        if self.key is None:
            return None
        return self.key.get("group", self.key.get("group_id"))


_KEY_READERS = {number: struct_reader(known.key, 0) for number, known in RECORD_TYPES.items()}
_VALUE_READERS = {
    (number, version): struct_reader(
        known.value, version, is_flexible=version >= known.flexible_since
    )
    for number, known in RECORD_TYPES.items()
    for version in range(known.newest + 1)
}


def _read_to_the_end(reader: Reader[Struct], buffer: bytes) -> Struct:
    head = 2  # the int16 of record type or value version
    struct, size = reader(buffer, head)
    if head + size != len(buffer):
        raise WireError("trailing_bytes")
    return struct


def _peek_version(value: bytes | None) -> int | None:
    if value is None or len(value) < 2:
        return None
    return read_int16(value, 0)[0]


def decode_key(key: bytes | None) -> Outcome:
    """Decode a key alone; outcome `record` says that the key is good and the value not yet seen."""
    if key is None:
        return Outcome("malformed", error="null_key")
    try:
        record_type, _ = read_int16(key, 0)
    except WireError as error:
        return Outcome("malformed", error=error.kind, field="record_type")
    reader = _KEY_READERS.get(record_type)
    if reader is None:
        return Outcome("unsupported", record_type, error="unknown_record_type", field="record_type")
    try:
        return Outcome("record", record_type, key=_read_to_the_end(reader, key))
    except WireError as error:
        return Outcome("malformed", record_type, error=error.kind, field=error.field)


def decode_value(record_type: int, value: bytes | None, key: Struct | None = None) -> Outcome:
    """Decode the value of a record whose key is known to be good.

    The key is handed through to the outcome.
    """
    version = _peek_version(value)
    if record_type not in RECORD_TYPES:
        return Outcome(
            "unsupported",
            record_type,
            version,
            key,
            error="unknown_record_type",
            field="record_type",
        )
    if value is None:
        return Outcome("tombstone", record_type, None, key)
    if version is None:
        return Outcome(
            "malformed", record_type, None, key, error="truncated", field="value_version"
        )
    reader = _VALUE_READERS.get((record_type, version))
    if reader is None:
        return Outcome(
            "unsupported",
            record_type,
            version,
            key,
            error="unknown_value_version",
            field="value_version",
        )
    try:
        return Outcome("record", record_type, version, key, _read_to_the_end(reader, value))
    except WireError as error:
        return Outcome("malformed", record_type, version, key, error=error.kind, field=error.field)


def join_value(key: Outcome, value: bytes | None) -> Outcome:
    """Complete the outcome of a decoded key with its value; key errors come first."""
    if key.outcome == "record" and key.record_type is not None:
        return decode_value(key.record_type, value, key.key)
    return Outcome(
        key.outcome, key.record_type, _peek_version(value), error=key.error, field=key.field
    )


def decode(key: bytes | None, value: bytes | None) -> Outcome:
    """Decode one record; check key, null value, version, value, in this order.

    The first failure is the error.
    """
    return join_value(decode_key(key), value)


def with_hex(decoded: Any) -> Any:
    """Return decoded fields with their bytes as lower-case hex, ready for JSON."""
    match decoded:
        case bytes():
            return decoded.hex()
        case dict():
            return {name: with_hex(value) for name, value in decoded.items()}
        case list() | tuple():
            return [with_hex(item) for item in decoded]
        case _:
            return decoded


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Return a record's content as printed: outcome, error, key and value, where present."""
    parts = {
        "outcome": outcome.outcome,
        "error": outcome.error,
        "key": outcome.key,
        "value": outcome.value,
    }
    return {name: with_hex(part) for name, part in parts.items() if part is not None}
