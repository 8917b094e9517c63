"""Rates between commits: how commits fall into windows changes nothing, and groups drawn at random
bear it out.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from diagnosis.groups import topic_signals
from diagnosis.paced import draw_group, report, run
from laggard.diagnosis.signals.rates import Positions, positions

# groups that are short of members, and as many others
EXAMPLES = int(os.environ.get("LAGGARD_RATE_EXAMPLES", "12"))


def commits_each(seconds: float, rate: float, *, windows: int = 60, until: int = 60) -> Positions:
    """One partition that is read at `rate` records/s and commits each so many seconds, for `until`
    windows.
    """
    ends = 60.0 * np.arange(windows + 1)
    instants = np.minimum(seconds * np.floor(ends / seconds), 60.0 * until)
    history: dict[str, Any] = {
        "consumed": rate * np.diff(instants),
        "frozen": (ends - instants)[1:],
    }
    return positions(
        topic_signals([1e6], history=history, interval=seconds, windows=windows).frame, 60
    )


@pytest.mark.parametrize("seconds", [5.0, 25.0, 50.0, 59.0, 61.0, 90.0, 125.0, 180.0, 200.0, 700.0])
@pytest.mark.parametrize("windows", [1, 2, 5])
def test_a_rate_is_exact_whatever_the_commit_interval(seconds: float, windows: int) -> None:
    found = commits_each(seconds, 300.0).rates(windows)[0]

    assert found[~np.isnan(found)] == pytest.approx(300.0)
    assert (~np.isnan(found[-25:])).all()


def test_one_commit_says_nothing_about_a_rate() -> None:
    # the second one comes after 1 400 s
    assert np.isnan(commits_each(700.0, 300.0).rates(5)[0, :23]).all()


@pytest.mark.parametrize("windows", [1, 5])
def test_what_is_overdue_by_half_an_interval_is_part_of_the_rate(windows: int) -> None:
    """The newest commit is after 3 000 s; ten minutes later nothing was done in the
    newest windows.
    """
    assert commits_each(60.0, 300.0, until=50).newest_rates(windows) == pytest.approx([0.0])


def test_an_idle_partition_is_read_at_the_rate_of_now_when_records_come_again() -> None:
    consumed = np.where(np.arange(60) >= 58, 6000.0, 0.0)
    # nothing was left before
    history = {"consumed": consumed, "frozen": np.where(consumed > 0, 10.0, 0.0)}

    found = positions(topic_signals([0.0], history=history, interval=20.0).frame, 60)

    assert found.newest_rates(1) == pytest.approx([100.0])


def test_windows_of_which_nothing_is_known_do_not_count_as_time() -> None:
    history = {
        "consumed": np.where(np.arange(60) % 2 == 0, np.nan, 6000.0),
        "frozen": 0.0,
        "commits": 1.0,
    }

    assert positions(topic_signals([0.0], history=history).frame, 60).newest_rates(
        5
    ) == pytest.approx([100.0])


@pytest.mark.parametrize(
    ("between", "start", "expected"),
    [
        # the rest may have been deleted before it was read
        (1000.0, 4000.0, (7000.0 - 4000.0) / 120),
        (1000.0, 500.0, np.nan),  # retention passed the commit later than the log start was polled
        (1000.0, 9000.0, 0.0),
        (np.nan, 4000.0, np.nan),  # in two windows of which nothing is known
    ],
)
def test_the_least_that_was_read_in_a_gap_with_a_jump_is_what_retention_had_not_deleted(
    between: float, start: float, expected: float
) -> None:
    """Commits come every two minutes; the newest one, in the last window, passed
    deleted records.
    """
    numbers = np.arange(60)
    committed = 1000.0 + 6000.0 * 2 * ((numbers - 57) // 2)
    committed[-2:] = between, 7000.0
    consumed = np.append(np.nan, np.diff(committed))
    consumed[-1] = np.nan
    frozen = np.where(numbers % 2 == 1, 0.0, 60.0)
    history = {
        "consumed": consumed,
        "committed": committed,
        "start": np.where(numbers < 59, -1e6, start),
        "frozen": frozen,
        "commits": 1.0,
    }
    found = positions(topic_signals([1e6], history=history, interval=120.0).frame, 60)

    assert found.gap_rates(2)[0] == pytest.approx([expected], nan_ok=True)
    assert found.gap_rates(2)[1] == pytest.approx([100.0])


def test_an_answer_after_polls_without_one_holds_what_was_done_meanwhile() -> None:
    """Where commits are polled, they are not counted."""
    history = {
        "consumed": np.where(np.arange(60) % 2 == 0, np.nan, 12000.0),
        "frozen": np.tile([np.nan, 0.0], 30),
    }

    assert positions(topic_signals([0.0], history=history).frame, 60).newest_rates(
        4
    ) == pytest.approx([100.0])


@pytest.mark.full
def test_overload_is_found_soon_and_room_is_never_called_a_shortage() -> None:
    """By 5 to 30 %, at 5 to 200 s between commits, 1 to 100 000 records/s, on up to
    60 partitions.
    """
    short = run([draw_group(seed, is_short=True) for seed in range(EXAMPLES)])
    calm = run([draw_group(seed, is_short=False) for seed in range(EXAMPLES)])
    figures = report([*short, *calm])

    # six points make a trend
    limits = {each.plan.number: max(15.0, 6 * each.plan.interval / 60) for each in short}
    opened = [each.opened is not None and each.opened <= limits[each.plan.number] for each in short]
    assert sum(opened) >= 0.9 * len(short), figures
    assert [each for each in (*short, *calm) if each.alarms or each.yes or each.fewer] == [], (
        figures
    )
    assert sum(each.changes for each in calm) == 0, figures
