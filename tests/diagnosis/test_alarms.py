"""Alarms of rebalancing groups from their first window to the last: found in time, once, and over
when it is over.
"""

from __future__ import annotations

import pytest

from diagnosis.alarms import Event, alarms
from diagnosis.rebalance_rows import pods

ALL = pods(1, 2, 3, 4)
BAD = 3003.0  # when it goes wrong


def backing_off(members: int, life: float, until: float, cap: float = 300.0) -> list[Event]:
    """All members die soon after each start, which their platform puts off twice as
    long each time.
    """
    slots, second, away = ALL[:members], BAD, 10.0
    events: list[Event] = [(10.0, slots, {})]
    while second < until:
        events += [(second, (), {}), (second + away, slots, {})]
        second, away = second + away + life, min(cap, 2 * away)
    return events


@pytest.mark.parametrize("life", [15.0, 50.0])
@pytest.mark.parametrize("members", [1, 3])
def test_a_whole_group_that_crashes_in_a_loop_is_found_once_and_for_as_long_as_it_lasts(
    members: int, life: float
) -> None:
    """Between two starts the group is empty for up to five minutes, which is most
    of its windows.
    """
    (opened,) = alarms(
        "CRASH_LOOP", backing_off(members, life, until=3000 + 5400), until=3000 + 5400
    )
    assert opened[1:] == ("" if members > 1 else "app/10.0.0.1", "")
    assert opened[0] - BAD < 60 * (8 if members == 1 else 10)


@pytest.mark.parametrize("members", [1, 3])
def test_a_crash_loop_is_over_once_nobody_rejoins(members: int) -> None:
    events = [each for each in backing_off(members, 15.0, until=6000) if each[0] < 4000]
    last = max(second for second, slots, _ in events if slots)
    found = alarms("CRASH_LOOP", [*events, (last + 15.0, (), {})], until=7200)
    assert [each[2] for each in found] == ["", "cleared"]
    assert found[1][0] - last < 3 * 300 + 6 * 60


@pytest.mark.parametrize("stopped", [BAD + 210.0, BAD + 600.0])
@pytest.mark.parametrize("gone", [3, 4])
def test_a_group_that_is_stopped_after_restarts_of_its_host_has_no_alarm(
    gone: int, stopped: float
) -> None:
    """Of four members so many are on that host."""
    events: list[Event] = [(10.0, ALL, {})]
    for second in (BAD, BAD + 70, BAD + 140):
        events += [(second, ALL[gone:], {}), (second + 20, ALL, {})]
    assert alarms("CRASH_LOOP", [*events, (stopped, (), {})], until=stopped + 2400) == []


@pytest.mark.parametrize("members", [2, 3])
def test_members_that_die_one_after_the_other_of_the_same_record_crash_in_a_loop(
    members: int,
) -> None:
    """Each gets the partitions of the one before, and leaves in order five seconds later."""
    slots = ALL[:members]
    events: list[Event] = [(10.0, slots, {})]
    for turn in range(10):
        second = BAD + 60.0 * turn
        events += [(second + 5.0 * number, slots[number + 1 :], {}) for number in range(members)]
        events += [(second + 30.0, slots, {})]
    found = alarms("CRASH_LOOP", events, until=BAD + 600)
    assert {each[1] for each in found} == {each.removesuffix("#0") for each in slots}
    assert {each[2] for each in found} == {""}


def failing(
    every: float, until: float, columns: dict[str, object], *, is_empty: bool = False
) -> list[Event]:
    """A leader whose first syncs fail in each rebalance, of a group that was empty before or was
    not.
    """
    events: list[Event] = [(10.0, ALL, {})]
    second = BAD
    while second < until:
        events += [(second - 30, (), {})] if is_empty else []
        events += [(second, ALL, columns)]
        second += every
    return events


@pytest.mark.parametrize(
    ("every", "lasts", "columns"),
    [
        (660.0, 2700.0, {"generation_gap": 4}),
        (720.0, 2700.0, {"generation_gap": 4}),
        # joined to one rebalance until its row is written
        (9.0, 600.0, {"generation_gap": 5, "row": False}),
    ],
)
def test_rebalances_that_are_cut_short_again_and_again_are_found_once_and_until_they_end(
    every: float, lasts: float, columns: dict[str, object]
) -> None:
    events = failing(every, BAD + lasts, columns)
    opened, closed = alarms("REBALANCE_INCOMPLETE", events, until=BAD + lasts + 1200)
    assert opened[0] - BAD <= every + 180
    assert (opened[2], closed[2]) == ("", "cleared")
    assert events[-1][0] < closed[0] <= events[-1][0] + 600 + 300 + 60


def test_a_group_that_starts_again_and_again_and_is_cut_short_each_time_is_found() -> None:
    events = failing(60.0, BAD + 900, {"generation_gap": 4}, is_empty=True)
    assert alarms("REBALANCE_INCOMPLETE", events, until=BAD + 900)[0][0] <= BAD + 300


@pytest.mark.parametrize("has_row", [True, False])
@pytest.mark.parametrize("empty_seconds", [20.0, 900.0])
def test_one_rebalance_that_ended_and_one_start_have_no_alarm(
    empty_seconds: float, *, has_row: bool
) -> None:
    """The leader fails once, three times in a row; later all members stop, and start 25 s apart."""
    events: list[Event] = [
        (10.0, ALL, {}),
        (BAD, ALL, {"generation_gap": 4, "row": has_row}),
        (BAD + 1860, (), {}),
    ]
    start = BAD + 1860 + empty_seconds
    events += [
        (start + 25.0 * n, ALL[: n + 1], {"generation_gap": 2, "row": has_row}) for n in range(4)
    ]
    assert alarms("REBALANCE_INCOMPLETE", events, until=start + 1200) == []
