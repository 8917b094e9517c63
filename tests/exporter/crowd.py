"""Clients that mean no good, as a process that keeps them coming: `python tests/exporter/crowd.py
PORT SPREAD [CA]`.

Half-open requests, connections that say nothing, and requests with headers that are too large. What
the server closes is opened again at once. They come spread over some seconds; with 0 all come, and
come again, at one moment.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HALF_OPEN, SILENT, OVERSIZED = 1000, 50, 10
GUESSING = "guess"  # in place of SPREAD: wrong passwords instead
GUESSERS = 40
_OVERSIZED = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"
_ERRORS = (OSError, asyncio.IncompleteReadError)


@contextlib.contextmanager
def crowd(
    port: int, spread_seconds: float | str, ca: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, for as long as the block."""
    words = [sys.executable, __file__, str(port), str(spread_seconds), *([str(ca)] if ca else [])]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def _client(
    port: int, tls: ssl.SSLContext | None, request: bytes, first: float, pause: float = 0
) -> None:
    """One place in the crowd: connect, send, wait until the server closes, and again."""
    await asyncio.sleep(first)
    while True:
        writer = None
        with contextlib.suppress(*_ERRORS):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=tls, server_hostname="localhost" if tls else None
            )
            writer.write(request)
            await reader.read()
        if writer:
            writer.close()
        await asyncio.sleep(pause)


async def _main(port: int, spread: float, ca: str | None) -> None:
    tls = ssl.create_default_context(cafile=ca) if ca else None
    half = b"GET /metrics HTTP/1.1\r\nHost:"
    await asyncio.gather(
        *(_client(port, tls, half, spread * n / HALF_OPEN) for n in range(HALF_OPEN)),
        *(_client(port, None, b"", spread * n / SILENT) for n in range(SILENT)),
        *(_client(port, tls, _OVERSIZED, spread * n / OVERSIZED, 0.1) for n in range(OVERSIZED)),
    )


async def _guess(port: int) -> None:
    guesses = itertools.count()

    async def one() -> None:
        while True:
            password = base64.b64encode(f"prometheus:{next(guesses)}".encode()).decode()
            headers = f"Host: x\r\nConnection: close\r\nAuthorization: Basic {password}\r\n"
            with contextlib.suppress(*_ERRORS):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(f"GET /metrics HTTP/1.1\r\n{headers}\r\n".encode())
                await reader.read()
                writer.close()
            await asyncio.sleep(0.02)

    await asyncio.gather(*(one() for _ in range(GUESSERS)))


if __name__ == "__main__":
    if sys.argv[2] == GUESSING:
        asyncio.run(_guess(int(sys.argv[1])))
    asyncio.run(
        _main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)
    )
