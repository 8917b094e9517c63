"""However the exporter is told to end, and whenever: the promised exit code, soon, and without a word of complaint."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.stops import LATEST_SECONDS, Stop, changing_tables, stop_exporter, stop_many, table

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
