"""Run the exporter until a signal: a serving loop with limited connections, a refresh thread."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import signal
import socket
import ssl
import sys
import time
from dataclasses import replace
from typing import Any

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets

from laggard.errors import CONFIGURATION, INTERRUPTED, OK, LaggardError
from laggard.exporter.app import application
from laggard.exporter.body.render import TEXT
from laggard.exporter.collectors.own import SelfStats
from laggard.exporter.options import ExporterOptions
from laggard.exporter.publish import Publisher
from laggard.exporter.server import MAX_HEADER_BYTES, Site
from laggard.exporter.web.access import Web, WebFile, WebWatch

__all__ = ["ExporterOptions", "run_exporter"]

log = logging.getLogger("laggard.exporter")
_DRAIN_SECONDS = 2.0
# connections that wait to be taken; beyond it the kernel drops one, and its client tries again
# after a second
_BACKLOG = 1024
_OTHER_FILES = 256  # tables being read, threads, certificates
_JOIN_SECONDS = 2.0  # for a load under way; a read that hangs is left behind
# rendering 100,000 rows takes a second of Python: with the default of 5 ms a scrape meanwhile took
# 50 ms, so 7 ms
_SWITCH_SECONDS = 0.0005
# Headers above the limit get an answer up to here; past it tornado can only close, as it has not
# seen their end.
MAX_READ_HEADER_BYTES = 2 * MAX_HEADER_BYTES


def run_exporter(options: ExporterOptions) -> int:
    """Serve until SIGTERM (exit 0) or Ctrl-C (130), or print one body and end."""
    stats = SelfStats()
    publisher = Publisher(options, stats)
    if options.once:
        for refresher in publisher.refreshers:
            refresher.refresh()
        publisher.refuse_twice()
        sys.stdout.write(publisher.published.bodies(time.time())[TEXT].plain.decode())
        return OK
    web_file = None
    if options.web_config_file:
        web_file = WebFile(options.web_config_file)
    if web_file:
        web_file.load()
    options = replace(options, max_connections=fitting_connections(options.max_connections))
    # a line for each client that fails at TLS would push out what matters;
    # laggard_http_refused_total counts them
    logging.getLogger("tornado.general").setLevel(logging.ERROR)
    # the imports left 81,000 objects, which are no garbage: one look through them took 0.1 s at
    # load 5
    gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)
    # not closed: that would give signals their default action back, and a second SIGTERM would kill
    # the process
    loop = asyncio.new_event_loop()
    return loop.run_until_complete(_serve(options, stats, publisher, web_file))


async def _serve(
    options: ExporterOptions, stats: SelfStats, publisher: Publisher, web_file: WebFile | None
) -> int:
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number, code in ((signal.SIGTERM, OK), (signal.SIGINT, INTERRUPTED)):
        asyncio.get_running_loop().add_signal_handler(number, _resolve, stopped, code)
    site = Site(options, stats, lambda: publisher.published, web=web_file.web if web_file else None)
    server = LimitedServer(site)
    port = _listen(server, options)
    if exposure := site.web.exposure(options.host):
        log.warning("listening on %s %s", options.host, exposure)
    host, scheme = options.listen.rpartition(":")[0], "https" if site.web.tls else "http"
    print(
        f"laggard exporter serves {scheme}://{host}:{port}/metrics from "
        f"{', '.join(options.tables)}",
        file=sys.stderr,
        flush=True,
    )
    watch = None
    if web_file:
        watch = _watch(web_file, stats, server)
    publisher.start()
    code = await stopped
    publisher.stop()
    if watch:
        watch.stop()
    server.stop()
    site.close()
    await site.drain(_DRAIN_SECONDS)
    await server.close_all_connections()
    publisher.join(_JOIN_SECONDS)
    return code


def fitting_connections(wanted: int) -> int:
    """Return the connection count the open-file limit allows, after raising it as far as possible.

    Without room for one more file nothing can be accepted, and the tables cannot be read.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = wanted + _OTHER_FILES
    if resource.RLIM_INFINITY != soft < need:
        soft = need
        if hard != resource.RLIM_INFINITY:
            soft = min(need, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= need:
        return wanted
    fitting = max(1, soft - min(_OTHER_FILES, soft // 2))
    log.warning(
        "only %d connections at once, as this process may open only %d files", fitting, soft
    )
    return fitting


def _watch(web_file: WebFile, stats: SelfStats, server: LimitedServer) -> WebWatch:
    """Follow the web-config file; the serving loop only takes over the loaded result."""
    loop = asyncio.get_running_loop()

    def use(web: Web) -> None:
        loop.call_soon_threadsafe(server.use, web)

    watch = WebWatch(web_file, stats, use)
    watch.start()
    return watch


def _listen(server: LimitedServer, options: ExporterOptions) -> int:
    """Bind, and give the port, which the system chooses for port 0."""
    try:
        sockets = bind_sockets(options.port, options.host, backlog=_BACKLOG)
    except OSError as error:
        raise LaggardError(
            f"cannot listen on {options.listen}",
            cause=str(error),
            fix="choose another place: laggard export --listen 127.0.0.1:8918",
            exit_code=CONFIGURATION,
        ) from error
    server.add_sockets(sockets)
    return int(sockets[0].getsockname()[1])


def _resolve(stopped: asyncio.Future[int], code: int) -> None:
    if not stopped.done():
        stopped.set_result(code)


class LimitedServer(HTTPServer):
    """HTTP server with limited connections; when full, it closes the longest silent one.

    Connections that were not served go first.
    """

    def initialize(self, site: Site) -> None:  # type: ignore[override]
        self._site = site
        self._streams = site.streams
        super().initialize(
            application(site),
            idle_connection_timeout=site.header_seconds,
            body_timeout=site.header_seconds,
            max_header_size=MAX_READ_HEADER_BYTES,
            max_body_size=0,
            chunk_size=MAX_HEADER_BYTES,
            ssl_options=site.web.tls,
        )

    def use(self, web: Web) -> None:
        """Apply another web-config to new connections and to the next request of open ones."""
        is_other_access = web.access != self._site.web.access
        self._site.web, self.ssl_options = web, web.tls
        if is_other_access:
            for stream in list(self._streams):
                stream.close()

    def _handle_connection(self, connection: socket.socket, address: Any) -> None:
        try:
            super()._handle_connection(connection, address)
        except Exception as error:  # noqa: BLE001 - one odd client; its socket must not stay open
            log.debug("a connection could not be taken: %r", error)
            connection.close()

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if len(self._streams) >= self._site.max_connections:
            self._site.stats.refused["connections"] += 1
            # where all are being served, the slowest reader is in front
            waiting = (stream for stream in self._streams if not stream.writing())
            idle = next(waiting, next(iter(self._streams)))
            idle.close()
            self._streams.pop(idle, None)
        self._streams[stream] = None
        self._site.stats.connections = len(self._streams)
        try:
            super().handle_stream(stream, address)
        except Exception:
            self._streams.pop(stream, None)
            stream.close()
            raise

    def on_close(self, server_conn: object) -> None:
        if isinstance(server_conn, HTTP1ServerConnection):
            self._streams.pop(server_conn.stream, None)
            self._count_handshake(server_conn.stream.error)
        self._site.stats.connections = len(self._streams)
        super().on_close(server_conn)

    def _count_handshake(self, error: BaseException | None) -> None:
        """Count a client without TLS or the right certificate, but not a mere check of the port."""
        if isinstance(error, ssl.SSLError) and not isinstance(
            error, ssl.SSLEOFError | ssl.SSLZeroReturnError
        ):
            self._site.stats.refused["tls"] += 1
