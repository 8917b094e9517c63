"""The JSON API over real sockets: what it answers is what the verbs say, in one form, and nothing
waits for it.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote, urlencode

import bcrypt
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from cli.group_rows import LAGS, group, members, partitions, rebalance_row
from demo.processes import comes_true
from exporter.api_kit import Asker, api_of, serving_api
from exporter.harness import LIMIT_SECONDS, Clock, Exporter, ask
from exporter.test_roots import Several
from json_schemas import faults, strict
from laggard.answers.document import decode, encode, name_of
from laggard.answers.schema.openapi import openapi
from laggard.cli.main import main
from laggard.escape import escape_label
from laggard.exporter import api as api_module
from laggard.exporter.api import API_ANSWERS, MAX_UNDER_WAY, Answer, Question
from laggard.exporter.web.access import Web
from laggard.exporter.web.users import Users
from tables.fixtures import (
    NOW,
    Row,
    batch_row,
    finding_row,
    group_row,
    partition_row,
    window_row,
    write_batch,
    write_evaluated,
    write_rows,
)

MINUTE = timedelta(minutes=1)

HOSTILE = "\"<>&'/%\n\\ ü"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine answer late."""
    monkeypatch.setattr(api_module, "ANSWER_SECONDS", LIMIT_SECONDS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`checkout`, with members and a hot partition, and `other`, which the rules find well."""
    root = tmp_path_factory.mktemp("tables")
    facts: Row = {
        "topic": "orders", "partitions": [2], "rule": "D6", "rule_version": 1, "class": "cause",
        "scope": "partition",
        "started_at": NOW - 9 * MINUTE, "opened_at": NOW - 5 * MINUTE, "evidence": {"share": 0.8},
        "evidence_text": {"owner": "c2"}, "guards": {"no_deploy": "pass"},
        "falsifier": "the rates are equal",
    }  # fmt: skip
    lagging = {
        "max_time_lag_seconds": 55.0, "partitions_total": 4, "partitions_material": 3,
        "top_partitions": [2],
        "flags": [], "scale_reason": {}, "scale_verdict": "NO_HOT_PARTITION",
        "shape": "concentrated",
    }  # fmt: skip
    calm = {
        "lag": 0,
        "max_time_lag_seconds": 0.0,
        "partitions_material": 0,
        "flags": [],
        "scale_verdict": "NOT_NEEDED",
    }
    write_evaluated(
        root,
        windows=[
            window_row("checkout", "orders", **lagging),
            window_row("other", "orders", **calm),
        ],
        findings=[finding_row("HOT_PARTITION_ARRIVAL", "checkout") | facts],
    )
    lag_windows = [
        {
            "date": NOW.date(), "cluster": "prod", "group": "checkout", "topic": "orders",
            "topic_id": "",
            "partition": place, "window_start": NOW - number * MINUTE, "lag": LAGS[place],
            "status": "ok",
            "slot": f"c{number}", "batch_id": 1,
        }
        for place in range(4)
        for number in (1, 2, 3)
    ]  # fmt: skip
    tables = {
        "partition_status": partitions(),
        "group_status": [group(group_type="classic"), group_row("other", members=1)],
        "group_members": members(),
        "rebalances": [rebalance_row()],
        "topic_windows": [],
        "lag_windows": lag_windows,
    }
    versions = {name: write_rows(root, name, rows) for name, rows in tables.items()}
    write_rows(root, "batches", [batch_row(274, versions)])
    return root


@pytest.fixture(scope="module")
def exporter(root: Path) -> Exporter:
    exporter = Exporter(root)
    exporter.refresh()
    return exporter


@pytest.fixture(scope="module")
def asker(exporter: Exporter) -> Iterator[Asker]:
    with serving_api(exporter) as asker:
        yield asker


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A tick of groups with odd names, unknown lag and a drain that never ends."""
    root = tmp_path_factory.mktemp("odd")
    facts = {
        "rules": "D1",
        "started_at": NOW,
        "opened_at": NOW,
        "guards": {},
        "partitions": [],
        "falsifier": "x",
    }
    evidence = {"evidence": {"drain_seconds": float("inf")}, "evidence_text": {}}
    found = {name: value for name, value in (facts | evidence).items() if name != "rules"}
    more = {
        "partitions_total": 1,
        "partitions_material": 1,
        "flags": [],
        "scale_reason": {},
        "top_partitions": [],
    }
    write_evaluated(
        root,
        windows=[window_row("g", "t", **more, max_time_lag_seconds=3.0)],
        findings=[finding_row("CAPACITY_SHORTAGE", "g") | found],
    )
    partitions = [
        partition_row("g", "t", 0), partition_row(HOSTILE, "t", 0),
            partition_row(HOSTILE, "t", 1, "topic_missing"),
        partition_row("bare", "t", 0, "no_commit"),
    ]  # fmt: skip
    groups = [
        group_row("g"),
        group_row(HOSTILE, lag=None, lag_known=100),
        group_row("bare", lag=None, lag_known=None),
    ]
    write_batch(root, 42, partitions=partitions, groups=groups)
    with api_of(root) as asker:
        yield asker


def valid(path: str, document: Mapping[str, Any], status: str = "200") -> None:
    answer = openapi()["paths"][path]["get"]["responses"][status]["content"]["application/json"][
        "schema"
    ]
    schema = answer | {"components": strict(openapi()["components"])}
    assert faults(schema, document) == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/api/v1/clusters", "clusters"),
        ("/api/v1/groups", "groups"),
        ("/api/v1/groups", "groups?rebalances=true"),
        ("/api/v1/groups/{group}", "groups/{group}"),
        ("/api/v1/group", "group?group={group}&page=true"),
        ("/api/v1/group", "group?group={group}&page=true&since=-2h"),
        ("/api/v1/groups/{group}", "groups/{group}?topic={topic}"),
        ("/api/v1/explain/{group}", "explain/{group}"),
        ("/api/v1/explain/{group}", "explain/{group}?since=-2h"),
        ("/api/v1/findings", "findings?suppressed=true"),
    ],
)
def test_each_answer_is_as_described(asker: Asker, odd: Asker, path: str, asked: str) -> None:
    valid(path, asker(asked.format(group="checkout", topic="orders")))
    for name in ("g", quote(HOSTILE, safe=""), "bare"):
        valid(path, odd(asked.format(group=name, topic="t")))


