"""The records read once more, from the format's description, as laggard must or as Kafka 4.2 does.

Each point where the two part asks `differs`: with no difference allowed this is laggard's reading,
with all of them Kafka's. So an answer that the listed differences do not explain to the last field
is a failure.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

import layouts
from differential.differences import NAMES
from layouts import Kind, Nullable, Tag

Answer = dict[str, Any]

SIZES = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}
ZERO_UUID = "A" * 22
MAX_STRING_BYTES = 32_767
INT32_MAX = 2**31 - 1
SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")

NEWEST_VERSION = {0: 4, 1: 4, 2: 4}  # and 0 of all other types
# by record type: tagged fields that came after 4.2
LATER_TAGS = {
    6: {"assignment_timestamp"},
    8: {"assignment_epochs"},
    12: {"assignment_timestamp"},
    17: {"stored_description_topology_epoch", "failed_description_topology_epoch"},
    20: {"assignment_timestamp"},
}
# the difference, and what Kafka has for an absent tag, where we have null
KAFKA_DEFAULTS: dict[tuple[int, str], tuple[str, Any]] = {
    (5, "classic_member_metadata"): (
        "no_classic_member",
        {"session_timeout_ms": 0, "supported_protocols": []},
    ),
    (22, "assignment_epochs"): ("no_assignment_epochs", []),
}

TOPIC_PARTITIONS = [{"topic": "string", "partitions": ["int32"]}]
SUBSCRIPTION_PREFIX = {"topics": ["string"], "user_data": "bytes?"}
SUBSCRIPTION_REST: tuple[dict[str, Kind], ...] = (
    {},
    {"owned_partitions": TOPIC_PARTITIONS},
    {"owned_partitions": TOPIC_PARTITIONS, "generation_id": "int32"},
    {"owned_partitions": TOPIC_PARTITIONS, "generation_id": "int32", "rack_id": "string?"},
)
ASSIGNMENT = {"assigned_partitions": TOPIC_PARTITIONS, "user_data": "bytes?"}


class FaultError(Exception):
    """The bytes cannot be read; the outcome and the kind of error."""

    def __init__(self, error: str, outcome: str = "malformed") -> None:
        super().__init__(error)
        self.error = error
        self.outcome = outcome


class Reading:
    """One key, value or blob, and the differences met in it."""

    def __init__(
        self, buffer: bytes, allowed: frozenset[str], met: set[str], record_type: int = -1
    ) -> None:
        self.buffer = buffer
        self.at = 0
        self.allowed = allowed
        self.met = met
        self.record_type = record_type
        self.is_flexible = False
        self.tag_end: int | None = None  # where the tag that is being read says it ends

    def differs(self, name: str, error: str | None = None) -> bool:
        """True if to read as Kafka does here; where that is no, an error is what laggard says."""
        assert name in NAMES
        if name in self.allowed:
            self.met.add(name)
            return True
        if error is not None:
            raise FaultError(error)
        return False

    @property
    def past_the_end(self) -> str:
        """What laggard calls a read past the end; inside a tag it is the stated
        size that is wrong.
        """
        return "truncated" if self.tag_end is None else "bad_tag"

    def need(self, size: int) -> None:
        if self.tag_end is not None and size > self.tag_end - self.at:
            self.differs("tag_size", "bad_tag")
        if size > len(self.buffer) - self.at:
            raise FaultError(self.past_the_end)

    def take(self, size: int) -> bytes:
        self.need(size)
        self.at += size
        return self.buffer[self.at - size : self.at]

    def number(self, kind: str) -> int:
        return int.from_bytes(self.take(SIZES[kind]), "big", signed=kind != "uint16")

    def uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        else:
            raise FaultError("bad_varint")
        if value >= 2**32:
            self.differs("varint_past_32_bits", "bad_varint")
        return value % 2**32

    def length(self, fixed: str, *, is_nullable: bool, limit: int | None = None) -> int | None:
        """A length or count; `limit` is the most it may be, None for what is left."""
        if not self.is_flexible:
            length = self.number(fixed)
            if length < -1 and is_nullable:
                self.differs("length_below_minus_one", "bad_length")
                return None
        else:
            length = self.uvarint() - 1
            if length >= INT32_MAX + 1 and is_nullable:
                self.differs(
                    "compact_length_past_int32",
                    self.past_the_end if limit is None else "bad_length",
                )
                return None
        if length < -1 or (limit is not None and length > limit):
            raise FaultError("bad_length")
        if length == -1 and not is_nullable:
            raise FaultError("null_not_allowed")
        return None if length == -1 else length

    def string(self, *, is_nullable: bool, is_metadata: bool = False) -> str | None:
        length = self.length("int16", is_nullable=is_nullable, limit=MAX_STRING_BYTES)
        if length is None:
            return None
        encoded = self.take(length)
        try:
            return encoded.decode()
        except UnicodeDecodeError:
            is_kafkas = not is_metadata and self.differs("invalid_utf8", "bad_utf8")
        if SURROGATE.search(encoded) and (
            is_kafkas or self.differs("encoded_surrogate_in_metadata")
        ):
            encoded = SURROGATE.sub(b"\xff", encoded)  # a byte that gives one U+FFFD by itself
        return encoded.decode(errors="replace")

    def value(self, kind: Kind) -> Any:  # noqa: PLR0911  one case per kind of the format
        match kind:
            case "string" | "string?":
                return self.string(is_nullable=kind.endswith("?"))
            case "bytes" | "bytes?":
                length = self.length("int32", is_nullable=kind.endswith("?"))
                return None if length is None else self.take(length).hex()
            case "uuid":
                return base64.urlsafe_b64encode(self.take(16)).decode().rstrip("=")
            case str():
                return self.number(kind)
            case [item] | Nullable([item]):
                count = self.length("int32", is_nullable=isinstance(kind, Nullable))
                if count is None:
                    return None
                self.need(count)
                return [self.value(item) for _ in range(count)]
            case Nullable(struct):
                return self.struct(struct) if self.is_present() else None
            case dict():
                return self.struct(kind)
        raise AssertionError(kind)

    def is_present(self) -> bool:
        null = -1 if self.tag_end is None else 0  # in a tag the marker is a varint
        marker = self.number("int8") if self.tag_end is None else self.uvarint()
        if marker not in (null, 1):
            self.differs("struct_marker", "bad_marker")
        return null < marker <= INT32_MAX

    def struct(self, layout: dict[str, Kind]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        tags = {kind.number: (name, kind) for name, kind in layout.items() if isinstance(kind, Tag)}
        for name, kind in layout.items():
            if isinstance(kind, Tag):
                continue
            if name == "metadata" and kind == "string":
                fields[name] = self.string(is_nullable=False, is_metadata=True)
            else:
                fields[name] = self.value(kind)
        if self.is_flexible:
            fields |= self.tags(tags)
        for name, tag in tags.values():
            if name not in fields:
                fields[name] = self.default(name, tag)
        return fields

    def default(self, name: str, tag: Tag) -> Any:
        difference, kafkas = KAFKA_DEFAULTS.get((self.record_type, name), (None, None))
        return kafkas if difference is not None and self.differs(difference) else tag.default

    def tags(self, known: dict[int, tuple[str, Tag]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        count = self.uvarint()
        if count > INT32_MAX:
            self.differs("tag_count_past_int32", self.past_the_end)
            return fields
        self.need(count)
        previous = -1
        for _ in range(count):
            number = self.uvarint()
            if number <= previous:
                self.differs("tag_order", "bad_tag")
            previous = number
            size = self.uvarint()
            name, tag = known.get(number, ("", None))
            is_later = name in LATER_TAGS.get(self.record_type, ()) and self.differs(
                "tag_of_a_later_release"
            )
            if tag is None or is_later:
                self.take(size)
            else:
                fields[name] = self.tag(tag, size)
        return fields

    def tag(self, tag: Tag, size: int) -> Any:
        outer = self.tag_end
        if size > (len(self.buffer) if outer is None else outer) - self.at:
            self.differs("tag_size", self.past_the_end)
        self.tag_end = end = self.at + size
        value = self.value(tag.kind)
        self.tag_end = outer
        if self.at != end:
            self.differs("tag_size", "bad_tag")
        return value

    def end(self) -> None:
        if self.at != len(self.buffer):
            self.differs("trailing_bytes", "trailing_bytes")


def read_record(
    key: bytes | None, value: bytes | None, allowed: frozenset[str], met: set[str]
) -> Answer:
    """One record, with the differences that were allowed and met added to `met`."""
    answer: Answer = {}
    try:
        record_type, answer["key"] = _read_key(key, allowed, met)
        answer["record_type"] = record_type
        if value is None:
            return {"outcome": "tombstone", **answer}
        version, fields = _read_value(record_type, value, allowed, met)
    except FaultError as fault:
        return {"outcome": fault.outcome, "error": fault.error, **answer}
    return {"outcome": "record", **answer, "value_version": version, "value": fields}


def _read_key(
    key: bytes | None, allowed: frozenset[str], met: set[str]
) -> tuple[int, dict[str, Any]]:
    if key is None:
        raise FaultError("null_key")
    reading = Reading(key, allowed, met)
    record_type = reading.number("int16")
    if record_type not in layouts.KEYS or (record_type == 24 and reading.differs("record_type_24")):
        raise FaultError("unknown_record_type", "unsupported")
    fields = reading.struct(layouts.KEYS[record_type])
    reading.end()
    return record_type, fields


def _read_value(
    record_type: int, value: bytes, allowed: frozenset[str], met: set[str]
) -> tuple[int, dict[str, Any]]:
    reading = Reading(value, allowed, met, record_type)
    version = reading.number("int16")
    is_known = 0 <= version <= NEWEST_VERSION.get(record_type, 0)
    is_legacy = is_known and record_type == 0 and version > 0
    if not is_known or (is_legacy and reading.differs("legacy_key_with_newer_value")):
        raise FaultError("unknown_value_version", "unsupported")
    reading.is_flexible = layouts.is_flexible(record_type, version)
    fields = reading.struct(layouts.VALUES[record_type, version])
    reading.end()
    if record_type == 0 and reading.differs("legacy_value_without_defaults"):
        return version, fields
    fields = {**layouts.DEFAULTS.get(record_type, {}), **fields}
    if record_type == 2:
        fields["members"] = [{**layouts.MEMBER_DEFAULTS, **member} for member in fields["members"]]
    elif record_type in (0, 1) and fields["topic_id"] in (None, ZERO_UUID):
        fields["topic_id"] = ZERO_UUID if reading.differs("no_topic_id") else None
    return version, fields


def read_subscription(blob: bytes, allowed: frozenset[str], met: set[str]) -> Answer:
    def read(reading: Reading, version: int) -> dict[str, Any]:
        rest = {"owned_partitions": [], "generation_id": -1, "rack_id": None}
        prefix = reading.struct(SUBSCRIPTION_PREFIX)
        try:
            return {
                **prefix,
                **rest,
                **reading.struct(SUBSCRIPTION_REST[min(version, 3)]),
                "partial": False,
            }
        except FaultError:
            return {**prefix, **rest, "partial": True}

    return _read_blob(blob, allowed, met, read)


def read_assignment(blob: bytes, allowed: frozenset[str], met: set[str]) -> Answer:
    if not blob and not Reading(blob, allowed, met).differs("empty_assignment"):
        return {
            "outcome": "record",
            "value": {"version": None, "assigned_partitions": [], "user_data": None},
        }
    return _read_blob(blob, allowed, met, lambda reading, _version: reading.struct(ASSIGNMENT))


def _read_blob(
    blob: bytes,
    allowed: frozenset[str],
    met: set[str],
    read: Callable[[Reading, int], dict[str, Any]],
) -> Answer:
    reading = Reading(blob, allowed, met)
    try:
        version = reading.number("int16")
        if version < 0:
            raise FaultError("bad_version")
        return {"outcome": "record", "value": {"version": version, **read(reading, version)}}
    except FaultError as fault:
        return {"outcome": "malformed", "error": fault.error}
