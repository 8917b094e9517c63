"""The site is built without a warning, and its pages fetch nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["'](?:https?:)?//|url\(["']?(?:https?:)?//|@import"""
    r"""|<link[^>]+rel=["'](?:stylesheet|preload|preconnect|icon)["'][^>]+href=["'](?:https?:)?//"""
)


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://example.org/a.js"></script>',
        '<link crossorigin rel="stylesheet" href="//example.org/a.css">',
        "@font-face {src: url(https://example.org/a.woff2)}",
    ],
)
def test_what_a_page_fetches_is_found(text: str) -> None:
    assert FETCHED.search(text)
    assert not FETCHED.search(
        text.replace("https://example.org/", "").replace("//example.org/", "")
    )


@pytest.mark.full
@pytest.mark.skipif(sys.version_info < (3, 11), reason="the extra docs needs Python 3.11")
def test_the_site_is_built_without_a_warning_and_fetches_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs/site",
        ".",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    index = (tmp_path / "docs" / "index.html").read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        assert (tmp_path / path.relative_to(ROOT).with_suffix(".html")).exists()
    for page in ("deploy", "questions", "architecture"):
        assert f'class="reference internal" href="{page}.html"' in index
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".html", ".css")]
    assert len(files) > 80
    assert [path.name for path in files if FETCHED.search(path.read_text(encoding="utf-8"))] == []
