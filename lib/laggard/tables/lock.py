"""One writer per table root: Delta on a plain file system is safe inside one JVM only."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laggard.errors import CONFIGURATION, REFUSED, LaggardError
from laggard.files import is_local, locate


def local_path(root: str) -> Path | None:
    """The root as a local path; None for an object store or HDFS."""
    place = locate(root)
    return Path(place) if is_local(place) else None


@contextmanager
def writer_lock(root: str) -> Iterator[None]:
    """Hold `<root>/_laggard/writer.lock`; the kernel releases it however the process ends."""
    folder = local_path(root)
    if folder is None:  # other file systems: the log store there decides (docs/architecture.md)
        yield
        return
    path = folder / "_laggard" / "writer.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        handle = path.open("r+")  # in append mode every write would go to the end
    except OSError as error:
        raise LaggardError(
            f"cannot write to the table root {root}",
            cause=f"{error.strerror}: {error.filename}",
            fix="set job.tables to a folder this user can write",
            exit_code=CONFIGURATION,
        ) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            handle.seek(0)
            raise LaggardError(
                f"another process writes to {root}",
                cause=f"{path} is held by process {handle.read().strip() or 'unknown'}",
                fix="stop that process, or give this job its own job.tables and job.checkpoint",
                exit_code=REFUSED,
            ) from error
        # one write over the old number: renaming a new file here would leave the lock on the old one
        holder = str(os.getpid()).encode()
        os.pwrite(handle.fileno(), holder, 0)
        os.ftruncate(handle.fileno(), len(holder))
        yield
