"""Every alert has a page, and what a page says to type is a command of laggard."""

from __future__ import annotations

import re
import shlex

import pytest

from laggard.cli.parser import build_parser
from laggard.config.sections import keys
from laggard.diagnosis.rules.registry import BY_CODE
from laggard.errors import LaggardError
from rules.promtool import ROOT, table

PAGES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "runbooks").glob("Laggard*.md")
}
HEADINGS = [
    "Meaning",
    "Impact",
    "First look",
    "Decide by shape",
    "Fix, in order",
    "What not to do",
    "How to verify",
    "False positives",
]
alert_table, _ = table()
ALERTS = {each.name: each for each in alert_table.ALERTS}


def commands(text: str) -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(
        r"`(laggard [^`]+)`", text
    )


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    assert set(PAGES) == set(ALERTS)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_headings_in_order_and_names_its_dashboard(name: str) -> None:
    assert re.findall(r"(?m)^## (.+)$", PAGES[name]) == HEADINGS
    assert PAGES[name].startswith(f"# {name}\n")
    assert f"Dashboard `{ALERTS[name].dashboard}`" in PAGES[name]
    severities = {each.severity for each in alert_table.ALERTS if each.name == name}
    assert set(re.findall("critical|warning|info", PAGES[name].splitlines()[2])) == severities


@pytest.mark.parametrize("name", PAGES)
def test_commands_of_a_page_and_of_its_alert_are_accepted(name: str) -> None:
    said = re.findall(r"First look: (laggard .+)\.$", ALERTS[name].description)
    assert len(said) == 1
    found = [
        *commands(PAGES[name]),
        *(text.replace("{{ $labels.group }}", "GROUP") for text in said),
    ]
    assert found
    for command in (text.replace("{{ $labels.code }}", "BROKER_CORRELATED") for text in found):
        words = shlex.split(command)
        assert words[0] == "laggard"
        build_parser(words[1]).parse_args(words[1:])
        if "--code" in words:
            code = words[words.index("--code") + 1].replace("*", ".*")
            assert any(re.fullmatch(code, each) for each in BY_CODE)


@pytest.mark.parametrize("name", PAGES)
def test_links_and_keys_of_a_page_are_there(name: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGES[name]):
        assert (ROOT / "docs" / "runbooks" / link).exists(), link
    for key in re.findall(r"`((?:job|metrics|exporter)\.\w+)`", PAGES[name]):
        assert key in keys(), key


def test_a_wrong_command_is_found() -> None:
    with pytest.raises(LaggardError):
        build_parser("findings").parse_args(["findings", "--kode", "X"])
