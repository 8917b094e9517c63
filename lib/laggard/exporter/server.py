"""Answers to requests: stored bytes from one event loop, without table reads or formatting."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tornado.httputil import HTTPHeaders
from tornado.iostream import IOStream, StreamClosedError
from tornado.web import Finish, HTTPError, RequestHandler, stream_request_body

from laggard import __version__
from laggard.escape import escape_label
from laggard.exporter.api import API_ANSWERS, Api
from laggard.exporter.body.negotiate import choose_format, wants_gzip
from laggard.exporter.collectors.own import SelfStats
from laggard.exporter.options import ExporterOptions
from laggard.exporter.published import Published
from laggard.exporter.ui.files import UI_ANSWERS
from laggard.exporter.web.access import Web

if TYPE_CHECKING:
    from laggard.exporter.web.users import Authenticator, Users

PATHS = ("/metrics", "/-/healthy", "/healthz", "/-/ready", "/readyz", "/")
# ask for no password and count for no rate limit
OPEN_PATHS = ("/-/healthy", "/healthz", "/-/ready", "/readyz")
_REFUSED = (405, 413, 431)
_PROTECTED = (401, 429)  # where there is a web-config file
ANSWERS = {  # path to the codes that it can answer with
    **dict.fromkeys(PATHS, (200, *_REFUSED)),
    **dict.fromkeys(("/-/ready", "/readyz"), (200, 503, *_REFUSED)),
    "other": (404, *_REFUSED),
}
MAX_HEADER_BYTES = 8192
_DRAIN_STEP_SECONDS = 0.05
_LANDING = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>laggard</title></head>
<body><h1>laggard {__version__}</h1>
<ul>
%s</ul>
</body></html>
"""
_API_LINKS = ("ui", "api/v1/groups", "api/v1/findings", "api/v1/openapi.json")
_LINKS = ("metrics", "-/ready", "-/healthy")


# so that a request is accepted by its headers, before tornado reads or refuses its body
@stream_request_body
class Handler(RequestHandler):
    """Answer a path; what is not there is 404."""

    SUPPORTED_METHODS: tuple[str, ...] = ("GET", "HEAD")

    def initialize(self, site: Site) -> None:
        self.site = site
        self.is_counted = True

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")
        for name, value in self.settings["site"].web.headers.items():
            self.set_header(name, value)

    def compute_etag(self) -> str | None:
        return None

    async def prepare(self) -> None:
        stream, web = self.request.connection.stream, self.site.web  # type: ignore[union-attr]
        self.site.note_request(stream)
        # Go's server ends the handshake; ours knows the names only after it
        if not _is_allowed(stream, web):
            self.site.stats.refused["client_name"] += 1
            self.is_counted = False  # nothing is answered
            stream.close()
            raise Finish
        is_open = self.request.path in OPEN_PATHS
        if web.limit and not is_open and not web.limit.allows():
            raise HTTPError(429)
        _refuse_large(self.request.headers)
        if (
            web.users
            and not (is_open or self.is_preflight())
            and not await self._is_admitted(web.users, stream)
        ):
            raise HTTPError(401)

    def is_preflight(self) -> bool:
        """Return True for a CORS preflight, which browsers send without the user's password."""
        return False

    async def _is_admitted(self, users: Users, stream: IOStream) -> bool:
        from laggard.exporter.web.users import Busy

        stream.set_close_callback(lambda: None)  # so that tornado notices when the client goes
        header, address = (
            self.request.headers.get("Authorization", ""),
            self.request.remote_ip or "",
        )
        try:
            return await self.site.authenticator.admits(
                users, header, address, lambda: not stream.closed()
            )
        except Busy:
            raise HTTPError(429) from None

    def data_received(self, chunk: bytes) -> None:
        """Ignore the data.

        Tornado requires this method but passes no body, as the longest one allowed is 0 bytes.
        """

    def write_error(self, status_code: int, **_: Any) -> None:
        if status_code in (405, 413, 431):  # answered before the request was read to its end
            self.set_header("Connection", "close")
        if status_code == 401:
            self.set_header("WWW-Authenticate", 'Basic realm="laggard"')
        if status_code == 405:
            self.set_header("Allow", ", ".join(self.SUPPORTED_METHODS))
        self.finish(self.error_text(status_code))

    def error_text(self, status_code: int) -> str:
        return f"{status_code} {self._reason}\n"

    async def get(self) -> None:
        self.site.answering += 1
        try:
            await self._send(await self.body())
        finally:
            self.site.answering -= 1

    async def _send(self, body: bytes) -> None:
        written = asyncio.ensure_future(self._write(body))
        await asyncio.wait([written], timeout=self.site.response_seconds)
        if not written.done():  # a reader this slow would hold the body's memory for ever
            self.site.stats.refused["slow_reader"] += 1
            self.request.connection.stream.close()  # type: ignore[union-attr]

    async def _write(self, body: bytes) -> None:
        with suppress(StreamClosedError):
            if self.request.method == "GET":
                # apart from the body, which is then never copied: any number of slow readers hold
                # one body, and none has to wait for another
                self.set_header("Content-Length", str(len(body)))
                await self.flush()
            await self.finish(body)

    head = get  # tornado leaves the body away

    async def body(self) -> bytes:
        return self.answer()

    def answer(self) -> bytes:
        raise HTTPError(404)

    def on_finish(self) -> None:
        if self.is_counted:
            self.site.stats.count_request(self.counted_path(), self.get_status())

    def counted_path(self) -> str:
        if self.request.path not in PATHS:
            return "other"
        return self.request.path


