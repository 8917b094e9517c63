"""The page in a real browser, on an exporter that serves real tables."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from exporter.browser import Seen
from exporter.harness import Clock, Exporter
from exporter.simulated_tables import write_simulated
from exporter.test_roots import Several
from exporter.ui_kit import GROUP, longest_task, refreshed, showing
from exporter.ui_tables import HOSTILE, PARTITIONS, write_tables
from laggard.escape import escape_label
from tables.fixtures import NOW, group_row, partition_row, write_batch

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    root = tmp_path_factory.mktemp("simulated")
    return refreshed(root, Clock(write_simulated(root).timestamp() + 10))


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    root = tmp_path_factory.mktemp("crowd")
    write_tables(root, more=2000)
    return refreshed(root)


def rows(page: Page) -> list[str]:
    return page.locator("table.fleet tbody tr:not(.edge) a").all_text_contents()


def test_the_fleet_shows_the_worst_group_first(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open()
        first = page.locator("table.fleet tbody tr").first
        expect(first).to_contain_text("checkout")
        assert rows(page)[0] == "checkout"
        text = re.sub(r"\s+", " ", first.inner_text())
        assert "page" in text
        assert "≥ 8 m 51 s" in text  # a partition is not known, so the sums are lower bounds
        assert "≥ 5," in text
        bare = page.locator("table.fleet tbody tr", has_text="bare").inner_text()
        assert bare.count("unknown") >= 3
        assert not re.search(r"\b0\b", bare)
        assert seen.complaints == []


def test_search_filter_and_order_are_in_the_address(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open()
        page.get_by_label("Search groups").fill("CHECK")
        expect(page.locator("table.fleet tbody tr:not(.edge)")).to_have_count(1)
        page.get_by_label("Search groups").fill("")
        page.get_by_role("button", name="Group", exact=True).click()
        page.locator(".chip.is-ok").click()
        assert page.url.endswith("#/?health=ok&sort=group")
        shown = rows(page)
        page.reload()
        expect(page.locator("table.fleet tbody tr:not(.edge)")).to_have_count(len(shown))
        assert rows(page) == shown == sorted(shown)
        assert "checkout" not in shown


def test_a_group_has_the_words_of_explain_and_every_picture(
    browser: Browser, exporter: Exporter
) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open()
        page.get_by_role("link", name="checkout").click()
        expect(page.locator("h1")).to_contain_text("checkout")
        said = page.evaluate("fetch('api/v1/explain/checkout').then((answer) => answer.json())")
        expect(page.locator(".headline")).to_have_text(said["explain"]["diagnosis"]["headline"])
        whole = re.sub(r"\s+", " ", page.locator("main").inner_text())
        for sentence in (
            said["explain"]["diagnosis"]["verdict_text"],
            said["explain"]["diagnosis"]["findings"][0]["says"],
        ):
            assert sentence in whole
        expect(page.locator("svg.chart")).to_have_count(3)
        expect(page.locator(".strip")).to_have_count(PARTITIONS)
        assert page.locator(".strip rect.change").count() >= 4  # members changed half an hour ago
        # ten windows side by side
        assert page.locator(".strip rect[fill='url(#hatch)']").count() == 1
        expect(page.locator(".lane")).to_have_count(3)
        expect(page.locator(".lane.gone")).to_have_count(1)
        expect(page.locator(".timeline rect")).to_have_count(3)
        expect(page.locator(".finding")).to_have_count(2)
        assert page.get_by_text("Wrong if").count() >= 2
        runbooks = page.locator(".finding").filter(has_text="Runbook: ")
        expect(runbooks.nth(0)).to_contain_text("docs/diagnosis.md#hot_partition_arrival")
        expect(runbooks.nth(1)).to_contain_text("docs/runbooks/LaggardCapacityShort.md")
        moment = page.locator(".card time").first
        assert moment.get_attribute("title").endswith(" UTC")  # type: ignore[union-attr]
        assert seen.complaints == []


def test_what_the_rules_found_in_a_simulated_cluster_is_shown(
    browser: Browser, simulated: Exporter
) -> None:
    with showing(browser, simulated) as seen:
        page = seen.open()
        expect(page.locator("table.fleet")).to_be_visible()
        lines = page.locator("table.fleet tbody tr").all()
        found = {line.locator("a").inner_text(): line.inner_text() for line in lines}
        expected = {
            "checkout": "NO_HOT_PARTITION",
            "archive": "NO_MEMBERS",
            "fraud": "NO_STALLED",
            "audit": "NOT_NEEDED",
        }
        assert {name: code for name, code in expected.items() if code in found[name]} == expected
        assert "PARTITION_STALLED" in found["fraud"]
        seen.open("#/group/prod/archive")
        expect(page.locator("td", has_text=re.compile("^nobody$")).first).to_be_visible()
        for name in found:
            seen.open(f"#/group/prod/{name}")
            expect(page.locator("h1")).to_contain_text(name)
            text = page.locator("main").inner_text()
            assert not re.search(r"undefined|NaN|null|\[object", text), text
        assert seen.complaints == []


def test_names_are_text_and_never_markup(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open()
        link = page.locator("a", has_text="<img src=x")
        expect(link).to_have_text(escape_label(HOSTILE))
        link.click()
        expect(page.locator("h1")).to_contain_text(escape_label(HOSTILE))
        assert page.locator("img").count() == 0
        seen.open(GROUP)
        expect(page.locator("td", has_text="onerror").first).to_be_visible()
        assert "\u202e" not in page.locator("body").inner_text()
        assert seen.complaints == []


def test_old_data_takes_the_numbers_away(browser: Browser, exporter: Exporter) -> None:
    clock = Clock(exporter.clock())
    with showing(browser, exporter, clock) as seen:
        for fragment in ("#/", GROUP):
            clock.now = exporter.clock()
            page = seen.open(fragment)
            page.reload()
            expect(page.locator("main")).to_contain_text("checkout")
            expect(page.get_by_role("alert")).to_be_hidden()
            clock.now += 1000
            page.keyboard.press("r")
            expect(page.get_by_role("alert")).to_contain_text("No fresh data")
            expect(page.get_by_role("alert")).to_contain_text("prod: stale")
            expect(page.get_by_role("alert")).to_contain_text("Next attempt in 20 s")
            assert page.locator("table, svg, dd").count() == 0
            page.keyboard.press("r")
            expect(page.get_by_role("alert")).to_contain_text("Next attempt in 40 s")
            clock.now = exporter.clock()
            page.keyboard.press("r")
            expect(page.get_by_role("alert")).to_be_hidden()
            expect(page.locator("main")).to_contain_text("checkout")


def test_an_old_cluster_is_named_and_the_other_is_shown(browser: Browser, tmp_path: Path) -> None:
    for cluster, age in (("eu", 0), ("us", 1000)):
        rows = [partition_row("billing", "t", 0, cluster=cluster)]
        groups = [group_row("billing", cluster=cluster)]
        write_batch(
            tmp_path / cluster,
            1,
            NOW - timedelta(seconds=age),
            partitions=rows,
            groups=groups,
            cluster=cluster,
        )
    several = Several(tmp_path / "eu", tmp_path / "us")
    several.refresh()
    with showing(browser, several) as seen:
        page = seen.open()
        expect(page.locator("table.fleet tbody tr")).to_have_count(1)
        expect(page.get_by_role("alert")).to_contain_text("us: stale")
        page.get_by_role("link", name="billing").click()
        expect(page.locator("dl").first).to_contain_text("eu")
        seen.open("#/group/us/billing")
        expect(page.get_by_role("alert")).to_contain_text("No fresh data")


def test_numbers_of_an_exporter_that_is_gone_do_not_stay(
    browser: Browser, exporter: Exporter
) -> None:
    with showing(browser, exporter) as seen:
        page = seen.page
        page.clock.install()
        seen.open()
        expect(page.locator("main")).to_contain_text("checkout")
        page.route("**/api/**", lambda route: route.abort())
        page.keyboard.press("r")
        expect(page.get_by_role("alert")).to_contain_text("the exporter does not answer")
        expect(page.get_by_role("alert")).to_contain_text("The numbers below are of")
        expect(page.locator("table.fleet")).to_be_visible()
        page.clock.fast_forward(40_000)
        expect(page.locator("table.fleet")).to_have_count(0)
        page.unroute("**/api/**")
        page.keyboard.press("r")
        expect(page.locator("table.fleet")).to_be_visible()
        expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize("name", ["bare", "calm", "%E0%A4%A"])
def test_little_known_is_shown_as_unknown(browser: Browser, exporter: Exporter, name: str) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open(f"#/group/prod/{name}")
        expect(page.locator("h1")).to_contain_text(name)
        assert not re.search(r"undefined|NaN|null|\[object", page.locator("main").inner_text())
        if name == "bare":
            expect(page.locator("dl").first).to_contain_text("unknown")


def test_a_hidden_tab_asks_nothing(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.page
        page.clock.install()
        seen.open()
        expect(page.locator("main")).to_contain_text("checkout")
        page.evaluate(
            "Object.defineProperty(document, 'hidden', {get: () => window.isHidden, "
            "configurable: true})"
        )
        page.evaluate(
            "window.isHidden = true; document.dispatchEvent(new Event('visibilitychange'))"
        )
        before = len(seen.requests)
        page.clock.fast_forward(60_000)
        assert len(seen.requests) == before
        page.evaluate(
            "window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))"
        )
        expect(page.locator("table.fleet")).to_be_visible()
        assert len(seen.requests) == before + 1


def test_a_group_that_is_gone_says_so(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open("#/group/prod/chekout")
        expect(page.locator("main")).to_contain_text("no group 'chekout'")
        page.get_by_role("link", name="checkout").click()
        expect(page.locator(".headline")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_nobody_is_left_out(browser: Browser, exporter: Exporter, theme: str, width: int) -> None:
    with showing(browser, exporter, theme=theme, width=width) as seen:
        for fragment, there in (("#/", "table.fleet"), (GROUP, ".headline")):
            page = seen.open(fragment)
            expect(page.locator(there)).to_be_visible()
            assert seen.violations() == []
            # nothing to scroll sideways
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert seen.complaints == []


def test_the_theme_stays_as_chosen(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter, theme="dark") as seen:
        page = seen.open()
        back = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(back) == "rgb(20, 24, 29)"
        page.get_by_role("button", name="Theme: system").click()
        page.reload()
        expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
        assert page.evaluate(back) == "rgb(255, 255, 255)"


def test_the_keyboard_is_enough(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open()
        expect(page.locator("table.fleet")).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_label("Search groups")).to_be_focused()
        page.locator("tbody a").first.focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator("tbody a").nth(1)).to_be_focused()
        page.keyboard.press("r")
        expect(page.locator("tbody a").nth(1)).to_be_focused()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        strips = page.locator(".strips")
        strips.focus()
        page.keyboard.press("ArrowLeft")
        expect(strips.locator("xpath=following-sibling::output")).to_contain_text("read by")
        page.keyboard.press("Escape")
        expect(page.locator("table.fleet")).to_be_visible()


def test_two_thousand_groups_hold_nobody_up(browser: Browser, crowded: Exporter) -> None:
    assert 10 < longest_task(browser, crowded, _use_crowd) <= 200


def _use_crowd(seen: Seen) -> None:
    """Load, scroll to the end, search, and get the numbers of another batch."""
    page = seen.open()
    expect(page.locator("main p").first).to_contain_text("2,004 groups")
    for step in range(1, 31):
        page.evaluate(
            "(y) => { scrollTo(0, y); return new Promise(requestAnimationFrame); }", step * 3000
        )
        assert page.locator("table.fleet tr").count() < 100
    expect(page.locator("tbody a", has_text="group-1999")).to_be_visible()
    page.get_by_label("Search groups").fill("group-19")
    expect(page.locator("main p").first).to_contain_text("100 of 2,004")
    page.get_by_label("Search groups").fill("")

    def newer(route: Route) -> None:
        answer = route.fetch()
        headers = {name: value for name, value in answer.headers.items() if name.lower() != "etag"}
        route.fulfill(
            response=answer,
            headers=headers,
            body=re.sub('"batch_id":274', '"batch_id":275', answer.text()),
        )

    page.route("**/api/v1/groups*", newer)
    page.get_by_role("button", name="Load now").click()
    expect(page.locator("#moment")).to_contain_text("batch 275")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")


def test_the_page_is_light(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open(GROUP)
        expect(page.locator(".headline")).to_be_visible()
        entries = (
            "[...performance.getEntriesByType('navigation'), "
            "...performance.getEntriesByType('resource')]"
        )
        sizes = page.evaluate(
            f"{entries}.filter((each) => !each.name.includes('/api/')).map((each) => "
            "each.decodedBodySize)"
        )
        assert len(sizes) >= 8
        assert 10_000 < sum(sizes) <= 150_000  # before it is zipped
