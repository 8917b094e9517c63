"""Readers `(buffer, offset) -> (value, size)` of Kafka's primitive types.

The encodings are those of Kafka's clients: common/protocol/types/Type.java and
common/utils/ByteUtils.java.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from struct import Struct, calcsize, unpack
from struct import error as struct_error
from typing import Any, Literal, TypeAlias, TypeVar

from laggard.wire.errors import WireError

T = TypeVar("T")
Reader: TypeAlias = Callable[[bytes, int], tuple[T, int]]
# as a reader, with the number of items to read
Items: TypeAlias = Callable[[bytes, int, int], tuple[list[T], int]]

MAX_STRING_BYTES = 32_767
MAX_VARINT_BYTES = 5
MAX_UINT32 = 0xFFFF_FFFF
NULL_LENGTH = -1
ZERO_UUID = "A" * 22


def take(buffer: bytes, offset: int, size: int) -> bytes:
    """Return exactly `size` bytes; with `number` the only place where bounds are checked."""
    taken = buffer[offset : offset + size]
    if len(taken) < size:
        raise WireError("truncated")
    return taken


def check_count(buffer: bytes, offset: int, count: int) -> None:
    """Fail if `count` items cannot fit, since each has at least one byte.

    Nothing is allocated before this.
    """
    if count > len(buffer) - offset:
        raise WireError("truncated")


def check_null(length: int, *, is_nullable: bool) -> None:
    """Fail if a negative length is not that of null, or null is not allowed."""
    if length < NULL_LENGTH:
        raise WireError("bad_length")
    if not is_nullable:
        raise WireError("null_not_allowed")


def number(layout: str) -> Reader[int]:
    """Make a reader of one number, laid out as the struct module says."""
    size = calcsize(layout)
    unpack_number = Struct(layout).unpack_from

    def read(buffer: bytes, offset: int) -> tuple[int, int]:
        try:
            return unpack_number(buffer, offset)[0], size
        except struct_error:
            raise WireError("truncated") from None

    return read


read_int8 = number(">b")
read_int16 = number(">h")
read_uint16 = number(">H")  # a port
read_int32 = number(">i")
read_int64 = number(">q")


def read_uuid(buffer: bytes, offset: int) -> tuple[str, int]:
    """Read a uuid as the 22 characters of URL-safe base64 that Kafka prints."""
    return urlsafe_b64encode(take(buffer, offset, 16)).decode("ascii").rstrip("="), 16


def read_nonzero_uuid(buffer: bytes, offset: int) -> tuple[str | None, int]:
    """Read a uuid, where the zero uuid says that none is known."""
    uuid, size = read_uuid(buffer, offset)
    return (None if uuid == ZERO_UUID else uuid), size


def read_uvarint(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read an unsigned varint; overlong forms are accepted within five bytes, as Kafka does."""
    value = 0
    for index in range(MAX_VARINT_BYTES):
        byte = take(buffer, offset + index, 1)[0]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > MAX_UINT32:
                break
            return value, index + 1
    raise WireError("bad_varint")


