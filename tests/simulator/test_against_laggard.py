"""Laggard's rows equal the simulated truth: every generation, and every partition
after every tick.
"""

from __future__ import annotations

from typing import Any

import pytest

from laggard.stream.tick.decoded import of_kind
from patience import some
from simulator.score import compare, milliseconds
from simulator.simulation import Laggard, Simulation, compacted, recall, run_through_laggard, ticks
from simulator.workloads import WORKLOADS

# seed, and which of its polls are ticks: all, or one of three
RUNS = ((1, 1), pytest.param(2, 3, marks=pytest.mark.full))
# statuses other than ok that a workload may bring
HIDDEN = {"hanging_transaction": {"source_blocked"}}


Lag = tuple[str, int | None, int | None, int | None]  # status, committed offset, lag, lost records


def lags(job: Laggard) -> dict[tuple[str, str, int], Lag]:
    rows: list[dict[str, Any]] = job.tables["partition_status"].to_pylist()
    return {
        (row["group"], row["topic"], row["partition"]): tuple(
            row[name] for name in ("status", "committed_offset", "lag", "lost_records")
        )
        for row in rows
        if row["committed_offset"] is not None
    }


def expected_lags(simulation: Simulation, number: int) -> dict[tuple[str, str, int], Lag]:
    polled = {(row["topic"], row["partition"]): row for row in simulation.polls[number].positions}
    found = {}
    for key, position in simulation.truth.positions[number].items():
        offset, end = position.visible_offset, position.log_end_offset
        if offset is None:
            continue
        if polled[key[1:]]["error"] is not None:
            found[key] = ("no_end_offset", offset, None, None)
        elif offset < position.log_start_offset:
            found[key] = ("below_log_start", offset, None, position.log_start_offset - offset)
        else:
            found[key] = ("ok", offset, end - offset, 0)
    return found


@pytest.mark.examples
@pytest.mark.parametrize(("seed", "step"), RUNS)
@pytest.mark.parametrize("workload", some(WORKLOADS))
def test_every_row_equals_the_truth(workload: str, seed: int, step: int) -> None:
    simulation, job = recall(workload, seed), Laggard()
    for number, polled, records in ticks(simulation, step):
        job.tick(polled, records)
        expected, found = expected_lags(simulation, number), lags(job)
        for key, (status, offset, *_) in found.items():
            if status in HIDDEN.get(workload, ()):
                assert offset == expected.pop(key)[1]
        assert {
            key: row for key, row in found.items() if row[0] not in HIDDEN.get(workload, ())
        } == expected
        outcomes = set(of_kind(job.tables["decoded"], "count")["outcome"].to_pylist())
        assert outcomes <= {"record", "tombstone"}
    right, wrong = compare(simulation, job.history)
    assert wrong == []
    assert right > 0


def test_generations_that_were_never_written_are_counted() -> None:
    gaps = [
        row["generation_gap"]
        for row in run_through_laggard(recall("interrupted_sync", 1)).history["generations"]
    ]
    assert gaps[1:] == [1, 3]


@pytest.mark.parametrize(
    "workload", ["static_restart", "static_duplicate", "modern_static_restart"]
)
def test_a_static_member_that_returns_is_an_event(workload: str) -> None:
    simulation = recall(workload, 1)
    events = [
        row
        for row in run_through_laggard(simulation).history["group_events"]
        if row["kind"] == "static_replacement"
    ]
    expected = [each["at_ms"] for each in simulation.truth.replacements]
    assert [milliseconds(row["event_at"]) for row in events] == expected
    assert expected


@pytest.mark.examples
@pytest.mark.parametrize(
    "workload",
    some(
        [
            "rolling_deploy",
            "static_restart",
            "group_deleted",
            "transactional",
            "modern_upgrade",
            "modern_downgrade",
        ]
    ),
)
def test_a_compacted_topic_leads_to_the_same_state(workload: str) -> None:
    simulation, late = recall(workload, 1), Laggard()
    late.tick(simulation.polls[-1], compacted(simulation.records))
    assert lags(late) == expected_lags(simulation, -1)
    whole = run_through_laggard(simulation)
    names = ["group", "group_type", "group_state", "generation", "members", "topics", "lag"]
    of_late, of_whole = (
        job.tables["group_status"].select(names).to_pylist() for job in (late, whole)
    )
    assert of_late == of_whole


def test_the_comparison_sees_a_wrong_row() -> None:
    simulation = recall("static_restart", 1)
    job = run_through_laggard(simulation)
    assert compare(simulation, job.history)[1] == []
    job.history["group_members"][0]["assigned"].pop()
    del job.history["generations"][0]
    assert len(compare(simulation, job.history)[1]) == 2
