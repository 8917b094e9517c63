"""Links of all pages hold, and every page is in the reading order of the site."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *ROOT.glob("*.md"),
    *DOCS.rglob("*.md"),
    ROOT / "tests" / "simulator" / "README.md",
]
BY_FOLDER = ("decisions", "runbooks")  # listed by the README of each


def prose(path: Path) -> str:
    """A page without its code."""
    text = re.sub(r"(?ms)^ *(```+).*?^ *\1$", "", path.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", lambda code: re.sub(r"[\[\]()#]", "", code[0]), text)


def links(path: Path) -> list[str]:
    found = re.findall(r"\]\(([^)\s]+)\)", prose(path))
    return [unquote(link) for link in found if not re.match(r"\w+:", link)]


@cache
def anchors(path: Path) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.+?) *$", prose(path))
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    seen: Counter[str] = Counter()
    found = set(re.findall(r'id="([^"]+)"', prose(path)))
    for slug in slugs:
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken(path: Path) -> list[str]:
    found = []
    for link in links(path):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


def test_links_and_anchors_of_all_pages_hold() -> None:
    assert {str(path.relative_to(ROOT)): broken(path) for path in PAGES if broken(path)} == {}


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text(
        "# One two\n[a](b.md) [b](#one-two) [c](#three) [d](https://example.org) `[e](f.md)`\n"
    )
    assert broken(page) == ["b.md", "#three"]


def test_links_from_page_to_page_name_files() -> None:
    """The site has no page for a folder, other than GitHub."""
    found = [
        (path.name, link) for path in PAGES for link in links(path) if (path.parent / link).is_dir()
    ]
    assert found == []


def test_every_page_is_in_the_reading_order() -> None:
    listed = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "index.md")}
    left = (
        {path for path in DOCS.rglob("*.md") if path.parent.name not in BY_FOLDER}
        - listed
        - {DOCS / "index.md"}
    )
    assert left == set(), "link to each of these from docs/index.md"
    assert {DOCS / folder / "README.md" for folder in BY_FOLDER} <= listed
