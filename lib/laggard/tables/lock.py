"""One writer per table root: the kernel's lock on a local disk, a lease in a bucket."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from laggard import storage
from laggard.errors import CONFIGURATION, REFUSED, LaggardError
from laggard.files import is_local, locate
from laggard.tables.lease import Lease, claim
from laggard.tables.readers import has_table, open_table
from laggard.tables.schema.schemas import TABLES


def local_path(root: str) -> Path | None:
    """Return the root as a local path; None for an object store or HDFS."""
    place = locate(root)
    if not is_local(place):
        return None
    return Path(place)


@contextmanager
def writer_lock(
    root: str,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Lease | None]:
    """Hold the only right to write below a root; yield the lease that commits need.

    The lease is None on a local disk.

    In a bucket `claim_tables` comes next: until then an earlier holder may still commit. Locally
    it is `<root>/_laggard/writer.lock`, which the kernel releases however the process ends.
    """
    folder = local_path(root)
    if folder is None:
        lease = Lease(locate(root), storage.settings().lease_seconds)
        try:
            lease.take(is_stopping)
            yield lease
        finally:
            lease.give_back()
    else:
        with _kernel_lock(folder):
            yield None


def claim_tables(root: str, lease: Lease | None) -> None:
    """Shut out every earlier holder of the lease from all tables that are there."""
    if lease is not None:
        claim([open_table(root, name) for name in TABLES if has_table(root, name)], lease)


@contextmanager
def _kernel_lock(folder: Path) -> Iterator[None]:
    path = folder / "_laggard" / "writer.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        handle = path.open("r+")  # in append mode every write would go to the end
    except OSError as error:
        raise LaggardError(
            f"cannot write to the table root {folder}",
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
                f"another process writes to {folder}",
                cause=f"{path} is held by process {handle.read().strip() or 'unknown'}",
                fix="stop that process, or give this job its own job.tables and job.checkpoint",
                exit_code=REFUSED,
            ) from error
        # one write over the old number: renaming a new file here would leave the lock on the old
        # one
        holder = str(os.getpid()).encode()
        os.pwrite(handle.fileno(), holder, 0)
        os.ftruncate(handle.fileno(), len(holder))
        yield