class _Metrics(Handler):
    def answer(self) -> bytes:
        published, now = self.site.published(), self.site.clock()
        name, content_type = choose_format(",".join(self.request.headers.get_list("Accept")))
        body = published.bodies(now)[name]
        self.set_header("Content-Type", content_type)
        self.set_header("Vary", "Accept, Accept-Encoding")
        etag = published.etag(now)
        if etag:
            self.set_header("Etag", etag)
        if wants_gzip(",".join(self.request.headers.get_list("Accept-Encoding"))):
            self.set_header("Content-Encoding", "gzip")
            return body.gzip
        return body.plain


class _Healthy(Handler):
    def answer(self) -> bytes:
        return b"ok\n"


class _Ready(Handler):
    def answer(self) -> bytes:
        reasons = self.site.published().reasons(self.site.clock())
        self.set_status(503 if any(reasons.values()) else 200)
        return "".join(
            f"{escape_label(name)}: {reason or 'ready'}\n" for name, reason in reasons.items()
        ).encode()


class _Landing(Handler):
    def answer(self) -> bytes:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        links: tuple[str, ...] = _LINKS
        if self.site.api:
            links = _API_LINKS + links
        return (
            _LANDING % "".join(f'<li><a href="{link}">/{link}</a></li>\n' for link in links)
        ).encode()


class Site:
    """State shared by the handlers."""

    def __init__(
        self,
        options: ExporterOptions,
        stats: SelfStats,
        published: Callable[[], Published],
        clock: Callable[[], float] = time.time,
        web: Web | None = None,
    ) -> None:
        self.stats = stats
        self.web = web or Web()
        self.api = Api(options.answers, options.cors_origins) if options.answers else None
        self.runbook_base = options.runbook_base
        answers = ANSWERS | (API_ANSWERS | UI_ANSWERS if self.api else {})
        for path, codes in answers.items():  # who watches a count has to see its first rise
            protected = () if web is None or path in OPEN_PATHS else _PROTECTED
            stats.requests.update({(path, str(code)): 0 for code in (*codes, *protected)})
        self.published = published
        self.clock = clock
        self.response_seconds = options.response_seconds
        self.answering = 0
        self.max_connections = options.max_connections
        self.header_seconds = options.header_seconds
        # open connections, the one that has been silent longest first
        self.streams: dict[IOStream, None] = {}

        self._authenticator: Authenticator | None = None

    @property
    def authenticator(self) -> Authenticator:
        """Made when it is first needed: without passwords nothing is there to check them."""
        from laggard.exporter.web.users import Authenticator

        self._authenticator = self._authenticator or Authenticator()
        return self._authenticator

    def close(self) -> None:
        """Let nothing that waits for a password hold up the end."""
        if self._authenticator:
            self._authenticator.close()
        if self.api:
            self.api.close()

    def note_request(self, stream: IOStream) -> None:
        """Move a connection behind all others."""
        if stream in self.streams:
            self.streams[stream] = self.streams.pop(stream)

    async def drain(self, seconds: float) -> None:
        """Let the answers under way end, for so long."""
        for _ in range(int(seconds / _DRAIN_STEP_SECONDS)):
            if not self.answering:
                return
            await asyncio.sleep(_DRAIN_STEP_SECONDS)


HANDLERS: Mapping[str, type[Handler]] = {
    "/metrics": _Metrics,
    "/": _Landing,
    "/-/healthy": _Healthy,
    "/healthz": _Healthy,
    "/-/ready": _Ready,
    "/readyz": _Ready,
}


def _refuse_large(headers: HTTPHeaders) -> None:
    if sum(len(f"{name}: {value}\r\n") for name, value in headers.get_all()) > MAX_HEADER_BYTES:
        raise HTTPError(431)
    if headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers:
        raise HTTPError(413)


def _is_allowed(stream: IOStream, web: Web) -> bool:
    """Return True if the client's certificate has an allowed name, or needs none."""
    if not web.allowed_sans or not isinstance(stream.socket, ssl.SSLSocket):
        return True
    from laggard.exporter.web.tls import names_of

    certificate = stream.socket.getpeercert()
    return not certificate or not web.allowed_sans.isdisjoint(names_of(certificate))
