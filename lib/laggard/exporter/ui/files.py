"""The files of the page as bytes, plain and zipped, read once; or the page as one file."""

from __future__ import annotations

import base64
import gzip
import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b, sha256
from html import escape
from importlib.resources import files

UI, UI_PREFIX = "/ui", "/ui/"
UI_ANSWERS = {UI: (200, 304, 308, 404, 405, 413, 431)}  # all files are counted as one path
_NO_BASE = b'<meta name="runbook-base" content="">'
_LINKS = re.compile(r'<link rel="icon".*</script>', re.DOTALL)
_MODULES = ("base", "charts", "explained", "feed", "fleet", "group", "app")  # imports first
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|class|function) (\w+))", re.MULTILINE)
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
    by_path = {}
    for resource in files(__package__).iterdir():
        kind = _TYPES.get(resource.name.rpartition(".")[2])
        if kind:
            is_page = resource.name == "index.html"
            content = resource.read_bytes()
            if is_page:
                content = content.replace(
                    _NO_BASE, _NO_BASE.replace(b'""', f'"{escape(runbook_base)}"'.encode())
                )
            by_path[UI if is_page else UI_PREFIX + resource.name] = _file(kind, content)
    return by_path


def offline_page(documents: bytes, runbook_base: str = "") -> str:
    """Return the page as one file that shows these documents and asks nobody."""
    by_path = ui_files(runbook_base)
    style = by_path[f"{UI_PREFIX}style.css"].plain.decode()
    script = "\n".join(_module(name, by_path[f"{UI_PREFIX}{name}.js"]) for name in _MODULES)
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
    inlined = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>\n{style}</style>\n"
        # names in it were chosen by clients: no tag can begin in it
        f'<script type="application/json" id="documents">'
        f"{documents.decode().rstrip().replace('<', chr(92) + 'u003c')}</script>\n"
        f'<script type="module">{script}</script>'
    )
    return _LINKS.sub(lambda _: inlined, by_path[UI].plain.decode(), count=1)


def _module(name: str, file: File) -> str:
    """Return the script of a module: a function that returns its exports."""
    text = _IMPORT.sub(r"const \1 = \2$;", file.plain.decode())
    exported = ", ".join(_EXPORT.findall(text))
    return f"const {name}$ = (() => {{\n{_EXPORT.sub('', text)}\nreturn {{ {exported} }};\n}})();"


def _file(kind: str, plain: bytes) -> File:
    # weak, as it is the same for both encodings
    etag = f'W/"{blake2b(plain, digest_size=8).hexdigest()}"'
    return File(f"{kind}; charset=utf-8", plain, gzip.compress(plain, 9, mtime=0), etag)
