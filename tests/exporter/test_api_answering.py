"""Questions of the API without sockets: what clients may not cost, and answers that are of the
batch they name.
"""

from __future__ import annotations

import base64
import fnmatch
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.group_rows import group, members, partitions, rebalance_row
from exporter.harness import Exporter
from laggard.answers import answering, lists, one_group
from laggard.answers.answering import Answering, Kept
from laggard.answers.lists import page_of
from laggard.answers.schema.openapi import openapi
from laggard.exporter.api import Answer, Question
from laggard.exporter.published import Shown
from tables.fixtures import NOW, batch_row, group_row, partition_row, write_batch, write_rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    rows = {
        "partition_status": partitions(),
        "group_status": [group(), group_row("other")],
        "topic_windows": [],
    }
    rows |= {"group_members": members(), "rebalances": [rebalance_row()]}
    versions = {name: write_rows(root, name, each) for name, each in rows.items()}
    write_rows(root, "batches", [batch_row(42, versions)])
    return root


@pytest.fixture(scope="module")
def exporter(root: Path) -> Exporter:
    exporter = Exporter(root)
    exporter.refresh()
    return exporter


@pytest.fixture
def answers() -> Answering:
    return Answering(60)


def ask(
    answers: Answering,
    exporter: Exporter,
    path: str,
    roots: tuple[Shown, ...] | None = None,
    **parameters: str,
) -> tuple[int, dict[str, Any]]:
    shown = exporter.publisher.published.roots if roots is None else roots
    answer = answers(
        Question(f"/api/v1/{path}", tuple(parameters.items()), shown, exporter.clock())
    )
    return answer.status, json.loads(answer.body)


def code(found: tuple[int, Mapping[str, Any]]) -> tuple[int, str]:
    return found[0], found[1]["error"]["code"]


def cursor(*key: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def test_globs_of_clients_stay_nowhere(answers: Answering, exporter: Exporter) -> None:
    """fnmatch keeps 32,768 compiled patterns: 4 GB of what a client may invent."""
    fnmatch.fnmatch("a", "a")
    before = fnmatch._compile_pattern.cache_info().misses  # type: ignore[attr-defined]
    for number in range(20):
        parameters = {"group": f"{number}*", "cluster": "p*"}
        assert ask(answers, exporter, "groups", **parameters, topic="o*", team="*")[0] == 200
        assert ask(answers, exporter, "findings", **parameters, code=f"x{number}*")[0] == 200
    assert fnmatch._compile_pattern.cache_info().misses == before  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "longest"), [("group", 1024), ("search", 300), ("state", 300), ("cluster", 300)]
)
def test_a_parameter_has_a_longest(
    answers: Answering, exporter: Exporter, name: str, longest: int
) -> None:
    fits = ask(answers, exporter, "groups", **{name: "x" * longest})[1]
    assert fits.get("error", {}).get("code") != "bad_parameter"
    too_long = ask(answers, exporter, "groups", **{name: "x" * (longest + 1)})
    assert code(too_long) == (400, "bad_parameter")


def test_the_longest_is_described() -> None:
    (group,) = [
        each
        for each in openapi()["paths"]["/api/v1/groups"]["get"]["parameters"]
        if each["name"] == "group"
    ]
    assert group["schema"]["maxLength"] == 1024


def test_what_is_kept_has_bounds_of_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "MAX_KEPT", 2)
    monkeypatch.setattr(answering, "MAX_BYTES", 1000)
    answers = Kept()

    def found(*names: str) -> list[bool]:
        return [answers.before((name,), ()) is not None for name in names]

    for name in ("a", "b", "c"):
        answers.keep((name,), Answer(b"x"))
    assert found("a", "b", "c") == [False, True, True]
    answers.keep(("d",), Answer(b"x" * 600, zipped=b"x" * 390))
    assert found("b", "c", "d") == [False, False, True]
    answers.keep(("long" * 300,), Answer(b""))
    assert found("long" * 300, "d") == [False, True]