def test_the_description_is_one_and_names_every_path(asker: Asker) -> None:
    described = asker("openapi.json")
    assert described == openapi()
    assert {*described["paths"], "/api/other"} == set(API_ANSWERS)
    OpenAPIV31SpecValidator(described).validate()
    for schema in described["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_explain_is_what_the_verb_says(
    asker: Asker,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for words, query in (
        ([], ""),
        (["--since", "-1h", "--topic", "orders"], "?since=-1h&topic=orders"),
    ):
        answer = asker(f"explain/checkout{query}")
        verb = ["explain", "checkout", *words, "--set", f"job.tables={root}"]
        assert main(verb) == 0
        assert capsys.readouterr().out.splitlines() == answer["page"]
        assert main([*verb, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)["data"]
        if "null_reasons" not in answer:
            assert printed == answer["explain"]


def test_groups_stand_in_the_order_of_status(
    asker: Asker,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["status", "--json", "--set", f"job.tables={root}"]) == 0
    printed = json.loads(capsys.readouterr().out)["data"]["groups"]
    answered = asker("groups")["groups"]
    names = ("group", "health", "finding", "state", "members", "lag", "shape", "generation")
    assert [[row[name] for name in names] for row in answered] == [
        [row[name] for name in names] for row in printed
    ]
    assert answered[0]["group"] == "checkout"
    assert answered[0]["worst"]["partition"] == 2
    assert len(answered[0]["history"]) == 60
    assert answered[0]["history"][-2:] == [None, 55.0]


def test_a_group_has_its_partitions_with_owner_and_history(asker: Asker) -> None:
    found = asker("groups/checkout")
    worst = found["partitions"][0]
    assert (worst["partition"], worst["owner"]["client_id"]) == (2, "c2")
    assert worst["history"]["lag"][-1] == worst["lag"]
    assert len(worst["history"]["lag"]) == len(found["window_starts"]) == 60
    assert len(found["members"]) == 3
    assert found["findings"][0]["code"] == "HOT_PARTITION_ARRIVAL"
    assert {name: values[-2:] for name, values in found["history"].items()} == {
        "lag": [None, 1200], "lag_known": [None, 1200], "time_lag_seconds": [None, 55.0],
        "time_lag_is_exact": [False, True],
    }  # fmt: skip
    assert found["findings"][0]["words"] == {
        "where": "orders 2", "evidence": "share 80.0 %, owner c2", "checked": ["no deploy"],
        "unchecked": [],
        "wrong_if": "the rates are equal",
    }  # fmt: skip
    events, cost = found["rebalances"][0]["says"]
    page = re.sub(r"\s+", " ", " ".join(asker("explain/checkout")["page"]))
    assert events in page
    assert cost in page
    assert found["policy"]["min_consumers"] == 1


def test_a_group_named_by_a_parameter_has_the_lines_of_explain_when_asked(asker: Asker) -> None:
    found = asker("group?group=checkout&cluster=prod&page=true")
    assert found.pop("page") == asker("explain/checkout")["page"]
    assert found == asker("groups/checkout")
    assert "is needed" in asker("group", 400)["error"]["message"]
    assert asker("group?group=chekout", 404)["error"]["choices"] == ["checkout"]


def test_each_label_is_of_one_group_also_where_two_look_alike(tmp_path: Path) -> None:
    names = ["x\u202ey", "x\\xe2\\x80\\xaey", ".", "..", "a/b", "", "ä" * 200]
    partitions = [partition_row(name, "t", 0) for name in names]
    write_batch(
        tmp_path, 1, partitions=partitions, groups=[group_row(name, lag=0) for name in names]
    )
    with api_of(tmp_path) as asker:
        for name in names:
            found = asker(f"group?{urlencode({'group': escape_label(name)})}")["group"]
            assert found["group"] == escape_label(name)
            assert name_of(found, "group") == name
        as_it_is = asker(f"group?{urlencode({'group': names[0]})}")["group"]  # typed by hand
        assert name_of(as_it_is, "group") == names[0]


def test_each_cluster_is_named_by_its_label(tmp_path: Path) -> None:
    names = ["x\u202ey", "x\\xe2\\x80\\xaey"]
    for number, cluster in enumerate(names):
        rows = [partition_row("g", "t", 0, cluster=cluster)]
        write_batch(
            tmp_path / str(number),
            1,
            partitions=rows,
            groups=[group_row("g", cluster=cluster)],
            cluster=cluster,
        )
    several = Several(tmp_path / "0", tmp_path / "1")
    several.refresh()
    with serving_api(several) as asker:
        for cluster in names:
            asked = urlencode({"group": "g", "cluster": escape_label(cluster)})
            assert name_of(asker(f"group?{asked}")["group"], "cluster") == cluster
            asked = urlencode({"cluster": cluster})
            assert name_of(asker(f"groups/g?{asked}")["group"], "cluster") == cluster


def test_a_window_without_a_topic_that_came_again_has_no_exact_sum(tmp_path: Path) -> None:
    def window(topic: str, age: int, **facts: Any) -> Row:
        start = NOW - age * MINUTE
        same = {
            "group": "g",
            "cluster": "prod",
            "date": start.date(),
            "batch_id": 1,
            "window_start": start,
        }
        known = {
            "lag": 10,
            "lag_known": 10,
            "max_time_lag_seconds": 1.0,
            "time_lag_censored": False,
            "status": "ok",
        }
        return (
            same
            | window_row("g", topic)
            | known
            | {"window_start": start, "window_end": start + MINUTE}
            | facts
        )

    write_evaluated(tmp_path, windows=[window("a", 1), window("b", 1)])
    rows = [window("a", 2), window("a", 3, time_lag_censored=True), window("b", 3), window("a", 4)]
    rows += [window("a", 5, max_time_lag_seconds=None, time_lag_censored=None)]
    write_rows(tmp_path, "group_windows", rows)
    write_batch(tmp_path, 1, partitions=[partition_row("g", "a", 0)], groups=[group_row("g")])
    with api_of(tmp_path) as asker:
        found = asker("group?group=g")["history"]
        row = asker("groups")["groups"][0]
    assert {name: values[-5:] for name, values in found.items()} == {
        "lag": [10, 10, 20, None, 20],  # b began three windows ago, and was left out once
        "lag_known": [10, 10, 20, 10, 20],
        "time_lag_seconds": [None, 1.0, 1.0, 1.0, 1.0],
        "time_lag_is_exact": [False, True, False, False, True],
    }
    assert (row["history"][-5:], row["history_bounds"]) == ([None, 1.0, 1.0, 1.0, 1.0], [57])


def test_the_history_of_a_topic_that_was_made_again_is_of_the_new_one(tmp_path: Path) -> None:
    rows = [partition_row("g", "t", 0, "topic_recreated"), partition_row("g", "t", 0, lag=3)]
    start = NOW - MINUTE
    history = [
        {
            "date": start.date(),
            "cluster": "prod",
            "group": "g",
            "topic": "t",
            "topic_id": "new",
            "partition": 0,
        }
        | {
            "window_start": start,
            "lag": 3,
            "status": "ok",
            "slot": "c1",
            "time_lag_censored": True,
            "batch_id": 1,
        }
    ]
    tables = {"partition_status": rows, "group_status": [group_row("g")], "lag_windows": history}
    versions = {name: write_rows(tmp_path, name, each) for name, each in tables.items()}
    versions |= {
        name: write_rows(tmp_path, name, [])
        for name in ("group_members", "rebalances", "topic_windows")
    }
    write_rows(tmp_path, "batches", [batch_row(274, versions)])
    with api_of(tmp_path) as asker:
        found = asker("group?group=g")["partitions"]
    drawn = {row["status"]: row["history"] for row in found}
    assert drawn["topic_recreated"] is None
    assert (drawn["ok"]["lag"][-1], drawn["ok"]["time_lag_censored"][-1]) == (3, True)


@pytest.mark.parametrize("sort", ["severity", "time_lag", "lag", "group"])
def test_pages_together_are_the_whole(odd: Asker, sort: str) -> None:
    whole = odd(f"groups?sort={sort}")
    after, found = "", []
    for _ in range(3):
        page = odd(f"groups?sort={sort}&limit=1{after and '&after=' + after}")
        found += page["groups"]
        after = page["next"]
        assert page["total"] == 3 or after
    assert (found, after) == (whole["groups"], None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("group=check*", ["checkout"]),
        ("search=ECKO", ["checkout"]),
        ("search=nothing", []),
        ("topic=orders", ["checkout", "other"]),
        ("topic=x*", []),
        ("state=Stable&health=warn", ["checkout"]),
        ("min_time_lag_seconds=20", ["checkout"]),
        ("cluster=pr*&sort=group", ["checkout", "other"]),
    ],
)
def test_groups_are_chosen(asker: Asker, query: str, expected: list[str]) -> None:
    assert [row["group"] for row in asker(f"groups?{query}")["groups"]] == expected


def test_findings_are_chosen(asker: Asker) -> None:
    (found,) = asker("findings?code=hot_*&state=open&severity=warn")["findings"]
    assert (found["group"], found["topic"], found["partitions"]) == ("checkout", "orders", [2])
    assert found["advice"]
    assert asker("findings?group=other")["findings"] == []


def test_names_are_those_of_the_labels_and_their_bytes_are_shown(odd: Asker) -> None:
    (row,) = [row for row in odd("groups")["groups"] if "group_bytes" in row]
    assert b64decode(row["group_bytes"]).decode() == HOSTILE
    for name in (HOSTILE, row["group"]):
        assert odd(f"groups/{quote(name, safe='')}")["group"]["group"] == row["group"]


def test_unknown_is_null_and_infinite_says_so(odd: Asker) -> None:
    rows = {row["group"]: row for row in odd("groups")["groups"]}
    assert rows["bare"]["lag"] is None
    hostile = next(row for row in rows.values() if "group_bytes" in row)
    assert (hostile["lag"], hostile["lag_known"], hostile["time_lag_seconds"]) == (None, 100, None)
    found = odd("groups/g")
    assert found["topics"][0]["drain_seconds"] is None
    assert found["null_reasons"]["/topics/0/drain_seconds"] == "infinite"
    assert decode(odd.raw("groups/g")[1])["topics"][0]["drain_seconds"] == float("inf")


def test_what_json_lacks_comes_back() -> None:
    document = {"a/b": [{"x~": float("-inf")}, float("inf")], "y": 1.5}
    assert decode(encode(document)) == document
    assert decode(encode(document | {"n": float("nan")}))["n"] != 0


def test_what_has_not_changed_is_not_sent_again(asker: Asker) -> None:
    answer, body = asker.raw("groups", Accept_Encoding="gzip")
    assert answer.getheader("Cache-Control") == "private, no-cache"
    assert answer.getheader("Etag").startswith('W/"274-')
    assert json.loads(gzip.decompress(body))["batch_id"] == 274
    again, nothing = asker.raw("groups", If_None_Match=answer.getheader("Etag"))
    assert (again.status, nothing, again.getheader("Etag")) == (304, b"", answer.getheader("Etag"))
    assert again.getheader("Vary") == answer.getheader("Vary") == "Accept-Encoding"
    head, nothing = asker.raw("groups", method="HEAD")
    plain, whole = asker.raw("groups")
    assert (head.status, nothing, head.getheader("Content-Length")) == (200, b"", str(len(whole)))
    assert plain.getheader("Content-Encoding") is None


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("groups/nobody", 404, "no_such_group"),
        ("explain/check", 404, "no_such_group"),
        ("explain/checkout?topic=x", 404, "not_found"),
        ("explain/checkout?since=2099-01-01", 400, "bad_parameter"),
        ("groups/%ff", 400, "bad_name"),
        ("nothing", 404, "unknown_path"),
        ("groups?limit=0", 400, "bad_parameter"),
        ("groups?limit=5001", 400, "bad_parameter"),
        ("groups?min_time_lag_seconds=nan", 400, "bad_parameter"),
        ("groups?sort=x", 400, "bad_parameter"),
        ("groups?after=x", 400, "bad_cursor"),
        ("groups?after=bnVsbA", 400, "bad_cursor"),
        ("groups?after=WyJzZXZlcml0eSIsICJ4Il0", 400, "bad_cursor"),
        ("groups?limit=1&limit=2", 400, "repeated_parameter"),
        ("groups?limt=1", 400, "unknown_parameter"),
        ("groups?cluster=x", 404, "no_such_cluster"),
        ("findings?since=31d", 400, "bad_parameter"),
        ("findings?since=soon", 400, "bad_parameter"),
        ("groups?group=%ff", 400, "bad_request"),
    ],
)
def test_errors_have_one_form(asker: Asker, path: str, status: int, code: str) -> None:
    error = asker(path, status)
    valid("/api/v1/groups", error, "400")
    assert error["error"]["code"] == code


