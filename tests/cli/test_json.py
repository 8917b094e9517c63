"""With --json a verb prints one document that every parser takes, also when it fails."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cli.declared import document_of
from laggard.cli.main import PROSE, main
from laggard.cli.parser import VERBS
from laggard.errors import CONFIGURATION, NOT_FOUND, OK, TEMPORARY, UNREACHABLE, USAGE
from tables.fixtures import (
    NOW,
    finding_row,
    group_row,
    make_root,
    partition_row,
    window_row,
    write_batch,
    write_evaluated,
)

INFINITE = {
    "evidence": {"drain_seconds": float("inf"), "slope": float("nan")},
    "evidence_text": {},
    "group": "g",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("tables")
    make_root(folder)
    write_batch(folder, at=NOW, partitions=[partition_row("g", "t", 0)], groups=[group_row("g")])
    write_evaluated(
        folder,
        windows=[window_row("g", "t", drain_seconds=float("inf"))],
        findings=[finding_row("X", "g") | INFINITE],
    )
    return str(folder)


ANSWERS = [  # with the name of the schema in docs/cli-json
    (["status"], OK, "status"),
    (["status", "--rebalances"], OK, "status"),
    (["explain", "g"], OK, "explain"),
    (["findings"], OK, "findings"),
    (["diagnose", "--from", "2h"], OK, "diagnose"),
    (["query", "select cast('nan' as double) as x, cast('inf' as double) as y"], OK, "query"),
    (["query", "select 1 as one", "-o", "rows.csv"], OK, "query-output"),
    (["query", "--list"], OK, "query-list"),
    (["audit"], 1, "audit"),
    (["config", "show"], OK, "config-show"),
    (["config", "check"], OK, "config-check"),
    (["config", "sample"], OK, "config-sample"),
    (["config", "policy", "g"], OK, "config-policy"),
    (["decode"], OK, "decode"),
    (["doctor"], None, "doctor"),
    (["run", "--check", "live", "--set", "job.heartbeat_file=none"], 1, "run-check"),
    (["export", "--check", "--listen", "127.0.0.1:1"], 1, "export-check"),
]
ERRORS = [
    (["status", "--group", "no*"], NOT_FOUND),
    (["status", "--rebalances", "--group", "no*"], NOT_FOUND),
    (["status", "--url", "http://127.0.0.1:1"], UNREACHABLE),
    (["explain", "nobody"], NOT_FOUND),
    (["explain", "g", "--at", "noon"], USAGE),
    (["plan", "nobody"], NOT_FOUND),
    (["plan", "g"], TEMPORARY),  # the rules have no signals of it
    (["plan", "g", "--rate", "0"], USAGE),
    (["findings", "--group", "no*"], NOT_FOUND),
    (["findings", "--code", "NO_SUCH"], NOT_FOUND),
    (["diagnose", "--from", "0s"], USAGE),
    (["query", "selekt"], USAGE),
    (["query", "select nothing from group_status"], USAGE),
    (["config", "show", "--set", "a.b=c"], CONFIGURATION),
    (["config", "shwo"], USAGE),
    (["plan", "nobody"], NOT_FOUND),
    (["plan", "g", "--members", "none"], USAGE),
    (["report", "nobody"], NOT_FOUND),
    (["report", "g", "--since", "never"], USAGE),
    (["decode", "more"], USAGE),
    (["doctor", "--set", "job.tick_seconds=-1"], CONFIGURATION),
    (["demo"], USAGE),
    (["doctor", "--repair"], USAGE),
    (["status", "--watch"], USAGE),
    (["run"], USAGE),
    (["run", "--check", "live"], CONFIGURATION),
    (["export"], USAGE),
    (["export", "--print"], USAGE),
    (["statsu"], USAGE),
    ([], USAGE),
]


def call(root: str, *words: str) -> int:
    return main(
        ["--json", *words, *(() if "--set" in words else ("--set", f'job.tables="{root}"'))]
    )


@pytest.mark.parametrize(
    ("words", "code", "name"), ANSWERS, ids=[" ".join(words) for words, *_ in ANSWERS]
)
def test_an_answer_is_one_document_as_declared(
    root: str,
    words: list[str],
    code: int | None,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = b'{"key_hex": "00", "value_hex": null}\n' * 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    found = call(root, *words)
    assert found == code if code is not None else found in (0, 1, 2, CONFIGURATION)
    document_of(name, capsys)


@pytest.mark.parametrize(
    ("words", "code"), ERRORS, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_an_error_is_one_document_with_its_exit_code(
    root: str,
    words: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(root, *words) == code
    found = document_of("error", capsys)
    assert (found["error"]["exit_code"], bool(found["error"]["what"])) == (code, True)


def test_every_verb_is_here() -> None:
    named = {words[0] for words, *_ in (*ANSWERS, *ERRORS) if words}
    assert set(VERBS) <= named
    assert set(PROSE) <= set(VERBS)


def test_nothing_published_is_an_answer_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(str(tmp_path / "none"), "status") in (TEMPORARY, NOT_FOUND)
    document_of("error", capsys)
