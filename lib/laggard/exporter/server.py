"""HTTP: stored bytes from one event loop; nothing here reads a table or formats a metric."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream, StreamClosedError
from tornado.web import Application, HTTPError, RequestHandler, stream_request_body

from laggard import __version__
from laggard.exporter.collect_self import SelfStats
from laggard.exporter.negotiate import choose_format, wants_gzip
from laggard.exporter.options import ExporterOptions
from laggard.exporter.published import Published

PATHS = ("/metrics", "/-/healthy", "/healthz", "/-/ready", "/readyz", "/")
_REFUSED = (405, 413, 431)
ANSWERS = {  # path to the codes that it can answer with
    **dict.fromkeys(PATHS, (200, *_REFUSED)),
    **dict.fromkeys(("/-/ready", "/readyz"), (200, 503, *_REFUSED)),
    "other": (404, *_REFUSED),
}
MAX_HEADER_BYTES = 8192
# Headers above the limit get an answer up to here; past it tornado can only close, as it has not seen their end.
MAX_READ_HEADER_BYTES = 2 * MAX_HEADER_BYTES
_DRAIN_STEP_SECONDS = 0.05
_LANDING = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>laggard</title></head>
<body><h1>laggard {__version__}</h1>
<ul>
<li><a href="/metrics">/metrics</a></li>
<li><a href="/-/ready">/-/ready</a></li>
<li><a href="/-/healthy">/-/healthy</a></li>
</ul>
</body></html>
"""


@stream_request_body  # so that a request is judged by its headers, before tornado reads or refuses its body
class _Handler(RequestHandler):
    SUPPORTED_METHODS = ("GET", "HEAD")

    def initialize(self, site: Site) -> None:
        self.site = site

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cache-Control", "no-store")

    def compute_etag(self) -> str | None:
        return None

    def prepare(self) -> None:
        self.site.note_request(self.request.connection.stream)  # type: ignore[union-attr]
        headers = self.request.headers
        if sum(len(f"{name}: {value}\r\n") for name, value in headers.get_all()) > MAX_HEADER_BYTES:
            raise HTTPError(431)
        if headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers:
            raise HTTPError(413)

    def data_received(self, chunk: bytes) -> None:
        """Tornado asks for this method, but hands over no body: none may be longer than nothing."""

    def write_error(self, status_code: int, **_: Any) -> None:
        if status_code in (405, 413, 431):  # answered before the request was read to its end
            self.set_header("Connection", "close")
        if status_code == 405:
            self.set_header("Allow", ", ".join(self.SUPPORTED_METHODS))
        self.finish(f"{status_code} {self._reason}\n")

    async def get(self) -> None:
        self.site.answering += 1
        try:
            await self._send()
        finally:
            self.site.answering -= 1

    async def _send(self) -> None:
        written = asyncio.ensure_future(self._write(self.answer()))
        await asyncio.wait([written], timeout=self.site.response_seconds)
        if not written.done():  # a reader this slow would hold the body's memory for ever
            self.site.stats.refused["slow_reader"] += 1
            self.request.connection.stream.close()  # type: ignore[union-attr]

    async def _write(self, body: bytes) -> None:
        with suppress(StreamClosedError):
            if self.request.method == "GET":
                # apart from the body, which is then never copied: any number of slow readers hold one body, and
                # none has to wait for another
                self.set_header("Content-Length", str(len(body)))
                await self.flush()
            await self.finish(body)

    head = get  # tornado leaves the body away

    def answer(self) -> bytes:
        raise HTTPError(404)

    def on_finish(self) -> None:
        path = self.request.path if self.request.path in PATHS else "other"
        self.site.stats.count_request(path, self.get_status())


class _Metrics(_Handler):
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


class _Healthy(_Handler):
    def answer(self) -> bytes:
        return b"ok\n"


class _Ready(_Handler):
    def answer(self) -> bytes:
        published = self.site.published()
        reason = published.reason_at(self.site.clock())
        self.set_status(503 if reason else 200)
        return f"{published.cluster}: {reason or 'ready'}\n".encode()


class _Landing(_Handler):
    def answer(self) -> bytes:
        self.set_header("Content-Type", "text/html; charset=utf-8")
        return _LANDING.encode()


class Site:
    """What the handlers share."""

    def __init__(
        self,
        options: ExporterOptions,
        stats: SelfStats,
        published: Callable[[], Published],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.stats = stats
        for path, codes in ANSWERS.items():  # who watches a count has to see its first rise
            stats.requests.update({(path, str(code)): 0 for code in codes})
        self.published = published
        self.clock = clock
        self.response_seconds = options.response_seconds
        self.answering = 0
        self.max_connections = options.max_connections
        self.header_seconds = options.header_seconds
        self.streams: dict[IOStream, None] = {}  # open connections, the one that has been silent longest first

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

    def application(self) -> Application:
        shared = {"site": self}
        handlers = {
            "/metrics": _Metrics,
            "/": _Landing,
            "/-/healthy": _Healthy,
            "/healthz": _Healthy,
            "/-/ready": _Ready,
            "/readyz": _Ready,
        }
        return Application(
            [(path, handler, shared) for path, handler in handlers.items()],
            default_handler_class=_Handler,
            default_handler_args=shared,
            log_function=lambda _: None,
        )


class LimitedServer(HTTPServer):
    """An HTTP server that holds so many connections: when full, the longest silent one goes, one not served first."""

    def initialize(self, site: Site) -> None:  # type: ignore[override]
        self._site = site
        self._streams = site.streams
        super().initialize(
            site.application(),
            idle_connection_timeout=site.header_seconds,
            body_timeout=site.header_seconds,
            max_header_size=MAX_READ_HEADER_BYTES,
            max_body_size=0,
            chunk_size=MAX_HEADER_BYTES,
        )

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if len(self._streams) >= self._site.max_connections:
            self._site.stats.refused["connections"] += 1
            # where all are being served, the slowest reader is in front
            idle = next((waiting for waiting in self._streams if not waiting.writing()), next(iter(self._streams)))
            idle.close()
            self._streams.pop(idle, None)
        self._streams[stream] = None
        self._site.stats.connections = len(self._streams)
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        if isinstance(server_conn, HTTP1ServerConnection):
            self._streams.pop(server_conn.stream, None)
        self._site.stats.connections = len(self._streams)
        super().on_close(server_conn)