def test_a_near_name_is_offered(asker: Asker) -> None:
    assert asker("explain/check", 404)["error"]["choices"] == ["checkout"]


def test_other_methods_and_bodies_are_refused_in_the_same_form(asker: Asker) -> None:
    for (answer, body), status in (
        (asker.raw("groups", "POST"), 405),
        (asker.raw("groups", "OPTIONS"), 405),
        (ask(asker.port, "/api/v1/groups", body=b"{}"), 413),
        (asker.raw("groups", X="a" * 9000), 431),
        (ask(asker.port, "/api/v2/groups"), 404),
    ):
        assert answer.status == status
        valid("/api/v1/groups", json.loads(body), "400")


def test_old_data_is_503_with_its_time_and_without_a_number(exporter: Exporter) -> None:
    with serving_api(exporter, Clock(exporter.clock() + 1000)) as asker:
        for path in ("groups", "groups/checkout", "explain/checkout", "findings"):
            error = asker(path, 503)
            valid("/api/v1/groups", error, "503")
            assert error["error"]["clusters"][0]["data_timestamp"] == NOW.isoformat()
            assert "lag" not in json.dumps(error)
        assert asker("clusters")["clusters"][0]["reason"] == "stale"


def test_a_group_of_two_clusters_needs_its_cluster(tmp_path: Path) -> None:
    for name in ("prod", "test"):
        write_batch(
            tmp_path / name,
            42,
            cluster=name,
            partitions=[partition_row("g", "t", 0)],
            groups=[group_row("g")],
        )
    several = Several(tmp_path / "prod", tmp_path / "test")
    several.refresh()
    with serving_api(several) as asker:
        error = asker("groups/g", 400)["error"]
        assert (error["code"], error["choices"]) == ("ambiguous_cluster", ["prod", "test"])
        assert asker("groups/g?cluster=test")["group"]["cluster"] == "test"
        assert [row["cluster"] for row in asker("groups")["groups"]] == ["prod", "test"]


