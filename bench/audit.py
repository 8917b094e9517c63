"""Seconds and memory of `laggard audit` over one and three days of 1,000 partitions.

Memory must not grow.

The tables are those of bench/questions.py; they are made up, so some of their rows are called
wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from common import report, write_config

from laggard.tables.readers import open_table
from questions import write_tables


def main() -> None:
    """Write the days, then check them by a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, nargs="*", default=[1, 3])
    report("audit", [audit(days) for days in parser.parse_args().days])


def audit(days: int) -> dict[str, Any]:
    """Return one root with so many days."""
    with tempfile.TemporaryDirectory(prefix="laggard-bench-") as folder:
        config = write_config(Path(folder), "127.0.0.1:1", cluster__name="prod")
        root = f"{folder}/tables"
        # not in this process: what it held would count as memory of the processes that it starts
        writing = get_context("spawn").Process(target=write_tables, args=(root, days))
        writing.start()
        writing.join()
        rows = open_table(root, "lag_windows").to_pyarrow_dataset().count_rows()
        began = time.perf_counter()
        words = [sys.executable, "-m", "laggard", "--config", str(config), "audit", "--json"]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            raise SystemExit(f"audit: status {status}")
        seconds, cpu = time.perf_counter() - began, usage.ru_utime + usage.ru_stime
        return {
            "days": days, "lag_windows": rows, "seconds": seconds, "cpu_seconds": cpu,
            "peak_mb": usage.ru_maxrss // 1024,
        }  # fmt: skip


if __name__ == "__main__":
    main()
