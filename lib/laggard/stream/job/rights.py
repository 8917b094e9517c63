"""Check of the user's rights to read and write at start; later a library would fail."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from laggard.errors import CONFIGURATION, LaggardError
from laggard.files import is_local, locate
from laggard.stream.job.identity import identity_path
from laggard.tables.schema.schemas import TABLES

if TYPE_CHECKING:
    from laggard.config.sections import Job


def check_rights(job: Job) -> None:
    """Refuse tables, a checkpoint or a Spark folder without the rights that the job needs."""
    for key, path in _places(job):
        refused = _refused_right(path)
        if refused is not None:
            where, right = refused
            raise LaggardError(
                f"cannot {right} {where}",
                cause=f"user {os.geteuid()} has no right to {right} there, or it is not a folder; "
                f"{key} needs it",
                fix=f"chown -R the place to the job's user, or set {key} to another folder",
                exit_code=CONFIGURATION,
            )


def _places(job: Job) -> Iterator[tuple[str, Path]]:
    tables, checkpoint = locate(job.tables), locate(job.checkpoint)
    if is_local(tables):
        yield "job.tables", Path(tables)
        for name in TABLES:
            for path in (Path(tables, name), Path(tables, name, "_delta_log")):
                yield "job.tables", path
    for path in (Path(checkpoint), Path(checkpoint, "offsets"), Path(checkpoint, "commits")):
        yield "job.checkpoint", path
    yield "job.checkpoint", Path(identity_path(checkpoint))
    for folder in local_folders(job.spark):
        yield "spark.local.dir", Path(folder)


def local_folders(spark: Mapping[str, str]) -> list[str]:
    """Return the folders of Spark's files; the JVM ends silently if it cannot write to one."""
    given = (
        os.environ.get("SPARK_LOCAL_DIRS") or spark.get("spark.local.dir") or tempfile.gettempdir()
    )
    return [folder.strip() for folder in given.split(",")]


def _refused_right(path: Path) -> tuple[Path, str] | None:
    """Return the path with its missing right; None if none is missing.

    The path may be the folder to create it in.
    """
    # without an exception where a folder above cannot be searched
    while not os.path.lexists(path):
        path = path.parent
        if os.path.lexists(path) and not path.is_dir():
            return path, "write"
    searched = os.X_OK if path.is_dir() else 0
    if not os.access(path, os.R_OK | searched):
        return path, "read"
    if os.access(path, os.W_OK):
        return None
    return (path, "write")
