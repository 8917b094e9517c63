"""Data that members of a classic group exchange: blobs that the broker stores in the group's record unread."""

from collections.abc import Callable
from typing import Any, TypeAlias

from laggard.wire.errors import WireError
from laggard.wire.primitives import read_int16
from laggard.wire.structs import Table, struct_reader

BlobDecoder: TypeAlias = Callable[[bytes], dict[str, Any]]


def _read_version(blob: bytes) -> tuple[int, int]:
    try:
        version, size = read_int16(blob, 0)
    except WireError as error:
        raise error.inside("version") from None
    if version < 0:
        raise WireError("bad_version", "version")
    return version, size


def blob_decoder(prefix: Table, rest: Table = (), newest: int = 0) -> BlobDecoder:
    """Make a decoder to the fields, or to the kind of their `error`; bytes left over and newer versions are no error.

    The prefix must decode. The rest need not: some clients are said to write later versions without its fields, and
    the broker itself reads only the prefix (ConsumerProtocol.java); then `partial` is true and the rest has defaults.
    """
    read_prefix = struct_reader(prefix, 0)
    readers = [struct_reader(rest, version) for version in range(newest + 1)]

    def decode(blob: bytes) -> dict[str, Any]:
        try:
            version, head = _read_version(blob)
            fields, size = read_prefix(blob, head)
        except WireError as error:
            return {"error": error.kind}
        fields = {"version": version, **fields}
        if not rest:
            return fields
        try:
            return {**fields, **readers[min(version, newest)](blob, head + size)[0], "partial": False}
        except WireError:
            return {**fields, **readers[0](blob, 0)[0], "partial": True}

    return decode
