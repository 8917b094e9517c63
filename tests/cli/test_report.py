"""The report: the page's own documents in one file, now and at a past moment."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cli.evaluated_run import evaluate, hot, record
from laggard.answers import history
from laggard.answers.history import range_series
from laggard.cli.fail_on import FOUND
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE
from laggard.escape import escape_label

WINDOWS, GROUP = 24, "fraud"
HOSTILE = '</script><b onload="alert(1)">\u202e\u2028&amp;' + 60 * "x"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 minutes of two groups, one of them with a name that is markup."""
    folder: Path = tmp_path_factory.mktemp("tables")
    record(folder, [hot(WINDOWS), hot(WINDOWS, group=HOSTILE, begin=18)])
    evaluate(folder)
    return folder


def run(root: Path, *words: str) -> int:
    return main(["--set", f'job.tables="{root}"', *words])


def report(root: Path, path: Path, *words: str) -> str:
    assert run(root, "report", *words, "-o", str(path)) == OK
    return path.read_text(encoding="utf-8")


def documents(html: str) -> Any:
    text = re.search(r'<script type="application/json" id="documents">(.*)</script>', html)
    assert text is not None
    return json.loads(text[1])


def test_the_file_is_whole_asks_nobody_and_holds_no_markup_of_names(
    root: Path, tmp_path: Path
) -> None:
    html = report(root, tmp_path / "fleet.html", "--fleet", "--since", "1h")
    assert [word for word in ("http-equiv", "default-src 'none'") if word not in html] == []
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', html.partition('id="documents"')[0]) == []
    assert html.count("<script") == html.count("</script>") == 2
    found = documents(html)
    shown = escape_label(HOSTILE)
    assert [row["group"] for row in found["groups"]["groups"]] == [GROUP, shown]
    assert {*found["of"]} == {GROUP, shown}
    assert report(root, tmp_path / "again.html", "--fleet", "--since", "1h") == html


@pytest.mark.parametrize("to", [(), ("--to", "-5m")])
def test_it_says_what_explain_says_of_the_same_moment(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], to: tuple[str, ...]
) -> None:
    found = documents(report(root, tmp_path / "g.html", GROUP, "--since", "10m", *to))["of"][GROUP]
    capsys.readouterr()
    at = ("--at", *to[1:]) if to else ()
    assert run(root, "explain", GROUP, "--since", "-10m", "--json", *at) == OK
    said = json.loads(capsys.readouterr().out)["data"]
    assert found["page"][0] == found["diagnosis"]["headline"] == said["diagnosis"]["headline"]
    assert found["group"]["lag"] == said["group"]["lag"]
    assert found["group"]["scale_verdict"] == said["diagnosis"]["windows"][0]["scale_verdict"]
    assert [row["lag"] for row in found["partitions"]] == [row["lag"] for row in said["partitions"]]
    (cluster,) = found["clusters"]
    assert (cluster["is_fresh"], cluster["reason"]) == (False, "past" if to else "stale")
    lags = found["range"]["history"]["lag"]
    assert len(lags) == len(found["range"]["starts"]) == 10
    assert lags[-1] == (said["group"]["lag"] if to else found["history"]["lag"][-1])


def test_a_point_has_the_largest_value_of_its_windows_and_hides_nothing_unknown(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = datetime.fromisoformat("2026-11-20T12:24:00+00:00")
    begin = end - timedelta(minutes=WINDOWS + 2)  # two windows before the first one
    exact = range_series(str(root), GROUP, None, begin, end, 60)["history"]["lag"]
    monkeypatch.setattr(history, "MOST_POINTS", 9)
    thin = range_series(str(root), GROUP, None, begin, end, 60)
    assert (thin["point_seconds"], len(thin["starts"])) == (180, 9)
    expected = [exact[first : first + 3] for first in range(0, len(exact), 3)]
    assert expected[0][:2] == [None, None]
    assert thin["history"]["lag"] == [None if None in lags else max(lags) for lags in expected]
    assert thin["history"]["lag_known"] == [
        max((lag for lag in lags if lag is not None), default=None) for lags in expected
    ]


def test_a_point_is_a_bound_if_one_of_its_windows_is(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = [True, False, True, True]
    windows = {name: [1, 2, 3, 4] for name in ("lag", "lag_known", "time_lag_seconds")}
    series = {**windows, "time_lag_is_exact": exact}
    monkeypatch.setattr(history, "group_series", lambda *_: series)
    monkeypatch.setattr(history, "MOST_POINTS", 2)
    end = datetime.fromisoformat("2026-11-20T12:24:00+00:00")
    thin = range_series("", GROUP, None, end - timedelta(minutes=4), end, 60)
    assert thin["history"]["time_lag_is_exact"] == [False, True]
    assert thin["history"]["time_lag_seconds"] == [2, 4]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((GROUP, "--fail-on", "warn"), FOUND),
        ((GROUP, "--fail-on", "page"), OK),
        (("--fleet", "--fail-on", "warn"), FOUND),
        ((GROUP, "--to", "-23m", "--since", "1m", "--fail-on", "page"), OK),
        ((GROUP, "--since", "1m", "--to", "-2m"), OK),
        ((GROUP, "--since", "2026-11-20T12:23", "--to", "-5m"), USAGE),
        ((), USAGE),
        ((GROUP, "--fleet"), USAGE),
        ((GROUP, "--json", "-o", "-"), USAGE),
        (("frau",), NOT_FOUND),
        ((GROUP, "--to", "2020-01-01"), NOT_FOUND),
    ],
)
def test_a_report_ends_with_the_code_of_its_answer(
    root: Path, tmp_path: Path, words: tuple[str, ...], code: int
) -> None:
    output = () if "-o" in words else ("-o", str(tmp_path / "r.html"))
    assert run(root, "report", *words, *output) == code


def test_without_rules_fail_on_says_that_findings_are_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "tables", [hot(3)])
    words = ("report", GROUP, "-o", str(tmp_path / "r.html"), "--fail-on", "page")
    assert run(tmp_path / "tables", *words) == TEMPORARY
    assert "findings are unknown" in capsys.readouterr().err


def test_a_report_goes_to_standard_output_or_into_a_pipe(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = report(root, tmp_path / "g.html", escape_label(HOSTILE))
    capsys.readouterr()
    assert run(root, "report", HOSTILE, "-o", "-") == OK
    assert capsys.readouterr().out == html
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    assert run(root, "report", HOSTILE, "-o", str(pipe)) == OK
    reader.join(30)
    assert read == [html]
