"""Records of every type and consumer protocol blobs as bytes, written from the format's description
alone.
"""

import base64
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import layouts
from layouts import Kind, Nullable, Tag

Tags = Sequence[tuple[int, bytes]]
Piece = tuple[str, bytes]  # a part of an encoding, and what it is: see `pieces`
FORMATS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q"}
ZERO_UUID = "A" * 22


def i16(value: int) -> bytes:
    return struct.pack(">h", value)


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def uvarint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def uuid(shown: str) -> bytes:
    return base64.urlsafe_b64decode(shown + "==")


def string(value: str | None, *, compact: bool = False) -> bytes:
    return joined(_sized("length", i16, None if value is None else value.encode(), compact))


def blob(value: bytes | None, *, compact: bool = False) -> bytes:
    return joined(_sized("length", i32, value, compact))


def array(items: Sequence[bytes], *, compact: bool = False) -> bytes:
    return (uvarint(len(items) + 1) if compact else i32(len(items))) + b"".join(items)


def tag_section(tags: Tags = ()) -> bytes:
    return joined(_tag_section([(number, [("content", content)]) for number, content in tags]))


def joined(parts: Iterator[Piece]) -> bytes:
    return b"".join(part for _, part in parts)


def _sized(role: str, fixed: Any, content: bytes | None, flexible: bool) -> Iterator[Piece]:
    size = -1 if content is None else len(content)
    yield role, uvarint(size + 1) if flexible else fixed(size)
    yield "content", content or b""


def _tag_section(tags: Sequence[tuple[int, list[Piece]]]) -> Iterator[Piece]:
    yield "tags", uvarint(len(tags))
    for number, content in tags:
        yield "tag", uvarint(number)
        yield "size", uvarint(sum(len(part) for _, part in content))
        yield from content


def pieces(  # noqa: C901, PLR0912  one case per kind of the format
    kind: Kind, value: Any, *, flexible: bool, extra: Tags = (), all_tags: bool = False
) -> Iterator[Piece]:
    """Encode a value as pieces: number, length, content, count, marker, tags, tag and size.

    `extra` are unknown tags for every struct; with `all_tags` known ones are written at their
    defaults too.
    """

    def inner(kind: Kind, value: Any) -> Iterator[Piece]:
        return pieces(kind, value, flexible=flexible, extra=extra, all_tags=all_tags)

    match kind:
        case "string" | "string?":
            yield from _sized("length", i16, None if value is None else value.encode(), flexible)
        case "bytes":
            yield from _sized("length", i32, value, flexible)
        case "uuid":
            yield "content", uuid(value)
        case str():
            yield "number", struct.pack(FORMATS[kind], value)
        case [item]:
            yield "count", uvarint(len(value) + 1) if flexible else i32(len(value))
            for each in value:
                yield from inner(item, each)
        case Nullable([_]) if value is None:
            yield "count", uvarint(0)
        case Nullable(dict()) if value is None:
            yield "marker", b"\xff"
        case Nullable([_]):
            yield from inner(kind.kind, value)
        case Nullable():
            yield "marker", b"\x01"
            yield from inner(kind.kind, value)
        case dict():
            for name, field in kind.items():
                if not isinstance(field, Tag):
                    yield from inner(field, value[name])
            if flexible:
                known = {name: field for name, field in kind.items() if isinstance(field, Tag)}
                written = [
                    (tag.number, list(_tagged(inner, tag.kind, value[name])))
                    for name, tag in known.items()
                    if all_tags or value[name] != tag.default
                ]
                yield from _tag_section(
                    [*written, *((number, [("content", content)]) for number, content in extra)]
                )


def _tagged(inner: Any, kind: Kind, value: Any) -> Iterator[Piece]:
    match kind:
        case Nullable(dict()):  # in a tag the marker is a varint
            yield "marker", uvarint(int(value is not None))
            if value is not None:
                yield from inner(kind.kind, value)
        case "uuid":
            yield "content", uuid(value or ZERO_UUID)
        case _:
            yield from inner(kind, value)


def key_pieces(record_type: int, fields: dict[str, Any]) -> Iterator[Piece]:
    yield "type", i16(record_type)
    yield from pieces(layouts.KEYS[record_type], fields, flexible=False)


def value_pieces(
    record_type: int,
    version: int,
    fields: dict[str, Any],
    unknown_tags: Tags = (),
    *,
    all_tags: bool = False,
) -> Iterator[Piece]:
    yield "version", i16(version)
    layout, flexible = (
        layouts.VALUES[record_type, version],
        layouts.is_flexible(record_type, version),
    )
    yield from pieces(layout, fields, flexible=flexible, extra=unknown_tags, all_tags=all_tags)


def record_key(record_type: int, fields: dict[str, Any]) -> bytes:
    return joined(key_pieces(record_type, fields))


def record_value(
    record_type: int,
    version: int,
    fields: dict[str, Any],
    unknown_tags: Tags = (),
    *,
    all_tags: bool = False,
) -> bytes:
    return joined(value_pieces(record_type, version, fields, unknown_tags, all_tags=all_tags))


def commit_key(group: str, topic: str, partition: int, record_type: int = 1) -> bytes:
    return record_key(record_type, {"group": group, "topic": topic, "partition": partition})


def group_key(group: str) -> bytes:
    return record_key(2, {"group": group})


def commit_value(version: int, commit: dict[str, Any], unknown_tags: Tags = ()) -> bytes:
    return record_value(1, version, commit, unknown_tags)


def group_value(version: int, group: dict[str, Any], unknown_tags: Tags = ()) -> bytes:
    return record_value(2, version, group, unknown_tags)


def _topic_partitions(owned: Sequence[dict[str, Any]]) -> bytes:
    return array(
        [string(each["topic"]) + array([i32(p) for p in each["partitions"]]) for each in owned]
    )


def subscription(wanted: dict[str, Any]) -> bytes:
    version = wanted["version"]
    parts = [
        i16(version),
        array([string(topic) for topic in wanted["topics"]]),
        blob(wanted["user_data"]),
    ]
    if version >= 1:
        parts.append(_topic_partitions(wanted["owned_partitions"]))
    if version >= 2:
        parts.append(i32(wanted["generation_id"]))
    if version >= 3:
        parts.append(string(wanted["rack_id"]))
    return b"".join(parts)


def assignment(got: dict[str, Any]) -> bytes:
    return (
        i16(got["version"]) + _topic_partitions(got["assigned_partitions"]) + blob(got["user_data"])
    )


def _connector_tasks(held: Sequence[dict[str, Any]] | None) -> bytes:
    if held is None:
        return i32(-1)
    return array(
        [string(each["connector"]) + array([i32(task) for task in each["tasks"]]) for each in held]
    )


def worker_state(state: dict[str, Any]) -> bytes:
    head = i16(state["version"]) + string(state["worker_url"]) + i64(state["config_offset"])
    return head if state["version"] < 1 else head + blob(state["allocation"])


def worker_assignment(got: dict[str, Any]) -> bytes:
    parts = [
        i16(got["version"]),
        i16(got["error_code"]),
        string(got["leader"]),
        string(got["leader_url"]),
    ]
    parts += [i64(got["config_offset"]), _connector_tasks(got["assigned"])]
    if got["version"] >= 1:
        parts += [_connector_tasks(got["revoked"]), i32(got["scheduled_delay_ms"])]
    return b"".join(parts)
