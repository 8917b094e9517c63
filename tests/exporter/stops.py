"""Start `laggard export` on tables that change all the time, send it a signal at a random moment,
note how it ends.

As a program: `python tests/exporter/stops.py --runs 200` prints a table of exit codes and seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from threading import Event, Thread

REPOSITORY = Path(__file__).parents[2]
sys.path[:0] = [str(REPOSITORY / "lib"), str(REPOSITORY / "tests")]

from tables.fixtures import (  # noqa: E402
    batch_row,
    group_row,
    partition_row,
    topic_row,
    write_batch,
    write_rows,
)

# after the start, so that import, the first load and the refresh loop are all hit
LATEST_SECONDS = 4.0
GROUPS, PARTITIONS = 300, 40  # one load takes about as long as the pause between two
NEW_BATCH_SECONDS = 0.1
LIMIT_SECONDS = 120.0  # met only by what hangs, also on a busy machine
PROMISED = {signal.SIGTERM: 0, signal.SIGINT: 130}


@dataclass(frozen=True)
class Stop:
    """One run: what was sent when, and how the process ended."""

    signal: signal.Signals
    to_group: bool
    after_seconds: float
    # the process had reached its first line; before that the interpreter dies of the signal
    was_ours: bool
    code: int
    seconds: float  # from the signal to the end
    error: str

    @property
    def is_promised(self) -> bool:
        """True if the exit code is the promised one, or if it was not ours to give."""
        return self.code == PROMISED[self.signal] or not self.was_ours


def start_exporter(root: Path) -> subprocess.Popen[str]:
    """`laggard export` on a free port, with a process group of its own."""
    words = ["--set", f"job.tables={root}", "--set", "job.tick_seconds=2"]
    return subprocess.Popen(
        [sys.executable, "-m", "laggard", *words, "export", "--listen", "127.0.0.1:0"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "lib")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stop_exporter(root: Path, sig: signal.Signals, after_seconds: float, *, to_group: bool) -> Stop:
    """Start the exporter on the tables, send the signal so long after, and wait for its end."""
    with start_exporter(root) as process:
        time.sleep(after_seconds)
        was_ours = catches(process.pid, signal.SIGTERM)
        sent = time.perf_counter()
        with suppress(ProcessLookupError):
            (os.killpg if to_group else os.kill)(process.pid, sig)
        try:
            _, error = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, error = process.communicate()
        seconds = time.perf_counter() - sent
        return Stop(sig, to_group, after_seconds, was_ours, process.returncode, seconds, error)


def catches(pid: int, sig: signal.Signals) -> bool:
    """True if the process has a handler of its own for the signal (proc(5): SigCgt)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (caught,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (sig - 1) & 1)


@contextmanager
def changing_tables(root: Path) -> Iterator[Path]:
    """Tables with a new batch all the time, so that the exporter never rests."""
    stop = Event()
    now = datetime.now(timezone.utc)
    partitions = [partition_row(f"g{n}", "t", p) for n in range(GROUPS) for p in range(PARTITIONS)]
    versions = write_batch(
        root,
        1,
        now,
        partitions=partitions,
        groups=[group_row(f"g{n}") for n in range(GROUPS)],
        topics=[topic_row("t", p) for p in range(PARTITIONS)],
    )

    def write() -> None:
        batch_id = 1
        while not stop.wait(NEW_BATCH_SECONDS):
            batch_id += 1
            write_rows(root, "batches", [batch_row(batch_id, versions, datetime.now(timezone.utc))])

    writer = Thread(target=write)
    writer.start()
    try:
        yield root
    finally:
        stop.set()
        writer.join()


def stop_many(
    root: Path, runs: int, seed: int = 0, signals: Sequence[signal.Signals] = tuple(PROMISED)
) -> list[Stop]:
    """So many stops at random moments, some at a time; each signal to the process
    and to its group.
    """
    rng = random.Random(seed)
    plans = [
        (signals[n % len(signals)], rng.uniform(0, LATEST_SECONDS), n // len(signals) % 2 == 1)
        for n in range(runs)
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(
            pool.map(lambda plan: stop_exporter(root, plan[0], plan[1], to_group=plan[2]), plans)
        )


def table(stops: Sequence[Stop]) -> list[str]:
    """Exit codes and seconds per signal and addressee."""
    lines = ["signal   to       runs  exit codes               early  median s  longest s"]
    for sig in sorted({stop.signal for stop in stops}):
        for to_group in (False, True):
            found = [stop for stop in stops if (stop.signal, stop.to_group) == (sig, to_group)]
            if not found:
                continue
            ours = Counter(stop.code for stop in found if stop.was_ours)
            codes = ", ".join(f"{code}: {n}" for code, n in sorted(ours.items()))
            early = len(found) - ours.total()
            seconds = sorted(stop.seconds for stop in found)
            who = "group" if to_group else "process"
            middle, longest = seconds[len(found) // 2], seconds[-1]
            lines.append(
                f"{sig.name:8} {who:8} {len(found):4}  {codes:24} {early:5}  {middle:8.2f}  "
                f"{longest:9.2f}"
            )
    return lines


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signal", choices=[sig.name for sig in PROMISED], action="append")
    args = parser.parse_args()
    signals = [signal.Signals[name] for name in args.signal or [sig.name for sig in PROMISED]]
    with tempfile.TemporaryDirectory() as folder, changing_tables(Path(folder)) as root:
        stops = stop_many(root, args.runs, args.seed, signals)
    print("\n".join(table(stops)))
    for stop in stops:
        if not stop.is_promised:
            print(
                f"after {stop.after_seconds:.2f} s {stop.signal.name}: {stop.code} "
                f"{stop.error[-300:]!r}"
            )


if __name__ == "__main__":
    _main()
