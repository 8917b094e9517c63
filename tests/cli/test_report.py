"""The HTML report: one file, the same bytes for the same rows, names escaped, what is not known
marked as such.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from threading import Thread

import pytest

from laggard.answers.reading import published_batch
from laggard.cli.fail_on import FOUND
from laggard.cli.main import main
from laggard.cli.query.range import Range
from laggard.cli.report.charts import (
    COLOURS,
    NOTHING,
    UNWATCHED,
    Span,
    by_bin,
    line,
    marks,
    spark,
    strip,
)
from laggard.cli.report.fleet import fleet_page
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE
from laggard.tables.arrow import to_arrow
from laggard.tables.delta import Writer
from laggard.tables.schema.schemas import TABLES
from questions.examples import GROUP
from questions.examples import tables as example
from questions.kit import Row, at, finding, window, write_tables
from questions.view_rows import GAP
from tables.fixtures import NOW, batch_row, group_row, partition_row

HOSTILE = '<script>alert("1")</script>\u202e&amp;' + 60 * "x" + "-end"
SPAN = Span(NOW, NOW + timedelta(minutes=4), 60)


def recorded() -> dict[str, list[Row]]:
    """The hour of the examples, with five minutes not watched, five of partial lag, five of a lower
    bound, two in which no record was due, and a group of an odd name.
    """
    rows = example()
    for row in rows["group_windows"]:
        if at(-40) <= row["window_start"] < at(-35):
            row["lag"] = None
        row["time_lag_censored"] = at(-32) <= row["window_start"] < at(-27)
        if at(-20) <= row["window_start"] < at(-18):
            row |= {"matured_records": 0, "late_records": 0}
    rows["group_windows"] = [
        row for row in rows["group_windows"] if not at(-50) <= row["window_start"] < at(-45)
    ]
    rows["rebalances"] = [row | {"flags": [], "live_read": True} for row in rows["rebalances"]]
    rows["rebalances"][0] |= {"paused_partition_seconds": None, "pause_max_seconds": None}
    rows["partition_status"] = [partition_row(GROUP, "orders", number) for number in range(3)]
    rows["group_status"] = [
        group_row(GROUP),
        group_row(HOSTILE, lag=None, lag_known=None, max_time_lag_seconds=None),
    ]
    for row in rows["group_history"]:
        row |= {"group_state": "Stable", "lag": _lag_of(rows, row), "lag_known": _lag_of(rows, row)}
    rows["finding_state"] = [window(-1, "")]
    return rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = recorded()
    folder: Path = tmp_path_factory.mktemp("tables")
    write_tables(folder, rows)
    gap = batch_row(1, {}, **(GAP | {"gap_from": at(-50), "gap_to": at(-45)}))
    Writer(str(folder), "test").write(TABLES["batches"], to_arrow(TABLES["batches"], [gap]), 2)
    return folder


def _lag_of(rows: dict[str, list[Row]], of: Row) -> int | None:
    found = [
        row["lag_known"]
        for row in rows["group_windows"]
        if row["window_start"] == of["window_start"]
    ]
    return found[0] if found else None


def report(root: Path, path: Path, *words: str) -> str:
    assert main(["--set", f"job.tables={root}", "report", *words, "-o", str(path)]) == OK
    return path.read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Every element that opens closes, inside the one that it opened in."""

    EMPTY = frozenset({"meta", "line", "rect", "polyline"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def page(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return report(root, tmp_path_factory.mktemp("out") / "group.html", GROUP, "--since", "1h")


def test_a_report_is_one_whole_file_that_asks_nobody(page: str) -> None:
    tags = Tags(page)
    assert tags.open == []
    assert not tags.seen & {"script", "link", "img", "iframe", "object", "form"}
    assert [word for word in ("http:", "https:", "url(", "@import", "src=") if word in page] == []
    assert "default-src 'none'" in page


def test_the_same_rows_give_the_same_bytes(root: Path, page: str, tmp_path: Path) -> None:
    assert report(root, tmp_path / "again.html", GROUP, "--since", "1h") == page


def test_it_says_what_explain_says_and_what_things_cost(page: str) -> None:
    text = " ".join(" ".join(Tags(page).texts).split())
    for said in (
        f"{GROUP} has no significant lag, but: all partitions fall behind",
        "Would more consumers help?", "CAPACITY_SHORTAGE", "Windows with a whole lag 50 of 60",
        ("3 rebalances. Partitions were paused for 36.5 s in "
        "all"), ("the pauses of 1 rebalance are unknown and left out"),
        "2026-11-20 11:10:00 UTC to 2026-11-20 11:15:00 UTC: job_down", "replacement", "2 → 3",
        "Objective: 99 % of the records are read in time", "late share",
    ):  # fmt: skip
        assert said in text, said
    assert page.count("<svg") == 5  # lag, time lag, late records, one topic's shape, pauses
    assert page.count('class="unwatched" x=') == 4
    assert page.count('class="partial" x=') == 1
    assert page.count('class="line bound"') == 1
    # lag is cut twice, time lag once and dashed, shares twice
    assert page.count('class="line"') == 3 + 3 + 3


def test_names_are_escaped_and_steer_nothing(root: Path, tmp_path: Path) -> None:
    for words in ((HOSTILE, "--since", "1h"), ("--fleet", "--since", "1h")):
        page = report(root, tmp_path / "page.html", *words)
        assert "<script" not in page
        assert "\u202e" not in page
        assert "&lt;script&gt;" in page
        assert "xxx-end<" in page  # whole, so that names of one beginning differ
        assert Tags(page).open == []


def test_the_page_of_all_groups_has_each_of_them_worst_first(root: Path, tmp_path: Path) -> None:
    page = report(root, tmp_path / "fleet.html", "--fleet", "--since", "1h")
    assert page.index(f">{GROUP}<") < page.index("&lt;script")
    text = " ".join(" ".join(Tags(page).texts).split())
    assert "2 groups" in text
    assert "CAPACITY_SHORTAGE" in text
    assert "unknown unknown" in text  # lag and time lag of the other one


def test_an_end_that_is_given_ends_the_page(root: Path, tmp_path: Path) -> None:
    page = report(root, tmp_path / "past.html", "--fleet", "--since", "1h", "--to", "-30m")
    assert "2026-11-20 10:30:00 UTC to 2026-11-20 11:30:00 UTC" in page
    text = " ".join(" ".join(Tags(page).texts).split())
    assert "1 group," in text  # the other one has no window of then
    assert "lag then" in text
    assert "warn CAPACITY_SHORTAGE Stable 4,480 ≥ 44.8 s 4,480 ≥ 44.8 s" in text  # 1000 + 120 * 29


def test_what_was_opened_before_the_range_is_open_in_it(root: Path, tmp_path: Path) -> None:
    for words in (("--since", "5m"), ("--since", "5m", "--to", "-30m")):
        assert "CAPACITY_SHORTAGE" in report(root, tmp_path / "short.html", "--fleet", *words)


def test_what_nobody_watched_is_unknown(root: Path, tmp_path: Path) -> None:
    for words in (("--fleet",), (HOSTILE,)):
        text = " ".join(
            " ".join(
                Tags(report(root, tmp_path / "page.html", *words, "--since", "1h")).texts
            ).split()
        )
        assert (
            "unknown unknown unknown unknown unknown unknown"
            if words == ("--fleet",)
            else "Rebalances unknown"
        ) in text


def test_a_watched_group_whose_members_are_unknown_has_unknown_rebalances(tmp_path: Path) -> None:
    """History of an hour without a group record says nothing about rebalances."""
    rows = recorded()
    rows["group_history"] += [
        row | {"group": HOSTILE, "members": None} for row in rows["group_history"]
    ]
    write_tables(tmp_path / "tables", rows)
    pages = [
        report(tmp_path / "tables", tmp_path / "page.html", *words, "--since", "1h")
        for words in ((HOSTILE,), ("--fleet",))
    ]
    assert "Rebalances unknown" in " ".join(" ".join(Tags(pages[0]).texts).split())
    line = next(each for each in pages[1].split("<tr>") if "-end" in each)
    # rebalances, paused, and late records of a group without a service level
    assert re.findall(r'<td class="n">([^<]*)</td>', line)[-3:] == ["unknown", "unknown", "–"]


@pytest.mark.parametrize(
    ("words", "code"),
    # the rules have evaluated nothing of the last one
    [
        (("--fail-on", "page"), OK),
        (("--fail-on", "warn"), FOUND),
        ((), OK),
        ((HOSTILE, "--fail-on", "warn"), TEMPORARY),
    ],
)
def test_a_report_ends_with_1_where_a_finding_is_severe(
    root: Path, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    for which in [()] if HOSTILE in words else [(GROUP,), ("--fleet",)]:
        command = ["report", *which, *words, "--since", "1h", "-o", str(tmp_path / "page.html")]
        assert main(["--set", f"job.tables={root}", *command]) == code
        assert (tmp_path / "page.html").exists()


def test_a_report_of_all_groups_ends_with_1_on_a_severe_finding_of_no_or_a_left_group(
    tmp_path: Path,
) -> None:
    for place, (code, group) in enumerate(
        [("COORDINATOR_CORRELATED", None), ("CAPACITY_SHORTAGE", "left")]
    ):
        rows, root = recorded(), tmp_path / str(place)
        rows["findings"] += [finding(-30, code, group, severity="page")]
        write_tables(root / "tables", rows)
        command = [
            "report",
            "--fleet",
            "--fail-on",
            "page",
            "--since",
            "1h",
            "-o",
            str(root / "page.html"),
        ]
        assert main(["--set", f"job.tables={root / 'tables'}", *command]) == FOUND
        page = (root / "page.html").read_text()
        assert code in page.partition("Open findings of no group above")[2], "the page shows why"


def test_a_report_goes_to_standard_output(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = report(root, tmp_path / "page.html", "--fleet", "--since", "1h")
    capsys.readouterr()
    assert (
        main(["--set", f"job.tables={root}", "report", "--fleet", "--since", "1h", "-o", "-"]) == OK
    )
    out, err = capsys.readouterr()
    assert out == saved
    assert "wrote" not in err


@pytest.mark.parametrize("words", [("--fleet",), (GROUP,)])
def test_a_range_without_time_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    ends = ("--since", "2026-11-20T11:50", "--to", "-30m")
    assert main(["--set", f"job.tables={root}", "report", *words, *ends]) == USAGE
    assert (
        "nothing lies between 2026-11-20 11:50:00 UTC and 2026-11-20 11:30:00 UTC"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), USAGE, "name one group, or --fleet in place of it"),
        ((GROUP, "--fleet"), USAGE, "name one group, or --fleet in place of it"),
        (("nobody",), NOT_FOUND, "nobody"),
        ((GROUP, "-o", ""), USAGE, "-o names no file"),
        ((GROUP, "-o", "-", "--json"), USAGE, "both write to standard output"),
        ((GROUP, "-o", "/"), NOT_FOUND, "cannot write /"),
        ((GROUP, "-o", "."), NOT_FOUND, "cannot write ."),
        ((GROUP, "-o", 300 * "x"), NOT_FOUND, "cannot write xxx"),
        ((GROUP, "-o", "/nowhere/at/all.html"), NOT_FOUND, "cannot write /nowhere/at/all.html"),
    ],
)
def test_a_wrong_use_is_said(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    assert main(["--set", f"job.tables={root}", "report", *words]) == code
    assert said in capsys.readouterr().err


def values() -> Iterator[tuple[int, float | None]]:
    """A value, none known, not watched, and a value again."""
    yield from ((0, 5.0), (1, None), (3, 7.0))


def test_a_line_breaks_where_nothing_is_known() -> None:
    rows = [(NOW + timedelta(minutes=minute), value) for minute, value in values()]
    bins = by_bin(SPAN, rows)
    assert bins == [5.0, None, UNWATCHED, 7.0]
    drawn = line(SPAN, bins, "Lag", str)
    assert drawn.count("<polyline") == 2
    assert (drawn.count('class="partial"'), drawn.count('class="unwatched"')) == (1, 1)
    assert spark(bins).count("<polyline") == 2


def test_a_bin_shows_its_largest_value_and_hides_no_unknown() -> None:
    hour = Span(NOW, NOW + timedelta(hours=1), 60, most=2)
    rows = [(NOW, 1.0), (NOW + timedelta(minutes=1), 9.0), (NOW + timedelta(minutes=40), 3.0)]
    assert by_bin(hour, rows) == [9.0, 3.0]
    assert by_bin(hour, [*rows, (NOW + timedelta(minutes=41), None)]) == [9.0, None]


def test_neighbours_of_one_shape_are_one_stretch_and_titles_are_escaped() -> None:
    drawn = strip(SPAN, ["none", "none", UNWATCHED, "spread"], 'of "<b>"')
    assert drawn.count("<rect") == 3
    assert "of &#34;&lt;b&gt;&#34;" in drawn
    assert (
        marks(SPAN, [(NOW, None, "<i>"), (NOW, 2.0, "b")], "Pauses", str).count('"mark unknown"')
        == 1
    )


def test_bins_are_whole_windows() -> None:
    poll = timedelta(minutes=1, seconds=5)
    for most, length, step, count in (
        (48, timedelta(days=1), 1860, 47),
        (480, timedelta(hours=8), 120, 241),
    ):
        span = Span(NOW, NOW + length + poll, 60, most)
        assert (span.step, span.count) == (step, count)


@pytest.mark.parametrize("minutes", [44, 59, 60, 61])
def test_the_line_of_a_group_has_the_bins_of_its_windows(root: Path, minutes: int) -> None:
    poll = NOW + timedelta(seconds=5)
    rows = example()["group_windows"]
    known = {
        row["window_start"]: float(row["lag"])
        for row in rows
        if not at(-50) <= row["window_start"] < at(-45)
    }
    known |= {at(minute): None for minute in range(-40, -35)}
    asked = Range(poll - timedelta(minutes=minutes), poll)
    page = fleet_page(str(root), published_batch(str(root)), asked, 60)
    span = Span(page["begin"], NOW, 60, 48)
    assert page["begin"] == NOW - timedelta(minutes=minutes)
    assert page["rows"][0]["spark"] == spark(by_bin(span, sorted(known.items())))


def test_a_lower_bound_is_dashed_and_a_service_level_without_records_is_no_share() -> None:
    rows = [(NOW + timedelta(minutes=minute), 5.0) for minute in range(4)]
    drawn = line(SPAN, by_bin(SPAN, rows), "Time lag", str, bounds={1, 2})
    assert drawn.count('class="line"') == 2
    assert drawn.count('class="line bound"') == 1
    two = Span(NOW, NOW + timedelta(minutes=4), 60, most=2)
    assert by_bin(
        two,
        [(NOW, NOTHING), (NOW + timedelta(minutes=1), 0.5), (NOW + timedelta(minutes=2), NOTHING)],
    ) == [
        0.5,
        NOTHING,
    ]
    empty = line(SPAN, [NOTHING] * 4, "Late", str)
    assert "polyline" not in empty
    assert 'class="partial"' not in empty
    assert 'class="unwatched"' not in empty


def test_each_shape_has_a_height_of_its_own() -> None:
    span = Span(NOW, NOW + timedelta(minutes=5), 60)
    drawn = strip(span, list(COLOURS), "Shape")
    assert len(set(re.findall(r'height="([0-9.]+)" fill', drawn))) == len(COLOURS)


def test_many_rebalances_make_few_marks() -> None:
    span = Span(NOW, NOW + timedelta(days=7), 60)
    many = [
        (NOW + timedelta(seconds=12 * n), None if n % 3 else float(n % 7), f"number {n}")
        for n in range(50_000)
    ]
    drawn = marks(span, many, "Pauses", str)
    assert len(drawn) < 200_000
    assert '"mark unknown"' in drawn
    assert "more here<" in drawn


def test_links_stay_pipes_are_written_to_and_long_names_are_names(
    root: Path, tmp_path: Path
) -> None:
    link, pipe, long = tmp_path / "link.html", tmp_path / "pipe", tmp_path / (250 * "x")
    link.symlink_to("target.html")
    assert report(root, link, GROUP) == (tmp_path / "target.html").read_text(encoding="utf-8")
    assert link.is_symlink()
    assert report(root, long, GROUP).startswith("<!DOCTYPE html>")
    os.mkfifo(pipe)
    read: list[str] = []
    reader = Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    assert main(["--set", f"job.tables={root}", "report", GROUP, "-o", str(pipe)]) == OK
    reader.join(30)
    assert read[0].startswith("<!DOCTYPE html>")
    assert pipe.is_fifo()
