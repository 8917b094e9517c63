"""Where a policy says read_committed, lag counts to the last stable offset, as the group can read
no further.
"""

from __future__ import annotations

import pytest

from laggard.config.policy import Policies, PolicyRule
from stream.simulation import Row, Simulation, commit, end

POLICIES = Policies((PolicyRule("committed", values={"isolation": "read_committed"}),))


def job(policies: Policies | None = POLICIES) -> Simulation:
    return Simulation(policies=policies)


def ends(log_end: int, stable: int | None) -> list[Row]:
    return [end(log_end) | {"last_stable_offset": stable}]


def both(offset: int) -> list[object]:
    return [commit(offset, group="committed"), commit(offset, group="any")]


def rows(simulation: Simulation) -> tuple[Row, Row]:
    """The rows of the group that reads committed records only, and of the one that reads all."""
    every, committed = simulation.rows
    return committed, every


def test_lag_is_to_the_last_stable_offset_for_these_groups_only() -> None:
    simulation = job()
    simulation.tick(ends(100, 60), both(50))
    committed, every = rows(simulation)
    assert (committed["status"], committed["lag"], committed["log_end_offset"]) == ("ok", 10, 60)
    assert (every["status"], every["lag"], every["log_end_offset"]) == ("ok", 50, 100)


def test_a_group_at_the_last_stable_offset_has_no_time_lag() -> None:
    simulation = job()
    simulation.tick(ends(60, 60), both(60))
    for log_end in (70, 80, 90):
        simulation.tick(ends(log_end, 60))
    committed, every = rows(simulation)
    assert (committed["lag"], committed["time_lag_seconds"], committed["time_lag_method"]) == (
        0,
        0.0,
        "caught_up",
    )
    assert every["lag"] == 30
    assert every["time_lag_seconds"] > 0
    assert committed["arrival_rate"] == 0  # nothing arrived that it can read


def test_a_commit_beyond_the_last_stable_offset_proves_that_the_group_reads_on() -> None:
    simulation = job()
    for _ in range(4):
        simulation.tick(ends(100, 60), both(80) if simulation.poll_id == 0 else [])
    committed, _ = rows(simulation)
    assert (committed["status"], committed["lag"], committed["ahead_records"]) == ("ok", 0, 0)


def test_a_commit_beyond_the_log_itself_is_ahead() -> None:
    simulation = job()
    for _ in range(4):
        simulation.tick(ends(100, 60), both(180) if simulation.poll_id == 0 else [])
    committed, every = rows(simulation)
    assert (
        (committed["status"], committed["ahead_records"])
        == (every["status"], 80)
        == ("committed_ahead", 80)
    )


@pytest.mark.parametrize(
    ("log_end", "error"), [(100, "NO_STABLE_OFFSET"), (None, "LEADER_NOT_AVAILABLE")]
)
def test_without_a_last_stable_offset_the_end_is_unknown_and_says_why(
    log_end: int | None, error: str
) -> None:
    simulation = job()
    given = end(log_end, error=None if log_end else error) | {"last_stable_offset": None}
    simulation.tick([given], both(50))
    committed, every = rows(simulation)
    assert (committed["status"], committed["lag"], committed["error"]) == (
        "no_end_offset",
        None,
        error,
    )
    assert every["lag"] == (50 if log_end else None)


def test_without_a_policy_nothing_changes() -> None:
    simulation = job(None)
    simulation.tick(ends(100, 60), both(50))
    assert [row["lag"] for row in simulation.rows] == [50, 50]


def test_only_policies_of_the_cluster_make_the_poll_ask_for_it() -> None:
    other = Policies((PolicyRule("*", cluster="other", values={"isolation": "read_committed"}),))
    plain = Policies((PolicyRule("*", values={"isolation": "read_uncommitted"}),))
    assert [each.reads_committed("c") for each in (Policies(), other, plain, POLICIES)] == [
        False,
        False,
        False,
        True,
    ]
