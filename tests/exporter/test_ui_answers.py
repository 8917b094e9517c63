"""The page when an answer is late, odd or missing: no number stays without cause, and nothing goes
silent.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Error, Page, Route, expect

from exporter.harness import Exporter
from exporter.ui_kit import GROUP, refreshed, showing
from laggard.escape import escape_label
from patience import patient
from tables.fixtures import group_row, partition_row, write_batch

pytestmark = pytest.mark.full
API = "**/api/**"


def alter(page: Page, change: Callable[[Any], object]) -> None:
    """Change every answer about the one group on its way, as another version of the server might
    write it.
    """

    def answer(route: Route) -> None:
        answered = route.fetch()
        document = answered.json()
        change(document)
        headers = {
            name: value for name, value in answered.headers.items() if name.lower() != "etag"
        }
        route.fulfill(response=answered, headers=headers, json=document)

    page.route(re.compile(r"/api/v1/groups?[/?]"), answer)


def outside(page: Page) -> list[str]:
    """Texts of pictures that begin or end beyond them."""
    found: list[str] = page.evaluate(
        """[...document.querySelectorAll('svg.chart text')].filter((text) => {
          const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
          return box.x < -0.5 || box.x + box.width > view.width + 0.5;
        }).map((text) => text.textContent)"""
    )
    return found


@pytest.mark.parametrize("fragment", ["#/", GROUP])
def test_numbers_of_an_exporter_that_hangs_do_not_stay(
    browser: Browser, exporter: Exporter, fragment: str
) -> None:
    with showing(browser, exporter) as seen:
        page = seen.page
        page.clock.install()
        seen.open(fragment)
        expect(page.locator("main")).to_contain_text("checkout")
        expect(page.locator("#moment")).to_contain_text("batch 274")
        page.route(API, lambda _: None)  # never answered
        page.clock.fast_forward(11_000)
        expect(page.get_by_role("alert")).to_be_hidden()
        page.clock.fast_forward(20_000)
        expect(page.locator("main")).to_contain_text("were removed")
        assert page.locator("table, svg, dd").count() == 0
        expect(page.locator("#moment")).to_be_empty()
        page.clock.fast_forward(10_000)
        expect(page.get_by_role("alert")).to_contain_text("has not answered for 25 s")
        page.unroute(API)
        page.clock.fast_forward(20_000)
        expect(page.locator("table:visible")).not_to_have_count(0)
        expect(page.get_by_role("alert")).to_be_hidden()


@pytest.mark.parametrize(("first", "then"), [(GROUP, None), (GROUP, "#/")])
def test_an_older_answer_that_comes_later_changes_nothing(
    browser: Browser, exporter: Exporter, first: str, then: str | None
) -> None:
    held: list[tuple[Route, APIResponse]] = []

    def newer(route: Route) -> None:
        answered = route.fetch()
        if not held:
            held.append((route, answered))
            return
        route.fulfill(response=answered, json=answered.json() | {"batch_id": 275})

    with showing(browser, exporter) as seen:
        page = seen.page
        page.route(re.compile(r"/api/v1/groups?\b"), newer)
        seen.open(first)
        expect(page.locator("main")).to_contain_text("Loading")
        end = time.monotonic() + patient(20)
        while not held:  # or the answer that is held would be that of the second question
            assert time.monotonic() < end
            page.wait_for_timeout(20)
        page.keyboard.press("r") if then is None else seen.open(then)
        expect(page.locator("#moment")).to_contain_text("batch 275")
        shown = page.locator("main").inner_text()
        route, answered = held[0]
        with suppress(Error):  # the page has given the question up
            route.fulfill(response=answered)
        # what is asked after it comes after it
        page.evaluate("fetch('api/v1/clusters').then((answer) => answer.json())")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)))")
        # now, and not after the next question
        assert "batch 275" in page.locator("#moment").inner_text()
        assert page.locator("main").inner_text() == shown


def test_numbers_kept_after_a_failure_are_of_the_data_and_go(
    browser: Browser, exporter: Exporter
) -> None:
    with showing(browser, exporter) as seen:
        page = seen.page
        page.clock.install()
        seen.open()
        expect(page.locator("table.fleet")).to_be_visible()
        of = page.locator("#moment time").inner_text()
        page.route(API, lambda route: route.fulfill(status=503, body="no JSON"))
        page.keyboard.press("r")
        expect(page.get_by_role("alert")).to_contain_text(f"The numbers below are of {of}")
        page.clock.fast_forward(19_000)  # before the next attempt
        expect(page.locator("table.fleet")).to_be_visible()
        page.route(API, lambda _: None)
        page.clock.fast_forward(11_500)
        expect(page.locator("table.fleet")).to_have_count(0)
        expect(page.get_by_role("alert")).not_to_contain_text("The numbers below")


def test_an_answer_that_cannot_be_drawn_takes_the_numbers_away(
    browser: Browser, exporter: Exporter
) -> None:
    with showing(browser, exporter) as seen:
        page = seen.page
        page.clock.install()
        seen.open(GROUP)
        expect(page.locator(".headline")).to_be_visible()
        alter(page, lambda found: found.update(partitions=None))
        page.keyboard.press("r")
        expect(page.get_by_role("alert")).to_contain_text("cannot draw")
        assert page.locator("table, svg, dd").count() == 0
        before = len(seen.requests)
        with page.expect_request(API):
            page.clock.fast_forward(21_000)
        assert len(seen.requests) > before


def unknown_as_may_be(found: Any) -> None:
    """Put null wherever the schema allows it."""
    for row in found["findings"]:
        row.update(confidence=None, role=None)
    for row in found["rebalances"]:
        row.update(cause=None, pause_max_seconds=None)
    found.update(members=None, history=None)


def test_what_is_null_is_unknown(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        alter(seen.page, unknown_as_may_be)
        page = seen.open(GROUP)
        expect(page.locator(".headline")).to_be_visible()
        assert not re.search(r"undefined|NaN|null|\[object", page.locator("main").inner_text())
        assert "null" not in (page.locator(".timeline").text_content() or "")
        assert page.locator(".timeline").get_attribute("aria-label") == (
            "3 rebalances in 24 hours; the longest pause unknown"
        )
        fills = page.evaluate(
            "[...document.querySelectorAll('.timeline rect')].map((bar) => "
            "getComputedStyle(bar).fill)"
        )
        assert fills == ["none"] * 3
        expect(page.locator(".lane.gone")).to_have_count(0)  # as nobody is known to be gone
        for title in ("Members now", "Lag over time"):
            expect(
                page.locator("section", has=page.get_by_role("heading", name=title))
            ).to_contain_text("unknown")
        assert seen.complaints == []


def test_a_list_that_was_cut_says_so(browser: Browser, exporter: Exporter) -> None:
    def change(found: Any) -> None:
        found["rebalances"] = [found["rebalances"][0]] * 200
        found["group"]["partitions"]["total"] = 20_000

    with showing(browser, exporter) as seen:
        alter(seen.page, change)
        page = seen.open(GROUP)
        label = page.locator(".timeline").get_attribute("aria-label")
        assert (label or "").startswith("at least 200 rebalances")
        for title in (
            "Partitions over time, the worst",
            "Members and their partitions",
            "Partitions now",
        ):
            section = page.locator("section", has=page.get_by_role("heading", name=title))
            expect(section).to_contain_text("19,992 more partitions")


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("most", [0, 1, 7, 1_000_000_000])
def test_axes_count_in_whole_steps_within_the_picture(
    browser: Browser, exporter: Exporter, width: int, most: int
) -> None:
    def change(found: Any) -> None:
        series = found["history"]
        for name in ("lag", "lag_known", "time_lag_seconds"):
            series[name] = [most * place // 59 for place in range(60)]
        series["time_lag_is_exact"] = [True] * 60

    with showing(browser, exporter, width=width) as seen:
        alter(seen.page, change)
        page = seen.open(GROUP)
        expect(page.locator("svg.chart")).to_have_count(3)
        assert outside(page) == []
        for figure in page.locator("figure svg").all():
            marks = figure.locator(".axis.end").all_text_contents()[:-1]
            assert len(marks) == len(set(marks)) >= 1
            assert not any("." in mark for mark in marks)


def test_an_address_that_is_none_says_so(browser: Browser, exporter: Exporter) -> None:
    with showing(browser, exporter) as seen:
        page = seen.open()
        expect(page.locator("table.fleet")).to_be_visible()
        for fragment in ("#/elsewhere", "#/group", "#/group/prod"):
            page.evaluate("(hash) => { location.hash = hash; }", fragment)
            expect(page.locator("main")).to_contain_text("Nothing is at this address")
            assert page.locator("table").count() == 0
        for fragment, name in (("#/group/prod/100%", "100%"), ("#/group/prod/a/b", "a/b")):
            page.evaluate("(hash) => { location.hash = hash; }", fragment)
            expect(page.locator("h1")).to_have_text(name)
            expect(page.locator("main")).to_contain_text(f"no group '{name}'")
        page.evaluate("location.hash = '#/group/prod/checkout?topic=orders'")
        expect(page.locator(".headline")).to_be_visible()
        assert page.url.endswith("#/group?topic=orders&cluster=prod&group=checkout")


def test_every_name_leads_to_its_own_page(browser: Browser, tmp_path: Path) -> None:
    names = [".", "..", "x\u202ey", "x\\xe2\\x80\\xaey", "a/b", "100%", "a+b c&d", "ä" * 200, "-x"]
    partitions = [
        partition_row(name, "t", 0, log_end_offset=5000 + place) for place, name in enumerate(names)
    ]
    groups = [group_row(name, lag=place, lag_known=place) for place, name in enumerate(names)]
    write_batch(tmp_path, 1, partitions=partitions, groups=groups)
    with showing(browser, refreshed(tmp_path)) as seen:
        page = seen.open()
        lines = page.locator("table.fleet tbody tr")
        expect(lines).to_have_count(len(names))
        links = {
            link.inner_text(): link.get_attribute("href") or ""
            for link in page.locator("tbody a").all()
        }
        assert {*links} == {escape_label(name) for name in names}
        for place, name in enumerate(names):
            seen.open(links[escape_label(name)])
            expect(page.locator("h1")).to_contain_text(escape_label(name))
            expect(page.locator(".headline")).to_be_visible()
            expect(page.locator("td", has_text=re.compile(f"^{5000 + place:,}$"))).to_have_count(1)
            # the command is of this group in a shell, too
            command = page.locator("main code").first.inner_text()
            assert command.startswith(f"laggard explain --url {seen.origin} --cluster=prod ")
            said = subprocess.run(
                ["bash", "-c", f'set -- {command}; printf %s "${{!#}}"'],
                capture_output=True,
                check=True,
            ).stdout
            assert said == name.encode()
        for name in (".", ".."):
            seen.open("#/")
            seen.open(f"#/group/prod/{name}")
            expect(page.locator(".headline")).to_be_visible()
        assert seen.complaints == []


def test_lower_bounds_are_marked_in_every_picture(browser: Browser, exporter: Exporter) -> None:
    def change(found: Any) -> None:
        for row in found.get("partitions", ()):
            row["history"]["time_lag_censored"] = [True] * 60
            row["time_lag_censored"] = True

    with showing(browser, exporter) as seen:
        page = seen.open()
        expect(page.locator("svg.spark").first).to_have_attribute(
            "aria-label", re.compile("highest ≥ 8 m 51 s")
        )
        alter(page, change)
        seen.open(f"{GROUP}?by=time")
        expect(page.locator("svg.chart").first).to_have_attribute(
            "aria-label", re.compile("highest ≥ 8 m 51 s")
        )
        expect(page.locator(".strip .value").first).to_have_text("≥ 8 m 51 s")
        page.locator(".strips").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.locator(".strips + output")).to_contain_text("≥ 8 m 42 s")


def test_who_reads_keeps_the_place_when_numbers_change(
    browser: Browser, exporter: Exporter
) -> None:
    batch = 274

    def change(found: Any) -> None:
        found["batch_id"] = batch
        if "topics" in found:
            found["topics"].append(found["topics"][0] | {"topic": "another"})

    with showing(browser, exporter, width=360) as seen:
        page = seen.page
        alter(page, change)
        seen.open(GROUP)
        page.get_by_label("Topic").wait_for()
        page.evaluate("window.list = document.querySelector('select[aria-label=Topic]')")
        page.locator("details[data-key=policy] summary").click()
        page.locator(".strips").focus()
        page.keyboard.press("ArrowLeft")
        said = page.locator(".strips + output").inner_text()
        table = page.get_by_role("region", name="Partitions now")
        table.evaluate("(node) => node.scrollTo(200, 0)")
        for focused in (
            "details[data-key=policy] summary",
            "[aria-label='Partitions now']",
            ".strips",
            ".chip",
        ):
            page.locator(focused).first.focus()
            batch += 1
            page.keyboard.press("r")
            expect(page.locator("#moment")).to_contain_text(f"batch {batch}")
            expect(page.locator(focused).first).to_be_focused()
        assert table.evaluate("(node) => node.scrollLeft") == 200
        expect(page.locator("details[data-key=policy]")).to_have_attribute("open", "")
        expect(page.locator(".strips + output")).to_have_text(said)
        assert page.evaluate("window.list.isConnected")  # an open list stays open
        seen.open("#/")
        chip = page.locator(".chip:visible").first
        chip.focus()
        page.keyboard.press("Enter")
        expect(chip).to_be_focused()
        batch += 1
        page.keyboard.press("r")
        expect(page.locator("#moment")).to_contain_text(f"batch {batch}")
        expect(chip).to_be_focused()


def test_nothing_is_drawn_where_the_answer_is_the_same(
    browser: Browser, exporter: Exporter
) -> None:
    with showing(browser, exporter) as seen:
        for fragment, drawn in (("#/", "tbody a"), (GROUP, ".headline")):
            page = seen.open(fragment)
            page.locator(drawn).first.wait_for()
            page.evaluate("(drawn) => { window.drawn = document.querySelector(drawn); }", drawn)
            with page.expect_response(API) as asked:
                page.keyboard.press("r")
            asked.value.finished()
            page.evaluate("new Promise((done) => setTimeout(done, 0))")
            assert page.evaluate("window.drawn.isConnected")
