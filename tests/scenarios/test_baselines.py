from __future__ import annotations

import pytest

from scenarios.baselines import Call, Commit, burrow_status, persistent

MINUTE = 60_000


def commits(*points: tuple[int, int]) -> list[Commit]:
    """A commit each minute: (offset, lag)."""
    return [Commit(number * MINUTE, offset, lag) for number, (offset, lag) in enumerate(points)]


@pytest.mark.parametrize(
    ("history", "minutes_later", "expected"),
    [
        pytest.param([(n, 10 - n) for n in range(10)], 0, "OK", id="lag falls"),
        pytest.param([(n, 5 + n) for n in range(10)], 0, "WARN", id="it moves and lag never falls"),
        pytest.param([(n, 5 + n % 2) for n in range(10)], 0, "OK", id="lag falls once"),
        pytest.param(
            [(n, 5 + n) if n != 4 else (n, 0) for n in range(10)], 0, "OK", id="lag was 0 once"
        ),
        pytest.param(
            [(7, 5 + n) for n in range(10)], 0, "STALL", id="the same offset again and again"
        ),
        pytest.param([(7, 5) for _ in range(10)], 0, "STALL", id="the same offset, the lag stays"),
        pytest.param(
            [(n, 5) for n in range(10)], 8, "WARN", id="silent for less than its ten commits took"
        ),
        pytest.param(
            [(n, 5) for n in range(10)],
            10,
            "STOP",
            id="silent for longer than its ten commits took",
        ),
        pytest.param(
            [(n, 5 + n) for n in range(9)], 0, "OK", id="nine commits are too few for a verdict"
        ),
        pytest.param(
            [(100 + n, 5) for n in range(8)] + [(3, 105), (4, 105)], 0, "REWIND", id="it went back"
        ),
        pytest.param(
            [(100 + n, 5) for n in range(4)] + [(99 + n, 9 - n) for n in range(6)],
            0,
            "OK",
            id="back again",
        ),
    ],
)
def test_a_partition_has_the_status_that_burrows_rules_give(
    history: list[tuple[int, int]], minutes_later: int, expected: str
) -> None:
    given = commits(*history)
    assert burrow_status(given, given[-1].at_ms + minutes_later * MINUTE, given[-1].lag) == expected


def test_who_has_read_everything_has_not_stopped() -> None:
    given = commits(*[(number, 3) for number in range(10)])
    assert burrow_status(given, given[-1].at_ms + 60 * MINUTE, current_lag=0) == "WARN"


def test_an_alarm_counts_once_it_has_held_for_three_windows_of_its_group() -> None:
    states = {"a": [True, True, False, True, True, True], "b": [True] * 6}
    calls = [
        Call(group, number * MINUTE, states[group][number], frozenset(), adds_consumers=False)
        for number in range(6)
        for group in ("a", "b")
    ]
    held = [(call.group, call.window_ms // MINUTE) for call in persistent(calls)]
    assert held == [("b", 2), ("b", 3), ("b", 4), ("a", 5), ("b", 5)]
