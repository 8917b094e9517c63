"""Commands, targets, keys and metrics that pages name are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from laggard.cli.parser import VERBS, build_parser
from laggard.config.sections import keys
from laggard.exporter.body.families import FAMILIES

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions"),
]
SECTIONS = {key.partition(".")[0] for key in keys()}
SAMPLES = ("_bucket", "_count", "_sum", "_gcount", "_gsum")
each_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def commands(text: str) -> Iterator[str]:
    """Commands of a page: lines of its blocks for a shell, and what stands between backticks."""
    for block in re.findall(r"(?ms)^ *```sh\n(.*?)^ *```$", text):
        yield from (line.strip() for line in block.replace("\\\n", " ").splitlines())
    for span in re.findall(r"`([^`]+)`", re.sub(r"(?ms)^ *```.*?^ *```$", "", text)):
        if re.match(r"laggard \S+ .|make ", span):  # a verb alone is its name
            yield span


def words_of(command: str) -> list[str]:
    """Words of a command up to a pipe, a redirection or a comment; none if a quotation goes on in
    the next line.
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(takewhile(lambda word: not set(word) <= set("();<>|&"), lexer))
    except ValueError:
        return []


@each_page
def test_its_commands_are_accepted(path: Path) -> None:
    for command in commands(path.read_text(encoding="utf-8")):
        words = words_of(command)
        if words[:1] == ["laggard"]:
            assert words[1] in VERBS, command
            build_parser(words[1]).parse_args(words[1:])


@each_page
def test_its_targets_of_make_exist(path: Path) -> None:
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = {
        command.split()[1]
        for command in commands(path.read_text(encoding="utf-8"))
        if command.startswith("make ")
    }
    assert {each for each in named if re.fullmatch(r"[a-z-]+", each)} - targets == set()


@each_page
def test_its_keys_and_metrics_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(rf"`((?:{'|'.join(sorted(SECTIONS))})\.[a-z_]+)`", text)
    metrics = {each.name for each in FAMILIES}
    shown = set(re.findall(r"`(laggard_[a-z_]+[a-z])[`{]", text))
    assert [
        key for key in named if key not in keys() and not (ROOT / "docker" / "k8s" / key).exists()
    ] == []
    assert {name for name in shown if name not in metrics and not name.endswith(SAMPLES)} == set()
