"""`laggard findings`: what is open first, then what ended, by what is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.declared import data_of
from cli.group_rows import publish
from laggard.cli.main import main
from laggard.errors import NOT_FOUND, OK, TEMPORARY, USAGE
from tables.fixtures import CLUSTER, NOW, Row, group_row, write_rows

MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def finding(
    name: str, at: datetime = NOW, seq: int = 0, event: str = "opened", **values: Any
) -> Row:
    """A row of findings: a partition of `fraud` that is stalled since 20 minutes before."""
    return {
        "date": at.date(), "cluster": CLUSTER, "group": "fraud", "finding_id": name, "seq": seq,
        "at": at,
        "event": event, "batch_id": 1, "status": "ok", "rule": "D20", "rule_version": 1,
        "code": "PARTITION_STALLED",
        "class": "cause", "severity": "warn", "role": "primary", "topic": "orders",
        "partitions": [7],
        "scope": "partition", "started_at": NOW - 20 * MINUTE, "opened_at": NOW - 15 * MINUTE,
        "confidence": 0.72,
        "evidence": {"frozen_seconds": 1200.0, "committed_offset": 4711.0, "lag_ratio": 0.25,
        "repeat_commits": 3.0},
        "evidence_text": {"owner": "c1"}, "guards": {"no_deploy": "pass"},
        "falsifier": "the offset moves",
    } | values  # fmt: skip


def write(
    root: Path,
    rows: list[Row],
    evaluated_to: datetime | None = NOW,
    groups: Sequence[Row] = (),
) -> None:
    """A batch at NOW, the findings, and how far the rules have come."""
    publish(root, {"group_status": groups})
    if rows:
        write_rows(root, "findings", rows)
    if evaluated_to is not None:
        start = evaluated_to - MINUTE
        state = {
            "date": start.date(),
            "cluster": CLUSTER,
            "group": "",
            "window_start": start,
            "status": "ok",
        }
        write_rows(root, "finding_state", [state | {"batch_id": 1}])


def run(root: Path, *words: str) -> int:
    return main(["findings", "--set", f"job.tables={root}", *words])


def lines(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    run(root, *words)
    return capsys.readouterr().out.splitlines()


def ids(root: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(root, "--json", *words) == OK
    return [row["finding_id"] for row in data_of("findings", capsys)["findings"]]


MANY = [
    finding("old warning", started_at=NOW - 50 * MINUTE),
    finding("page", severity="page", code="DATA_LOST", role="symptom", group="billing"),
    finding("note", severity="info", code="IDLE_MEMBERS", role="note", topic=None, partitions=[]),
    finding("explained", role="suppressed", code="REBALANCE_STORM"),
    finding("cluster", code="COORDINATOR_CORRELATED", group=None, topic=None, partitions=[],
        subject="2"),
    finding("ended", NOW - 30 * MINUTE),
    finding("ended", NOW - 3 * MINUTE, 1, "closed", closed_at=NOW - 3 * MINUTE,
        close_reason="cleared", evidence={}),
    finding("ended long ago", NOW - timedelta(hours=30)),
    finding(
        "ended long ago", NOW - timedelta(hours=25), 1, "closed",
        closed_at=NOW - timedelta(hours=25),
        close_reason="falsified",
    ),
]  # fmt: skip


def test_a_finding_is_a_line_with_its_place_and_its_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [finding("one")])
    title, names, line = lines(tmp_path, capsys)
    assert title == "evaluated to 2026-11-20 12:00:00 UTC; 1 open, 0 ended"
    assert names.split() == [
        "SINCE",
        "SEVERITY",
        "ROLE",
        "CODE",
        "GROUP",
        "WHERE",
        "CONFIDENCE",
        "EVIDENCE",
    ]
    assert re.split(r" {2,}", line) == [
        "2026-11-20 11:40:00 UTC", "warn", "primary", "PARTITION_STALLED", "fraud", "orders 7",
        "0.72",
        "frozen 20 m 00 s, committed offset 4,711, lag 25.0 %",
    ]  # fmt: skip


def test_open_ones_come_first_the_most_severe_on_top_then_those_that_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, MANY)
    assert ids(tmp_path, capsys) == ["page", "cluster", "old warning", "note", "ended"]
    found = lines(tmp_path, capsys)
    assert found[0] == "evaluated to 2026-11-20 12:00:00 UTC; 4 open, 1 ended"
    assert re.split(r" {2,}", found[-1])[:2] == ["2026-11-20 11:57:00 UTC", "cleared"]
    # what closes a finding sees nothing, so the evidence is that of the row before
    assert "frozen 20 m 00 s" in found[-1]
    assert any("(cluster)" in line for line in found)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--open"], ["page", "cluster", "old warning", "note"]),
        (["--all", "--open"], ["page", "cluster", "old warning", "explained", "note"]),
        (["--group", "bil*"], ["page"]),
        (["--code", "data_lost"], ["page"]),
        (["--code", "*_CORRELATED"], ["cluster"]),
        (["--severity", "info"], ["note"]),
        (["--since", "2m"], ["page", "cluster", "old warning", "note"]),
        (["--since", "26h"], ["page", "cluster", "old warning", "note", "ended", "ended long ago"]),
    ],
)
def test_only_what_is_asked_for_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: list[str]
) -> None:
    write(tmp_path, MANY)
    assert ids(tmp_path, capsys, *words) == expected


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], OK),
        (["--fail-on", "warn"], 1),
        (["--fail-on", "page"], 1),
        (["--fail-on", "page", "--group", "fraud"], OK),
        (["--fail-on", "warn", "--group", "fraud"], 1),
        (["--fail-on", "warn", "--code", "IDLE_MEMBERS"], OK),
        # what another finding explains, and what has ended, is no reason to fail
        (["--fail-on", "warn", "--all", "--code", "REBALANCE_STORM"], OK),
        # a group without a window is one that the rules do not see, whatever has ended there
        (["--fail-on", "warn", "--group", "ended"], TEMPORARY),
    ],
)
def test_the_exit_code_tells_of_open_findings_only_when_asked(
    tmp_path: Path, words: list[str], code: int
) -> None:
    write(
        tmp_path,
        [
            *MANY,
            finding("gone", NOW, 0, "closed", closed_at=NOW, close_reason="cleared", group="ended"),
        ],
        groups=[group_row(name) for name in ("checkout", "billing", "fraud")],
    )
    assert run(tmp_path, *words) == code


def test_an_open_finding_is_known_by_its_newest_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        tmp_path,
        [
            finding("one", NOW - 90 * MINUTE, 0),
            finding(
                "one",
                NOW - 30 * MINUTE,
                1,
                "updated",
                severity="page",
                evidence={"frozen_seconds": 60.0},
            ),
        ],
    )
    assert re.split(r" {2,}", lines(tmp_path, capsys)[2])[1] == "page"
    assert "frozen 1 m 00 s" in lines(tmp_path, capsys)[2]


def test_rules_that_have_not_evaluated_are_said_to_know_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [], evaluated_to=None)
    assert lines(tmp_path, capsys) == [
        "the rules have not evaluated yet: what they would find is unknown"
    ]
    assert run(tmp_path) == OK
    assert run(tmp_path, "--fail-on", "page") == TEMPORARY
    assert "findings are unknown" in capsys.readouterr().err


def test_what_was_open_when_the_rules_stopped_is_shown_with_how_long_ago_that_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = NOW - timedelta(days=3)
    write(tmp_path, [finding("one", stopped - 40 * MINUTE)], evaluated_to=stopped)
    found = lines(tmp_path, capsys)
    assert found[0] == (
        "evaluated to 2026-11-17 12:00:00 UTC, 4320 windows ago: what they would find since is "
        "unknown; 1 open, 0 ended"
    )
    assert len(found) == 3
    assert run(tmp_path, "--fail-on", "page") == TEMPORARY
    assert run(tmp_path, "--fail-on", "warn") == 1


def test_wrong_words_are_a_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--since", "yesterday") == USAGE
    assert "got 'yesterday'" in capsys.readouterr().err


def test_nothing_published_is_distinguished_from_nothing_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(tmp_path, "batches", [])
    assert run(tmp_path) == TEMPORARY
    assert "nothing is published yet" in capsys.readouterr().err


def test_a_filter_that_fits_nothing_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, [finding("one")], groups=[group_row("checkout"), group_row("billing")])
    assert run(tmp_path, "--group", "billing") == OK  # nothing was found of it, which is an answer
    assert run(tmp_path, "--code", "DATA_LOST") == OK
    assert run(tmp_path, "--group", "chekout") == NOT_FOUND
    assert (
        'no group matches "chekout"\ncause: did you mean checkout?\nfix: '
        in capsys.readouterr().err
    )
    assert run(tmp_path, "--code", "data_lsot") == NOT_FOUND
    assert (
        'no rule has the code "data_lsot"\ncause: did you mean DATA_LOST?\nfix: '
        in capsys.readouterr().err
    )
