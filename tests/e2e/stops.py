"""Start the job again and again and end it by a signal at a random moment; what became of it is
counted.

As a program: `python tests/e2e/stops.py 200 2` makes 200 runs, two side by side, and prints one
line for each and a table. The log of a run that was bad is kept, beside that of its seat.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path[:0] = [str(Path(__file__).parent.parent)]

from kafka.admin import KafkaAdminClient, NewTopic  # noqa: E402

from demo.processes import comes_true  # noqa: E402
from e2e.kit import START_LIMIT, STOP_LIMIT, Place, at, commit_simply, produce  # noqa: E402
from exporter.stops import catches  # noqa: E402
from laggard.demo.broker import Broker  # noqa: E402
from patience import patient  # noqa: E402

CODES = {signal.SIGTERM: 0, signal.SIGINT: 130}
SPREAD = 8.0  # seconds after the first batch in which the moment lies
COMPLAINT = re.compile(
    r"^.*(Traceback|internal error|SIGSEGV|Exception in thread|\tat \w+\.).*$", re.MULTILINE
)
MARK = "LAGGARD_TEST_RUN"  # in the environment of every process of a run


@dataclass(frozen=True)
class Stop:
    """To whom which signal went and when, and what became of the job."""

    sent: str
    moment: str
    code: int | None
    expected: int
    seconds: float
    left: int  # processes that were still there
    complaint: str  # the first line of a traceback, of a stack or of an internal error in the log

    @property
    def is_good(self) -> bool:
        in_time = self.seconds <= patient(STOP_LIMIT)
        return self.code == self.expected and in_time and not self.left and not self.complaint


class Seat:
    """A folder with tables of its own in which one run follows the other."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.place = Place(folder, servers)

    def run(self, dice: random.Random) -> Stop:
        """One run, from its start to what it leaves behind."""
        number = dice.choice([signal.SIGTERM, signal.SIGTERM, signal.SIGINT])
        whom = dice.choice(["process", "group", "cgroup"])
        is_early = dice.random() < 0.4
        place, mark = self.place, uuid4().hex
        newest = place.newest()
        before = newest.batch_id if newest else -1
        log_begin = place.log.stat().st_size if place.log.exists() else 0
        process = self._spawn(mark)
        try:
            start = time.monotonic()
            seconds = dice.uniform(1.0, 12.0) if is_early else dice.uniform(0.0, SPREAD)
            if not is_early:
                self._await_batch(process, before)
            self._sleep(process, seconds)
            # an interpreter that has not begun to run Python cannot have a handler
            comes_true(lambda: catches(process.pid, signal.SIGTERM), patient(10))
            moment = (
                f"{time.monotonic() - start:.1f} s after the "
                f"start{'' if is_early else ', with batches'}"
            )
            start = time.monotonic()
            _send(process, number, whom, mark)
            try:
                code: int | None = process.wait(patient(STOP_LIMIT))
            except subprocess.TimeoutExpired:
                code = None
            taken = time.monotonic() - start
            # the kernel takes down what was killed
            comes_true(lambda: not _processes(mark), patient(1))
            left = len(_processes(mark))
        finally:
            for each in _processes(mark):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            process.wait()
        log = place.log.read_bytes()[log_begin:].decode(errors="replace")
        found = COMPLAINT.search(log)
        complaint = found.group().strip() if found else ""
        stop = Stop(
            f"{number.name} to the {whom}", moment, code, CODES[number], taken, left, complaint
        )
        if not stop.is_good:
            (place.folder / f"bad-{mark}.log").write_text(f"{stop}\n{log}")
        return stop

    def _spawn(self, mark: str) -> subprocess.Popen[bytes]:
        place = self.place
        with place.log.open("ab") as log:
            return subprocess.Popen(
                (sys.executable, "-m", "laggard", "run", "--config", str(place.config)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=place.folder,
                env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", MARK: mark},
                start_new_session=True,
            )

    def _await_batch(self, process: subprocess.Popen[bytes], before: int) -> None:
        end = time.monotonic() + 3 * START_LIMIT
        while time.monotonic() < end:
            newest = self.place.newest()
            if newest is not None and newest.batch_id > before:
                return
            assert process.poll() is None, self.place.tail()
            time.sleep(0.2)
        raise AssertionError(f"no batch\n{self.place.tail()}")

    def _sleep(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        time.sleep(seconds)
        assert process.poll() is None, self.place.tail()


def _send(process: subprocess.Popen[bytes], number: signal.Signals, whom: str, mark: str) -> None:
    if whom == "process":
        process.send_signal(number)
    elif whom == "group":
        os.killpg(process.pid, number)
    else:
        for each in _processes(mark):
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(each, number)


def _processes(mark: str) -> list[int]:
    """Those of a run, by a variable that each inherits; what has ended and is not waited for yet
    has none.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@contextmanager
def seats(number: int, folder: Path) -> Iterator[list[Seat]]:
    """So many folders side by side on one broker."""
    with Broker() as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics([NewTopic("orders", 2, 1)])
        admin.close()
        produce(broker.bootstrap_servers, {at("orders", 0): 5})
        commit_simply(broker.bootstrap_servers, "g", {at("orders", 0): 3})
        yield [Seat(folder / f"seat{each}", broker.bootstrap_servers) for each in range(number)]


def run_stops(
    runs: int, side_by_side: int, folder: Path, seed: int, says: Any = print
) -> list[Stop]:
    """So many runs, so many of them at a time."""
    with seats(side_by_side, folder) as found, ThreadPoolExecutor(side_by_side) as pool:

        def some(seat: int) -> list[Stop]:
            stops = []
            for number in range(seat, runs, side_by_side):
                stop = found[seat].run(random.Random(1000 * seed + number))
                says(f"{number} {'good' if stop.is_good else 'BAD'} {stop}", flush=True)
                stops.append(stop)
            return stops

        return [each for stops in pool.map(some, range(side_by_side)) for each in stops]


def table(stops: list[Stop]) -> str:
    """One line for each signal and target."""
    lines = [
        "| signal | runs | good | exit codes | longest | processes left | complaints |",
        "|---|---|---|---|---|---|---|",
    ]
    for sent in sorted({each.sent for each in stops}):
        of = [each for each in stops if each.sent == sent]
        codes = ", ".join(
            f"{count} x {code}" for code, count in Counter(each.code for each in of).most_common()
        )
        left, complaints = sum(each.left for each in of), sum(bool(each.complaint) for each in of)
        good, longest = sum(each.is_good for each in of), max(each.seconds for each in of)
        lines.append(
            f"| {sent} | {len(of)} | {good} | {codes} | {longest:.1f} s | {left} | {complaints} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    RUNS, SIDE_BY_SIDE = int(sys.argv[1]), int(sys.argv[2])
    ENDED = run_stops(
        RUNS, SIDE_BY_SIDE, Path(tempfile.mkdtemp(prefix="stops-")), seed=int(time.time())
    )
    print(table(ENDED))
    print(
        f"{sum(each.is_good for each in ENDED)} of {len(ENDED)} good; slowest "
        f"{max(e.seconds for e in ENDED):.1f} s"
    )
