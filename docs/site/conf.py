"""Configure Sphinx for the pages of docs/; the navigation is the reading order of docs/index.md."""

from __future__ import annotations

import re
from typing import Any

from laggard import __version__

project = "laggard"
version = release = __version__
html_title = f"laggard {__version__}"
project_copyright = "the laggard authors"
extensions = ["myst_parser"]
# the root of the repository is the source: links of pages lead where they do on GitHub
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "tests/simulator/README.md"]
exclude_patterns = [
    ".*",
    "bench",
    "build",
    "conf",
    "data",
    "demo",
    "dist",
    "docker",
    "jobs",
    "lib",
    "docs/build",
    "docs/site",
]
html_extra_path = ["home"]  # leads from the top to docs/index.html
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["wide.css"]  # tables of metrics and columns need more than a column of prose
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 4  # the anchors that GitHub gives

# of many pages: they list all that are beside them
_FOLDERS = ("docs/decisions/README", "docs/runbooks/README")
_TREE = "\n```{{toctree}}\n{options}\n\n{entries}\n```\n"


def toctrees(index: str) -> str:
    """Write a hidden table of contents for each heading of the page.

    It lists the pages whose first link is below that heading.
    """
    seen: set[str] = set()
    trees = []
    for heading, text in re.findall(r"(?ms)^## ([^\n]+)\n(.*?)(?=^## |\Z)", index):
        links = {
            link: words
            for words, link in reversed(re.findall(r"\[([^]]+)\]\(([^)#:]+)\.md\)", text))
        }
        new = [link for link in reversed(links) if link not in seen]
        seen.update(new)
        if new:
            trees.append(
                _TREE.format(
                    options=f":hidden:\n:caption: {heading}",
                    entries="\n".join(_entry(links[link], link) for link in new),
                )
            )
    return "".join(trees)


def _entry(words: str, link: str) -> str:
    """Give a page above docs/ the words of its link: its title is that of the whole."""
    return f"{words[0].upper()}{words[1:]} <{link}>" if link.startswith("..") else link


def _add_contents(_app: Any, name: str, source: list[str]) -> None:
    if name == root_doc:
        source[0] += toctrees(source[0])
    elif name in _FOLDERS:
        source[0] += _TREE.format(options=":glob:\n:maxdepth: 1", entries="[!R]*")


def setup(app: Any) -> None:
    """Add the navigation as pages are read, so that GitHub shows none of Sphinx's directives."""
    app.connect("source-read", _add_contents)
