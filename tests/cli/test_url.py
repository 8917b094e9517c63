"""With --url a verb asks a running exporter, and prints what it prints from the tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import bcrypt
import pytest

from cli.group_rows import group, members, partitions, rebalance_row
from exporter.api_kit import Asker, serving_api
from exporter.harness import LIMIT_SECONDS, Clock, Exporter, serving
from exporter.pki import make_pki
from laggard.answers.answering import Answering
from laggard.cli.asking import client
from laggard.cli.main import main
from laggard.cli.verbs.status import rebalance_table
from laggard.errors import CONFIGURATION, DENIED, NOT_FOUND, OK, TEMPORARY, UNREACHABLE, USAGE
from laggard.escape import escape_label
from laggard.exporter import api as api_module
from laggard.exporter.web.access import WebFile
from tables.fixtures import (
    NOW,
    batch_row,
    finding_row,
    group_row,
    window_row,
    write_evaluated,
    write_rows,
)

ODD = 'odd/"\\name'


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder without a configuration, and let a busy machine answer late."""
    monkeypatch.setattr(client, "ASK_SECONDS", 2 * LIMIT_SECONDS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api_module, "ANSWER_SECONDS", LIMIT_SECONDS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    facts = {
        "partitions": [2], "started_at": NOW, "opened_at": NOW,
        "evidence": {"drain_seconds": float("inf")},
        "evidence_text": {}, "guards": {}, "falsifier": "the rates are equal", "topic": "orders",
    }  # fmt: skip
    more = {
        "max_time_lag_seconds": 55.0,
        "partitions_total": 4,
        "partitions_material": 3,
        "top_partitions": [2],
    }
    write_evaluated(
        root,
        windows=[window_row("checkout", "orders", **more, flags=[], scale_reason={})],
        findings=[finding_row("CAPACITY_SHORTAGE", name) | facts for name in ("checkout", ODD)],
    )
    tables = {
        "partition_status": partitions(),
        "group_status": [group(), group_row("other"), group_row(ODD, lag=None, lag_known=7)],
        "group_members": members(),
        "rebalances": [rebalance_row()],
        "topic_windows": [],
    }
    versions = {name: write_rows(root, name, rows) for name, rows in tables.items()}
    write_rows(root, "batches", [batch_row(42, versions)])
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


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["status", "--group", "c*", "--limit", "1"],
        ["status", "--sort", "group"],
        ["status", "--rebalances"],
        ["status", "--rebalances", "--group", "*o*", "--limit", "2"],
        ["explain", "checkout"],
        ["explain", "checkout", "--topic", "orders", "--since", "-2h", "--limit", "3"],
        ["explain", ODD],
        ["findings"],
        ["findings", "--open", "--group", "checkout", "--fail-on", "warn"],
        *(
            [*verb, "--fail-on", "page"]
            for verb in (["status"], ["findings"], ["explain", "checkout"], ["explain", ODD])
        ),
        ["explain", "other", "--fail-on", "page"],
        *(
            ["findings", "--group", group, "--code", "IDLE_MEMBERS", "--fail-on", "page"]
            for group in ("checkout", ODD)
        ),
        ["report", "checkout", "--since", "1h", "-o", "-"],
        ["report", escape_label(ODD), "-o", "-"],
        ["report", "--fleet", "-o", "-", "--fail-on", "warn"],
    ],
    ids=" ".join,
)
def test_a_verb_says_the_same(
    root: Path, asker: Asker, capsys: pytest.CaptureFixture[str], words: list[str], is_json: bool
) -> None:
    words = [*words, "--json"] if is_json else words
    code = main([*words, "--set", f"job.tables={root}"])
    # the exporter's clock shows the time of the batch
    old = r'"is_fresh":( ?)false,( ?)"reason":( ?)"stale"'
    fresh = r'"is_fresh":\1true,\2"reason":\3null'
    expected = re.sub(old, fresh, capsys.readouterr().out)
    assert main([*words, "--url", f"http://127.0.0.1:{asker.port}"]) == code
    assert capsys.readouterr().out == expected


