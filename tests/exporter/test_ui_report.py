"""The file of `laggard report` in a browser without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from exporter.ui_tables import HOSTILE, write_tables
from laggard.cli.main import main
from laggard.cli.verbs import report
from laggard.errors import OK
from laggard.escape import escape_label

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    return folder


@pytest.mark.parametrize("words", [("checkout",), ("--fleet",)])
def test_a_report_shows_its_documents_without_a_network(
    browser: Browser,
    root: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "MOST_LINKED", 1)
    path = tmp_path / "report.html"
    sets = ("--set", f'job.tables="{root}"')
    assert main([*sets, "report", *words, "--since", "2h", "-o", str(path)]) == OK
    context = browser.new_context(offline=True)
    page, complaints, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    if "--fleet" in words:
        expect(page.locator("table.fleet a")).to_have_text(["checkout"])
        expect(page.locator("table.fleet")).to_contain_text(escape_label(HOSTILE)[:20])
        page.locator("table.fleet a").click()
        expect(page.get_by_text("All groups")).to_be_visible()
    expect(page.locator("h1")).to_contain_text("checkout")
    expect(page.locator(".headline")).to_contain_text("would NOT help")
    expect(page.locator("figure svg.chart polyline").first).to_be_attached()
    expect(page.locator("#moment")).to_contain_text("Report of")
    expect(page.locator("#banner")).to_contain_text("was old when the report was written")
    expect(page.locator("#reload")).to_be_hidden()
    page.wait_for_timeout(200)
    assert (complaints, asked) == ([], [path.as_uri()])
    context.close()
