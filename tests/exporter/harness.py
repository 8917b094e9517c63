"""What the exporter's tests share: a clock moved by hand, bodies as dicts, a server on a real
socket.
"""

from __future__ import annotations

import asyncio
import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from laggard.diagnosis.parameters import Policy
from laggard.exporter.body.render import OPENMETRICS, TEXT
from laggard.exporter.collectors.own import SelfStats
from laggard.exporter.options import ExporterOptions, Selection
from laggard.exporter.publish import Publisher
from laggard.exporter.published import Published
from laggard.exporter.run import LimitedServer
from laggard.exporter.server import Site
from laggard.exporter.web.access import Web
from tables.fixtures import NOW

POLLED = NOW.timestamp()
LIMIT_SECONDS = 60.0  # met only by what hangs, also on a busy machine
Key = tuple[str, frozenset[tuple[str, str]]]


@dataclass
class Clock:
    """Seconds since 1970, moved by hand."""

    now: float = POLLED + 10

    def __call__(self) -> float:
        return self.now


@dataclass
class Exporter:
    """A refresher on tables of the test."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    max_series: int = 100_000
    partition_top_k: int = 10
    policies: Mapping[str, Policy] = field(default_factory=dict)
    idle_seconds: float = 0.0
    selection: Selection = field(default_factory=Selection)

    def __post_init__(self) -> None:
        self.stats = SelfStats()
        options = ExporterOptions(
            (str(self.root),),
            "configured",
            max_series=self.max_series,
            selection=replace(self.selection, partition_top_k=self.partition_top_k),
            policy=lambda _, group, __: self.policies.get(group, Policy()),
            idle_seconds=self.idle_seconds,
        )
        self.publisher = Publisher(options, self.stats, self.clock)
        (self.refresher,) = self.publisher.refreshers

    def refresh(self) -> Published:
        self.refresher.refresh()
        return self.publisher.published

    def samples(self) -> dict[Key, float]:
        """What a scrape gets now."""
        return samples(self.publisher.published, self.clock())


def samples(published: Published, now: float) -> dict[Key, float]:
    """Samples of both formats, which must agree; no series may come twice."""
    bodies = published.bodies(now)
    by_format = []
    for name, parse in ((TEXT, parse_text), (OPENMETRICS, parse_openmetrics)):
        found = [
            ((s.name, frozenset(s.labels.items())), s.value)
            for family in parse(bodies[name].plain.decode())
            for s in family.samples
        ]
        assert len(dict(found)) == len(found), "a series comes twice"
        by_format.append(dict(found))
    assert by_format[0] == by_format[1]
    return by_format[0]


def series(name: str, **labels: object) -> Key:
    """Key of a series of the fixtures' cluster."""
    return f"laggard_{name}", frozenset(
        {"cluster": "prod", **{key: str(value) for key, value in labels.items()}}.items()
    )


def names(found: dict[Key, float]) -> set[str]:
    return {name for name, _ in found}


@contextmanager
def serving(
    published: Published,
    clock: Clock | None = None,
    web: Web | None = None,
    port: int = 0,
    **limits: Any,
) -> Iterator[tuple[int, SelfStats]]:
    """A server on a port of this machine, a free one unless it is given; gives the port."""
    loop, stats = asyncio.new_event_loop(), SelfStats()
    options = ExporterOptions(("unused",), **limits)

    async def start() -> tuple[LimitedServer, int]:
        server = LimitedServer(Site(options, stats, lambda: published, clock or Clock(), web))
        server.listen(port, "127.0.0.1")
        (listening,) = server._sockets.values()
        return server, listening.getsockname()[1]

    thread = Thread(target=loop.run_forever)
    thread.start()
    server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(LIMIT_SECONDS)
    try:
        yield port, stats
    finally:

        async def stop() -> None:
            server.stop()
            await server.close_all_connections()

        asyncio.run_coroutine_threadsafe(stop(), loop).result(LIMIT_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(LIMIT_SECONDS)
        loop.close()


def ask(
    port: int,
    path: str = "/metrics",
    method: str = "GET",
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    **headers: str,
) -> tuple[http.client.HTTPResponse, bytes]:
    """One request on a connection of its own; an underscore in a header's name
    stands for a hyphen.
    """
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=LIMIT_SECONDS, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    )
    try:
        connection.request(
            method,
            path,
            body=body,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


@contextmanager
def slow_readers(port: int, count: int) -> Iterator[None]:
    """Clients that ask for the body and do not read it."""
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        yield
