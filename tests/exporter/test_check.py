"""`laggard export --check`: an answer is life, a socket is not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from exporter.harness import Clock, Exporter, serving
from exporter.pki import make_pki
from exporter.web_fixtures import TLS
from laggard.cli.main import main
from laggard.cli.verbs import export as checking
from laggard.cli.verbs.export import check
from laggard.exporter.published import Published
from laggard.exporter.web.access import Web, WebFile
from patience import patient
from tables.fixtures import partition_row, write_batch

MUTUAL = f"{TLS}  client_ca_file: ca.crt\n  client_auth_type: RequireAndVerifyClientCert\n"


@pytest.fixture(autouse=True)
def on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "ASK_SECONDS", patient(checking.ASK_SECONDS))


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("tables")
    write_batch(root, 42, partitions=[partition_row("g", "t", 0)])
    return Exporter(root).refresh()


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pki(tmp_path_factory.mktemp("pki"))


def load(pki: Path, text: str) -> Web:
    (pki / "web.yml").write_text(text, encoding="utf-8")
    return WebFile(str(pki / "web.yml")).load()


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """A socket that says this to everybody, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(data)

        Thread(target=run, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def test_an_exporter_that_answers_is_live(published: Published) -> None:
    with serving(published) as (port, _):
        assert check(f"127.0.0.1:{port}", ready=False, tls_first=False) == (
            True,
            "it answers 200: ok",
        )


def test_ready_is_asked_for_by_its_own_path(published: Published) -> None:
    with serving(published) as (port, _):
        assert check(f"127.0.0.1:{port}", ready=True, tls_first=False) == (
            True,
            "it answers 200: prod: ready",
        )
    with serving(published, Clock(Clock().now + 3600)) as (port, _):
        is_ready, why = check(f"127.0.0.1:{port}", ready=True, tls_first=False)
    assert not is_ready
    assert why.startswith("it answers 503: prod: ")


def test_an_exporter_with_tls_is_asked_by_tls(pki: Path, published: Published) -> None:
    with serving(published, web=load(pki, TLS)) as (port, stats):
        assert check(f"127.0.0.1:{port}", ready=True, tls_first=True) == (
            True,
            "it answers 200: prod: ready",
        )
        assert stats.refused["tls"] == 0


@pytest.mark.full
def test_an_exporter_without_tls_in_its_web_config_is_asked_without(
    pki: Path, published: Published
) -> None:
    with serving(published, web=load(pki, "{}")) as (port, _):
        assert check(f"127.0.0.1:{port}", ready=False, tls_first=True) == (
            True,
            "it answers 200: ok",
        )


@pytest.mark.parametrize("version", ["TLS12", "TLS13"])  # in the handshake, or after it
def test_an_exporter_that_wants_a_client_certificate_is_live_and_its_readiness_unknown(
    pki: Path, published: Published, version: str
) -> None:
    with serving(published, web=load(pki, f"{MUTUAL}  max_version: {version}\n")) as (port, _):
        is_live, why = check(f"127.0.0.1:{port}", ready=False, tls_first=True)
        is_ready, _ = check(f"127.0.0.1:{port}", ready=True, tls_first=True)
    assert (is_live, is_ready) == (True, False)
    assert why.startswith("it speaks TLS and wants a client certificate")


@pytest.mark.parametrize("data", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 500 no\r\n\r\n"])
def test_a_socket_that_closes_or_says_something_else_is_not_live(data: bytes) -> None:
    with answering(data) as listen:
        for tls_first in (False, True):
            assert not check(listen, ready=False, tls_first=tls_first)[0]


def test_nobody_listening_is_not_live(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert main(["export", "--check", "--listen", f"0.0.0.0:{port}"]) == 1
    assert capsys.readouterr().out.startswith(f"no answer from 127.0.0.1:{port}: HTTP: ")