def test_a_table_that_hangs_holds_up_neither_liveness_nor_metrics(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_module, "ANSWER_SECONDS", 0.2)
    go_on = Event()

    def hang(_: Question) -> Answer:
        go_on.wait(60)
        return Answer(b"{}")

    with serving_api(exporter, answers=hang) as asker:
        try:
            for _ in range(3):
                assert asker("groups", 503)["error"]["code"] == "unavailable"
            assert ask(asker.port, "/-/healthy")[0].status == 200
            assert ask(asker.port, "/metrics")[0].status == 200
        finally:
            go_on.set()
        assert comes_true(lambda: asker.raw("groups")[0].status == 200, LIMIT_SECONDS)


def test_no_more_questions_wait_than_may(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_module, "MAX_UNDER_WAY", 0)
    assert MAX_UNDER_WAY == 64
    with serving_api(exporter) as asker:
        assert asker("groups", 429)["error"]["code"] == "too_many_requests"


def test_other_origins_read_it_only_where_they_may(exporter: Exporter, asker: Asker) -> None:
    page = "https://wiki.example.org"
    assert asker.raw("groups", Origin=page)[0].getheader("Access-Control-Allow-Origin") is None
    for origins, expected in (
        ((page,), page),
        (("*",), "*"),
        (("https://other.example.org",), None),
    ):
        with serving_api(exporter, cors_origins=origins) as other:
            answer, _ = other.raw("groups", Origin=page)
            assert answer.getheader("Access-Control-Allow-Origin") == expected
            assert answer.getheader("Vary") == "Accept-Encoding, Origin"


