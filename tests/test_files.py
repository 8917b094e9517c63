"""Small files are replaced whole: after a crash at any point the old text or the
new one is there.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from laggard import files


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The calls that make a write durable, in order, each with the name of what it was given."""
    found: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(handle: int) -> None:
        found.append(("fsync", Path(f"/proc/self/fd/{handle}").readlink().name))
        fsync(handle)

    def record_replace(source: Any, target: Any) -> None:
        found.append(("replace", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    return found


def test_a_write_is_on_disk_before_its_name_is(
    tmp_path: Path, calls: list[tuple[str, str]]
) -> None:
    target = tmp_path / "folder" / "small.json"
    files.write_text(str(target), "é")
    assert target.read_text(encoding="utf-8") == "é"
    temporary = calls[0][1]
    assert calls == [("fsync", temporary), ("replace", "small.json"), ("fsync", "folder")]
    assert temporary != "small.json"


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_text_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    target = tmp_path / "small.json"
    files.write_text(str(target), "old")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="No space"):
        files.write_text(str(target), "new")
    assert target.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["small.json"]


def test_bytes_are_kept_as_they_are(tmp_path: Path) -> None:
    files.write_bytes(f"file://{tmp_path}/spool", b"\x00\xff")
    assert (tmp_path / "spool").read_bytes() == b"\x00\xff"