def test_an_answer_of_the_batch_before_is_not_given_for_the_new_one(
    answers: Answering, exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question about batch 42 ends after the first one about batch 43."""
    old = exporter.publisher.published.roots
    (root,) = old
    assert root.snapshot is not None
    batch = root.snapshot.batch
    snapshot = replace(root.snapshot, batch=replace(batch, values={**batch.values, "batch_id": 43}))
    new = (replace(root, batch_id=43, snapshot=snapshot),)

    def slow(*args: Any) -> dict[str, Any]:
        if args[0][0].snapshot.batch.batch_id == 42:
            assert ask(answers, exporter, "findings", new)[1]["batch_id"] == 43
        return lists.groups(*args)

    path = "/api/v1/groups"
    # a route of any answer
    monkeypatch.setitem(answering.ROUTES, path, slow)  # type: ignore[arg-type]
    assert ask(answers, exporter, "groups", old, sort="lag")[1]["batch_id"] == 42
    assert ask(answers, exporter, "groups", new, sort="lag")[1]["batch_id"] == 43


def test_a_range_of_a_group_that_is_too_long_is_a_wrong_parameter(
    answers: Answering, exporter: Exporter
) -> None:
    for path in ("groups/checkout", "explain/checkout"):
        assert code(ask(answers, exporter, path, since="-31d")) == (400, "bad_parameter")
    found = ask(answers, exporter, "groups/checkout", since="-2h")[1]
    assert len(found["range"]["starts"]) == 120
    assert found["range"]["history"] is None  # no rules


@pytest.mark.parametrize(
    "parameters",
    [
        {"at": "-999999d"},
        {"since": "-999999d"},
        {"at": "0001-01-01T00:00+23:59"},
        {"at": "9999-12-31T23:59-23:59"},
        {"at": "0001-01-01"},
        {"since": "0001-01-01"},
        {"since": "2000-01-01"},
        {"since": "-31d"},
    ],
    ids=str,
)
def test_a_time_beyond_what_is_kept_is_a_wrong_parameter(
    answers: Answering, exporter: Exporter, parameters: dict[str, str]
) -> None:
    assert code(ask(answers, exporter, "explain/checkout", **parameters)) == (400, "bad_parameter")


def test_thirty_days_back_may_be_asked_for(answers: Answering, exporter: Exporter) -> None:
    assert ask(answers, exporter, "explain/checkout", since="-30d")[0] == 200


@pytest.mark.parametrize(
    "after",
    [
        base64.urlsafe_b64encode(b"[" * 5900).decode(),
        cursor("severity"),
        cursor("severity", 0),
        cursor("severity", 0, 0.0, 0.0, "checkout", "prod", "more"),
        cursor("severity", 0, "x", 0.0, "checkout", "prod"),
        cursor("severity", 0, float("nan"), 0.0, "checkout", "prod"),
        cursor("severity", 0, None, 0.0, "checkout", "prod"),
    ],
    ids=range(7),
)
def test_a_cursor_of_another_form_is_no_place(
    answers: Answering, exporter: Exporter, after: str
) -> None:
    assert code(ask(answers, exporter, "groups", after=after)) == (400, "bad_cursor")


@pytest.mark.parametrize("text", ["1_0", "nan", "inf", "-1", " 1", "1e400", "٣"])
def test_seconds_are_digits(answers: Answering, exporter: Exporter, text: str) -> None:
    assert code(ask(answers, exporter, "groups", min_time_lag_seconds=text)) == (
        400,
        "bad_parameter",
    )


def test_the_same_failure_is_logged_once(
    answers: Answering,
    exporter: Exporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(one_group, "page_lines", fail)
    with caplog.at_level(logging.ERROR, "laggard.exporter"):
        for limit in "123":
            assert code(ask(answers, exporter, "explain/checkout", limit=limit)) == (
                503,
                "tables_unreadable",
            )
    assert len(caplog.records) == 1


def test_an_answer_is_named_weakly_since_it_is_sent_in_two_forms() -> None:
    assert Answer(b"{}", batches="42").etag.startswith('W/"42-')
    assert Answer(b"{}").etag.startswith('W/"')


def test_the_worst_partition_is_shown_where_no_partition_is_exported(
    answers: Answering, root: Path, exporter: Exporter
) -> None:
    whole, exporter = exporter, Exporter(root, partition_top_k=0)
    exporter.refresh()
    rows = {row["group"]: row for row in ask(answers, exporter, "groups")[1]["groups"]}
    assert rows["checkout"]["worst"] == ask(Answering(60), whole, "groups")[1]["groups"][0]["worst"]
    assert rows["checkout"]["worst"]["partition"] == 2
    assert not [name for name, _ in exporter.samples() if name == "laggard_partition_lag_records"]


def test_what_is_not_known_is_not_uncensored(answers: Answering, tmp_path: Path) -> None:
    bad = [
        partition_row("u", "t", 0, "no_end_offset"),
        partition_row("g", "t", 0),
        partition_row("g", "t", 1),
    ]
    write_batch(
        tmp_path, 42, partitions=bad, groups=[group_row("u", lag=None), group_row("g")], topics=[]
    )
    exporter = Exporter(tmp_path)
    exporter.refresh()
    found = {
        row["group"]: row["time_lag_censored"]
        for row in ask(answers, exporter, "groups")[1]["groups"]
    }
    assert found == {"u": None, "g": False}
    for name, expected in found.items():
        assert (
            ask(answers, exporter, f"groups/{name}")[1]["topics"][0]["time_lag_censored"]
            is expected
        )


def test_pages_of_findings_go_on_behind_what_is_open_and_what_ended() -> None:
    ended = lists._place(
        {"event": "closed", "closed_at": NOW, "finding_id": "f", "cluster": "prod"}
    )
    facts = {
        "role": "primary",
        "severity": "warn",
        "group": None,
        "started_at": NOW,
        "code": "X",
        "finding_id": "f",
    }
    is_open = lists._place({"event": "opened", "cluster": "prod"} | facts)
    found, after = [], None
    for _ in range(2):
        page, after = page_of(
            [(is_open, 1), (ended, 2)], 1, after, "findings", lists._KINDS["findings"]
        )
        found += page
    assert (found, after) == ([1, 2], None)
