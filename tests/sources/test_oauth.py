"""Tokens from servers that answer well, badly, slowly or not at all; none of it
shows the secret.
"""

import base64
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from kafka.errors import SaslAuthenticationFailedError

from laggard.config.security import OAuth
from laggard.errors import DENIED, UNREACHABLE, LaggardError
from laggard.sources.login.oauth import MAX_LIFE_SECONDS, Tokens, ask_token
from patience import patient

SECRET, LIMIT = "client-CANARY", 2.0


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65536)
                    answer(connection)
                except OSError:
                    continue

    thread = Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/token"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def saying(body: str | bytes, status: str = "200 OK") -> Callable[[socket.socket], None]:
    raw = body.encode() if isinstance(body, str) else body
    return lambda connection: connection.sendall(
        f"HTTP/1.1 {status}\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw
    )


@pytest.fixture
def client(tmp_path: Path) -> Callable[[str], OAuth]:
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text(SECRET + "\n")
    return lambda url: OAuth(token_url=url, client_id="reader", client_secret_file=str(path))


def jwt(**claims: object) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}.c2ln"


@pytest.mark.parametrize(
    ("answer", "life"),
    [
        ({"access_token": "abc", "expires_in": 100}, 100),
        ({"access_token": "abc", "expires_in": 1e9}, MAX_LIFE_SECONDS),
        # made when it is asked for: tests are collected minutes before
        ({"access_token": jwt, "exp": 600}, 600),
        ({"access_token": jwt(exp="soon"), "expires_in": 5}, 5),
    ],
)
def test_a_token_lives_as_long_as_its_server_says(
    client: Callable[[str], OAuth], answer: dict[str, Any], life: float
) -> None:
    if answer["access_token"] is jwt:
        answer = {"access_token": jwt(exp=time.time() + answer["exp"])}
    with server(saying(json.dumps(answer))) as url:
        asked = time.monotonic()
        token = ask_token(client(url), patient(LIMIT))
    assert token.text == answer["access_token"]
    assert abs(token.ends_at - asked - life) < patient(10)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("", "holds no access_token"),
        ("[]", "holds no access_token"),
        ('{"access_token": 5}', "holds no access_token"),
        ('{"access_token": "a b\\r\\n"}', "holds no access_token"),
        ("[" * 60000, "holds no access_token"),
        ('{"access_token": "abc"}', "no usable expires_in"),
        ('{"access_token": "abc", "expires_in": 1e400}', "no usable expires_in"),
        ('{"access_token": "abc", "expires_in": -1}', "no usable expires_in"),
        ('{"access_token": "abc", "expires_in": NaN}', "no usable expires_in"),
        ('{"access_token": "abc", "expires_in": true}', "no usable expires_in"),
        ('{"access_token": "abc", "expires_in": ' + "9" * 400 + "}", "no usable expires_in"),
        ('{"access_token": "abc", "expires_in": ' + "9" * 5000 + "}", "holds no access_token"),
        ('{"access_token": "' + "a" * 70000 + '", "expires_in": 5}', "larger than 64 KB"),
        (b"\xff\xfe", "holds no access_token"),
    ],
)
def test_an_answer_that_is_no_token_is_a_failure_with_a_name(
    client: Callable[[str], OAuth], body: str | bytes, cause: str
) -> None:
    with server(saying(body)) as url, pytest.raises(LaggardError) as caught:
        ask_token(client(url), patient(LIMIT))
    assert cause in caught.value.cause
    assert caught.value.exit_code == UNREACHABLE


@pytest.mark.parametrize(
    ("status", "body", "cause", "code"),
    [
        (
            "401 Unauthorized",
            '{"error": "invalid_client", "error_description": "%s"}',
            "401 (invalid_client)",
            DENIED,
        ),
        ("401 Unauthorized", '{"error": "%s"}', "status 401", DENIED),
        ("400 Bad Request", "%s", "status 400", DENIED),
        ("302 Found", "", "status 302", UNREACHABLE),
        ("500 %s", "", "status 500", UNREACHABLE),
    ],
)
def test_a_refusal_is_distinguished_from_a_server_in_trouble_and_repeats_nothing(
    client: Callable[[str], OAuth], status: str, body: str, cause: str, code: int
) -> None:
    way = saying(body.replace("%s", SECRET), status.replace("%s", SECRET))
    with server(way) as url, pytest.raises(LaggardError) as caught:
        ask_token(client(url), patient(LIMIT))
    assert caught.value.cause.endswith(cause)
    assert caught.value.exit_code == code
    assert SECRET not in str(caught.value)


def test_a_token_that_is_over_by_our_clock_names_the_clocks(client: Callable[[str], OAuth]) -> None:
    answer = {"access_token": jwt(exp=time.time() - 3600), "expires_in": 300}
    with (
        server(saying(json.dumps(answer))) as url,
        pytest.raises(LaggardError, match="no token from") as caught,
    ):
        ask_token(client(url), patient(LIMIT))
    assert "expired 36" in caught.value.cause
    assert "NTP" in caught.value.fix
    assert caught.value.exit_code == DENIED


@pytest.mark.full
def test_a_server_that_drips_or_is_silent_is_given_up_in_time(
    client: Callable[[str], OAuth],
) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(1000):
            connection.sendall(b"X-A: b\r\n")
            time.sleep(0.1)

    for way in (drip, lambda _: time.sleep(LIMIT + 1)):
        with server(way) as url:
            started = time.monotonic()
            with pytest.raises(LaggardError) as caught:
                ask_token(client(url), LIMIT)
            assert time.monotonic() - started < patient(LIMIT)
        assert caught.value.exit_code == UNREACHABLE


def test_the_token_is_kept_renewed_in_time_and_never_given_when_it_is_over(
    client: Callable[[str], OAuth],
) -> None:
    lives = [0.4, 3600]

    def give(connection: socket.socket) -> None:
        answer = {"access_token": f"t{len(lives)}", "expires_in": lives.pop(0)}
        saying(json.dumps(answer))(connection)

    with server(give) as url:
        tokens = Tokens(client(url), patient(LIMIT))
        with pytest.raises(SaslAuthenticationFailedError):
            tokens.token()
        tokens.renew()
        first_asked = len(lives)
        time.sleep(0.5)
        with pytest.raises(SaslAuthenticationFailedError):
            tokens.token()
        tokens.renew()
        tokens.renew()
        assert (first_asked, tokens.token()) == (1, "t1")


def test_an_old_token_serves_while_no_new_one_can_be_had(client: Callable[[str], OAuth]) -> None:
    with server(saying('{"access_token": "abc", "expires_in": 100}')) as url:
        tokens = Tokens(client(url), patient(LIMIT))
        tokens.renew()
    object.__setattr__(tokens._token, "renew_at", 0.0)
    tokens.renew()
    assert tokens.token() == "abc"
    object.__setattr__(tokens._token, "ends_at", 0.0)
    started = time.monotonic()
    with pytest.raises(LaggardError):
        tokens.renew()
    with pytest.raises(LaggardError):
        tokens.renew()
    assert time.monotonic() - started < patient(1)  # the server is not asked again each time
