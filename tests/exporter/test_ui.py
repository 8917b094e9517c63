"""The page as the server sends it: a few files under a policy that lets them ask nobody else."""

from __future__ import annotations

import gzip
import re

import pytest

from exporter.harness import Clock, ask, serving
from laggard.exporter.api import Answer
from laggard.exporter.published import Published
from laggard.exporter.ui.files import UI, UI_ANSWERS, ui_files
from laggard.exporter.web.access import Web

HERE = {"answers": lambda _: Answer(b"{}")}


@pytest.fixture(scope="module")
def published() -> Published:
    return Published({}, ())


def test_every_file_is_served_zipped_or_plain(published: Published) -> None:
    with serving(published, **HERE) as (port, stats):
        for path, file in ui_files().items():
            answer, body = ask(port, path)
            zipped, packed = ask(port, path, Accept_Encoding="gzip")
            assert (answer.status, body) == (200, file.plain)
            assert gzip.decompress(packed) == body
            assert answer.getheader("Content-Type") == file.content_type
            again, nothing = ask(port, path, If_None_Match=answer.getheader("Etag"))
            assert (again.status, nothing, zipped.getheader("Etag")) == (
                304,
                b"",
                answer.getheader("Etag"),
            )
        for path in ("/ui/none", "/ui/../server.py", "/ui/files.py"):
            assert ask(port, path)[0].status == 404
        assert {path for path, _ in +stats.requests} == {UI}
        answer, _ = ask(port, "/ui/")  # as files are asked for beside the page
        assert (answer.status, answer.getheader("Location")) == (308, "../ui")


def test_the_page_may_ask_nobody_else(published: Published) -> None:
    with serving(published, **HERE) as (port, _):
        policy = ask(port, UI)[0].getheader("Content-Security-Policy")
    rules = dict(each.split(" ", 1) for each in policy.split("; "))
    own, none = "'self'", "'none'"
    assert rules == {
        "default-src": none, "base-uri": none, "form-action": none, "frame-ancestors": none,
        "script-src": own, "style-src": own, "img-src": own, "connect-src": own,
        "require-trusted-types-for": "'script'",
    }  # fmt: skip
    for path, file in ui_files().items():
        text = file.plain.decode()
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), path
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(| style=| on\w+=\"", text
        ), path


def test_the_page_knows_what_to_put_before_the_path_of_a_runbook(published: Published) -> None:
    assert b'<meta name="runbook-base" content="">' in ui_files()[UI].plain
    base = 'https://git.example.org/a"b/'
    with serving(published, **HERE, runbook_base=base) as (port, _):
        assert b'content="https://git.example.org/a&quot;b/"' in ask(port, UI)[1]


def test_the_page_weighs_little() -> None:
    assert sum(len(file.plain) for file in ui_files().values()) <= 150_000


def test_without_the_api_there_is_no_page(published: Published) -> None:
    with serving(published) as (port, stats):
        assert ask(port, UI)[0].status == 404
        landing = ask(port, "/")[1]
        assert b"ui" not in landing
        assert b"api" not in landing
        assert not any(path == UI for path, _ in stats.requests)


def test_the_landing_page_leads_to_it_and_to_the_api(published: Published) -> None:
    with serving(published, **HERE) as (port, _):
        landing = ask(port, "/")[1]
        for link in (b"ui", b"api/v1/groups", b"api/v1/openapi.json"):
            assert b'<a href="%s">' % link in landing


def test_the_page_asks_for_the_password(published: Published) -> None:
    from laggard.exporter.web.users import Users

    with serving(published, Clock(), Web(users=Users({"me": "$2y$04$" + "a" * 53})), **HERE) as (
        port,
        _,
    ):
        for path in (UI, "/ui/app.js"):
            assert ask(port, path)[0].status == 401


def test_every_answer_is_counted_from_the_start(published: Published) -> None:
    with serving(published, **HERE) as (port, stats):
        assert {(UI, str(code)) for code in UI_ANSWERS[UI]} <= set(stats.requests)
        for method in ("GET", "HEAD", "POST"):
            ask(port, UI, method)
            ask(port, "/ui/none", method)
        ask(port, UI, body=b"body")
        ask(port, UI, X="a" * 10_000)
        assert {path for path, _ in +stats.requests} == {UI}
