"""Polls too large for a streaming offset: files beside the checkpoint, named by the offset."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from typing import Any

from laggard import errors, files
from laggard.errors import LaggardError
from laggard.sources.snapshot import Snapshot, pack, unpack

# of JSON in an offset: the log of batches and each of Spark's progress events repeat it
MOST_BYTES = 1_000_000
_NAME = re.compile(r"poll-(\d+)\.json")


class PollFiles:
    """The folder `<checkpoint>.laggard.polls`, on whatever file system the checkpoint is.

    A file is complete before Spark can write its name to the write-ahead log, and is kept as long
    as a batch that is still in that log may name it: 1,000,000 partitions need about 50 MB for a
    poll that closes a window.
    """

    def __init__(self, checkpoint: str, most_bytes: int = MOST_BYTES) -> None:
        self._checkpoint = checkpoint.rstrip("/")
        self._most_bytes = most_bytes

    @property
    def folder(self) -> str:
        """Folder of the files."""
        return f"{self._checkpoint}.laggard.polls"

    def to_offset(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the offset part for a poll: the poll, or its file's name, size and checksum."""
        packed = pack(snapshot)
        data = json.dumps(packed).encode()
        if len(data) <= self._most_bytes:
            return packed
        name = f"poll-{snapshot.poll_id}.json"
        try:
            files.write_bytes(f"{self.folder}/{name}", data)
        except OSError as error:
            raise LaggardError(
                f"cannot write the poll of the brokers to {self.folder}",
                cause=str(error),
                fix="make room there, or let the job write there as it writes to job.checkpoint",
                exit_code=errors.TEMPORARY,
            ) from error
        self._remove_unneeded(snapshot.poll_id)
        file = {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        return {"poll_id": snapshot.poll_id, "file": file}

    def from_offset(self, offset: dict[str, Any]) -> Snapshot:
        """Return the poll given to `to_offset`.

        Raise LaggardError (74) if its file is missing or not as it was written.
        """
        return unpack(json.loads(self._read(offset["file"])) if "file" in offset else offset)

    def check(self, wal_text: str) -> None:
        """Raise as `from_offset` does if a batch's poll in the write-ahead log is unreadable.

        The log is Spark's.
        """
        offset = offset_in(wal_text)
        if "file" in offset:
            self._read(offset["file"])

    def _read(self, file: dict[str, Any]) -> bytes:
        path = f"{self.folder}/{file['name']}"
        try:
            data = files.read_bytes(path)
        except OSError as error:
            raise self._damaged(f"{path}: {error.strerror or error}") from error
        if len(data) != file["bytes"] or hashlib.sha256(data).hexdigest() != file["sha256"]:
            raise self._damaged(
                f"{path} has {len(data):,} bytes and another checksum; written were "
                f"{file['bytes']:,}"
            )
        return data

    def _damaged(self, cause: str) -> LaggardError:
        return LaggardError(
            "the poll of a batch that is to be run again cannot be read",
            cause=cause,
            fix=f"restore {self.folder} with the checkpoint, or continue from the tables: "
            "laggard doctor --repair",
            exit_code=errors.DAMAGED,
        )

    def _remove_unneeded(self, poll_id: int) -> None:
        """Remove files that no batch in the write-ahead log can name.

        These are polls before its oldest batch, and parts of files.
        """
        wal = f"{self._checkpoint}/offsets"
        batches = [int(name) for name in files.list_names(wal) if name.isdigit()]
        try:
            oldest = None
            if batches:
                oldest = poll_id_of(files.read_text(f"{wal}/{min(batches)}"))
        # removed by Spark meanwhile, or damaged: nothing is known
        except (FileNotFoundError, ValueError):
            return
        # a later one is of a checkpoint that was here before
        needed = range(-1 if oldest is None else min(oldest, poll_id), poll_id + 1)
        for name in files.list_names(self.folder):
            match = _NAME.fullmatch(name)
            if (int(match[1]) if match else -1) not in needed:
                with suppress(OSError):  # tried again with the next large poll
                    files.remove(f"{self.folder}/{name}")


def poll_id_of(wal_text: str) -> int | None:
    """Return the poll id in a batch text of Spark's write-ahead log; None if there is none."""
    poll_id = offset_in(wal_text).get("poll_id")
    if poll_id is None:
        return None
    return int(poll_id)


def offset_in(wal_text: str) -> dict[str, Any]:
    """Return the streaming offset in a batch text of Spark's write-ahead log; empty if none."""
    for line in wal_text.splitlines():
        if line.startswith("{"):
            parsed: dict[str, Any] = json.loads(line)
            if "poll_id" in parsed:
                return parsed
    return {}
