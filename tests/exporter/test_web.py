"""TLS, passwords and rate limit over real sockets, and a process that follows its
web-config file.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import bcrypt
import pytest

from demo.processes import comes_true
from exporter.harness import LIMIT_SECONDS, Exporter, ask, serving
from exporter.pki import make_pki
from exporter.stops import REPOSITORY
from exporter.web_fixtures import TLS
from laggard.exporter.published import Published
from laggard.exporter.web.access import Web, WebFile
from laggard.exporter.web.users import MAX_PER_ADDRESS, MAX_UNDER_WAY, Authenticator, Busy, Users
from patience import patient
from tables.fixtures import partition_row, write_batch

MUTUAL = f"{TLS}  client_ca_file: ca.crt\n  client_auth_type: "


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("tables")
    write_batch(root, 42, partitions=[partition_row("g", "t", n) for n in range(2000)])
    return Exporter(root, partition_top_k=2000).refresh()


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pki(tmp_path_factory.mktemp("pki"))


def load(pki: Path, text: str) -> Web:
    path = pki / "web.yml"
    path.write_text(text, encoding="utf-8")
    return WebFile(str(path)).load()


def trusting(pki: Path, client: str = "") -> ssl.SSLContext:
    """A client's context that trusts the tests' authority; with a certificate of its own if one is
    named.
    """
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    if client:
        context.load_cert_chain(pki / f"{client}.crt", pki / f"{client}.key")
    return context


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def hashed(password: str, cost: int = 4) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


def test_tls_serves_the_same_body(pki: Path, published: Published) -> None:
    with serving(published, web=load(pki, TLS)) as (port, stats):
        answer, body = ask(port, tls=trusting(pki))
        assert (answer.status, len(body)) == (200, int(answer.getheader("Content-Length") or 0))
        assert b"laggard_partition_lag_records{" in body
    assert +stats.refused == {}


def test_a_client_without_tls_is_counted_and_one_that_only_connects_is_not(
    pki: Path, published: Published
) -> None:
    with serving(published, web=load(pki, TLS)) as (port, stats):
        for _ in range(3):
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS).close()
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(port, "/-/healthy")
        assert comes_true(lambda: +stats.refused == {"tls": 1}, LIMIT_SECONDS)
        assert comes_true(lambda: stats.connections == 0, LIMIT_SECONDS)


@pytest.mark.parametrize(
    ("mode", "client", "is_served"),
    [
        ("RequireAndVerifyClientCert", "client", True),
        ("RequireAndVerifyClientCert", "", False),
        ("RequireAndVerifyClientCert", "stranger", False),
        ("VerifyClientCertIfGiven", "client", True),
        ("VerifyClientCertIfGiven", "", True),
        ("VerifyClientCertIfGiven", "stranger", False),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/-/healthy"])
def test_a_client_certificate_is_required_and_verified(
    pki: Path, published: Published, mode: str, client: str, is_served: bool, path: str
) -> None:
    with serving(published, web=load(pki, MUTUAL + mode)) as (port, stats):
        if is_served:
            assert ask(port, path, tls=trusting(pki, client))[0].status == 200
        else:
            with pytest.raises((http.client.HTTPException, OSError)):
                ask(port, path, tls=trusting(pki, client))
            assert comes_true(lambda: stats.refused["tls"] == 1, LIMIT_SECONDS)


@pytest.mark.parametrize(
    ("name", "client", "is_served"),
    [
        ("prometheus.example.org", "client", True),
        ("::1", "client", True),
        ("spiffe://example.org/p", "client", True),
        ("p@example.org", "client", True),
        ("prometheus.example.org", "other", False),
        ("example.org", "client", False),
    ],
)
def test_a_client_certificate_must_have_an_allowed_name(
    pki: Path, published: Published, name: str, client: str, is_served: bool
) -> None:
    text = f'{MUTUAL}RequireAndVerifyClientCert\n  client_allowed_sans: ["{name}"]\n'
    with serving(published, web=load(pki, text)) as (port, stats):
        if is_served:
            assert ask(port, tls=trusting(pki, client))[0].status == 200
        else:
            with pytest.raises((http.client.HTTPException, OSError)):
                ask(port, "/-/healthy", tls=trusting(pki, client))
        assert stats.refused["client_name"] == (not is_served)
        # by then a request is counted
        assert comes_true(lambda: stats.connections == 0, LIMIT_SECONDS)
        assert sum(stats.requests.values()) == is_served


@pytest.mark.parametrize(
    ("setting", "offered", "is_served"),
    [
        ("min_version: TLS13", ssl.TLSVersion.TLSv1_2, False),
        ("min_version: TLS13", ssl.TLSVersion.TLSv1_3, True),
        ("max_version: TLS12", ssl.TLSVersion.TLSv1_3, False),
        ("cipher_suites: [TLS_AES_128_GCM_SHA256]", ssl.TLSVersion.TLSv1_2, False),
    ],
)
def test_versions_are_kept(
    pki: Path, published: Published, setting: str, offered: ssl.TLSVersion, is_served: bool
) -> None:
    context = trusting(pki)
    context.minimum_version = context.maximum_version = offered
    with serving(published, web=load(pki, f"{TLS}  {setting}\n")) as (port, _):
        if is_served:
            assert ask(port, tls=context)[0].status == 200
        else:
            with pytest.raises(OSError, match=r"(?i)alert|version|handshake"):
                ask(port, tls=context)


def test_cipher_and_curve_are_those_of_the_file(pki: Path, published: Published) -> None:
    text = (
        f"{TLS}  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"
        "  curve_preferences: [CurveP521]\n  max_version: TLS12\n"
    )
    with (
        serving(published, web=load(pki, text)) as (port, _),
        socket.create_connection(("127.0.0.1", port)) as plain,
        trusting(pki).wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        assert (connection.cipher() or ("",))[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    other = trusting(pki)
    other.set_ecdh_curve("prime256v1")
    with (
        serving(published, web=load(pki, text)) as (port, _),
        pytest.raises(OSError, match=r"(?i)alert|handshake"),
    ):
        ask(port, tls=other)


def test_every_path_but_health_asks_for_the_password(pki: Path, published: Published) -> None:
    web = load(pki, f"basic_auth_users:\n  prometheus: {hashed('secret')}\n")
    good = basic("prometheus", "secret")
    with serving(published, web=web) as (port, stats):
        without = {
            path: ask(port, path)[0].status
            for path in ("/metrics", "/", "/nowhere", "/-/healthy", "/-/ready")
        }
        answer, body = ask(port)
        allowed = {
            path: ask(port, path, Authorization=good)[0].status
            for path in ("/metrics", "/", "/nowhere")
        }
    assert without == {
        "/metrics": 401,
        "/": 401,
        "/nowhere": 401,
        "/-/healthy": 200,
        "/-/ready": 200,
    }
    assert (answer.getheader("WWW-Authenticate"), body) == (
        'Basic realm="laggard"',
        b"401 Unauthorized\n",
    )
    assert allowed == {"/metrics": 200, "/": 200, "/nowhere": 404}
    assert stats.requests["/metrics", "401"] == 2


@pytest.mark.parametrize(
    "header",
    [
        basic("prometheus", "wrong"),
        basic("nobody", "secret"),
        basic("", ""),
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"prometheus").decode(),
        "Bearer " + base64.b64encode(b"prometheus:secret").decode(),
        basic("prometheus", "secret") + "x",
        basic("prometheus", "a\0b"),
        basic("prometheus", "x" * 4000),
    ],
)
def test_a_wrong_password_is_refused(pki: Path, published: Published, header: str) -> None:
    with serving(
        published, web=load(pki, f"basic_auth_users:\n  prometheus: {hashed('secret')}\n")
    ) as (port, _):
        assert ask(port, Authorization=header)[0].status == 401


def test_a_password_may_be_long_and_a_user_foreign(pki: Path, published: Published) -> None:
    text = f"basic_auth_users:\n  jürgen: {hashed('x' * 72)}\n"
    with serving(published, web=load(pki, text)) as (port, _):
        # as htpasswd and Go: 72 count
        assert ask(port, Authorization=basic("jürgen", "x" * 100))[0].status == 200


def test_unknown_users_and_wrong_passwords_take_equally_many_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounds: list[int] = []

    def checkpw(_: bytes, hash_: bytes) -> bool:
        rounds.append(2 ** int(hash_[4:6]))
        return False

    users = Users({"cheap": hashed("a", 4).encode(), "dear": hashed("b", 7).encode()})
    monkeypatch.setattr(bcrypt, "checkpw", checkpw)
    spent = []
    for user in (b"cheap", b"dear", b"nobody"):
        rounds.clear()
        users.check(user, b"wrong")
        spent.append(sum(rounds))
    assert spent == [2**7] * 3


def test_a_right_password_is_computed_once() -> None:
    users = Users({"a": hashed("secret").encode()})
    assert not users.is_known(b"a", b"secret")
    assert users.check(b"a", b"secret")
    assert users.is_known(b"a", b"secret")
    assert not users.check(b"a", b"wrong")
    assert not users.is_known(b"a", b"wrong")


def test_passwords_under_way_are_bounded_in_all_and_for_each_address() -> None:
    users = Users({"a": hashed("secret", 12).encode()})

    async def ask_many(addresses: int, each: int) -> list[object]:
        authenticator = Authenticator()
        try:
            checks = [
                authenticator.admits(users, basic("a", f"{n} {m}"), f"10.0.0.{n}", lambda: False)
                for n in range(addresses)
                for m in range(each)
            ]
            return await asyncio.gather(*checks, return_exceptions=True)
        finally:
            authenticator.close()

    for addresses, each, taken in ((1, 40, MAX_PER_ADDRESS), (10, 10, MAX_UNDER_WAY)):
        found = asyncio.run(ask_many(addresses, each))
        # nothing is computed: no client waits
        assert sum(result is False for result in found) == taken
        assert sum(isinstance(result, Busy) for result in found) == addresses * each - taken


def test_headers_of_the_file_are_in_every_answer(pki: Path, published: Published) -> None:
    text = (
        "http_server_config:\n  headers:\n    Strict-Transport-Security: max-age=1\n    "
        "X-Frame-Options: deny\n"
        f"    Content-Security-Policy: ''\nbasic_auth_users:\n  a: {hashed('b')}\n"
    )
    with serving(published, web=load(pki, text)) as (port, _):
        answers = [ask(port, "/-/healthy"), ask(port), ask(port, method="POST")]
    for answer, _ in answers:
        assert answer.getheader("Strict-Transport-Security") == "max-age=1"
        assert answer.getheader("X-Frame-Options") == "deny"
        assert answer.getheader("Content-Security-Policy") is None


def test_requests_beyond_the_rate_limit_get_429_but_health_does_not(
    pki: Path, published: Published
) -> None:
    with serving(published, web=load(pki, "rate_limit: {interval: 1h, burst: 3}\n")) as (
        port,
        stats,
    ):
        found = [ask(port)[0].status for _ in range(5)]
        health = [ask(port, path)[0].status for path in ("/-/healthy", "/-/ready")]
    assert (found, health) == ([200] * 3 + [429] * 2, [200, 200])
    assert stats.requests["/metrics", "429"] == 2


@pytest.mark.full
def test_guesses_beyond_the_limit_get_429_and_do_not_stop_a_known_client(
    pki: Path, published: Published
) -> None:
    web = load(pki, f"basic_auth_users:\n  prometheus: {hashed('secret', 11)}\n")
    good = basic("prometheus", "secret")
    with (
        serving(published, web=web, response_seconds=2 * LIMIT_SECONDS) as (port, _),
        ThreadPoolExecutor(40) as pool,
    ):
        assert ask(port, Authorization=good)[0].status == 200
        guesses = [
            pool.submit(ask, port, Authorization=basic("prometheus", str(n))) for n in range(40)
        ]
        known = [ask(port, Authorization=good)[0].status for _ in range(5)]
        codes = {guess.result()[0].status for guess in guesses}
    assert known == [200] * 5
    assert codes == {401, 429}
    assert MAX_PER_ADDRESS < MAX_UNDER_WAY


def test_silent_tls_clients_and_half_open_ones_delay_nobody_and_are_closed(
    pki: Path, published: Published
) -> None:
    context = trusting(pki)
    with (
        serving(published, web=load(pki, TLS), header_seconds=1.0) as (port, stats),
        ExitStack() as stack,
    ):
        silent = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(10)
        ]
        for connection in silent[:5]:
            connection.sendall(b"\x16\x03\x01")  # the begin of a handshake
        for _ in range(90):
            half = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            half = stack.enter_context(context.wrap_socket(half, server_hostname="localhost"))
            half.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        assert ask(port, "/-/healthy", tls=context)[0].status == 200
        assert comes_true(lambda: stats.connections == 0, LIMIT_SECONDS)
        assert silent[0].recv(1) == b""


@contextmanager
def exporter(root: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """The real process; its port and the line it begins with."""
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "laggard",
            "--set",
            f"job.tables={root}",
            "export",
            "--listen",
            "127.0.0.1:0",
            *words,
        ],
        env={"PYTHONPATH": str(REPOSITORY / "lib"), "PATH": "/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            port = int(line.split("127.0.0.1:")[1].split("/")[0]) if "127.0.0.1:" in line else 0
            yield process, port, line
        finally:
            process.kill()


@pytest.mark.full
def test_a_process_follows_its_file_without_a_restart(pki: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(pki, tmp_path / "web"))
    path = folder / "web.yml"
    path.write_text(TLS, encoding="utf-8")

    def serves(tls: ssl.SSLContext | None, expected: int, **headers: str) -> bool:
        with suppress(http.client.HTTPException, OSError):
            return ask(port, tls=tls, **headers)[0].status == expected
        return False

    with exporter(tmp_path / "none", "--web.config.file", str(path)) as (process, port, line):
        assert "https://" in line
        assert serves(trusting(pki), 200)
        path.write_text(f"{TLS}basic_auth_users: {{a: {hashed('b')}}}\n", encoding="utf-8")
        assert comes_true(lambda: serves(trusting(pki), 401), LIMIT_SECONDS)
        assert serves(trusting(pki), 200, Authorization=basic("a", "b"))
        path.write_text(f"{MUTUAL}RequireAndVerifyClientCert\n", encoding="utf-8")
        assert comes_true(lambda: not serves(trusting(pki), 401), LIMIT_SECONDS)
        assert comes_true(lambda: serves(trusting(pki, "client"), 200), LIMIT_SECONDS)
        path.write_text("{}\n", encoding="utf-8")
        assert comes_true(lambda: serves(None, 200), LIMIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(patient(5)) == 0


@pytest.mark.full
def test_a_connection_of_another_time_is_closed_when_the_access_changes(
    pki: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(pki, tmp_path / "web"))
    path = folder / "web.yml"
    path.write_text(TLS, encoding="utf-8")
    with exporter(tmp_path / "none", "--web.config.file", str(path)) as (_, port, _):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=LIMIT_SECONDS, context=trusting(pki)
        )
        connection.connect()
        path.write_text(f"{MUTUAL}RequireAndVerifyClientCert\n", encoding="utf-8")

        def is_closed() -> bool:
            try:
                connection.request("GET", "/-/healthy")
                connection.getresponse().read()
            except (http.client.HTTPException, OSError):
                return True
            return False

        connection.auto_open = 0
        assert comes_true(is_closed, LIMIT_SECONDS)


def test_clients_that_fail_at_tls_write_no_line_into_the_log(pki: Path, tmp_path: Path) -> None:
    path = pki / "log.yml"
    path.write_text(TLS, encoding="utf-8")
    with exporter(tmp_path / "none", "--web.config.file", str(path)) as (process, port, _):
        for _ in range(5):
            with pytest.raises((http.client.HTTPException, OSError)):
                ask(port)
        body = ask(port, tls=trusting(pki))[1]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=LIMIT_SECONDS)
    assert b"laggard_exporter_web_config_current 1.0" in body
    assert "SSL" not in log


@pytest.mark.full
def test_a_flood_of_guesses_does_not_hold_up_the_end(pki: Path, tmp_path: Path) -> None:
    path = pki / "flood.yml"
    path.write_text(f"basic_auth_users:\n  prometheus: {hashed('secret', 13)}\n", encoding="utf-8")
    with (
        exporter(tmp_path / "none", "--web.config.file", str(path)) as (process, port, _),
        ExitStack() as stack,
    ):
        for n in range(40):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            header = basic("prometheus", str(n))
            connection.sendall(
                f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: {header}\r\n\r\n".encode()
            )
        assert ask(port, "/-/healthy")[0].status == 200
        began = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        assert process.wait(patient(5)) == 0
        print(f"ended after {time.perf_counter() - began:.2f} s")


@pytest.mark.full
@pytest.mark.parametrize("text", ["nothing: 1\n", None])
def test_a_process_with_a_file_that_does_not_do_says_so_and_ends(
    tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "web.yml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with exporter(tmp_path / "none", "--web.config.file", str(path)) as (process, _, line):
        rest = process.stderr.read() if process.stderr else ""
        assert process.wait(LIMIT_SECONDS) == 78
    assert line == "laggard: the web-config file is refused\n"
    assert rest.startswith(f"cause: {path}:")
    assert "\nfix: " in rest
