"""Sources of values: the file, the environment, --set. Nothing here knows which keys there are."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laggard.errors import CONFIGURATION, LaggardError

MAX_FILE_BYTES = 256 * 1024
SEARCHED = ("laggard.toml", "/etc/laggard/laggard.toml")
FILE, POLICY_FILE, ENVIRONMENT, SET = range(4)  # the later wins


@dataclass(frozen=True)
class Given:
    """One value that somebody gave, with the place.

    It has also the text as written, unless the value was in a file.
    """

    order: tuple[int, int]
    place: str
    key: str
    value: Any
    text: str | None = None

    def says(self, problem: str) -> str:
        """Return the problem with its place, so that it can be found."""
        return (
            f"{self.place}: {problem}"
            if self.order[0] == ENVIRONMENT
            else f"{self.place}: {self.key}: {problem}"
        )


def refused(problems: Sequence[str]) -> LaggardError:
    """Return the error that lists all problems at once."""
    what = (
        f"the configuration has {len(problems)} mistakes"
        if len(problems) > 1
        else "the configuration has a mistake"
    )
    fix = "laggard config sample  # every key with its default and range"
    return LaggardError(what, cause="\n  ".join(problems), fix=fix, exit_code=CONFIGURATION)


def find_file(path: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the configuration file to read: the user's choice, else the first that exists."""
    return path or environ.get("LAGGARD_CONFIG") or next(filter(_is_there, SEARCHED), None)


def _is_there(path: str) -> bool:
    try:
        return Path(path).is_file()
    # a folder that may not be searched could hold it: going on would be with other values
    except OSError as error:
        raise refused([f"{path}: {error.strerror}"]) from error


@dataclass(frozen=True)
class TomlFile:
    """A file that was read: its path, its text, and what that says."""

    path: str
    text: str
    tree: Mapping[str, Any]


def read_toml(path: str) -> TomlFile:
    """Return the file; raise an error that says why it cannot be read."""
    text = _read(path)
    try:
        tree = _parse(text)
    except ValueError as error:
        at_line = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        place, end = (f"{path}:{at_line[1]}", at_line.start()) if at_line else (path, None)
        raise refused([f"{place}: {str(error)[:end]}"]) from error
    return TomlFile(path, text, tree)


def _parse(text: str) -> dict[str, Any]:
    """Return the TOML text as a tree; raise a ValueError if it is invalid."""
    # here: `make demo` checks its options before tomli can be installed
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def policy_files(path: str) -> list[str]:
    """Return the files of `policy.d` beside the main file, in the order of their names."""
    return sorted(map(str, Path(path).parent.glob("policy.d/*.toml")))


def from_file(file: TomlFile, sections: Collection[str]) -> Iterator[Given]:
    """Yield every key of a TOML file except `policy`, which is a list of rules."""
    for key, value in _flat(file.tree, sections):
        line = line_of(file.text, key)
        if key != "policy":
            yield Given((FILE, line or 0), f"{file.path}:{line}" if line else file.path, key, value)


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise refused([f"{path}: {error.strerror}"]) from error
    if len(raw) > MAX_FILE_BYTES:
        raise refused([f"{path}: larger than {MAX_FILE_BYTES // 1024} KB"])
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise refused([f"{path}: not UTF-8 at byte {error.start}"]) from error


def _flat(
    tree: Mapping[str, Any], sections: Collection[str], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key in sections:
            yield from _flat(value, sections, f"{key}.")
        else:
            yield key, value


def line_of(text: str, key: str) -> int | None:
    """Return the line of a dotted key or its table's header.

    Return None if it is written in an unusual way.
    """
    section, _, name = key.rpartition(".")
    prefix, inline = "", None
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            written = unquoted(header[1])
            prefix = f"{written}."
        elif assignment := re.match(r"\s*([\w.\-\"' ]+?)\s*=", line):
            written = prefix + unquoted(assignment[1])
        else:
            continue
        if f"{written}.".startswith(f"{key}."):
            return number
        # section = { name = value }
        if written == section and re.search(rf"\b{re.escape(name)}\b", line):
            inline = number
    return inline


def unquoted(key: str) -> str:
    """Return a key as TOML reads it, without quotes."""
    return re.sub(r"[\"' ]", "", key)


def from_environment(environ: Mapping[str, str]) -> Iterator[Given]:
    """Yield LAGGARD_SECTION__KEY; other names are not ours.

    For example, Kubernetes sets LAGGARD_PORT for a Service `laggard`.
    """
    for number, name in enumerate(sorted(environ)):
        if name.startswith("LAGGARD_") and "__" in name:
            key = name.removeprefix("LAGGARD_").lower().replace("__", ".")
            yield Given(
                (ENVIRONMENT, number), f"env {name}", key, _from_text(environ[name]), environ[name]
            )


def from_sets(sets: Sequence[str]) -> Iterator[Given]:
    """Yield the settings given by --set section.key=value."""
    for number, assignment in enumerate(sets):
        key, equals, text = assignment.partition("=")
        if not equals:
            raise refused([f"--set {assignment}: expected section.key=value"])
        yield Given((SET, number), "--set", key.strip(), _from_text(text), text)


def _from_text(text: str) -> Any:
    """Return the text parsed as a TOML value, else the text itself."""
    try:
        tree = _parse(f"value = {text}")
    except ValueError:
        return text
    return tree["value"] if len(tree) == 1 else text  # a line break could smuggle in a second key
