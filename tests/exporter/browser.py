"""A real Chromium without a window: what a page shows, what it complains of, and
what it asks for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from patience import patient

_AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
# axe looks at all that counts for WCAG 2.2 AA and at good habits
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_TRACED = ["toplevel", "__metadata"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Debian's Chromium; a machine without it skips, and fails in CI."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not on the path: make tools")
    with sync_playwright() as playwright:
        # no sandbox: a container's root has none; the pages are our own
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Seen:
    """One tab, and what happened in it."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, fragment: str = "#/") -> Page:
        self.page.goto(f"{self.origin}/ui{fragment}")
        return self.page

    def foreign(self) -> list[str]:
        """Requests that left the origin."""
        return [url for url in self.requests if not url.startswith(f"{self.origin}/")]

    @contextmanager
    def tasks(self) -> Iterator[list[float]]:
        """Milliseconds that the page's own thread computed for each task: pauses that others make
        do not count.
        """
        found: list[float] = []
        browser = self.page.context.browser
        assert browser
        browser.start_tracing(page=self.page, categories=_TRACED)
        yield found
        events = json.loads(browser.stop_tracing())["traceEvents"]
        main = {
            (each["pid"], each["tid"])
            for each in events
            if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
        }
        found += [
            each["tdur"] / 1000
            for each in events
            if "tdur" in each and (each["pid"], each["tid"]) in main
        ]

    def violations(self) -> list[str]:
        """Find what a person with a screen reader, a keyboard or weak eyes would trip over."""
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: Any = self.page.evaluate(
            "async (tags) => (await axe.run(document, {runOnly: tags})).violations"
            ".map(({id, nodes}) => `${id}: ${nodes.map((node) => `${node.html} "
            "${node.failureSummary}`).slice(0, 3)}`)",
            _RULES,
        )
        return list(found)


@contextmanager
def tab(
    browser: Browser, port: int, theme: str = "light", width: int = 1280, height: int = 800
) -> Iterator[Seen]:
    """Open an empty tab that writes down what is asked and complained of."""
    context = browser.new_context(
        color_scheme="dark" if theme == "dark" else "light",
        viewport={"width": width, "height": height},
        timezone_id="Europe/Berlin",
    )
    page = context.new_page()
    page.set_default_timeout(1000 * patient(10))
    seen = Seen(page, f"http://127.0.0.1:{port}")
    page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.complaints.append(f"error: {error}"))
    page.on("request", lambda request: seen.requests.append(request.url))
    try:
        yield seen
    finally:
        # a question under way when the test ends is nobody's fault
        page.unroute_all(behavior="ignoreErrors")
        context.close()
