"""Readings of the clocks: what truly passed, and what the wall clock made of it."""

from __future__ import annotations

import time

import pytest

from laggard.sources.clock import Reading, read_clock

START = Reading(1_000_000, "boot", 500_000, 400_000)


@pytest.mark.parametrize(
    ("wall_ms", "boot_ms", "seconds", "back"),
    [
        (10_000, 10_000, 10, 0),
        (-3_590_000, 10_000, 10, 3600),
        (9_950, 10_000, 10, 0.05),
        (3_610_000, 10_000, 10, 0),
    ],
)
def test_a_clock_that_was_set_is_distinguished_from_time_that_passed(
    wall_ms: int, boot_ms: int, seconds: float, back: float
) -> None:
    later = Reading(
        START.wall_ms + wall_ms, "boot", START.boot_ms + boot_ms, START.awake_ms + boot_ms
    )
    assert later.seconds_since(START) == seconds
    assert later.set_back_since(START) == pytest.approx(back)
    assert later.suspended_since(START) == 0


def test_time_in_which_the_machine_was_suspended_is_counted_apart() -> None:
    later = Reading(
        START.wall_ms + 100_000, "boot", START.boot_ms + 100_000, START.awake_ms + 10_000
    )
    assert (later.seconds_since(START), later.suspended_since(START)) == (100, 90)


@pytest.mark.parametrize(
    "other", [Reading(0), Reading(0, "another", 1, 1), Reading(0, "boot", 900_000, 900_000)]
)
def test_readings_of_different_boots_do_not_compare(other: Reading) -> None:
    assert START.seconds_since(other) is None
    assert (START.set_back_since(other), START.suspended_since(other)) == (0, 0)


def test_the_clocks_of_this_machine_run() -> None:
    before = read_clock()
    time.sleep(0.01)
    passed = read_clock().seconds_since(before)
    assert passed is not None
    assert 0.005 < passed < 60
    assert before.boot_id
