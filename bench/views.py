"""Seconds and memory of each shipped view by `laggard query`.

The tables hold a day of 1,000 partitions and 100,000 findings.

Each is asked by a process of its own, as a user does: once all of it, once for one group and day.
The tables are those of bench/questions.py, with more findings, rebalances and deploys, and are
removed at the end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from common import report

from laggard.cli.verbs.query.views import read_views
from questions import END, write_tables

DAY = END - timedelta(days=1)


def main() -> None:
    """Write the day, then ask."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--views", nargs="*", default=[])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        root, began = f"{folder}/tables", time.perf_counter()
        # not in this process: what it held would count as memory of the processes that it starts
        writing = get_context("spawn").Process(target=write_tables, args=(root, 1, 100))
        writing.start()
        writing.join()
        print(f"written in {time.perf_counter() - began:.0f} s", flush=True)
        config = Path(folder) / "laggard.toml"
        lines = (
            "[cluster]",
            'name = "prod"',
            'bootstrap_servers = ["127.0.0.1:1"]',
            "[job]",
            f'tables = "{root}"',
        )
        config.write_text(
            "\n".join([*lines, f'checkpoint = "{folder}/checkpoint"', ""]), encoding="utf-8"
        )
        names = args.views or list(read_views())
        answers = [
            ask(config, name, has_date="date" in dict(read_views()[name].columns)) for name in names
        ]
        report("views", answers)


def ask(config: Path, name: str, *, has_date: bool) -> dict[str, Any]:
    """Return all rows of a view, then those of one group; with its date if it has one."""
    everything = f"select * from {name}"  # noqa: S608 - the names are ours
    conditions = [f"date = date '{DAY:%Y-%m-%d}'"] * has_date + ["\"group\" = 'group-07'"] * (
        name != "gaps"
    )
    whole, one = (
        timed(config, sql) for sql in (everything, f"{everything} where {' and '.join(conditions)}")
    )
    return {
        "view": name, "rows": whole.rows, "seconds": whole.seconds, "cpu_seconds": whole.cpu,
        "peak_mb": whole.peak_mb,
        "group_rows": one.rows, "group_seconds": one.seconds, "group_cpu_seconds": one.cpu,
        "group_peak_mb": one.peak_mb,
    }  # fmt: skip


class Cost(NamedTuple):
    """Cost of one `laggard query`, its start included.

    A busy machine does not distort the CPU seconds.
    """

    rows: int
    seconds: float
    cpu: float
    peak_mb: int


def timed(config: Path, sql: str) -> Cost:
    """Ask for a Parquet file, in a process of its own."""
    target, began = config.with_name("answer.parquet"), time.perf_counter()
    target.unlink(missing_ok=True)
    words = [
        sys.executable,
        "-m",
        "laggard",
        "--config",
        str(config),
        "query",
        sql,
        "-o",
        str(target),
    ]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{sql}: status {status}")
    seconds = time.perf_counter() - began
    return Cost(
        pq.read_metadata(target).num_rows,
        seconds,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss // 1024,
    )


if __name__ == "__main__":
    main()
