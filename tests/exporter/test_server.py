"""The server over real sockets: what it answers, what it refuses, and that bad clients harm only
themselves.
"""

from __future__ import annotations

import gzip
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.processes import comes_true
from exporter.harness import LIMIT_SECONDS, Clock, Exporter, ask, serving, slow_readers
from laggard.exporter.body.render import OPENMETRICS, TEXT
from laggard.exporter.published import Published
from laggard.exporter.run import MAX_READ_HEADER_BYTES
from laggard.exporter.server import MAX_HEADER_BYTES, PATHS
from laggard.exporter.web.access import is_loopback
from tables.fixtures import NOW, partition_row, write_batch

LIB = Path(__file__).parents[2] / "lib"
STALE = Clock(NOW.timestamp() + 1000)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("tables")
    write_batch(root, 42, partitions=[partition_row("g", "t", n) for n in range(200)])
    return Exporter(root, partition_top_k=200).refresh()


@pytest.fixture(scope="module")
def port(published: Published) -> Iterator[int]:
    with serving(published) as (port, _):
        yield port


def test_a_scrape_gets_text_by_default_with_its_length_and_the_batch_as_etag(
    port: int, published: Published
) -> None:
    answer, body = ask(port)
    assert (answer.status, body) == (200, published.bodies(Clock()())[TEXT].plain)
    expected = {
        "Content-Type": "text/plain; version=0.0.4; charset=utf-8",
        "Content-Length": str(len(body)),
        "Vary": "Accept, Accept-Encoding",
        "Etag": 'W/"42"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Server": None,
    }
    assert {name: answer.getheader(name) for name in expected} == expected


def test_openmetrics_and_gzip_come_as_asked_for(port: int, published: Published) -> None:
    answer, body = ask(
        port, Accept="application/openmetrics-text;version=1.0.0", Accept_Encoding="gzip"
    )
    assert (
        answer.getheader("Content-Type")
        == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    )
    assert answer.getheader("Content-Encoding") == "gzip"
    assert gzip.decompress(body) == published.bodies(Clock()())[OPENMETRICS].plain
    # one member: some clients read no further than the first
    assert body[10:].find(b"\x1f\x8b\x08") == -1


def test_head_answers_as_get_without_the_body(port: int) -> None:
    head, nothing = ask(port, method="HEAD")
    get, body = ask(port)
    assert (head.status, nothing, head.getheader("Content-Length")) == (200, b"", str(len(body)))
    assert head.getheader("Etag") == get.getheader("Etag")


def test_a_client_that_has_the_batch_gets_the_body_again_since_our_own_numbers_change_within_it(
    port: int,
) -> None:
    answer, body = ask(port, If_None_Match='W/"42"')
    assert (answer.status, b"process_" in body) == (200, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"])
def test_other_methods_are_refused(port: int, method: str) -> None:
    answer, _ = ask(port, method=method)
    assert answer.status in (400, 405)
    assert method == "BREW" or answer.getheader("Allow") == "GET, HEAD"


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/metrics/",
        "//metrics",
        "/metrics/../etc/passwd",
        "/api/v1/groups",
        "/%2e%2e/",
        "/favicon.ico",
    ],
)
def test_other_paths_are_not_found_and_say_nothing_of_the_server(port: int, path: str) -> None:
    answer, body = ask(port, path)
    assert (answer.status, body) == (404, b"404 Not Found\n")
    assert answer.getheader("Server") is None


