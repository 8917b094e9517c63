"""Fixtures of the tests of the page under /ui; what they need is imported by those only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from exporter.harness import Exporter


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for the tests of one file."""
    from exporter.browser import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    """An exporter on the tables of the page."""
    from exporter.ui_kit import refreshed
    from exporter.ui_tables import write_tables

    root = tmp_path_factory.mktemp("tables")
    write_tables(root)
    return refreshed(root)
