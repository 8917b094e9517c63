"""The simulator is right about Kafka: the same workloads, run by Java consumers on a broker, give
the same rows.

What a row says must be equal, times as near as heartbeats, commit intervals and batches let them
be.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from calibration.agreement import differences, time_differences
from calibration.members import Workload
from calibration.real import run_on_kafka
from calibration.rows import Rows, rows_by_group
from calibration.simulated import simulate
from calibration.workloads import WORKLOADS
from differential.kafka import NoCompilerError
from laggard.demo.broker import Broker

INITIAL_DELAY_MS = "3000"  # Kafka's default, and the simulator's
RUNS = 5
pytestmark = pytest.mark.nightly  # needs a Java compiler, and minutes
by_workload = pytest.mark.parametrize(
    "workload", WORKLOADS, ids=[workload.name for workload in WORKLOADS]
)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, simulated: dict[str, Rows]) -> dict[str, Rows]:
    """Rows of the real members, of each workload from the first run in which it agrees, or else
    from the last one.

    A busy machine keeps members from their times now and then; where the simulator is wrong, no run
    agrees.
    """
    agreed: dict[str, Rows] = {}
    for _ in range(RUNS):
        rows = _real_rows(tmp_path_factory.mktemp("calibration"))
        agreed = {
            workload.name: rows[workload.name]
            for workload in WORKLOADS
            if not _all_differences(workload, rows, simulated)
        } | agreed
        if len(agreed) == len(WORKLOADS):
            break
    return rows | agreed


def _real_rows(folder: Path) -> dict[str, Rows]:
    with Broker(properties={"group.initial.rebalance.delay.ms": INITIAL_DELAY_MS}) as broker:
        try:
            return rows_by_group(run_on_kafka(broker, folder))
        except NoCompilerError:
            pytest.skip(
                "java has no compiler here (Debian: apt-get install openjdk-17-jdk-headless)"
            )


def _all_differences(
    workload: Workload, real: dict[str, Rows], simulated: dict[str, Rows]
) -> list[str]:
    pair = (real[workload.name], simulated[workload.name])
    return [*differences(workload, *pair), *time_differences(workload, *pair)]


@pytest.fixture(scope="module")
def simulated() -> dict[str, Rows]:
    return {
        workload.name: rows_by_group(simulate(workload, 1))[workload.name] for workload in WORKLOADS
    }


@pytest.mark.broker
@by_workload
def test_the_rows_say_the_same(
    workload: Workload, real: dict[str, Rows], simulated: dict[str, Rows]
) -> None:
    assert differences(workload, real[workload.name], simulated[workload.name]) == []


@pytest.mark.broker
@by_workload
def test_the_times_are_near(
    workload: Workload, real: dict[str, Rows], simulated: dict[str, Rows]
) -> None:
    assert time_differences(workload, real[workload.name], simulated[workload.name]) == []


@by_workload
def test_another_seed_gives_the_same_rows(workload: Workload, simulated: dict[str, Rows]) -> None:
    again = rows_by_group(simulate(workload, 2))[workload.name]
    assert differences(workload, again, simulated[workload.name]) == []
    assert time_differences(workload, again, simulated[workload.name]) == []


def test_another_session_is_seen(simulated: dict[str, Rows]) -> None:
    [workload] = [each for each in WORKLOADS if each.name == "expiry"]
    longer = replace(workload, settings=replace(workload.settings, session_ms=12_000))
    rows = rows_by_group(simulate(longer, 1))[workload.name]
    assert "rebalances 1 unread_window_seconds: 12.0, simulated 6.0" in differences(
        workload, rows, simulated[workload.name]
    )
    assert "rebalances 1 pause_max_seconds" in " ".join(
        time_differences(workload, rows, simulated[workload.name])
    )
