"""Structs as tables of fields, the loop that reads them, and tagged fields at the end (KIP-482)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from laggard.wire.errors import WireError
from laggard.wire.primitives import Reader, check_count, read_uvarint, take

Struct: TypeAlias = dict[str, Any]
NEWEST = 32_767


@dataclass(frozen=True, slots=True)
class Nested:
    """A struct inside a field, with what surrounds it: `array_of`, say, or its compact kind."""

    around: Callable[[Reader[Struct]], Reader[Any]]
    table: tuple["Field", ...]


@dataclass(frozen=True, slots=True)
class Field:
    """Field in the versions `since` to `until`; else, and as an absent tag, it has its default.

    The default is immutable.

    The default `()` stands for an empty list, of which every struct gets its own.
    """

    name: str
    reader: Reader[Any] | Nested
    since: int = 0
    until: int = NEWEST
    default: object = None
    tag: int | None = None


Table: TypeAlias = tuple[Field, ...]


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
    """Make a reader of a flexible struct's tag section (KIP-482); unknown tags are skipped.

    The section ends the struct.
    """

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


def _named(name: str, reader: Reader[Any]) -> Reader[Any]:
    def read(buffer: bytes, offset: int) -> tuple[Any, int]:
        try:
            return reader(buffer, offset)
        except WireError as error:
            raise error.inside(name) from None

    return read


def _tagged_reader(readers: Mapping[Field, Reader[Any]]) -> Reader[Struct]:
    """Make a reader of the tag section that returns its tagged fields by name.

    Fields are those of `readers`.
    """
    names = {field.tag: field.name for field in readers if field.tag is not None}
    read_tags = tags_of(
        {f.tag: _named(f.name, reader) for f, reader in readers.items() if f.tag is not None}
    )

    def read(buffer: bytes, offset: int) -> tuple[Struct, int]:
        tags, size = read_tags(buffer, offset)
        return {names[tag]: value for tag, value in tags.items()}, size

    return read


def _field_readers(table: Table, version: int, *, is_flexible: bool) -> dict[Field, Reader[Any]]:
    """Make the readers of the fields that a version has, in their order."""
    readers = {}
    for field in table:
        if field.since <= version <= field.until:
            inner = field.reader
            if isinstance(inner, Nested):
                inner = inner.around(struct_reader(inner.table, version, is_flexible=is_flexible))
            readers[field] = inner
    return readers


def _defaults(table: Table) -> tuple[Struct, list[str]]:
    """Return the default of each field, and the names of list fields.

    A list field has a list of its own for every struct.
    """
    return {field.name: field.default for field in table}, [
        field.name for field in table if field.default == ()
    ]


def struct_reader(table: Table, version: int, *, is_flexible: bool = False) -> Reader[Struct]:
    """Make the reader of one version of a struct; its result has every field name of the table."""
    readers = _field_readers(table, version, is_flexible=is_flexible)
    defaults, empty_lists = _defaults(table)
    in_order = [(field.name, reader) for field, reader in readers.items() if field.tag is None]
    read_tagged = None
    if is_flexible:
        read_tagged = _tagged_reader(readers)

    def read(buffer: bytes, offset: int) -> tuple[Struct, int]:
        struct = dict(defaults)
        for name in empty_lists:
            struct[name] = []
        size = 0
        name = ""
        try:
            for name, reader in in_order:
                struct[name], field_size = reader(buffer, offset + size)
                size += field_size
        except WireError as error:
            raise error.inside(name) from None
        if read_tagged is not None:
            tagged, tagged_size = read_tagged(buffer, offset + size)
            struct |= tagged
            size += tagged_size
        return struct, size

    return read