def test_a_browser_is_answered_before_it_sends_a_password(exporter: Exporter, asker: Asker) -> None:
    page = "https://wiki.example.org"
    wanted = {
        "Origin": page,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization",
    }
    assert asker.raw("groups", "OPTIONS", **wanted)[0].status == 405
    web = Web(users=Users({"me": bcrypt.hashpw(b"secret", bcrypt.gensalt(4))}))
    for origins, expected in (
        ((page,), page),
        (("*",), "*"),
        (("https://other.example.org",), None),
    ):
        with serving_api(exporter, cors_origins=origins, web=web) as other:
            answer, body = other.raw("groups", "OPTIONS", **wanted)
            assert (answer.status, body) == (204, b"")
            assert answer.getheader("Access-Control-Allow-Origin") == expected
            allowed = "Authorization, If-None-Match" if expected else None
            assert answer.getheader("Access-Control-Allow-Headers") == allowed
            assert answer.getheader("Access-Control-Allow-Methods") == (
                "GET, HEAD" if expected else None
            )
            refused, _ = other.raw("groups", Origin=page)
            assert (refused.status, refused.getheader("Access-Control-Allow-Origin")) == (
                401,
                expected,
            )
            assert other.raw("groups", "POST", **wanted)[0].status == 405


def test_explain_says_how_many_partitions_are_left_out(asker: Asker) -> None:
    whole, cut = (
        asker("explain/checkout")["explain"],
        asker("explain/checkout?partitions=1")["explain"],
    )
    assert (whole["partitions_left_out"], len(cut["partitions"])) == (0, 1)
    assert cut["partitions"] == whole["partitions"][:1]
    assert cut["partitions_left_out"] == len(whole["partitions"]) - 1 > 0


def test_requests_are_counted_by_their_place_in_the_list(exporter: Exporter) -> None:
    with serving_api(exporter) as asker:
        for path in ("groups", "groups/checkout", "groups/nobody", "explain/checkout", "x"):
            asker.raw(path)
        expected = {
            ("/api/v1/groups", "200"), ("/api/v1/groups/{group}", "200"),
            ("/api/v1/groups/{group}", "404"),
            ("/api/v1/explain/{group}", "200"), ("/api/other", "404"),
        }  # fmt: skip

        def is_counted() -> bool:  # which comes after the client has its answer
            return {key for key, number in asker.stats.requests.items() if number} == expected

        assert comes_true(is_counted, LIMIT_SECONDS)
