"""Shared parts of the benchmarks: a job as a child process, its CPU time, batches, the report.

For batches, the module has the wait until they are written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from laggard.demo.guard import await_end, start_guarded
from laggard.errors import LaggardError
from laggard.tables.published import Batch, newest_batch

RESULTS = Path(__file__).parent / "results"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def write_config(work: Path, bootstrap: str, **values: Any) -> Path:
    """Return a configuration for a job under `work`; values by dotted key with "__" for the dot."""
    keys = {
        "cluster__bootstrap_servers": [bootstrap],
        "job__tables": str(work / "tables"),
        "job__checkpoint": str(work / "checkpoint"),
        "job__master": "local[2]",
        "logging__format": "text",
        **values,
    }
    sections: dict[str, dict[str, Any]] = {}
    for name, value in keys.items():
        section, _, key = name.partition("__")
        sections.setdefault(section, {})[key] = value
    lines = [
        f"[{name}]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in keys.items())
        for name, keys in sections.items()
    ]
    path = work / "laggard.toml"
    path.write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    return path


@contextmanager
def running_job(work: Path, config: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `laggard run` as a child process until the block ends or this process is killed."""
    with (work / "job.log").open("ab") as log:
        process = start_guarded(
            [sys.executable, "-m", "laggard", "run", "--config", str(config), *options], log
        )
    try:
        yield process
    finally:
        process.terminate()
        await_end(process, 30)


def await_batch(
    work: Path, process: subprocess.Popen[bytes], after: int, seconds: float, kind: str = "tick"
) -> Batch:
    """Return the first batch of a kind with an id above `after`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            batch = newest_batch(str(work / "tables"))
        except LaggardError:
            batch = None
        if batch is not None and batch.batch_id > after and batch.kind == kind:
            return batch
        if process.poll() is not None:
            break
        time.sleep(0.1)
    log = (work / "job.log").read_text(errors="replace").splitlines()[-15:]
    raise SystemExit("no new batch; the job's log ends with:\n" + "\n".join(log))


def cpu_seconds(root: int) -> float:
    """Return CPU time of a process, its living descendants and their ended children."""
    parents: dict[int, list[int]] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.name))
        times[int(entry.name)] = sum(int(value) for value in fields[11:15]) / CLOCK_TICKS
    wanted, total = [root], 0.0
    while wanted:
        process = wanted.pop()
        total += times.get(process, 0.0)
        wanted += parents.get(process, [])
    return total


def report(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table and write it as JSON."""
    columns = list(rows[0])
    cells = [columns, *[[_text(row[column]) for column in columns] for row in rows]]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(list(rows), indent=2) + "\n", encoding="utf-8")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
