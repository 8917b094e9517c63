"""Groups without members: whose commits are these, and since when is nobody there."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from diagnosis.groups import END_MS, GENERATION, WINDOWS, signals_of, topic_signals
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.no_readers import commits_stopped, empty_with_lag, external_committer
from laggard.diagnosis.signals.group import Signals


def empty_since(windows: int, *, commits_in: int, quiet_seconds: float = 600.0) -> Signals:
    """A group whose rows had no member for so many minutes; one commit, so many windows ago (1:
    newest).
    """
    commits = np.zeros((1, WINDOWS))
    commits[0, -commits_in] = 1.0
    rows = [{"members": 1}] * (WINDOWS - windows) + [{"members": 0}] * windows
    topic = topic_signals([50_000.0], history={"commits": commits, "consumed": 0.0}, slots=[""])
    parameters = Parameters(quiet_seconds=quiet_seconds)
    return signals_of(topic, state="Empty", member_count=0, group_facts=rows, parameters=parameters)


@pytest.mark.parametrize(
    ("commits_in", "codes"),
    [
        (9, ["EXTERNAL_COMMITTER"]),
        (10, []),  # the window in which the last member left: it committed before
    ],
)
def test_only_a_commit_after_the_last_member_left_is_from_outside(
    commits_in: int, codes: list[str]
) -> None:
    found = external_committer.check(empty_since(10, commits_in=commits_in))
    assert [each.code for each in found] == codes


@pytest.mark.parametrize(
    ("windows", "quiet_seconds", "codes"),
    [(10, 600, ["EMPTY_WITH_LAG"]), (9, 600, []), (2, 120, ["EMPTY_WITH_LAG"]), (1, 120, [])],
)
def test_an_empty_group_has_lag_once_it_has_been_quiet_for_long(
    windows: int, quiet_seconds: float, codes: list[str]
) -> None:
    found = empty_with_lag.check(empty_since(windows, commits_in=30, quiet_seconds=quiet_seconds))
    assert [each.code for each in found] == codes


@pytest.mark.parametrize(("commits_in", "codes"), [(16, []), (31, []), (32, ["EMPTY_WITH_LAG"])])
def test_a_reader_that_never_joins_may_commit_twice_as_seldom_as_before(
    commits_in: int, codes: list[str]
) -> None:
    signals = empty_since(WINDOWS, commits_in=commits_in)
    (topic,) = signals.topics
    slow = replace(topic, interval=np.full(1, 15.5 * 60))
    assert [each.code for each in empty_with_lag.check(replace(signals, topics=[slow]))] == codes


@pytest.mark.parametrize("away", [10, 60, 300, 500])
def test_members_that_die_before_a_window_ends_are_members_in_each_of_its_phases(away: int) -> None:
    """Each lives for 15 s and commits, or does not; no window ends with one."""
    for phase in range(15, away + 15, 15):
        generations = []
        for number in range(3600 // (away + 15)):
            left = moment((phase + number * (away + 15)) / 60)
            generations += [
                GENERATION
                | {"record_timestamp": left - timedelta(seconds=15), "joined": ["m"], "left": []},
                GENERATION
                | {"record_timestamp": left, "kind": "empty", "member_count": 0, "left": ["m"]},
            ]
        for commits in (1.0, 0.0):
            signals = signals_of(
                topic_signals([50_000.0], history={"commits": commits}, slots=[""]),
                state="Empty",
                member_count=0,
                group_facts=[{"members": 0}] * WINDOWS,
                generations=sorted(generations, key=lambda row: row["record_timestamp"]),
            )
            assert [*external_committer.check(signals), *empty_with_lag.check(signals)] == []


@pytest.mark.parametrize(("minutes", "codes"), [(8.9, []), (9.1, ["EXTERNAL_COMMITTER"])])
def test_a_commit_is_from_outside_once_the_last_member_has_been_gone_for_long(
    minutes: float, codes: list[str]
) -> None:
    gone = GENERATION | {
        "record_timestamp": moment(minutes),
        "kind": "empty",
        "member_count": 0,
        "left": ["m"],
    }
    history = replace(empty_since(10, commits_in=2).frame, generations=[gone])
    signals = replace(empty_since(10, commits_in=2), frame=history)
    assert [each.code for each in external_committer.check(signals)] == codes


@pytest.mark.parametrize(("consumed", "codes"), [(0.0, ["EMPTY_WITH_LAG"]), (500.0, [])])
def test_an_empty_group_whose_offset_moves_has_a_reader_where_commits_are_not_counted(
    consumed: float, codes: list[str]
) -> None:
    """A Flink job commits at checkpoints; by polls only that its offset moved on is seen."""
    moved = np.full((1, WINDOWS), np.nan)
    moved[0, -3] = consumed
    history = {"commits": np.nan, "repeats": np.nan, "interval": np.nan, "consumed": moved}
    signals = signals_of(
        topic_signals([50_000.0], history=history, slots=[""]),
        state="Empty",
        member_count=0,
        group_facts=[{"members": 0}] * WINDOWS,
    )
    assert [each.code for each in empty_with_lag.check(signals)] == codes


@pytest.mark.parametrize(
    ("interval", "codes"), [(5.0, ["COMMITS_STOPPED"]), (100.0, []), (np.nan, [])]
)
def test_commits_have_stopped_once_silence_lasts_for_five_of_their_intervals(
    interval: float, codes: list[str]
) -> None:
    commits = np.zeros((1, WINDOWS))
    commits[0, : WINDOWS - 7] = 1.0  # seven minutes ago, beyond the poll interval
    topic = topic_signals(
        [50_000.0], interval=interval, history={"commits": commits, "committed": 100.0}
    )
    assert [each.code for each in commits_stopped.check(signals_of(topic))] == codes


@pytest.mark.parametrize(
    ("commit_windows_ago", "codes"), [(None, ["COMMITS_STOPPED"]), (60, []), (30, [])]
)
def test_without_a_rhythm_commits_have_stopped_after_an_hour(
    commit_windows_ago: int | None, codes: list[str]
) -> None:
    commits = np.zeros((1, WINDOWS))
    if commit_windows_ago is not None:
        commits[0, -commit_windows_ago] = 1.0
    topic = topic_signals(
        [50_000.0], interval=np.nan, history={"commits": commits, "committed": 100.0}
    )
    assert [each.code for each in commits_stopped.check(signals_of(topic))] == codes


@pytest.mark.parametrize(("minutes", "state"), [(1.5, "fail"), (5.9, "fail"), (6.1, "pass")])
def test_silence_begins_with_the_newest_rebalance(minutes: float, state: str) -> None:
    """A member that polls too late is evicted and joins again: the poll interval of 5 minutes and a
    window show it.
    """
    commits = np.zeros((1, WINDOWS))
    commits[0, : WINDOWS - 20] = 1.0
    topic = topic_signals([50_000.0], history={"commits": commits, "committed": 100.0})
    rebalance = GENERATION | {"record_timestamp": moment(minutes)}
    (found,) = commits_stopped.check(signals_of(topic, generations=[rebalance]))
    assert found.guards["no_rebalance_since"] == state


def moment(minutes: float) -> datetime:
    """So long before the end of the evaluated window."""
    return datetime.fromtimestamp(END_MS / 1000 - 60 * minutes, timezone.utc)
