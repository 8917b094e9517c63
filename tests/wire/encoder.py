"""Records of types 0 to 2 and consumer protocol blobs as bytes, written from the format's description alone."""

import base64
import struct
from collections.abc import Sequence
from typing import Any

Tags = Sequence[tuple[int, bytes]]


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
    if value is None:
        return uvarint(0) if compact else i16(-1)
    encoded = value.encode()
    return (uvarint(len(encoded) + 1) if compact else i16(len(encoded))) + encoded


def blob(value: bytes | None, *, compact: bool = False) -> bytes:
    if value is None:
        return uvarint(0) if compact else i32(-1)
    return (uvarint(len(value) + 1) if compact else i32(len(value))) + value


def array(items: Sequence[bytes], *, compact: bool = False) -> bytes:
    return (uvarint(len(items) + 1) if compact else i32(len(items))) + b"".join(items)


def tag_section(tags: Tags = ()) -> bytes:
    return uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(content)) + content for tag, content in tags)


def commit_key(group: str, topic: str, partition: int, record_type: int = 1) -> bytes:
    return i16(record_type) + string(group) + string(topic) + i32(partition)


def group_key(group: str) -> bytes:
    return i16(2) + string(group)


def commit_value(version: int, commit: dict[str, Any], unknown_tags: Tags = ()) -> bytes:
    is_flexible = version >= 4
    parts = [i16(version), i64(commit["offset"])]
    if version >= 3:
        parts.append(i32(commit["leader_epoch"]))
    parts.append(string(commit["metadata"], compact=is_flexible))
    parts.append(i64(commit["commit_timestamp"]))
    if version == 1:
        parts.append(i64(commit["expire_timestamp"]))
    if is_flexible:
        known = [] if commit["topic_id"] is None else [(0, uuid(commit["topic_id"]))]
        parts.append(tag_section([*known, *unknown_tags]))
    return b"".join(parts)


def _member(version: int, member: dict[str, Any], unknown_tags: Tags) -> bytes:
    compact = version >= 4
    parts = [string(member["member_id"], compact=compact)]
    if version >= 3:
        parts.append(string(member["group_instance_id"], compact=compact))
    parts.append(string(member["client_id"], compact=compact))
    parts.append(string(member["client_host"], compact=compact))
    if version >= 1:
        parts.append(i32(member["rebalance_timeout"]))
    parts.append(i32(member["session_timeout"]))
    parts.append(blob(member["subscription"], compact=compact))
    parts.append(blob(member["assignment"], compact=compact))
    if compact:
        parts.append(tag_section(unknown_tags))
    return b"".join(parts)


def group_value(version: int, group: dict[str, Any], unknown_tags: Tags = ()) -> bytes:
    compact = version >= 4
    parts = [i16(version), string(group["protocol_type"], compact=compact), i32(group["generation"])]
    parts.append(string(group["protocol"], compact=compact))
    parts.append(string(group["leader"], compact=compact))
    if version >= 2:
        parts.append(i64(group["current_state_timestamp"]))
    parts.append(array([_member(version, member, unknown_tags) for member in group["members"]], compact=compact))
    if compact:
        parts.append(tag_section(unknown_tags))
    return b"".join(parts)


def _topic_partitions(owned: Sequence[dict[str, Any]]) -> bytes:
    return array([string(each["topic"]) + array([i32(p) for p in each["partitions"]]) for each in owned])


def subscription(wanted: dict[str, Any]) -> bytes:
    version = wanted["version"]
    parts = [i16(version), array([string(topic) for topic in wanted["topics"]]), blob(wanted["user_data"])]
    if version >= 1:
        parts.append(_topic_partitions(wanted["owned_partitions"]))
    if version >= 2:
        parts.append(i32(wanted["generation_id"]))
    if version >= 3:
        parts.append(string(wanted["rack_id"]))
    return b"".join(parts)


def assignment(got: dict[str, Any]) -> bytes:
    return i16(got["version"]) + _topic_partitions(got["assigned_partitions"]) + blob(got["user_data"])