def test_a_limit_beyond_what_an_exporter_answers_is_lowered_and_said(
    asker: Asker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "checkout", "--url", f"http://127.0.0.1:{asker.port}"]
    assert main([*words, "--limit", "1000"]) == OK
    whole, said = capsys.readouterr()
    assert said == ""
    assert main([*words, "--limit", "5000"]) == OK
    found, said = capsys.readouterr()
    assert (found, "1,000 rebalances at most" in said) == (whole, True)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["explain", "checkou"], NOT_FOUND, "possible: checkout"),
        (["explain", "checkout", "--topic", "x"], NOT_FOUND, "has no topic"),
        (["status", "--group", "x*"], NOT_FOUND, "no group matches"),
        (["status", "--cluster", "test"], NOT_FOUND, "possible: prod"),
        (["findings", "--since", "99d"], USAGE, "at most 30d"),
        (["status", "--user", "me"], USAGE, "belong together"),
    ],
)
def test_a_failure_says_what_and_ends_with_its_code(
    asker: Asker, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    assert main([*words, "--url", f"http://127.0.0.1:{asker.port}"]) == code
    assert says in capsys.readouterr().err


def test_old_data_and_no_exporter_end_with_codes_of_their_own(
    exporter: Exporter, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_api(exporter, Clock(exporter.clock() + 1000)) as asker:
        assert main(["status", "--url", f"http://127.0.0.1:{asker.port}"]) == TEMPORARY
        assert "prod: stale" in capsys.readouterr().err
    assert main(["status", "--url", f"http://127.0.0.1:{asker.port}"]) == UNREACHABLE
    with serving(exporter.publisher.published) as (port, _):  # without the API
        assert main(["status", "--url", f"http://127.0.0.1:{port}"]) == UNREACHABLE
        assert "has no API" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url", ["localhost:8917", "http://me:secret@localhost", "ftp://x", "http://x?y"]
)
def test_an_address_of_another_form_is_a_wrong_use(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--url", url]) == USAGE
    assert "expected http://host:port" in capsys.readouterr().err


def test_tls_and_a_password_are_those_of_the_web_config_file(
    tmp_path: Path, exporter: Exporter, capsys: pytest.CaptureFixture[str]
) -> None:
    make_pki(tmp_path)
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(
        f"tls_server_config: {{cert_file: server.crt, key_file: server.key}}\nbasic_auth_users: "
        f"{{me: {hashed}}}\n"
    )
    (tmp_path / "right").write_text("right\n")
    (tmp_path / "wrong").write_text("wrong\n")
    for name in ("right", "wrong"):
        (tmp_path / name).chmod(0o600)
    web = WebFile(str(tmp_path / "web.yml")).load()
    with serving(exporter.publisher.published, exporter.clock, web, answers=Answering(60)) as (
        port,
        _,
    ):
        words = ["status", "--url", f"https://localhost:{port}", "--ca-file", "ca.crt"]
        assert main([*words, "--user", "me", "--password-file", "right"]) == OK
        assert "checkout" in capsys.readouterr().out
        assert main([*words, "--user", "me", "--password-file", "wrong"]) == DENIED
        assert main(words) == DENIED
        assert "401 unauthorized" in capsys.readouterr().err
        assert main(words[:3]) == UNREACHABLE
        assert "--ca-file" in capsys.readouterr().err
        assert main([*words[:3], "--ca-file", "none.crt"]) == CONFIGURATION


def test_a_group_whose_rebalances_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [{"group": "whole", "rebalances": None}, {"group": "a\nb", "rebalances": None}]
    assert rebalance_table("", rows, 0)[1] == []
    err = capsys.readouterr().err
    assert (
        err
        == "laggard: 2 groups left out, as the rows of their rebalances cannot be read: a\\x0ab, "
        "whole\n"
    )


def test_a_report_of_a_cluster_chosen_by_a_glob_is_that_of_the_cluster(
    asker: Asker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", "--fleet", "-o", "-", "--url", f"http://127.0.0.1:{asker.port}"]
    assert main(words) == OK
    expected = capsys.readouterr().out
    assert main([*words, "--cluster", "pr*"]) == OK
    assert capsys.readouterr().out == expected
