"""However the exporter is asked to end, and whenever: the promised exit code, soon, and without a
word of complaint.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import pytest

from demo.processes import comes_true
from exporter.harness import ask, slow_readers
from exporter.stops import LIMIT_SECONDS, Stop, changing_tables, start_exporter, stop_many, table
from patience import patient
from tables.fixtures import partition_row, write_batch

SOON_SECONDS = 5.0  # two for answers, two for the load under way, and one


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with changing_tables(tmp_path_factory.mktemp("tables")) as root:
        yield root


@contextmanager
def started(root: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """An exporter that serves, and its port."""
    with start_exporter(root) as process:
        try:
            assert process.stderr
            yield process, int(process.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
        finally:
            process.kill()


def check(stops: list[Stop]) -> None:
    print("\n".join(table(stops)))
    assert [stop for stop in stops if not stop.is_promised] == []
    assert [stop for stop in stops if "Traceback" in stop.error and stop.was_ours] == []
    assert max(stop.seconds for stop in stops) < patient(SOON_SECONDS)


@pytest.mark.nightly
def test_a_few_stops_at_random_moments_give_the_promised_code(root: Path) -> None:
    check(stop_many(root, 12, seed=1))


@pytest.mark.full
@pytest.mark.release
def test_200_stops_by_each_signal_at_random_moments_give_the_promised_code(root: Path) -> None:
    check(stop_many(root, 400, seed=2))


@pytest.mark.full
def test_a_second_signal_changes_nothing(root: Path) -> None:
    with started(root) as (process, _):
        for _ in range(20):
            process.send_signal(signal.SIGTERM)
            sleep(0.02)
        assert process.wait(LIMIT_SECONDS) == 0


def test_slow_readers_do_not_hold_up_the_end(root: Path) -> None:
    with started(root) as (process, port):
        assert comes_true(lambda: ask(port, "/-/ready")[0].status == 200, LIMIT_SECONDS)
        with slow_readers(port, 20):
            process.send_signal(signal.SIGTERM)
            assert process.wait(patient(SOON_SECONDS)) == 0


def is_opening(pid: int, path: Path) -> bool:
    """True if a thread of the process waits for the other end of a pipe: nothing else of the
    exporter does.
    """
    waits = [task / "wchan" for task in Path(f"/proc/{pid}/task").iterdir()]
    return path.is_fifo() and any(
        wait.read_text() in ("wait_for_partner", "fifo_open") for wait in waits
    )


@pytest.mark.full
def test_a_read_that_hangs_does_not_hold_up_the_end(tmp_path: Path) -> None:
    write_batch(tmp_path, partitions=[partition_row("g", "t", 0)])
    (data,) = (tmp_path / "batches").glob("date=*/*.parquet")
    data.unlink()
    os.mkfifo(data)  # who opens it to read waits for a writer
    with started(tmp_path) as (process, port):
        # a kernel that does not tell gets as long
        comes_true(lambda: is_opening(process.pid, data), 20)
        assert [ask(port, path)[1] for path in ("/-/healthy", "/-/ready")] == [
            b"ok\n",
            b"default: starting\n",
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait(patient(SOON_SECONDS)) == 0
