"""Rules D75 and D76: too many commits; commits by the clock, distinguished from commits by the
work.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from diagnosis.groups import WINDOWS, signals_of, topic_signals
from laggard.diagnosis.rules.clients import autocommit_pattern, commit_rate_high
from laggard.diagnosis.rules.rule import FAIL, INFO, PASS, UNKNOWN, Observation

Row = dict[str, Any]
PARTITIONS = 4
STEADY = [100.0] * WINDOWS
DAY_AND_NIGHT = [20.0] * (WINDOWS // 2) + [200.0] * (WINDOWS - WINDOWS // 2)


def totals(gaps_ms: Sequence[Sequence[float]], fact: Row) -> list[Row | None]:
    """Rows of group_history for windows with these gaps on every partition."""
    count = total = squares = 0.0
    rows: list[Row | None] = []
    for gaps in gaps_ms:
        count += PARTITIONS * len(gaps)
        total += PARTITIONS * sum(gaps)
        squares += PARTITIONS * sum(gap * gap for gap in gaps)
        row = {
            "commit_gaps_total": count,
            "commit_gap_ms_total": total,
            "commit_gap_squares_total": squares,
        }
        rows.append(fact | row)
    return rows


def evaluate(
    gaps_ms: Sequence[Sequence[float]],
    arrivals: Sequence[float] = STEADY,
    *,
    lag: float = 0.0,
    members: int | None = 2,
    **fact: Any,
) -> list[Observation]:
    history = {
        "commits": np.array([[len(gaps) for gaps in gaps_ms]] * PARTITIONS),
        "arrival": np.array([arrivals] * PARTITIONS),
    }
    topic = topic_signals([lag] * PARTITIONS, history=history, floor=10.0)
    facts = totals(gaps_ms, {"assignor": "range", **fact})
    return autocommit_pattern.check(signals_of(topic, group_facts=facts, member_count=members))


def every(period_ms: float, jitter: float = 0.0) -> list[list[float]]:
    """Gaps by window, each within this share of the period."""
    chance = random.Random(7)
    count = round(60_000 / period_ms)
    return [
        [period_ms * chance.uniform(1 - jitter, 1 + jitter) for _ in range(count)]
        for _ in range(WINDOWS)
    ]


@pytest.mark.parametrize(
    ("jitter", "is_recorded"),
    [(0.0, True), (0.01, True), (0.08, True), (0.10, False), (1.0, False)],
)
def test_gaps_that_are_alike_are_a_clock(jitter: float, is_recorded: bool) -> None:
    """A gap drawn evenly within ± j varies by j / √3: 0.046 and 0.058 lie on either
    side of 0.05.
    """
    found = evaluate(every(5000, jitter), DAY_AND_NIGHT)
    assert [each.code for each in found] == (["AUTOCOMMIT_PATTERN"] if is_recorded else [])
    for each in found:
        assert each.severity == INFO
        assert each.evidence["period_seconds"] == pytest.approx(5, rel=0.02)
        assert each.evidence["variation"] == pytest.approx(jitter / 3**0.5, abs=0.004)
        assert each.evidence["gaps"] >= 50 * PARTITIONS


def test_fifty_gaps_of_each_partition_are_needed() -> None:
    # the first window's are not in the difference
    few: list[list[float]] = [[]] * (WINDOWS - 5) + [[6000.0] * 10] * 5
    assert len(evaluate(few)) == 1
    assert evaluate([[]] * (WINDOWS - 4) + [[6000.0] * 10] * 4) == []


def test_the_newest_gaps_are_looked_at() -> None:
    """A stop of an hour ago is none of the commit intervals now."""
    assert len(evaluate([[5000.0] * 3, [600_000.0], *every(5000)[2:]])) == 1


def test_gaps_that_shrink_when_more_arrives_are_work() -> None:
    gaps = [
        [500_000 / rate] * round(60_000 * rate / 500_000) for rate in [50.0] * 30 + [100.0] * 30
    ]
    (found,) = evaluate(gaps, [50.0] * 30 + [100.0] * 30)
    assert (found.state, found.guards["independent_of_arrivals"]) == ("fails", FAIL)


def test_the_same_gaps_at_all_rates_are_surer_than_at_one() -> None:
    (sure,), (unsure,) = evaluate(every(5000), DAY_AND_NIGHT), evaluate(every(5000), STEADY)
    assert (sure.guards["independent_of_arrivals"], unsure.guards["independent_of_arrivals"]) == (
        PASS,
        UNKNOWN,
    )
    assert sure.confidence > unsure.confidence


def test_without_time_to_spare_even_gaps_may_be_even_work() -> None:
    (found,) = evaluate(every(5000), STEADY, lag=5000.0)
    assert (found.state, found.guards["not_back_to_back"]) == ("fails", FAIL)
    (clocked,) = evaluate(every(5000), DAY_AND_NIGHT, lag=5000.0)
    assert clocked.state == "holds"


@pytest.mark.parametrize(
    "fact",
    [
        {"group_type": "classic", "protocol_type": "connect"},
        {"group_type": "streams"},
        {"group_type": "share"},
        {"assignor": "stream"},
    ],
)
def test_what_commits_by_a_clock_of_its_own_is_no_auto_commit(fact: Row) -> None:
    assert evaluate(every(5000), DAY_AND_NIGHT, **fact) == []


def test_a_committer_without_members_is_no_consumer() -> None:
    assert evaluate(every(5000), DAY_AND_NIGHT, members=0) == []
    assert evaluate(every(5000), DAY_AND_NIGHT, members=None) == []


def test_the_rhythm_of_fetches_is_no_clock_of_commits() -> None:
    assert evaluate(every(500), DAY_AND_NIGHT) == []


def test_tables_of_an_older_job_say_nothing() -> None:
    topic = topic_signals([0.0] * PARTITIONS, history={"commits": 12.0})
    assert autocommit_pattern.check(signals_of(topic, member_count=2)) == []


def often(per_minute: Sequence[float]) -> list[float]:
    """What D75 says of so many commits a minute of each partition in the newest windows, nothing
    known of those before: commits per second.
    """
    known = [np.nan] * (WINDOWS - len(per_minute)) + list(per_minute)
    topic = topic_signals([0.0] * PARTITIONS, history={"commits": np.array([known] * PARTITIONS)})
    return [
        each.evidence["commits_per_second_and_partition"]
        for each in commit_rate_high.check(signals_of(topic))
    ]


def test_commits_are_too_many_once_they_have_been_for_ten_minutes() -> None:
    """Of 25 a second in four minutes, the six minutes before are unknown."""
    assert often([1500] * 4) == []
    assert often([1500] * 9) == []
    assert often([1500] * 10) == [25]
    assert often([600] * 30) == []
    assert often([0] * 20 + [1500] * 4) == []
    assert often([0] * 20 + [1500] * 5) == [12.5]


def test_windows_of_which_no_commits_are_known_are_left_out() -> None:
    assert often([900, 900, np.nan, 900, 900, np.nan, np.nan, 900, 900, 900]) == [15]
