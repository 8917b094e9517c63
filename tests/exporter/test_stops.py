"""However the exporter is told to end, and whenever: the promised exit code, soon, and without a word of complaint."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from exporter.harness import ask, slow_readers
from exporter.stops import LATEST_SECONDS, Stop, changing_tables, start_exporter, stop_exporter, stop_many, table

SOON_SECONDS = 15.0  # two for answers, two for the load under way, and a machine with much else to do


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with changing_tables(tmp_path_factory.mktemp("tables")) as root:
        yield root


def check(stops: list[Stop]) -> None:
    print("\n".join(table(stops)))
    assert [stop for stop in stops if not stop.is_promised] == []
    assert [stop for stop in stops if "Traceback" in stop.error and stop.was_ours] == []
    assert max(stop.seconds for stop in stops) < SOON_SECONDS


def test_a_few_stops_at_random_moments_give_the_promised_code(root: Path) -> None:
    check(stop_many(root, 12, seed=1))


@pytest.mark.full
def test_200_stops_by_each_signal_at_random_moments_give_the_promised_code(root: Path) -> None:
    check(stop_many(root, 400, seed=2))


def test_a_second_signal_changes_nothing(root: Path) -> None:
    stop = stop_exporter(root, signal.SIGTERM, LATEST_SECONDS, to_group=False, times=20)
    assert (stop.code, stop.was_ours) == (0, True)


def test_slow_readers_do_not_hold_up_the_end(root: Path) -> None:
    with start_exporter(root) as process, ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stderr
        port = int(process.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
        while ask(port, "/-/ready")[0].status != 200:
            time.sleep(0.1)
        with slow_readers(port, 20):
            process.send_signal(signal.SIGTERM)
            code = process.wait(SOON_SECONDS)
    assert code == 0
