"""Write conf/completion and the golden texts of --help from the parser: `make docs`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import shtab

from laggard.cli.parser import SHELLS, VERBS, build_parser

ROOT = Path(__file__).parent.parent.parent
COMPLETION = ROOT / "conf" / "completion"
HELP = ROOT / "tests" / "data" / "help.txt"
_PATHS = {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "PATH": shtab.DIRECTORY}


def main() -> None:
    """Write all files."""
    COMPLETION.mkdir(exist_ok=True)
    for shell in SHELLS:
        (COMPLETION / f"laggard.{shell}").write_text(completion(shell), encoding="utf-8")
    HELP.write_text(help_texts(), encoding="utf-8")


def completion(shell: str) -> str:
    """Return the completion of one shell, for all verbs."""
    parser = build_parser(*VERBS)
    for each in parsers(parser):
        for action in each._actions:  # noqa: SLF001 - argparse has no other list
            if action.metavar in _PATHS:
                # shtab reads this attribute
                action.complete = _PATHS[action.metavar]  # type: ignore[attr-defined,index]
    return shtab.complete(parser, shell=shell).rstrip() + "\n"


def help_texts() -> str:
    """Return the help of laggard and of every verb, 80 columns wide."""
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "80"
    try:
        texts = [build_parser(None).format_help()]
        texts += [each.format_help() for each in list(parsers(build_parser(*VERBS)))[1:]]
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
    return f"{'-' * 80}\n".join(texts)


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser and those of its verbs."""
    yield parser
    for action in parser._actions:  # noqa: SLF001 - the same
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - the same
            yield from action.choices.values()


if __name__ == "__main__":
    main()
