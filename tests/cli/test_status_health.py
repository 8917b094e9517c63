"""`laggard status` beside the findings: the state of the data and the health of the group are two
things.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from cli.declared import data_of
from laggard.cli.fail_on import FOUND
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE
from tables.fixtures import (
    NOW,
    Row,
    finding_row,
    group_row,
    partition_row,
    window_row,
    write_batch,
    write_evaluated,
)

COMMON = {
    "started_at": NOW - timedelta(minutes=9), "opened_at": NOW - timedelta(minutes=5),
    "rule": "D30", "topic": "orders",
    "partitions": [1], "evidence": {}, "evidence_text": {}, "guards": {}, "falsifier": "it moves",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root: Path, *findings: Row, without: tuple[str, ...] = ()) -> None:
    """Five groups of the same tick; `archive` lags most, and each has a window of its own unless it
    is `without`.
    """
    lags = {"archive": 9000, "billing": 3540, "checkout": 40, "mailer": 700, "search": 0}
    groups = [
        group_row(name, lag=lag, lag_known=lag, max_time_lag_seconds=lag / 10)
        for name, lag in lags.items()
    ]
    partitions = [
        partition_row(name, "orders", 1, lag=lag, time_lag_seconds=lag / 10)
        for name, lag in lags.items()
    ]
    windows = [
        window_row(
            name, "orders", lag_known=lag, max_time_lag_seconds=lag / 10,
            partitions_material=int(lag in (3540, 700)),
            scale_verdict="NO_STALLED" if name == "billing" else "NOT_NEEDED",
        )
        for name, lag in lags.items()
        if name not in without
    ]  # fmt: skip
    write_batch(root, 42, groups=groups, partitions=partitions)
    write_evaluated(root, windows=windows, findings=[COMMON | row for row in findings])


def shown(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, str]]:
    """Group to its cells by title, in the order of the page."""
    assert main(["status", "--set", f"job.tables={root}", *words]) == OK
    _, titles, *lines = capsys.readouterr().out.splitlines()
    names = ("GROUP", "HEALTH", "FINDING", "VERDICT")
    starts = [titles.index(name) for name in names] + [titles.index("STATE")]
    data = titles.index("DATA"), titles.index("SHAPE")
    return {
        line.split()[0]: {
            **{name: line[starts[n] : starts[n + 1]].strip() for n, name in enumerate(names)},
            "DATA": line[slice(*data)].strip(),
        }
        for line in lines
    }


def test_a_group_with_an_open_page_is_not_ok_though_its_data_is(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, finding_row("PARTITION_STALLED", "billing", severity="page"))
    billing = shown(root, capsys)["billing"]
    assert billing == {
        "GROUP": "billing", "HEALTH": "page", "FINDING": "PARTITION_STALLED",
        "VERDICT": "NO_STALLED", "DATA": "ok",
    }  # fmt: skip


def test_status_ends_with_1_where_a_finding_is_severe(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, finding_row("SLOW_MEMBER", "billing", severity="warn"))
    words = ["status", "--set", f"job.tables={root}"]
    asked = (
        [],
        ["--fail-on", "page"],
        ["--fail-on", "warn"],
        ["--fail-on", "warn", "--group", "checkout"],
    )
    assert [main([*words, *more]) for more in asked] == [OK, OK, FOUND, OK]
    # billing lags less than archive
    beyond = ["--fail-on", "warn", "--sort", "lag", "--limit", "1", "--json"]
    assert main([*words, *beyond]) == FOUND
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [group["group"] for group in answer["data"]["groups"]] == ["archive"]
    assert main([*words, "--rebalances", "--fail-on", "warn"]) == USAGE
    assert "exclude each other" in capsys.readouterr().err


def test_status_ends_with_75_where_no_group_is_known(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, without=("archive", "billing", "checkout", "mailer", "search"))
    words = ["status", "--set", f"job.tables={root}"]
    assert [main([*words, *more]) for more in ([], ["--fail-on", "page"])] == [OK, TEMPORARY]
    assert "findings are unknown" in capsys.readouterr().err


def test_of_a_group_that_is_seen_too_little_no_verb_says_that_nothing_is_open(root: Path) -> None:
    write_batch(
        root, 42, groups=[group_row("blind")], partitions=[partition_row("blind", "orders", 1)]
    )
    windows = [
        window_row("blind", "orders", partitions_material=0) | {"scale_verdict": "UNKNOWN_INPUT"}
    ]
    write_evaluated(
        root,
        windows=windows,
        findings=[COMMON | finding_row("IDLE_MEMBERS", "blind", severity="info")],
    )
    for verb in (
        ["status"],
        ["status", "--group", "blind"],
        ["explain", "blind"],
        ["findings", "--group", "blind"],
    ):
        words = [*verb, "--set", f"job.tables={root}"]
        assert [main([*words, *more]) for more in ([], ["--fail-on", "page"])] == [OK, TEMPORARY], (
            verb
        )


def test_a_group_that_the_rules_saw_too_little_is_no_group_that_they_did_not_evaluate(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_batch(
        root, 42, groups=[group_row("blind")], partitions=[partition_row("blind", "orders", 1)]
    )
    window = window_row("blind", "orders", partitions_material=0)
    write_evaluated(root, windows=[window | {"scale_verdict": "UNKNOWN_INPUT"}], findings=[])
    assert main(["status", "--group", "blind", "--set", f"job.tables={root}"]) == OK
    shown = capsys.readouterr().out
    assert ("UNKNOWN_INPUT" in shown, "have not evaluated" in shown) == (True, False)


def test_a_glob_may_be_as_long_as_the_name_of_a_group(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root)
    words = ["--group", "n" * 900, "--set", f"job.tables={root}"]
    assert [main([verb, *words]) for verb in ("status", "findings")] == [NOT_FOUND, NOT_FOUND]
    assert capsys.readouterr().err.count("no group matches") == 2


def test_without_any_group_nothing_is_known(root: Path) -> None:
    write_batch(root, 42, groups=[], partitions=[])
    write_evaluated(root, windows=[], findings=[])
    for verb in ("status", "findings"):
        words = [verb, "--set", f"job.tables={root}"]
        assert [main([*words, *more]) for more in ([], ["--fail-on", "page"])] == [OK, TEMPORARY], (
            verb
        )


@pytest.mark.parametrize(
    ("group", "expected"), [("archive", TEMPORARY), ("search", OK), ("*ar*", OK), ("*", OK)]
)
def test_findings_end_with_75_where_no_group_that_is_asked_for_is_known(
    root: Path, group: str, expected: int
) -> None:
    write(root, without=("archive",))
    words = ["findings", "--set", f"job.tables={root}", "--group", group]
    assert [main([*words, *more]) for more in ([], ["--fail-on", "page"])] == [OK, expected]


def test_the_page_sorts_by_severity_first_then_by_lag(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        root,
        finding_row("PARTITION_STALLED", "checkout", severity="page"),
        finding_row("SLOW_MEMBER", "billing", severity="warn"),
        finding_row("IDLE_MEMBERS", "search", severity="info", role="contributing"),
        without=("archive",),
    )
    # archive lags most, but nothing is known of its health; search has no lag and a remark
    assert [(name, row["HEALTH"]) for name, row in shown(root, capsys).items()] == [
        ("checkout", "page"),
        ("billing", "warn"),
        ("mailer", "behind"),
        ("archive", "unknown"),
        ("search", "info"),
    ]


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("lag", ["archive", "billing", "mailer", "checkout", "search"]),
        ("time_lag", ["archive", "billing", "mailer", "checkout", "search"]),
        ("group", ["archive", "billing", "checkout", "mailer", "search"]),
    ],
)
def test_the_page_sorts_as_is_asked(
    root: Path, capsys: pytest.CaptureFixture[str], sort: str, expected: list[str]
) -> None:
    write(root, finding_row("PARTITION_STALLED", "checkout", severity="page"))
    assert next(iter(shown(root, capsys))) == "checkout"
    assert list(shown(root, capsys, "--sort", sort)) == expected
    assert main(["status", "--set", f"job.tables={root}", "--sort", sort, "--rebalances"]) == USAGE
    assert "exclude each other" in capsys.readouterr().err


def test_what_is_unknown_is_not_shown_as_none(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, without=("archive",))
    found = shown(root, capsys)
    assert (found["archive"]["FINDING"], found["archive"]["VERDICT"]) == ("unknown", "unknown")
    assert (found["checkout"]["HEALTH"], found["checkout"]["FINDING"]) == ("ok", "-")


@pytest.mark.parametrize(
    "hidden", [{"role": "note"}, {"role": "suppressed"}, {"event": "closed", "closed_at": NOW}]
)
def test_a_note_or_what_another_finding_explains_makes_no_group_sick(
    root: Path, capsys: pytest.CaptureFixture[str], hidden: Row
) -> None:
    write(root, finding_row("IDLE_MEMBERS", "checkout", severity="warn", **hidden))
    assert shown(root, capsys)["checkout"]["HEALTH"] == "ok"


def test_a_finding_of_the_cluster_is_on_the_line_of_each_group_that_it_names(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"evidence_text": {"groups": "checkout, search"}, "topic": None, "partitions": []}
    write(root, finding_row("SHARED_SINK", None, severity="page") | named)
    found = shown(root, capsys)
    assert {name for name, row in found.items() if row["FINDING"] == "SHARED_SINK"} == {
        "checkout",
        "search",
    }


def test_a_group_that_has_stopped_is_not_shown_as_one_with_consumers_enough(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its window closed before the lag counted, so the window's verdict is NOT_NEEDED."""
    waiting = {"lag": 3564, "lag_known": 3564}
    groups = [
        group_row("archive", members=0, group_state="Empty", **waiting),
        group_row("done", members=0, group_state="Empty", lag=0, lag_known=0),
    ]
    windows = [window_row(name, "orders", partitions_material=0) for name in ("archive", "done")]
    write_batch(
        root, 42, groups=groups, partitions=[partition_row("archive", "orders", 1, lag=3564)]
    )
    write_evaluated(root, windows=[row | {"scale_verdict": "NOT_NEEDED"} for row in windows])
    found = shown(root, capsys)
    assert (found["archive"]["HEALTH"], found["archive"]["VERDICT"]) == (
        "behind",
        "no member reads",
    )
    assert (found["done"]["HEALTH"], found["done"]["VERDICT"]) == ("ok", "NOT_NEEDED")
    assert main(["explain", "archive", "--json", "--set", f"job.tables={root}"]) == OK
    diagnosis = json.loads(capsys.readouterr().out)["data"]["diagnosis"]
    assert diagnosis["headline"].startswith(
        "archive: 3,564 records behind, and no member reads them"
    )
    # the data keep the code of the window, which is that of the metrics and the tables
    assert diagnosis["verdict"] == "NOT_NEEDED"


def test_status_and_explain_name_the_same_finding_and_verdict(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        root,
        finding_row("TIME_LAG_SLO_BREACH", "billing", severity="page", role="symptom"),
        finding_row("PARTITION_STALLED", "billing", severity="warn"),
    )
    assert main(["status", "--json", "--set", f"job.tables={root}"]) == OK
    line = data_of("status", capsys)["groups"][0]
    assert main(["explain", "billing", "--json", "--set", f"job.tables={root}"]) == OK
    explained = data_of("explain", capsys)
    findings = explained["diagnosis"]["findings"]
    # the health is that of the loudest finding, the one on the line is the one to act on
    assert (
        (line["health"], line["finding"])
        == ("page", findings[0]["code"])
        == ("page", "PARTITION_STALLED")
    )
    assert line["scale_verdict"] == explained["diagnosis"]["verdict"]
    assert line["lag"] == explained["group"]["lag"] == 3540
    assert line["status"] == "ok"
