"""Times of scrapes by 100 clients with gzip while the job runs.

Each client scrapes once a second; then all scrape at the same moment.

The clients share the cores with broker, job and exporter, so their own time is in the numbers. The
exporter's own, its looks at the tables included, is a column.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from common import await_batch, cpu_seconds, report, running_job, write_config
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from tick import commit

from laggard.demo.broker import Broker
from laggard.demo.guard import await_end, start_guarded

PARTITIONS = 100
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: bench\r\nAccept-Encoding: gzip\r\n\r\n"
EXPORTER_SECONDS = 60


class Client:
    """A connection that is kept, as Prometheus keeps one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.seconds: list[float] = []
        self.errors = 0
        self.size = 0

    async def scrape(self, times: int, pause: float, wait: float) -> None:
        """Scrape so many times, at fixed moments that do not move when an answer is late."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        begun = time.monotonic() + wait
        for number in range(times):
            await asyncio.sleep(max(0.0, begun + number * pause - time.monotonic()))
            start = time.perf_counter()
            writer.write(REQUEST)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            found = re.search(rb"content-length: (\d+)", head)
            self.size = int(found[1]) if found else 0
            await reader.readexactly(self.size)
            self.seconds.append(time.perf_counter() - start)
            self.errors += not (
                b" 200 " in head.split(b"\r\n")[0] and b"content-encoding: gzip" in head
            )
        writer.close()


async def scrape_all(port: int, count: int, times: int, *, together: bool) -> list[Client]:
    """Scrape with all clients side by side; spread over the second, or all at the same moment."""
    clients = [Client(port) for _ in range(count)]
    waits = [1.0 if together else 1.0 + number / count for number in range(count)]
    await asyncio.gather(
        *(each.scrape(times, 1.0, wait) for each, wait in zip(clients, waits, strict=True))
    )
    return clients


def resident_megabytes(pid: int) -> float:
    """Return resident memory of the process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def await_port(log: Path) -> int:
    """Return the port that an exporter wrote to its log."""
    until = time.monotonic() + EXPORTER_SECONDS
    while time.monotonic() < until:
        time.sleep(0.5)
        if found := re.search(r"http://127.0.0.1:(\d+)/metrics", log.read_text()):
            return int(found[1])
    raise AssertionError(log.read_text())


def measure(pid: int, port: int, count: int, times: int, *, together: bool) -> dict[str, object]:
    """Return one row of the table: so many clients scrape an exporter, each so many times."""
    load, cpu = os.getloadavg()[0], cpu_seconds(pid)
    clients = asyncio.run(scrape_all(port, count, times, together=together))
    cpu = cpu_seconds(pid) - cpu
    seconds = sorted(value for each in clients for value in each.seconds)
    return {
        "clients": "at one moment" if together else "spread",
        "gzip_kilobytes": clients[0].size // 1000,
        "scrapes": len(seconds),
        "errors": sum(each.errors for each in clients),
        "p50_ms": 1000 * statistics.median(seconds),
        "p99_ms": 1000 * seconds[int(0.99 * len(seconds))],
        "max_ms": 1000 * seconds[-1],
        "exporter_cpu_ms_per_scrape": 1000 * cpu / len(seconds),
        "exporter_megabytes": resident_megabytes(pid),
        "load_before": load,
    }


def main() -> None:
    """Make groups until there are enough series, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--groups", type=int, default=320, help="each has a hundred partitions and some 158 series"
    )
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--scrapes", type=int, default=30, help="of each client")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        work = Path(folder)
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics([NewTopic("orders", PARTITIONS, 1)])
        groups = [f"group-{number}" for number in range(args.groups)]
        commit(admin, groups, 0)
        config = write_config(work, broker.bootstrap_servers, job__tick_seconds=5)
        words = [
            sys.executable,
            "-m",
            "laggard",
            "export",
            "--config",
            str(config),
            "--listen",
            "127.0.0.1:0",
        ]
        with running_job(work, config) as job, (work / "exporter.log").open("wb") as log:
            batch = await_batch(work, job, -1, 300)
            exporter = start_guarded(words, log)
            try:
                port = await_port(work / "exporter.log")
                batch = await_batch(work, job, batch.batch_id + 2, 300)
                time.sleep(5)  # until the exporter has looked again
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/metrics", timeout=60
                ) as answer:
                    series = sum(not line.startswith(b"#") for line in answer)
                rows = [
                    measure(exporter.pid, port, args.clients, args.scrapes, together=together)
                    for together in (False, True)
                ]
                ticks = await_batch(work, job, -1, 1).batch_id - batch.batch_id
                report(
                    "scrapes", [{**row, "series": series, "ticks_meanwhile": ticks} for row in rows]
                )
            finally:
                exporter.terminate()
                await_end(exporter, 20)
        admin.close()


if __name__ == "__main__":
    main()
