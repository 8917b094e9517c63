"""Cost of bad clients to the others: 1,000 half-open requests, 50 silent clients, huge headers.

Then it measures clients that guess passwords.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import bcrypt
from common import cpu_seconds, report

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "lib")]

from exporter.crowd import GUESSING, crowd  # noqa: E402
from exporter.pki import make_pki  # noqa: E402
from tables.fixtures import partition_row, write_batch  # noqa: E402

USER, SECRET = ["prometheus", "secret"]
MODES = {"HTTP": "", "TLS, EC key": "server", "TLS, RSA key": "rsa"}


def main() -> None:
    """Measure each mode by itself."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument(
        "--spread",
        type=float,
        default=5.0,
        help="seconds over which they come; 0: all at one moment",
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pki = make_pki(Path(folder) / "pki")
        tables = Path(folder) / "tables"
        partitions = [partition_row(f"g{n}", "t", p) for n in range(100) for p in range(100)]
        write_batch(tables, 1, datetime.now(timezone.utc), partitions=partitions)
        rows = [measure(mode, tables, pki, args.seconds, args.spread) for mode in MODES]
        report("abuse", [*rows, measure("HTTP, guesses", tables, pki, args.seconds, GUESSING)])


@contextmanager
def running_exporter(
    tables: Path, pki: Path, key: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run `laggard export` on a free port, with TLS if a key is named."""
    web = pki / "web.yml"
    tls = f"tls_server_config:\n  cert_file: {key}.crt\n  key_file: {key}.key\n"
    user = (
        f"basic_auth_users: {{{USER}: "
        f"{bcrypt.hashpw(SECRET.encode(), bcrypt.gensalt(10)).decode()}}}\n"
    )
    web.write_text(user + (tls if key else ""), encoding="utf-8")
    words = [
        "export",
        "--listen",
        "127.0.0.1:0",
        "--web.config.file",
        str(web),
        "--tables",
        str(tables),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "laggard", "--set", "exporter.max_age_seconds=86400", *words],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            line = process.stderr.readline() if process.stderr else ""
            yield process, int(line.split("127.0.0.1:")[1].split("/")[0])
        finally:
            process.kill()


def measure(
    mode: str, tables: Path, pki: Path, seconds: float, spread: float | str
) -> dict[str, object]:
    """Return answers before and while the crowd is there, each on a connection of its own."""
    key = MODES.get(mode, "")
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt")) if key else None
    with running_exporter(tables, pki, key) as (process, port):
        while ask(port, "/-/ready", tls)[0] != 200:
            time.sleep(0.1)
        ask(port, "/metrics", tls)
        quiet = sorted(ask(port, "/-/healthy", tls)[1] for _ in range(50))
        before = status(process.pid)
        with crowd(port, spread, pki / "ca.crt" if key else None):
            healthy, waited, scrapes, failed, threads, memory = [], [], [], 0, 0, 0
            began, spent = time.monotonic(), cpu_seconds(process.pid)
            until = began + seconds
            while time.monotonic() < until:
                for _ in range(5):
                    loop_began = loop_ms(process.pid)
                    try:
                        healthy.append(ask(port, "/-/healthy", tls)[1])
                    except OSError:
                        failed += 1
                    waited.append(loop_ms(process.pid) - loop_began)
                scrapes.append(ask(port, "/metrics", tls)[1])
                now = status(process.pid)
                threads, memory = max(threads, now["Threads"]), max(memory, now["VmRSS"])
                time.sleep(0.05)
            share = (cpu_seconds(process.pid) - spent) / (time.monotonic() - began)
    healthy.sort()
    return {
        "mode": mode,
        "healthy_quiet_p50_ms": 1000 * quiet[len(quiet) // 2],
        "healthy_p50_ms": 1000 * healthy[len(healthy) // 2],
        "healthy_p99_ms": 1000 * healthy[int(len(healthy) * 0.99)],
        "healthy_longest_ms": 1000 * healthy[-1],
        "loop_longest_ms": max(waited),
        "probes": len(healthy),
        "failed": failed,
        "scrape_longest_ms": 1000 * max(scrapes),
        "cores": share,
        "threads": threads,
        "memory_more_mb": (memory - before["VmRSS"]) / 1024,
    }


def ask(port: int, path: str, tls: ssl.SSLContext | None) -> tuple[int, float]:
    """Return status and seconds of one request, connecting included."""
    began = time.perf_counter()
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    )
    try:
        authorization = base64.b64encode(f"{USER}:{SECRET}".encode()).decode()
        connection.request("GET", path, headers={"Authorization": f"Basic {authorization}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, time.perf_counter() - began
    finally:
        connection.close()


def loop_ms(pid: int) -> float:
    """Return processor time of the serving loop, independent of what else runs here.

    It is the work that precedes a waiting probe.
    """
    return (
        int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e6
    )


def status(pid: int) -> dict[str, int]:
    """Return threads and resident KB of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":") for line in lines if line.startswith(("Threads", "VmRSS")))
    return {name: int(value.split()[0]) for name, value in pairs}


if __name__ == "__main__":
    main()
