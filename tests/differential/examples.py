"""For each listed difference a small record or blob that shows it, and no other."""

import struct
from typing import Any

import encoder
import layouts
from differential.question import Question

TOPIC_ID = "MKXx1fIkQy2J9jXHhK8m1w"
COMMIT = {
    "offset": 1,
    "leader_epoch": 2,
    "metadata": "xyz",
    "commit_timestamp": 3,
    "topic_id": TOPIC_ID,
}
COMMIT_KEY = encoder.commit_key("g", "t", 0)
GOOD_COMMIT = encoder.commit_value(4, COMMIT)


def a_key(record_type: int) -> bytes:
    return encoder.record_key(
        record_type, dict.fromkeys(layouts.KEYS[record_type], "k") | {"partition": 0}
    )


def a_record(record_type: int, value: bytes | None) -> Question:
    return Question("record", (a_key(record_type), value))


def with_fields(record_type: int, **changed: Any) -> bytes:
    plain = {"string": "s", "string?": None, "bytes": b""}
    layout = layouts.VALUES[record_type, 0]
    fields: dict[str, Any] = {}
    for name, kind in layout.items():
        if isinstance(kind, layouts.Tag):
            fields[name] = kind.default
        else:
            fields[name] = plain.get(kind, 0) if isinstance(kind, str) else []
    return encoder.record_value(record_type, 0, fields | changed)


TASKS_WITHOUT_EPOCHS = [{"subtopology_id": "0", "partitions": [1], "assignment_epochs": None}]
SHARE_GROUP_WITHOUT_TAGS = with_fields(11)[:-1]

EXAMPLES = {
    "no_topic_id": a_record(1, encoder.commit_value(3, COMMIT)),
    "legacy_value_without_defaults": a_record(0, encoder.commit_value(0, COMMIT)),
    "no_classic_member": a_record(5, with_fields(5)),
    "no_assignment_epochs": a_record(22, with_fields(22, active_tasks=TASKS_WITHOUT_EPOCHS)),
    "encoded_surrogate_in_metadata": a_record(1, GOOD_COMMIT.replace(b"xyz", b"\xed\xa0\x80")),
    "legacy_key_with_newer_value": a_record(0, GOOD_COMMIT),
    "record_type_24": a_record(24, None),
    "tag_of_a_later_release": a_record(6, with_fields(6, assignment_timestamp=5)),
    "trailing_bytes": Question("record", (COMMIT_KEY + b"\0", None)),
    "tag_order": a_record(1, encoder.commit_value(4, COMMIT, [(9, b""), (9, b"")])),
    "tag_size": a_record(1, GOOD_COMMIT.replace(b"\1\0\x10", b"\1\0\x0f")),
    "tag_count_past_int32": a_record(11, SHARE_GROUP_WITHOUT_TAGS + encoder.uvarint(2**31)),
    "length_below_minus_one": Question("subscription", (struct.pack(">hii", 0, 0, -2),)),
    "compact_length_past_int32": a_record(
        10, b"\0\0" + encoder.uvarint(2**32 - 1) + with_fields(10)[3:]
    ),
    "varint_past_32_bits": a_record(11, SHARE_GROUP_WITHOUT_TAGS + encoder.uvarint(2**32)),
    "struct_marker": a_record(19, with_fields(19, user_endpoint=None).replace(b"\xff", b"\xfe")),
    "invalid_utf8": Question("record", (b"\0\2\0\1\xff", None)),
    "empty_assignment": Question("assignment", (b"",)),
}
