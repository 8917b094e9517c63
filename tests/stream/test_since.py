"""Since when a group is in its state: true, or as long as it was observed, and never across what
lay between.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from laggard.rebalance.groups import Listing
from stream.simulation import NOON, Simulation, commit, end, generation

MEMBER = {"m": ("t",)}


def stable(*, listed: bool = False) -> Simulation:
    """A group that has been stable, or by the broker's list only, since the first
    tick at 12:00:10.
    """
    job = Simulation()
    records = [commit(50)] if listed else [generation(1, MEMBER), commit(50)]
    for number in range(6):
        new_records = [] if number else records
        job.tick([end(100)], new_records, listing=listing() if listed else None)
    assert job.groups["g"]["state_since"] == NOON + timedelta(seconds=10)
    return job


def listing() -> Listing:
    return Listing({"g": {"group_state": "Stable", "group_type": "classic"}}, {}, is_fresh=True)


def test_a_rebalance_between_two_ticks_ends_the_state_that_was() -> None:
    job = stable()
    job.tick([end(100)], [generation(2, MEMBER)])
    assert job.groups["g"]["state_since"] == job.now
    job.tick([end(100)], [generation(3, MEMBER), generation(4, MEMBER)])
    assert job.groups["g"]["state_since"] == job.now


def test_the_same_generation_after_a_gap_is_the_same_state() -> None:
    job = stable()
    job.tick([end(100)], [], seconds=1080)
    row = job.groups["g"]
    assert row["state_since"] == NOON + timedelta(seconds=10)
    assert row["watched_since"] == job.now


def test_another_generation_after_a_gap_is_not() -> None:
    job = stable()
    job.tick([end(100)], [generation(7, MEMBER)], seconds=1080)
    assert job.groups["g"]["state_since"] == job.now


@pytest.mark.parametrize(("seconds", "is_kept"), [(10, True), (60, True), (1080, False)])
def test_a_state_without_a_generation_is_known_as_long_as_it_was_observed(
    seconds: float, *, is_kept: bool
) -> None:
    job = stable(listed=True)
    job.tick([end(100)], [], seconds=seconds, listing=listing())
    row = job.groups["g"]
    assert row["state_since"] == (NOON + timedelta(seconds=10) if is_kept else job.now)
    assert (row["watched_since"] == row["state_since"]) or is_kept


def test_a_clock_that_is_set_is_no_gap_in_what_was_observed() -> None:
    job = stable(listed=True)
    job.tick([end(100)], [], seconds=3610, true_seconds=10, listing=listing())
    assert job.groups["g"]["state_since"] == NOON + timedelta(seconds=10)


def test_members_that_came_and_went_between_two_ticks_begin_another_emptiness() -> None:
    job = stable()
    job.tick([end(100)], [generation(2)])
    first = job.now
    job.tick([end(100)], [])
    assert job.groups["g"]["empty_since"] == first
    job.tick([end(100)], [generation(3, MEMBER), generation(4)])
    assert job.groups["g"]["empty_since"] == job.now
