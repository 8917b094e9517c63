"""Check of the checkpoint: Spark reads only its newest files and explains damage poorly.

Its layout (`HDFSMetadataLog`): `offsets/<batch>` and `commits/<batch>`, text that begins with a
version line, then JSON lines; on a local disk each has a checksum file beside it.
"""

from __future__ import annotations

import json
import struct
import zlib

from laggard import files
from laggard.errors import DAMAGED, LaggardError
from laggard.sources.poll_files import PollFiles

REPAIR = "laggard doctor --repair"
_VERSION = "v"
_MAGIC = b"crc\x00"  # Hadoop's ChecksumFileSystem: magic, bytes per checksum, one CRC-32 per chunk
_NOTHING = "-"  # in place of a source's offset


def check_checkpoint(checkpoint: str) -> None:
    """Raise `DAMAGED` with the name of a file that is missing, cut off or changed."""
    folder = checkpoint.rstrip("/")
    for log in ("offsets", "commits"):
        numbers = files.numbers(f"{folder}/{log}")
        for number in numbers:
            _check_file(f"{folder}/{log}/{number}")
        missing = set(range(min(numbers), max(numbers) + 1)).difference(numbers) if numbers else ()
        if missing:
            raise _damaged(f"{folder}/{log}/{min(missing)} is missing")
    if files.exists(f"{folder}/metadata"):
        _check_file(f"{folder}/metadata", has_version=False)
    planned = max(files.numbers(f"{folder}/offsets"), default=None)
    # it is run again, with its poll
    if planned is not None and planned not in files.numbers(f"{folder}/commits"):
        PollFiles(folder).check(files.read_text(f"{folder}/offsets/{planned}"))


def _check_file(path: str, *, has_version: bool = True) -> None:
    content = files.read_bytes(path)
    if not content:
        raise _damaged(f"{path} is empty")
    folder, _, name = path.rpartition("/")
    checksums = f"{folder}/.{name}.crc"
    if files.exists(checksums) and not _matches(content, files.read_bytes(checksums)):
        raise _damaged(f"{path} differs from its checksum")
    try:
        lines = content.decode("utf-8").split("\n")
        if has_version and not lines.pop(0).startswith(_VERSION):
            raise _damaged(f"{path} does not begin with a version")
        for line in lines:
            if line not in ("", _NOTHING):
                json.loads(line)
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are
        raise _damaged(f"{path} is cut off or changed: {error}") from error


def _matches(content: bytes, checksums: bytes) -> bool:
    if checksums[:4] != _MAGIC or len(checksums) < 8:
        return False
    (size,) = struct.unpack(">i", checksums[4:8])
    if size <= 0:
        return False
    parts = [content[begin : begin + size] for begin in range(0, len(content), size)]
    return checksums[8:] == b"".join(struct.pack(">I", zlib.crc32(part)) for part in parts)


def _damaged(cause: str) -> LaggardError:
    return LaggardError("the checkpoint is damaged", cause=cause, fix=REPAIR, exit_code=DAMAGED)
