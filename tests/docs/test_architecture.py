"""The page on the architecture names the imports that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIB = ROOT / "lib" / "laggard"
FOLDERS = {path.name for path in LIB.iterdir() if (path / "__init__.py").exists()}
ROW = re.compile(r"^\| ((?:`\w+/`(?:, )?)+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
ALL = {"all", "all above"}


def imported(folder: str) -> set[str]:
    """Folders of laggard that a folder's files import, whenever they do."""
    found = set()
    for path in (LIB / folder).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"(?m)^\s*(?:from|import) laggard\.(\w+)", source))
        found |= {
            name
            for names in re.findall(r"(?m)^\s*from laggard import (.+)", source)
            for name in names.split(", ")
        }
    return found & FOLDERS - {folder}


def listed() -> dict[str, str]:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return {
        name: imports
        for names, imports in ROW.findall(page)
        for name in re.findall(r"`(\w+)/`", names)
    }


def test_every_folder_is_listed_with_all_that_it_imports() -> None:
    assert listed().keys() == FOLDERS
    named = {
        folder: set(re.findall(r"`(\w+)`", text))
        for folder, text in listed().items()
        if text not in ALL
    }
    assert {
        folder: imported(folder) - names
        for folder, names in named.items()
        if imported(folder) - names
    } == {}


def test_no_folder_is_listed_with_an_import_that_it_has_not() -> None:
    named = {
        folder: FOLDERS & set(re.findall(r"`(\w+)`", text))
        for folder, text in listed().items()
        if text not in ALL
    }
    assert {
        folder: names - imported(folder)
        for folder, names in named.items()
        if names - imported(folder)
    } == {}
