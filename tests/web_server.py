"""A small web server on the loopback address, whose answers a test chooses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Answers:
    """What the server says, and what it was asked."""

    bodies: dict[str, bytes]
    # path to how often it is answered with 503 first
    refusals: dict[str, int] = field(default_factory=dict)
    # path to another Content-Length than the true one
    lengths: dict[str, str] = field(default_factory=dict)
    pause_seconds: float = 0.0  # after each byte
    asked: list[str] = field(default_factory=list)
    server: ThreadingHTTPServer | None = None
    url: str = ""

    def close(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


@contextmanager
def serving(bodies: dict[str, bytes]) -> Iterator[Answers]:
    """A running server with these bodies by path."""
    answers = Answers(bodies)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append(self.path)
            if answers.refusals.get(self.path, 0) > 0:
                answers.refusals[self.path] -= 1
                self.send_error(503)
                return
            body = answers.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", answers.lengths.get(self.path, str(len(body))))
            self.end_headers()
            with suppress(OSError):  # the client had enough
                self._send(body)

        def _send(self, body: bytes) -> None:
            for each in [bytes([byte]) for byte in body] if answers.pause_seconds else [body]:
                self.wfile.write(each)
                time.sleep(answers.pause_seconds)

        def log_message(self, *_: object) -> None:
            pass

    answers.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    answers.server.daemon_threads = True
    answers.url = f"http://127.0.0.1:{answers.server.server_port}"
    Thread(target=answers.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield answers
    finally:
        answers.close()
