"""The page of a group with more partitions than it draws and more than one answer lists, in a real
browser.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from cli.group_rows import group, member_row
from exporter.browser import Seen
from exporter.harness import Exporter
from exporter.ui_kit import GROUP, longest_task, refreshed, showing
from exporter.ui_tables import MINUTE
from tables.fixtures import CLUSTER, NOW, batch_row, partition_row, write_rows

pytestmark = pytest.mark.full

PARTITIONS, DRAWN, LISTED = 620, 200, 500
TASK_MS = 200  # of the page's own thread, as for a fleet of 2,000 groups


def lag(place: int) -> int:
    """Lag of a partition now; the numbers of the worst are not the first ones."""
    return 1000 + 10 * (place * 7 % PARTITIONS)


WORST = sorted(range(PARTITIONS), key=lag, reverse=True)


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    root: Path = tmp_path_factory.mktemp("big")
    same = {
        "cluster": CLUSTER,
        "group": "checkout",
        "batch_id": 1,
        "topic": "orders",
        "topic_id": "",
        "status": "ok",
    }
    history = []
    for age in range(1, 61):
        start = NOW - age * MINUTE
        history += [
            same
            | {
                "date": start.date(),
                "window_start": start,
                "partition": place,
                "slot": f"c{place % 2 + 1}/10.0.0.1#0",
            }
            | {"lag": lag(place) * (60 - age) // 60, "time_lag_seconds": (60 - age) / 10}
            for place in range(PARTITIONS)
        ]
    rows = [
        partition_row(
            "checkout", "orders", place, committed_offset=9000, log_end_offset=9000 + lag(place),
            lag=lag(place),
            time_lag_seconds=lag(place) / 100,
        )
        for place in range(PARTITIONS)
    ]  # fmt: skip
    held = [
        [("orders", place) for place in range(PARTITIONS) if place % 2 == member]
        for member in (0, 1)
    ]
    tables = {
        "partition_status": rows,
        "group_status": [group(partitions_total=PARTITIONS, members=2)],
        "group_members": [member_row(number, each) for number, each in enumerate(held, 1)],
        "rebalances": [],
        "topic_windows": [],
        "lag_windows": history,
    }
    versions = {name: write_rows(root, name, found) for name, found in tables.items()}
    write_rows(root, "batches", [batch_row(274, versions)])
    return refreshed(root)


def test_what_is_hidden_is_counted_and_the_worst_come_first(
    browser: Browser, big: Exporter
) -> None:
    with showing(browser, big) as seen:
        page = seen.open(GROUP)
        names = page.locator(".strip .name")
        expect(names).to_have_count(32)
        expect(
            page.get_by_text(f"{PARTITIONS - DRAWN} more partitions are not drawn")
        ).to_be_visible()
        page.get_by_role("button", name=f"Show all {DRAWN}").click()
        expect(names).to_have_count(DRAWN)
        assert names.all_text_contents() == [str(place) for place in WORST[:DRAWN]]
        assert seen.violations() == []  # before the rest is listed, of which it looks at each cell
        lines = page.get_by_role("region", name="Partitions now").locator("tbody tr")
        expect(lines).to_have_count(20)
        expect(
            page.get_by_text(f"{PARTITIONS - LISTED} more partitions are not listed")
        ).to_be_visible()
        page.get_by_role("button", name=f"Show all {LISTED}").click()
        expect(lines).to_have_count(LISTED)
        numbers = page.get_by_role("region", name="Partitions now").locator(
            "tbody tr td:nth-child(2)"
        )
        assert numbers.all_text_contents() == [str(place) for place in WORST[:LISTED]]
        assert seen.complaints == []


def test_the_keyboard_reaches_the_last_partition_that_is_drawn(
    browser: Browser, big: Exporter
) -> None:
    with showing(browser, big) as seen:
        page = seen.open(GROUP)
        button = page.get_by_role("button", name=f"Show all {DRAWN}")
        button.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".strip")).to_have_count(DRAWN)
        strips = page.locator(".strips")
        strips.focus()
        for _ in range(DRAWN + 5):
            page.keyboard.press("ArrowDown")
        said = strips.locator("xpath=following-sibling::output")
        expect(said).to_contain_text(f"{WORST[DRAWN - 1]},")
        expect(page.locator(".strip.here .name")).to_have_text(str(WORST[DRAWN - 1]))
        page.keyboard.press("r")
        expect(page.locator(".strip.here .name")).to_have_text(str(WORST[DRAWN - 1]))
        expect(strips).to_be_focused()


def test_a_big_group_holds_nobody_up(browser: Browser, big: Exporter) -> None:
    assert 10 < longest_task(browser, big, _use) <= TASK_MS


def _use(seen: Seen) -> None:
    """Load, show all that is drawn and listed, and look at the other measure."""
    page = seen.open(GROUP)
    page.get_by_role("button", name=f"Show all {DRAWN}").click()
    page.get_by_role("button", name=f"Show all {LISTED}").click()
    expect(page.locator(".strip")).to_have_count(DRAWN)
    page.get_by_role("button", name="Time lag", exact=True).click()
    expect(page.get_by_role("button", name="Time lag", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
