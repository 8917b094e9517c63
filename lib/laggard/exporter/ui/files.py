"""The files of the page as bytes, plain and zipped, read once."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from html import escape
from importlib.resources import files

UI, UI_PREFIX = "/ui", "/ui/"
UI_ANSWERS = {UI: (200, 304, 308, 404, 405, 413, 431)}  # all files are counted as one path
_NO_BASE = b'<meta name="runbook-base" content="">'
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class File:
    """One file with what its headers say."""

    content_type: str
    plain: bytes = field(repr=False)
    zipped: bytes = field(repr=False)
    etag: str


@cache
def ui_files(runbook_base: str = "") -> dict[str, File]:
    """Return every UI file by its path; the page gets the prefix for runbook paths."""
    found = {}
    for each in files(__package__).iterdir():
        kind = _TYPES.get(each.name.rpartition(".")[2])
        if kind:
            is_page = each.name == "index.html"
            content = each.read_bytes()
            if is_page:
                content = content.replace(
                    _NO_BASE, _NO_BASE.replace(b'""', f'"{escape(runbook_base)}"'.encode())
                )
            found[UI if is_page else UI_PREFIX + each.name] = _file(kind, content)
    return found


def _file(kind: str, plain: bytes) -> File:
    # weak, as it is the same for both encodings
    etag = f'W/"{blake2b(plain, digest_size=8).hexdigest()}"'
    return File(f"{kind}; charset=utf-8", plain, gzip.compress(plain, 9, mtime=0), etag)
