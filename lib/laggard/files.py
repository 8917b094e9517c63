"""Files by path or URI, on a local disk or an object store, without a JVM."""

from __future__ import annotations

import os
import re
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote

from pyarrow import fs

from laggard import storage
from laggard.errors import CONFIGURATION, LaggardError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+")
_FILE_PATH = re.compile(r"(?://(?:localhost)?(?=/))?(/(?!/).*)", re.DOTALL)  # behind "file:"
_MISREAD_URL = re.compile(r"[#?%\\\x00-\x1f\x7f]")
# delta-rs decodes a path once more, and takes \ for /
_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]")


def locate(place: str) -> str:
    """Return the absolute path of a local place, or the URL of another place.

    delta-rs, Arrow and Spark read both alike.

    A path is taken literally, a `file:` URL is decoded. A located place stays as it is.
    """
    scheme, _, rest = place.partition(":")
    if not (rest.startswith("/") and _SCHEME.fullmatch(scheme)):
        return _located(Path(place).expanduser() if place.partition("/")[0] == "~" else Path(place))
    if scheme.lower() in storage.SCHEMES and rest.startswith("//"):
        return _in_bucket(scheme.lower(), rest.rstrip("/"))
    if scheme.lower() == "file" and (path := _FILE_PATH.fullmatch(rest)):
        return _located(Path(unquote(path[1])))
    known = ", ".join(storage.SCHEMES)
    raise _refused(
        f"{place!r} is not a place for tables",
        f"on this machine it is file:///…, in a bucket {known}; others, as HDFS, cannot refuse a "
        "second writer",
    )


def _in_bucket(scheme: str, rest: str) -> str:
    url = f"{scheme}:{rest}"
    if scheme.startswith("abfs") and not re.match(r"//[^/@]+@[^/@]+", rest):
        raise _refused(
            f"{url!r} is not a place for tables", "on Azure it is abfss://container@account…/path"
        )
    if not rest.strip("/"):
        raise _refused(f"{url!r} is not a place for tables", "it names no bucket")
    if misread := _MISREAD_URL.search(url):
        raise _refused(
            f"{url!r} cannot be read as a URL",
            f"the libraries take {misread[0]!r} for different texts",
        )
    return url


def _located(path: Path) -> str:
    absolute = str(path.resolve() if ".." in path.parts else path.absolute())
    if misread := _MISREAD.search(absolute):
        raise _refused(
            f"{absolute!r} cannot be read as a path",
            f"Delta's library takes {misread[0]!r} for another text",
        )
    return absolute


def _refused(what: str, cause: str) -> LaggardError:
    fix = "set job.tables and job.checkpoint to other folders, which laggard makes"
    return LaggardError(what, cause=cause, fix=fix, exit_code=CONFIGURATION)


def is_local(located: str) -> bool:
    """Return True if a located path is on this machine's file systems."""
    return located.startswith("/")


def open_uri(uri: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path on it."""
    place = locate(uri)
    if is_local(place):
        return fs.LocalFileSystem(), place
    return storage.arrow_system(place)


def nearest_existing(path: Path) -> Path:
    """Return the path, or the nearest folder above it that this user can see."""
    above = (path.absolute(), *path.absolute().parents)
    # Path's raises below a closed folder
    return next(folder for folder in above if os.path.exists(folder))  # noqa: PTH110


def exists(path: str) -> bool:
    """Return True if there is a file or folder at the path."""
    system, where = open_uri(path)
    return bool(system.get_file_info(where).type != fs.FileType.NotFound)


def read_text(path: str) -> str:
    """Return the file's text."""
    return read_bytes(path).decode("utf-8")


def read_bytes(path: str) -> bytes:
    """Return the file's content."""
    system, where = open_uri(path)
    with system.open_input_stream(where) as stream:
        return bytes(stream.read())


def modified_at(path: str) -> float:
    """Return Unix seconds of the last write, by the clock of the kernel or of the server.

    The server is a file server or an object server.
    """
    system, where = open_uri(path)
    return float(system.get_file_info(where).mtime_ns) / 1e9


def write_text(path: str, text: str) -> None:
    """Replace the file, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, data: bytes) -> None:
    """Replace the file whole: after a crash or power cut it has the old content or the new.

    It never has a part of the content.

    On a local disk by a temporary file beside it, fsync, rename and fsync of the folder; object
    stores put whole files.
    """
    system, where = open_uri(path)
    # a bucket has no folders, and a marker for each would need rights
    if isinstance(system, fs.LocalFileSystem):
        system.create_dir(str(Path(where).parent), recursive=True)
        _replace_local(Path(where), data)
    else:
        with system.open_output_stream(where) as stream:
            stream.write(data)


def _replace_local(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself is in the folder
    finally:
        os.close(folder)


def numbers(folder: str) -> list[int]:
    """Return file names that are numbers, as Spark names its batches; empty without the folder."""
    return sorted(int(name) for name in list_names(folder) if name.isdigit())


def newest_number(folder: str) -> int | None:
    """Return the largest of the file names that are numbers; None without any."""
    return max(numbers(folder), default=None)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder, in no order; none if there is no folder."""
    system, where = open_uri(folder)
    entries = system.get_file_info(fs.FileSelector(where, allow_not_found=True))
    return list(map(attrgetter("base_name"), entries))


def remove(path: str) -> None:
    """Remove a file."""
    system, where = open_uri(path)
    system.delete_file(where)


def set_aside(folder: str, name: str) -> str | None:
    """Rename a folder to `<folder>.<name>` and return the new path; None without a folder.

    A number is added if that path exists.
    """
    path = folder.rstrip("/")
    if not exists(path):
        return None
    number, target = 0, f"{path}.{name}"
    while exists(target):
        number, target = number + 1, f"{path}.{name}.{number + 1}"
    system, where = open_uri(path)
    system.move(where, where + target.removeprefix(path))
    return target


def delete_folder(path: str) -> None:
    """Delete a folder and all in it, if it is there."""
    system, where = open_uri(path.rstrip("/"))
    if system.get_file_info(where).type == fs.FileType.Directory:
        system.delete_dir(where)
