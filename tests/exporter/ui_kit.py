"""An exporter on tables of a test, and a tab on its page; conftest.py has the fixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from exporter.api_kit import serving_api
from exporter.browser import Seen, tab
from exporter.harness import LIMIT_SECONDS, Clock, Exporter
from exporter.test_roots import Several
from laggard.exporter import api
from patience import patient

GROUP = "#/group/prod/checkout"
expect.set_options(timeout=1000 * patient(10))


def refreshed(root: Path, clock: Clock | None = None) -> Exporter:
    exporter = Exporter(root, clock=clock or Clock())
    exporter.refresh()
    return exporter


@contextmanager
def showing(
    browser: Browser, exporter: Exporter | Several, clock: Clock | None = None, **look: Any
) -> Iterator[Seen]:
    """A tab on the exporter; whatever the test does in it, nothing leaves the origin."""
    with (
        pytest.MonkeyPatch.context() as patch,
        serving_api(exporter, clock) as asker,
        tab(browser, asker.port, **look) as seen,
    ):
        patch.setattr(api, "ANSWER_SECONDS", LIMIT_SECONDS)  # a busy machine may answer late
        yield seen
        assert seen.foreign() == []


def longest_task(browser: Browser, exporter: Exporter, use: Callable[[Seen], None]) -> float:
    """Milliseconds of the longest task of a use, in the quickest of three: a busy machine adds to
    a task and takes nothing off.
    """
    longest = []
    for _ in range(3):
        with showing(browser, exporter) as seen, seen.tasks() as tasks:
            use(seen)
        longest.append(max(tasks))
    return min(longest)
