"""A crowd of bad clients at full size, and a flood of guesses: health answers, scrapes come, and
nothing grows.
"""

from __future__ import annotations

import shlex
import socket
import ssl
import statistics
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

import pytest

from demo.processes import comes_true
from exporter.crowd import HALF_OPEN, OVERSIZED, SILENT, crowd
from exporter.harness import LIMIT_SECONDS
from exporter.pki import make_pki
from patience import patient
from tables.fixtures import partition_row, write_batch

BENCH = str(Path(__file__).parents[2] / "bench")
sys.path.append(BENCH)
try:
    from abuse import MODES, ask, running_exporter, status
finally:
    sys.path.remove(BENCH)  # or bench/questions.py would hide the folder tests/questions

HEALTHY_SECONDS = 0.1  # promised for an idle machine
SCRAPE_SECONDS = 1.0
PROBES = 100


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_half_open_clients_harm_nobody(tmp_path: Path, mode: str) -> None:
    assert (HALF_OPEN, SILENT) == (1000, 50)
    assert OVERSIZED > 0
    pki = make_pki(tmp_path / "pki")
    rows = [partition_row(f"g{n}", "t", p) for n in range(20) for p in range(100)]
    write_batch(tmp_path / "tables", 1, datetime.now(timezone.utc), partitions=rows)
    key = MODES[mode]
    tls = ssl.create_default_context(cafile=str(pki / "ca.crt")) if key else None
    with running_exporter(tmp_path / "tables", pki, key) as (process, port):
        assert comes_true(lambda: ask(port, "/-/ready", tls)[0] == 200, LIMIT_SECONDS)
        before = status(process.pid)
        with crowd(port, 5, pki / "ca.crt" if key else None):
            # the crowd is complete when the limit on connections is reached, or nearly
            sockets = Path(f"/proc/{process.pid}/fd")
            assert comes_true(lambda: len(list(sockets.iterdir())) > 800, LIMIT_SECONDS)
            healthy = [ask(port, "/-/healthy", tls) for _ in range(PROBES)]
            scrapes = [ask(port, "/metrics", tls) for _ in range(5)]
            now = status(process.pid)
    assert {code for code, _ in (*healthy, *scrapes)} == {200}
    assert statistics.median(seconds for _, seconds in healthy) <= patient(HEALTHY_SECONDS)
    assert statistics.median(seconds for _, seconds in scrapes) <= patient(SCRAPE_SECONDS)
    assert now["Threads"] <= 80
    # a TLS connection takes 50 KB inside OpenSSL, which gives nothing back before it closes
    assert (now["VmRSS"] - before["VmRSS"]) / 1024 <= (100 if key else 50)


def test_a_low_limit_of_open_files_leaves_fewer_connections_and_room_to_answer(
    tmp_path: Path,
) -> None:
    write_batch(tmp_path, 1, datetime.now(timezone.utc), partitions=[partition_row("g", "t", 0)])
    script = "ulimit -n 300; exec " + shlex.join(
        [sys.executable, "-m", "laggard", "export", "--listen", "127.0.0.1:0"]
    )
    with (
        subprocess.Popen(
            ["bash", "-c", f"{script} --tables {tmp_path}"], stderr=subprocess.PIPE, text=True
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)
        lines = [process.stderr.readline() for _ in range(2)] if process.stderr else []
        assert "only 150 connections at once" in lines[0]
        port = int(lines[1].split("127.0.0.1:")[1].split("/")[0])
        for _ in range(400):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert [ask(port, path, None)[0] for path in ("/-/healthy", "/metrics")] == [200, 200]
        assert comes_true(lambda: ask(port, "/-/ready", None)[0] == 200, LIMIT_SECONDS)
