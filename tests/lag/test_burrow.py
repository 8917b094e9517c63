"""Burrow's rules on ten commits, worked out by hand; a tick is ten seconds, and its commit is made
at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from laggard.lag.burrow import VERDICTS
from patience import some
from stream.simulation import ID_B, Simulation, commit, end


def follow(job: Simulation, steps: Sequence[tuple[int, int | None]]) -> str | None:
    """The verdict after ticks of (log end, committed offset or no commit)."""
    for log_end, offset in steps:
        at = job.now + timedelta(seconds=10)
        job.tick([end(log_end, start=0)], [] if offset is None else [commit(offset, at=at)])
    verdict: str | None = job.row["verdict"]
    return verdict


def steady(count: int, lag: int = 50) -> list[tuple[int, int]]:
    """Commits that move on by 100 a tick, always so far behind."""
    return [(1000 + 100 * n, 1000 + 100 * n - lag) for n in range(count)]


FALLING = [(1000 + 100 * n, 1000 + 100 * n - 500 + 10 * n) for n in range(11)]


@pytest.mark.examples
@pytest.mark.parametrize(
    ("steps", "expected"),
    some(
        [
            (FALLING, "ok"),
            (steady(11), "slow"),  # the lag never fell
            ([(1000 + 100 * n, 900 + 50 * n) for n in range(11)], "slow"),
            # one without lag excuses
            (steady(4) + [(1400, 1400)] + [(1500 + 100 * n, 1450) for n in range(6)], "ok"),
            ([*steady(10), (2000, 900)], "rewound"),
            (steady(1) + [(1100 + 10 * n, 950) for n in range(11)], "stalled"),
            (steady(11, lag=0), "ok"),
            # no lag before excuses no rewind
            ([*steady(10, lag=0), (2000, 0), (2100, 100), (2200, 200)], "rewound"),
            (
                steady(11, lag=0) + [(2100, 0)] + [(2200 + 100 * n, 100 * n) for n in range(1, 9)],
                "rewound",
            ),
            # ten on
            (
                steady(11, lag=0) + [(2100, 0)] + [(2200 + 100 * n, 100 * n) for n in range(1, 10)],
                "slow",
            ),
            # back where it was
            (
                steady(6) + [(1600, 1430)] + [(1700 + 100 * n, 1650 + 100 * n) for n in range(5)],
                "ok",
            ),
            # recovered, and the lag grows all the time
            (
                [(1000 + 100 * n, 900 + 50 * n) for n in range(6)]
                + [(1600, 1140)]
                + [(1700 + 100 * n, 1200 + 50 * n) for n in range(5)],
                "slow",
            ),
            # back from the second only
            ([*steady(11), (2100, 1000), (2200, 1500), (2300, 1400), (2400, 1600)], "rewound"),
            ([*steady(11), (2100, 1000), (2200, 1500), (2300, 1400), (2400, 1960)], "ok"),
        ]
    ),
)
def test_ten_commits_give_a_verdict(steps: list[tuple[int, int | None]], expected: str) -> None:
    assert expected in VERDICTS
    assert follow(Simulation(), steps) == expected


def test_no_commit_for_longer_than_nine_gaps_is_stopped_also_of_one_that_had_no_lag() -> None:
    job = Simulation()
    assert follow(job, steady(11, lag=0)) == "ok"
    assert follow(job, [(3000, None)] * 9) == "ok"  # 90 s, nine gaps of 10 s
    # the records came 100 s ago at least: an end point of each poll is kept
    assert follow(job, [(3000, None)] * 2) == "stopped"


def test_a_group_that_is_quiet_because_nothing_came_is_ok_when_something_comes() -> None:
    job = Simulation()
    follow(job, steady(11, lag=0))
    assert follow(job, [(2000, None)] * 20) == "ok"
    assert follow(job, [(2500, None)]) == "ok"  # unread for 10 s only


def test_fewer_than_ten_commits_and_what_is_not_ok_have_no_verdict() -> None:
    job = Simulation()
    assert follow(job, steady(10)) is None  # the lag at the first one is not known
    assert follow(job, [(2000, 1950)]) == "slow"
    job.tick([end(None, error="LEADER_NOT_AVAILABLE")])
    assert job.row["verdict"] is None
    assert follow(job, [(2200, 2150), (2300, 2250)]) == "slow"


def test_commits_of_a_topic_that_is_gone_do_not_count_for_the_one_that_has_its_name() -> None:
    job = Simulation()
    follow(job, steady(11))
    job.tick([end(10, topic_id=ID_B, start=0)], [commit(5, topic_id=ID_B)])
    assert job.row["rated"]["commits"] == 0