def read_compact_length(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read the length or count of a flexible message, stored as an unsigned varint one higher."""
    stored, size = read_uvarint(buffer, offset)
    return stored - 1, size


def read_compact_string_length(buffer: bytes, offset: int) -> tuple[int, int]:
    """Read the byte length of a compact string, which still has the int16 limit."""
    length, size = read_compact_length(buffer, offset)
    if length > MAX_STRING_BYTES:
        raise WireError("bad_length")
    return length, size


def sized(read_length: Reader[int], *, is_nullable: bool) -> Reader[Any]:
    """Make a reader of bytes behind a length."""

    def read(buffer: bytes, offset: int) -> tuple[bytes | None, int]:
        length, prefix = read_length(buffer, offset)
        if length < 0:
            check_null(length, is_nullable=is_nullable)
            return None, prefix
        return take(buffer, offset + prefix, length), prefix + length

    return read


def text(
    read_length: Reader[int], *, is_nullable: bool, errors: Literal["strict", "replace"] = "strict"
) -> Reader[Any]:
    """Make a reader of UTF-8 text behind a length."""

    def read(buffer: bytes, offset: int) -> tuple[str | None, int]:
        length, prefix = read_length(buffer, offset)
        if length < 0:
            check_null(length, is_nullable=is_nullable)
            return None, prefix
        try:
            return take(buffer, offset + prefix, length).decode("utf-8", errors), prefix + length
        except UnicodeDecodeError:
            raise WireError("bad_utf8") from None

    return read


read_nullable_bytes: Reader[bytes | None] = sized(read_int32, is_nullable=True)
read_bytes: Reader[bytes] = sized(read_int32, is_nullable=False)
read_compact_bytes: Reader[bytes] = sized(read_compact_length, is_nullable=False)
read_nullable_string: Reader[str | None] = text(read_int16, is_nullable=True)
read_string: Reader[str] = text(read_int16, is_nullable=False)
read_compact_nullable_string: Reader[str | None] = text(
    read_compact_string_length, is_nullable=True
)
read_compact_string: Reader[str] = text(read_compact_string_length, is_nullable=False)

# commit metadata is whatever bytes a client sent: a bad one must not cost the offset beside it
read_lossy_string: Reader[str] = text(read_int16, is_nullable=False, errors="replace")
read_compact_lossy_string: Reader[str] = text(
    read_compact_string_length, is_nullable=False, errors="replace"
)


def _each(read_item: Reader[T]) -> Items[T]:
    def read(buffer: bytes, offset: int, count: int) -> tuple[list[T], int]:
        items = []
        size = 0
        for _ in range(count):
            item, item_size = read_item(buffer, offset + size)
            items.append(item)
            size += item_size
        return items, size

    return read


def _read_int32s(buffer: bytes, offset: int, count: int) -> tuple[list[int], int]:
    size = 4 * count
    return list(unpack(f">{count}i", take(buffer, offset, size))), size


def _counted(read_count: Reader[int], read_item: Reader[T], *, is_nullable: bool) -> Reader[Any]:
    # partition numbers are most of what a large group's record holds; read together they cost a
    # tenth
    read_items: Items[Any] = _read_int32s if read_item is read_int32 else _each(read_item)

    def read(buffer: bytes, offset: int) -> tuple[list[T] | None, int]:
        count, prefix = read_count(buffer, offset)
        if count < 0:
            check_null(count, is_nullable=is_nullable)
            return None, prefix
        check_count(buffer, offset + prefix, count)
        items, size = read_items(buffer, offset + prefix, count)
        return items, prefix + size

    return read


def nullable_array_of(read_item: Reader[T]) -> Reader[list[T] | None]:
    """Make a reader of a nullable array with an int32 count."""
    return _counted(read_int32, read_item, is_nullable=True)


def array_of(read_item: Reader[T]) -> Reader[list[T]]:
    """Make a reader of a non-null array with an int32 count."""
    return _counted(read_int32, read_item, is_nullable=False)


def compact_nullable_array_of(read_item: Reader[T]) -> Reader[list[T] | None]:
    """Make a reader of a nullable array with a compact count."""
    return _counted(read_compact_length, read_item, is_nullable=True)


def compact_array_of(read_item: Reader[T]) -> Reader[list[T]]:
    """Make a reader of a non-null array with a compact count."""
    return _counted(read_compact_length, read_item, is_nullable=False)


def _marked(read_marker: Reader[int], null: int, read_present: Reader[T]) -> Reader[T | None]:
    def read(buffer: bytes, offset: int) -> tuple[T | None, int]:
        marker, prefix = read_marker(buffer, offset)
        if marker == null:
            return None, prefix
        if marker != 1:  # Kafka takes any other number for one of the two; no writer of it uses any
            raise WireError("bad_marker")
        value, size = read_present(buffer, offset + prefix)
        return value, prefix + size

    return read


def nullable(read_present: Reader[T]) -> Reader[T | None]:
    """Make a reader of a nullable struct behind an int8 marker.

    Sources: KIP-893, MessageDataGenerator.java.
    """
    return _marked(read_int8, -1, read_present)


def tagged_nullable(read_present: Reader[T]) -> Reader[T | None]:
    """Make a reader of a nullable tagged-field struct, whose marker is an unsigned varint."""
    return _marked(read_uvarint, 0, read_present)
