"""Tokens by the client credentials grant of OAuth 2, asked for before they are needed."""

from __future__ import annotations

import base64
import json
import re
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import urlencode, urlsplit

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from laggard.errors import DENIED, UNREACHABLE, LaggardError
from laggard.secret_files import Secret, read_password

if TYPE_CHECKING:
    from collections.abc import Callable

    from laggard.config.security import OAuth

MAX_ANSWER_BYTES = 64 * 1024
MAX_LIFE_SECONDS = 30 * 86400
AGAIN_SECONDS = 5.0  # after a failure: a poll asks several times
RENEW_SHARE = 0.5  # of its life: then a new token is asked for, while the old one still serves
_FIX = "check [cluster.security.oauth], and the log of the token server"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True, slots=True)
class Token:
    """A token; its times are by the monotonic clock."""

    text: Secret
    renew_at: float
    ends_at: float


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python carries no types
    """Provider of the token that kafka-python asks for.

    `renew` is called where waiting holds up no other request.
    """

    def __init__(self, oauth: OAuth, seconds: float) -> None:
        self._oauth = oauth
        self._seconds = seconds
        self._token: Token | None = None
        self._failure: LaggardError | None = None
        self._failed_at = 0.0

    def renew(self) -> None:
        """Ask for a token unless the current one is fresh; an old one serves if that fails."""
        now = time.monotonic()
        if self._token is not None and now < self._token.renew_at:
            return
        if self._failure is None or now >= self._failed_at + AGAIN_SECONDS:
            try:
                self._token, self._failure = ask_token(self._oauth, self._seconds), None
            except LaggardError as error:
                self._failure, self._failed_at = error, time.monotonic()
        if self._failure is not None and (self._token is None or now >= self._token.ends_at):
            raise self._failure

    def token(self) -> Secret:
        """Return the present token without waiting.

        This runs in the thread of all connections, which must not wait.
        """
        if self._token is None or time.monotonic() >= self._token.ends_at:
            raise SaslAuthenticationFailedError(
                "the token has expired and the token server gave no other"
            )
        return self._token.text


def ask_token(oauth: OAuth, seconds: float) -> Token:
    """Request one token; it takes at most `seconds`, from name look-up to the last byte."""
    secret = read_password(oauth.client_secret_file, "cluster.security.oauth.client_secret_file")
    context = trusting(oauth.ca_file, "cluster.security.oauth.ca_file")
    login = base64.b64encode(f"{oauth.client_id}:{secret}".encode()).decode("ascii")
    asked = time.monotonic()
    status, body = _within(seconds, oauth, lambda: _request(oauth, login, context, seconds))
    if status != 200:
        code = DENIED if status in (400, 401, 403) else UNREACHABLE
        raise _failed(oauth, f"it answered with status {status}{_reason(body)}", code)
    return _token_of(oauth, body, asked)


def trusting(ca_file: str, key: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates of a file, else those of the machine."""
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        what = f"cannot use {ca_file}"
        fix = f"{key} is to name a file of certificates in PEM that this user can read"
        raise LaggardError(
            what, cause=f"{key}: {error.strerror or error}", fix=fix, exit_code=DENIED
        ) from error


def _within(seconds: float, oauth: OAuth, start: Callable[[], _Request]) -> tuple[int, bytes]:
    """Run a request in its own thread and return the answer.

    A server may send a byte now and then for ever.
    """
    request = start()
    thread = Thread(target=request.run, name="token", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        request.cut()
        raise _failed(oauth, f"no whole answer within {seconds:g} s", UNREACHABLE)
    if request.error is not None:
        is_untrusted = isinstance(request.error, ssl.SSLCertVerificationError)
        raise _failed(oauth, _words(request.error), DENIED if is_untrusted else UNREACHABLE)
    return request.status, request.body


class _Request:
    def __init__(
        self, connection: HTTPConnection, path: str, body: str, headers: dict[str, str]
    ) -> None:
        self._connection, self._path, self._body, self._headers = connection, path, body, headers
        self.status, self.body = 0, b""
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self._connection.request("POST", self._path, self._body, self._headers)
            response = self._connection.getresponse()
            self.status, self.body = response.status, response.read(MAX_ANSWER_BYTES + 1)
        except (OSError, HTTPException, ValueError) as error:
            self.error = error
        finally:
            self._connection.close()

    def cut(self) -> None:
        with suppress(OSError, AttributeError):  # closed, or not open yet
            self._connection.sock.shutdown(socket.SHUT_RDWR)


def _request(oauth: OAuth, login: str, context: ssl.SSLContext, seconds: float) -> _Request:
    parts = urlsplit(oauth.token_url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        connection: HTTPConnection = HTTPSConnection(
            host, parts.port, timeout=seconds, context=context
        )
    else:
        connection = HTTPConnection(host, parts.port, timeout=seconds)
    fields = {"grant_type": "client_credentials"}
    if oauth.scope:
        fields["scope"] = oauth.scope
    headers = {
        "Authorization": f"Basic {login}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return _Request(connection, path, urlencode(fields), headers)


def _token_of(oauth: OAuth, body: bytes, asked: float) -> Token:
    if len(body) > MAX_ANSWER_BYTES:
        raise _failed(
            oauth, f"its answer is larger than {MAX_ANSWER_BYTES // 1024} KB", UNREACHABLE
        )
    answer = _json(body)
    text = answer.get("access_token")
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise _failed(oauth, "its answer holds no access_token", UNREACHABLE)
    ends_at = _claims(text).get("exp")
    if is_number(ends_at) and ends_at <= (now := time.time()):
        cause = f"its token expired {now - ends_at:.0f} s ago by this machine's clock"
        raise _failed(
            oauth,
            cause,
            DENIED,
            fix="synchronise the clocks of this machine and of the token server by NTP",
        )
    life = answer.get("expires_in")
    if life is None and is_number(ends_at):  # the field is only recommended (RFC 6749, 5.1)
        life = ends_at - time.time()
    if not is_number(life) or life <= 0:
        raise _failed(oauth, "its answer holds no usable expires_in", UNREACHABLE)
    seconds = min(float(life), MAX_LIFE_SECONDS)
    return Token(Secret(text), asked + RENEW_SHARE * seconds, asked + seconds)


def is_number(value: Any) -> TypeGuard[float]:
    """Return True if a JSON value is a number in a reasonable range.

    1e400 is infinite, and an integer has no limit.
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e15 < value < 1e15


def _json(raw: bytes) -> dict[str, Any]:
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    if isinstance(document, dict):
        return document
    return {}


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a token that is a JWT; it is the broker that checks its signature."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        return _json(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}


def _reason(body: bytes) -> str:
    """Return the error code of RFC 6749 only, as the rest could repeat data that we sent."""
    code = _json(body[: MAX_ANSWER_BYTES + 1]).get("error")
    if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code):
        return f" ({code})"
    return ""


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    return getattr(error, "strerror", None) or type(error).__name__


def _failed(oauth: OAuth, cause: str, code: int, fix: str = _FIX) -> LaggardError:
    return LaggardError(f"no token from {oauth.token_url}", cause=cause, fix=fix, exit_code=code)
