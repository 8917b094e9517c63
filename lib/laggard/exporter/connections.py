"""Connections: so many at once, each with its deadlines, TLS where the web-config file asks for it."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import Any

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream

from laggard.exporter.server import MAX_HEADER_BYTES, Site
from laggard.exporter.web import Web

log = logging.getLogger("laggard.exporter")
# Headers above the limit get an answer up to here; past it tornado can only close, as it has not seen their end.
MAX_READ_HEADER_BYTES = 2 * MAX_HEADER_BYTES


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
            ssl_options=site.web.tls,
        )

    def use(self, web: Web) -> None:
        """Put another web-config in force, for new connections and for the next request of those that are open."""
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
            idle = next((waiting for waiting in self._streams if not waiting.writing()), next(iter(self._streams)))
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
        """Count a client without TLS or the right certificate, but not one that only looked if the port is open."""
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            self._site.stats.refused["tls"] += 1
