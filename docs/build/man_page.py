"""Write conf/man/laggard.1 from the parser and docs/exit-codes.md: `make docs`.

The exit codes are those of docs/exit-codes.md.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from argparse_manpage.manpage import Manpage

from completion_files import parsers
from laggard.cli.parser import VERBS, build_parser

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "conf" / "man" / "laggard.1"
SITE = (
    "docs/index.md of the source lists all pages, docs/exit-codes.md has the exit codes of each "
    "verb."
)
FILES = {
    "./laggard.toml": "configuration of this folder",
    "/etc/laggard/laggard.toml": "configuration of the machine",
    "policy.d/*.toml": "beside the configuration: more tables [[policy]]",
}
_CODE = re.compile(r"^\| (\d+) \| (.+?) \|", re.MULTILINE)


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(man_page(), encoding="utf-8")


def man_page() -> str:
    """Return the page in the language of man, the same on every day."""
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "1000"  # man itself breaks the lines
    try:
        parser = build_parser(*VERBS)
        for each in list(parsers(parser))[1:]:  # the options of every verb are said once
            groups = each._action_groups  # noqa: SLF001 - argparse has no other list
            groups[:] = [group for group in groups if group.title != "options of every verb"]
        page = Manpage(parser, format="single-commands-section")
        page.description = "Kafka consumer lag and rebalances, kept in Delta tables"
        page.date, page.manual = "", "laggard"
        page.add_section("exit status", "=", _entries(exit_codes()))
        page.add_section("files", "=", _entries(FILES))
        page.add_section("see also", "=", SITE)
        return str(page)
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before


def exit_codes() -> dict[str, str]:
    """Return code to meaning, from the first table of the page."""
    text = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8").partition("| verb |")[0]
    return {code: re.sub(r"`|\[|\]\([^)]*\)", "", means) for code, means in _CODE.findall(text)}


def _entries(entries: dict[str, str]) -> str:
    return "\n".join(f".TP\n\\fB{name}\\fR\n{text}" for name, text in entries.items()).replace(
        "-", "\\-"
    )


if __name__ == "__main__":
    main()
