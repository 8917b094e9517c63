"""With --url a verb trusts no answer: another form, another batch or what a terminal would obey."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from laggard.cli.main import main
from laggard.errors import OK, TEMPORARY, UNREACHABLE

CLUSTER = {
    "cluster": "prod",
    "batch_id": 42,
    "data_timestamp": "2026-11-20T12:00:00+00:00",
    "is_fresh": True,
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@contextmanager
def answering(*answers: object) -> Iterator[tuple[str, list[str]]]:
    """A server that gives one answer after the other, the last one for ever; its URL, and what it
    was asked.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers[min(len(asked), len(answers) - 1)]).encode()
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def groups(
    batch_id: int, *names: str, after: str | None = None, **values: object
) -> dict[str, object]:
    """A page of groups."""
    unknown = (
        "members",
        "lag",
        "time_lag_seconds",
        "time_lag_known_seconds",
        "worst",
        "generation",
        "finding",
        "shape",
    )
    row = dict.fromkeys((*unknown, "scale_verdict")) | {
        "lag_known": 7,
        "state": "Stable",
        "status": "partial",
    }
    rows = [row | {"group": name, "health": "unknown"} | values for name in names]
    top = {
        "api": "v1",
        "batch_id": batch_id,
        "data_timestamp": CLUSTER["data_timestamp"],
        "clusters": [CLUSTER],
    }
    return top | {"total": 9, "next": after, "groups": rows}


@pytest.mark.parametrize("verb", [["status"], ["explain", "g"], ["findings"]], ids=" ".join)
@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"status": "ok"},
        [],
        1,
        None,
        {"api": "v1"},
        {"api": "v1", "clusters": [1], "next": None, "batch_id": 1},
    ],
    ids=str,
)
def test_json_of_another_form_is_no_api_of_laggard(
    verb: list[str], answer: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(answer) as (url, _):
        assert main([*verb, "--url", url]) == UNREACHABLE
    assert "has no API of laggard" in capsys.readouterr().err


def test_pages_of_two_batches_are_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    first, moved = groups(42, "a", "b", after="x"), groups(43, "a")
    with answering(first, moved, groups(43, "b", after="x"), groups(43, "a")) as (url, asked):
        assert main(["status", "--json", "--url", url]) == OK
    found = json.loads(capsys.readouterr().out)["data"]
    assert (found["batch_id"], [row["group"] for row in found["groups"]], len(asked)) == (
        43,
        ["b", "a"],
        4,
    )


def test_batches_that_never_agree_are_a_failure_for_now(capsys: pytest.CaptureFixture[str]) -> None:
    pages = [groups(number, "a", after=None if number % 2 else "x") for number in range(40, 60)]
    with answering(*pages) as (url, _):
        assert main(["status", "--url", url]) == TEMPORARY
    assert "the batch changes faster" in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    page = {"api": "v1", "explain": {"diagnosis": {"findings": []}}, "page": ["one", "\x1b[2Jtwo"]}
    with answering(page) as (url, _):
        assert main(["explain", "g", "--url", url]) == OK
    assert capsys.readouterr().out == "one\n\\x1b[2Jtwo\n"
    with answering(groups(42, "a", state="\x1b[2J")) as (url, _):
        assert main(["status", "--url", url]) == OK
    assert "\x1b" not in capsys.readouterr().out


def page(batch_id: int, **values: object) -> dict[str, object]:
    """The document of one group, of an exporter that serves a second cluster with old data."""
    row = {"cluster": "prod", "group": "g"}
    old = {**CLUSTER, "cluster": "other", "is_fresh": False, "reason": "stale"}
    top = groups(batch_id) | {"clusters": [old, CLUSTER], "group": row, "findings": []}
    return top | values


def test_a_report_names_the_cluster_of_its_group_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with answering(page(42)) as (url, _):
        assert main(["report", "g", "-o", "-", "--url", url]) == OK
    text = re.search(r'id="documents">(.*)</script>', capsys.readouterr().out)
    assert text is not None
    assert json.loads(text[1])["of"]["g"]["clusters"] == [CLUSTER]


def test_a_report_is_of_one_batch_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    listed, found = groups(42, "g", cluster="prod"), groups(42) | {"findings": []}
    with answering(listed, found, page(43), listed, found, page(42)) as (url, asked):
        assert main(["report", "--fleet", "-o", "-", "--url", url]) == OK
    assert len(asked) == 6
    capsys.readouterr()
    with answering(*3 * [listed, found, page(43)]) as (url, asked):
        assert main(["report", "--fleet", "-o", "-", "--url", url]) == TEMPORARY
    assert "changes faster" in capsys.readouterr().err


@pytest.mark.parametrize("value", [{"data_timestamp": None}, {"clusters": []}, {"group": 1}])
def test_a_report_of_an_answer_of_another_form_blames_the_exporter(
    value: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(page(42, **value)) as (url, _):
        assert main(["report", "g", "-o", "-", "--url", url]) == UNREACHABLE
    assert "has no API of laggard" in capsys.readouterr().err
