"""Tagged fields, which end a flexible struct (KIP-482); tags that are not known are skipped by their length."""

from collections.abc import Mapping
from typing import Any

from laggard.wire.errors import WireError
from laggard.wire.primitives import Reader, check_count, read_uvarint, take


def _read_tag_content(read_content: Reader[Any], content: bytes) -> Any:
    try:
        value, size = read_content(content, 0)
    except WireError as error:
        if error.kind == "truncated":  # the record goes on, so it is the stated size that is wrong
            raise WireError("bad_tag", error.field) from None
        raise
    if size != len(content):
        raise WireError("bad_tag")
    return value


def tags_of(known: Mapping[int, Reader[Any]]) -> Reader[dict[int, Any]]:
    """Make a reader of the tag section that ends a flexible struct (KIP-482); unknown tags are skipped."""

    def read(buffer: bytes, offset: int) -> tuple[dict[int, Any], int]:
        count, size = read_uvarint(buffer, offset)
        check_count(buffer, offset + size, count)
        values: dict[int, Any] = {}
        previous = -1
        for _ in range(count):
            tag, tag_size = read_uvarint(buffer, offset + size)
            if tag <= previous:
                raise WireError("bad_tag")
            previous = tag
            size += tag_size
            length, length_size = read_uvarint(buffer, offset + size)
            size += length_size
            content = take(buffer, offset + size, length)
            size += length
            if tag in known:
                values[tag] = _read_tag_content(known[tag], content)
        return values, size

    return read
