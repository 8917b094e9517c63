"""Files by path or URI, on a local disk or an object store, without a JVM."""

from __future__ import annotations

from pathlib import Path

from pyarrow import fs


def open_uri(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path on it."""
    # Hadoop's name of the scheme; Arrow knows it without the "a"
    known = uri.replace("s3a://", "s3://", 1) if "://" in uri else Path(uri).absolute().as_posix()
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(known)
    return found


def exists(path: str) -> bool:
    """Whether there is a file."""
    system, where = open_uri(path)
    return bool(system.get_file_info(where).type != fs.FileType.NotFound)


def read_text(path: str) -> str:
    """The file's text."""
    system, where = open_uri(path)
    with system.open_input_stream(where) as stream:
        return bytes(stream.read()).decode("utf-8")


def write_text(path: str, text: str) -> None:
    """Replace the file."""
    system, where = open_uri(path)
    system.create_dir(str(Path(where).parent), recursive=True)
    with system.open_output_stream(where) as stream:
        stream.write(text.encode("utf-8"))


def newest_number(folder: str) -> int | None:
    """The largest file name that is a number, as Spark names its batches."""
    system, where = open_uri(folder)
    entries = system.get_file_info(fs.FileSelector(where, allow_not_found=True))
    return max((int(entry.base_name) for entry in entries if entry.base_name.isdigit()), default=None)


def set_aside(folder: str, name: str) -> str | None:
    """Rename a folder to `<folder>.<name>`, never deleting it; gives the new path, None where there was no folder."""
    path = folder.rstrip("/")
    if not exists(path):
        return None
    system, where = open_uri(path)
    system.move(where, f"{where}.{name}")
    return f"{path}.{name}"
