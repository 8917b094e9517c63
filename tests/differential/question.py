"""Bytes that laggard, Kafka and the description of the format are asked to read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from differential import reading
from differential.reading import Answer
from laggard.wire.decode import decode, with_hex
from laggard.wire.member_blobs import decode_assignment, decode_subscription

Read: TypeAlias = Callable[..., Answer]


@dataclass(frozen=True)
class Question:
    """Bytes to read: key and value of a record, or a blob."""

    kind: str
    parts: tuple[bytes | None, ...]

    def __str__(self) -> str:
        return " ".join(
            [self.kind, *("null" if part is None else part.hex() for part in self.parts)]
        )

    def laggard(self) -> Answer:
        """What the decoder under test says, with the kind of its error."""
        return OURS[self.kind](*self.parts)

    def read(self, allowed: frozenset[str], met: set[str]) -> Answer:
        """The format read with these differences allowed; those met are added."""
        return READERS[self.kind](*self.parts, allowed, met)


def _our_record(key: bytes | None, value: bytes | None) -> Answer:
    known = decode(key, value)
    answer: Answer = {"outcome": known.outcome}
    if known.error is not None:
        answer["error"] = known.error
    if known.key is not None:
        answer |= {"record_type": known.record_type, "key": with_hex(known.key)}
    if known.value is not None:
        answer |= {"value_version": known.value_version, "value": with_hex(known.value)}
    return answer


def _our_blob(decoded: dict[str, Any]) -> Answer:
    if "error" in decoded:
        return {"outcome": "malformed", **decoded}
    return {"outcome": "record", "value": with_hex(decoded)}


OURS: dict[str, Read] = {
    "record": _our_record,
    "subscription": lambda blob: _our_blob(decode_subscription(blob)),
    "assignment": lambda blob: _our_blob(decode_assignment(blob)),
}
READERS: dict[str, Read] = {
    "record": reading.read_record,
    "subscription": reading.read_subscription,
    "assignment": reading.read_assignment,
}
