"""The golden vectors: bytes that Kafka's own classes have read, with what they mean."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS = json.loads(
    (Path(__file__).parent.parent / "data" / "vectors.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Vector:
    name: str
    record_type: int | None
    value_version: int | None
    key: bytes | None
    value: bytes | None
    expect: dict[str, Any]


def _bytes(written: Any) -> bytes | None:
    match written:
        case None:
            return None
        case str():
            return bytes.fromhex(written)
        case {"concat": parts}:
            return b"".join(_bytes(part) or b"" for part in parts)
        case {"repeat": [unit, times]}:
            return bytes.fromhex(unit) * int(times)
    raise AssertionError(written)


def _expanded(written: Any) -> Any:
    match written:
        case {"repeat": [unit, times]}:
            return unit * times
        case dict():
            return {name: _expanded(value) for name, value in written.items()}
        case list():
            return [_expanded(item) for item in written]
    return written


RECORDS = [
    Vector(
        name=vector["name"],
        record_type=vector["record_type"],
        value_version=vector["value_version"],
        key=_bytes(vector["key_hex"]),
        value=_bytes(vector["value_hex"]),
        expect=_expanded(vector["expect"]),
    )
    for vector in VECTORS["records"]
]
VALID = [vector for vector in RECORDS if vector.expect["outcome"] in ("record", "tombstone")]