def answer_to(port: int, request: bytes) -> bytes:
    """All that a connection gets until the server closes it."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    return answer


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 10\r\n",
        b"Content-Length: 4\r\n\r\nbody",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: x\r\n",
    ],
)
@pytest.mark.parametrize("path", [b"/metrics", b"/nowhere"])
def test_a_request_body_is_refused_before_it_is_read(
    port: int, path: bytes, headers: bytes
) -> None:
    answer = answer_to(port, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nConnection: close" in head
    assert body.startswith(b"413 ")
    assert body.count(b"\n") == 1  # one answer, and nothing of tornado's own behind it


def test_a_connection_is_kept_after_an_answer_and_an_empty_body_is_none(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    for _ in range(3):
        connection.request("GET", "/-/healthy", headers={"Content-Length": "0"})
        local = connection.sock.getsockname()
        assert connection.getresponse().read() == b"ok\n"
        assert connection.sock.getsockname() == local
    connection.close()


def test_health_never_looks_at_data_and_readiness_gives_the_reason(published: Published) -> None:
    for clock, ready in ((Clock(), (200, b"prod: ready\n")), (STALE, (503, b"prod: stale\n"))):
        with serving(published, clock) as (port, _):
            answers = [
                ask(port, path) for path in ("/-/healthy", "/healthz", "/-/ready", "/readyz")
            ]
        assert [(answer.status, body) for answer, body in answers] == [(200, b"ok\n")] * 2 + [
            ready
        ] * 2


def test_stale_data_is_not_served_and_has_another_etag(published: Published) -> None:
    with serving(published, STALE) as (port, _):
        answer, body = ask(port)
    assert (answer.status, answer.getheader("Etag")) == (200, 'W/"42-stale"')
    assert b"laggard_group_lag_records{" not in body
    assert b"laggard_batch_id" in body


def test_the_landing_page_links_the_paths_and_names_no_group(port: int) -> None:
    answer, body = ask(port, "/")
    assert answer.getheader("Content-Type") == "text/html; charset=utf-8"
    assert b"/metrics" in body
    assert b"prod" not in body


def half_open(port: int) -> list[socket.socket]:
    """Clients that begin a request and do not end it."""
    connections = [
        socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS) for _ in range(60)
    ]
    for connection in connections:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
    return connections


def test_half_open_clients_do_not_delay_a_scrape(published: Published) -> None:
    with serving(published, header_seconds=2 * LIMIT_SECONDS) as (port, _):
        connections = half_open(port)
        answer, _ = ask(port)  # which gives up before one of them is closed
        assert answer.status == 200
        for connection in connections:
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):  # still open
                connection.recv(1)
            connection.close()


def test_half_open_clients_are_closed_at_the_deadline(published: Published) -> None:
    with serving(published, header_seconds=0.3) as (port, stats):
        for connection in half_open(port):
            assert connection.recv(1) == b""
            connection.close()
        assert comes_true(lambda: stats.connections == 0, LIMIT_SECONDS)


def test_when_full_the_oldest_silent_connection_makes_room(published: Published) -> None:
    with serving(published, max_connections=3) as (port, stats):
        silent = [
            socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS) for _ in range(3)
        ]
        assert comes_true(lambda: stats.connections == 3, LIMIT_SECONDS)
        answer, _ = ask(port)
        assert (answer.status, silent[0].recv(1), stats.refused["connections"]) == (200, b"", 1)
        for connection in silent:
            connection.close()


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("big")
    write_batch(root, partitions=[partition_row("g" * 200, "t" * 200, n) for n in range(8000)])
    return Exporter(root, partition_top_k=8000).refresh()


def test_when_full_of_slow_readers_the_slowest_makes_room(big: Published) -> None:
    with (
        serving(big, response_seconds=2 * LIMIT_SECONDS, max_connections=5) as (port, stats),
        slow_readers(port, 5),
    ):
        answers = [ask(port, path) for path in ("/-/healthy", "/metrics")]
    assert [answer.status for answer, _ in answers] == [200, 200]
    assert stats.refused["connections"] >= 1


def test_a_reader_that_does_not_read_is_cut_off(big: Published) -> None:
    with serving(big, response_seconds=0.5) as (port, stats):
        with slow_readers(port, 1):
            assert comes_true(lambda: stats.refused["slow_reader"] > 0, LIMIT_SECONDS)
        answer, _ = ask(port, "/-/healthy")
        assert (answer.status, stats.refused["slow_reader"]) == (200, 1)


@pytest.mark.full
@pytest.mark.parametrize("path", PATHS)
def test_slow_readers_delay_nobody_else(big: Published, path: str) -> None:
    assert len(big.bodies(Clock()())[TEXT].plain) > 6_000_000
    with serving(big, response_seconds=2 * LIMIT_SECONDS) as (port, _), slow_readers(port, 200):
        answer, body = ask(port, path)
    assert answer.status == 200
    assert body


def with_headers(size: int) -> bytes:
    """A request whose headers have so many bytes."""
    return (
        b"GET /-/healthy HTTP/1.1\r\n"
        + b"Host: x\r\nConnection: close\r\nX: ".ljust(size - 2, b"a")
        + b"\r\n\r\n"
    )


def test_headers_past_the_limit_are_answered_with_their_own_status(port: int) -> None:
    assert answer_to(port, with_headers(MAX_HEADER_BYTES)).startswith(b"HTTP/1.1 200 ")
    for size in (MAX_HEADER_BYTES + 1, MAX_READ_HEADER_BYTES - 100):
        answer = answer_to(port, with_headers(size))
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"\r\nConnection: close" in answer


def test_headers_without_an_end_are_not_kept_for_ever(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000)
        try:
            answer = connection.recv(100)
        except ConnectionError:
            answer = b""
    assert answer == b""  # closed, before or after all was sent


def test_requests_are_counted_by_path_from_a_closed_list(published: Published) -> None:
    with serving(published) as (port, stats):
        for path in ("/metrics", "/metrics", "/secret-group", "/-/ready"):
            ask(port, path)
    assert +stats.requests == {("/metrics", "200"): 2, ("other", "404"): 1, ("/-/ready", "200"): 1}
    assert {path for path, _ in stats.requests} <= {*PATHS, "other"}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("kafka", False),
    ],
)
def test_only_this_machine_reaches_a_loopback_address(host: str, expected: bool) -> None:
    assert is_loopback(host) == expected


@contextmanager
def exporter_process(*words: str) -> Iterator[subprocess.Popen[str]]:
    script = (
        "from laggard.__main__ import leave; from laggard.exporter.run import *; "
        "leave(run_exporter(ExporterOptions(" + ", ".join(words) + ")))"
    )
    environment = {**os.environ, "PYTHONPATH": str(LIB)}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_process_says_where_it_serves_and_ends_with_0_on_sigterm(tmp_path: Path) -> None:
    with exporter_process(repr((str(tmp_path),)), "listen='127.0.0.1:0'") as process:
        line = process.stderr.readline() if process.stderr else ""
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        answer, _ = ask(port)
        process.send_signal(signal.SIGTERM)
        assert (answer.status, process.wait(LIMIT_SECONDS)) == (200, 0)


@pytest.mark.full
def test_once_prints_one_body(tmp_path: Path) -> None:
    write_batch(tmp_path, partitions=[partition_row("g", "t", 0)])
    with exporter_process(repr((str(tmp_path),)), "once=True") as process:
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert 'laggard_batch_id{cluster="prod"} 1.0\n' in out
    assert process.returncode == 0


@pytest.mark.full
def test_a_place_that_is_taken_is_an_error_with_a_remedy(port: int, tmp_path: Path) -> None:
    with exporter_process(repr((str(tmp_path),)), f"listen='127.0.0.1:{port}'") as process:
        _, error = process.communicate(timeout=LIMIT_SECONDS)
    assert f"cannot listen on 127.0.0.1:{port}" in error


def test_importing_the_exporter_brings_no_spark_along() -> None:
    script = (
        "import sys, laggard.exporter.run, laggard.tables.readers, laggard.tables.arrow\n"
        "import laggard.cli.verbs.status, laggard.cli.verbs.query.verb\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', "
        "'kafka', 'delta')])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(LIB)},
    )
    assert run.stdout == "[]\n"
