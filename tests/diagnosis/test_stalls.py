"""Stalled partitions: not a marker at the end of a log, not a reader that a transaction holds."""

from typing import Any

import numpy as np
import pytest

from diagnosis.groups import WINDOWS, signals_of, topic_signals
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.stalls import partition_stalled
from laggard.diagnosis.signals import compute, stall
from laggard.diagnosis.signals.trend import TrendState
from laggard.diagnosis.verdict.decisions import scale_verdict
from laggard.diagnosis.verdict.sizing import Sizing


def kinds(
    lag: float,
    frozen_seconds: float,
    produced: dict[int, float],
    windows: list[dict[str, Any]] | None = None,
) -> tuple[str, ...]:
    """Of one owned partition; `produced` is records by window, 1 the newest."""
    arrived = np.zeros(WINDOWS)
    for back, records in produced.items():
        arrived[-back] = records
    history = {"frozen": frozen_seconds, "produced": arrived, "committed": 500.0, "repeats": 9.0}
    frame = topic_signals([lag], history=history, facts={"windows": {0: windows or []}}).frame
    return stall.stalls(frame, has_members=True, window_seconds=60, parameters=Parameters())


@pytest.mark.parametrize(
    ("lag", "produced", "expected"),
    [
        # the last records, and the marker behind them: they came before the stop
        (1, {4: 5000.0}, ""),
        (1, {2: 1.0}, "repeating"),  # one came since
        (20, {4: 5000.0}, "repeating"),  # so many are no marker
        (20, {}, ""),  # nothing arrived at all
    ],
)
def test_a_marker_at_the_end_of_an_idle_log_is_no_stall(
    lag: float, produced: dict[int, float], expected: str
) -> None:
    assert kinds(lag, 200.0, produced) == (expected,)


@pytest.mark.parametrize(
    ("stable", "end", "expected"),
    [
        (500, 9000, "held"),
        (480, 9000, "held"),
        (502, 9000, "held"),  # two markers lie between
        (506, 9000, "repeating"),
        (9000, 9000, "repeating"),
        (None, 9000, "repeating"),
    ],
)
def test_a_reader_at_the_last_stable_offset_is_held_by_a_transaction(
    stable: Any, end: int, expected: str
) -> None:
    rows = [{"last_stable_offset": stable, "log_end_offset": end}]
    assert kinds(8500, 200.0, {1: 5000.0}, rows) == (expected,)


@pytest.mark.parametrize(
    ("kind", "codes", "verdict"),
    [("held", [], "NO_BROKER"), ("repeating", ["PARTITION_STALLED"], "NO_STALLED")],
)
def test_more_members_do_not_help_where_a_transaction_holds_the_readers(
    kind: str, codes: list[str], verdict: str
) -> None:
    topic = topic_signals([9000.0, 10.0], stalled={0: kind}, slots=["m0", "m1"])
    signals = signals_of(topic, capacity=600.0)
    assert [each.code for each in partition_stalled.check(signals)] == codes
    assert scale_verdict(signals, {}, Sizing()).code == verdict


@pytest.mark.parametrize(
    ("interval", "frozen_seconds", "expected"),
    [
        (np.nan, 299, ""),
        (np.nan, 300, "silent"),
        (5.0, 299, "silent"),
        (120.0, 299, ""),
        (120.0, 360, "silent"),
    ],
)
def test_a_first_batch_may_take_all_of_the_poll_interval(
    interval: float, frozen_seconds: float, expected: str
) -> None:
    arrived = {"frozen": frozen_seconds, "produced": 6000.0, "consumed": 0.0, "repeats": 0.0}
    frame = topic_signals([9000.0], interval=interval, history=arrived).frame
    found = stall.stalls(
        frame,
        has_members=True,
        window_seconds=60,
        parameters=Parameters(),
        poll_interval_seconds=300.0,
    )
    assert found == (expected,)


@pytest.mark.parametrize(("frozen_seconds", "expected"), [(660, ""), (1259, ""), (1260, "silent")])
def test_before_the_interval_is_known_a_silence_that_has_ended_is_one_that_may_come_again(
    frozen_seconds: float, expected: str
) -> None:
    """Commits come each seven minutes, and the poll interval is five: three such silences are too
    many.
    """
    age = np.arange(WINDOWS - 1, -1, -1)
    frozen = np.where(
        age <= 22, np.maximum(0.0, frozen_seconds - 60.0 * age), 420.0 - 60.0 * ((age - 22) % 7)
    )
    has_moved = age == 21
    history = {
        "frozen": np.where(age == 22, 420.0, frozen),
        "consumed": np.where(has_moved, 9000.0, 0.0),
    }
    frame = topic_signals(
        [9000.0], interval=np.nan, history=history | {"produced": 6000.0, "repeats": 0.0}
    ).frame
    found = stall.stalls(
        frame,
        has_members=True,
        window_seconds=60,
        parameters=Parameters(),
        poll_interval_seconds=300.0,
    )
    assert found == (expected,)


def turns(
    frozen_seconds: float | None = None,
    caught_up: int | None = None,
    other: int | None = None,
    *,
    reset: bool = False,
) -> list[str]:
    """Kinds of three partitions that their owner works on in turn, each moving 30 s before the end
    of every third window, with three times 5000 records to read. The first one stands for so long
    instead; all was read so many windows ago; the first one has another owner since so many
    windows; before it stood it had none, and its offset was reset after it had stood for long.
    """
    window, number = np.arange(WINDOWS), np.arange(3)[:, None]
    since = (window - number) % 3
    frozen, committed = 30.0 + 60.0 * since, 10.0 * (window - since)
    if frozen_seconds is not None:
        frozen[0, :] = np.maximum(0.0, frozen_seconds - 60.0 * window[::-1])
        committed[0, :] = np.where(frozen[0] > 0, 0.0, -100.0 + window)
    lag = np.full((3, WINDOWS), 5000.0)
    if caught_up is not None:
        lag[:, -caught_up] = 0.0
    slot = np.full((3, WINDOWS), "m0", object)
    if other is not None:
        slot[0, -other:] = "m1"
    if reset:
        begin = WINDOWS - 1 - int(frozen_seconds or 0) // 60
        slot[:, begin - 1] = ""
        frozen[0, :begin] = 1200.0 + 60.0 * window[:begin]
        committed[0, :begin] = -1000.0
    commits = {
        "commits": 4.0,
        "noops": np.where(np.diff(committed, axis=1, prepend=0.0) > 0, 3.0, 4.0),
    }
    history = {
        "frozen": frozen,
        "committed": committed,
        "lag_min": lag,
        "slot": slot,
        "repeats": 8.0,
    } | commits
    frame = topic_signals([5000.0] * 3, history=history, slots=["m0"] * 3).frame
    floor = np.full(3, 100.0)
    found = stall.stalls(
        frame, has_members=True, window_seconds=60, parameters=Parameters(), floor=floor
    )
    return list(found)


def test_partitions_that_their_owner_works_on_in_turn_are_not_stalled() -> None:
    """Each stands for 180 s at a time, longer than 60 s and three commit intervals."""
    assert turns() == ["", "", ""]


def test_a_partition_that_is_left_out_for_three_turns_is_stalled() -> None:
    assert turns(539.0) == ["", "", ""]
    assert turns(540.0) == ["repeating", "", ""]


def test_turns_are_forgotten_once_their_owner_has_caught_up() -> None:
    """Five windows ago, each has had a turn since; in the newest one, none has."""
    assert turns(539.0, caught_up=5) == ["", "", ""]
    assert turns(400.0, caught_up=1) == ["repeating", "repeating", ""]


def test_turns_of_another_owner_do_not_count() -> None:
    assert turns(400.0, other=20) == ["repeating", "", ""]


def stands(
    frozen_seconds: float,
    commits: float,
    *,
    other: float = 12.0,
    moves: float = 12.0,
    behind: float = 5000.0,
    session: float = 45.0,
) -> str:
    """Kind of a partition that stands, its owner having committed it so often in each window but
    the newest.

    The owner's other partition was committed so often in the newest one, and moved with so many
    commits of each window; their lag was so high at the end of the window before.
    """
    each = np.full((2, WINDOWS), commits)
    each[:, -1] = other
    noops = np.array([each[0], np.maximum(0.0, each[1] - moves)])
    lag = np.full((2, WINDOWS), 5000.0)
    lag[:, -2] = behind
    frozen = np.array([[frozen_seconds], [5.0]])
    history = {
        "frozen": frozen,
        "commits": each,
        "noops": noops,
        "lag": lag,
        "lag_min": lag,
        "repeats": 9.0,
    }
    frame = topic_signals([5000.0] * 2, interval=5.0, history=history, slots=["m0", "m0"]).frame
    (kind, _) = stall.stalls(
        frame, has_members=True, window_seconds=60, parameters=Parameters(), session_seconds=session
    )
    return kind


def test_a_member_that_commits_nothing_at_all_may_be_in_its_first_long_batch() -> None:
    """It is given twice as long as one that commits other partitions."""
    assert [stands(seconds, 12.0, other=0.0) for seconds in (119.0, 120.0)] == ["", "repeating"]
    assert [stands(seconds, 12.0) for seconds in (59.0, 60.0)] == ["", "repeating"]


def test_a_member_that_commits_nothing_at_all_may_have_died_and_is_missed_a_session_later() -> None:
    assert [stands(seconds, 12.0, other=0.0, session=120.0) for seconds in (179.0, 180.0)] == [
        "",
        "repeating",
    ]
    assert stands(60.0, 12.0, session=120.0) == "repeating"


def test_batches_that_take_long_by_now_are_no_stall_though_the_median_gap_is_still_short() -> None:
    assert [stands(seconds, 1.0, other=1.0) for seconds in (179.0, 180.0)] == ["", "repeating"]


def test_a_partition_waits_for_its_turn_where_not_every_commit_moves_the_others() -> None:
    """Commits 30 s apart, of which one in two moves the owner's other partition."""
    assert [stands(seconds, 2.0, other=2.0, moves=1.0) for seconds in (179.0, 180.0)] == [
        "",
        "repeating",
    ]
    assert [stands(seconds, 2.0, other=2.0, moves=2.0) for seconds in (89.0, 90.0)] == [
        "",
        "repeating",
    ]


def test_what_was_all_read_a_minute_ago_has_not_stood_for_a_minute() -> None:
    """When the next record came is known by the poll before."""
    assert stands(60.0, 12.0, behind=0.0) == ""


def lost(life: int, moved: int, end: float = 9000.0) -> tuple[list[str], dict[str, float]]:
    """A partition below its log start, whose lag was last known, and whose offset last moved, so
    many windows ago.
    """
    ago = np.arange(WINDOWS)[::-1]
    history = {
        "frozen": np.where(ago >= life, 60.0 * np.maximum(0, moved - 1 - ago), np.nan),
        "committed": np.where(ago >= moved, 400.0, 500.0),
        "lag": np.where(ago >= life, 300.0, np.nan),
        "end": end,
        "start": 5000.0,
        "produced": 600.0,
        "repeats": 0.0,
    }
    status = ["below_log_start"]
    plain = topic_signals([np.nan], status=status, history=history)
    group = signals_of(plain).frame
    topic, _ = compute.topic_signals(
        plain.frame, group, TrendState("", 0), Parameters(), has_members=True
    )
    found = partition_stalled.check(signals_of(topic))
    return [each.code for each in found], dict(found[0].evidence) if found else {}


@pytest.mark.parametrize(
    ("life", "moved", "seconds"),
    [
        (3, 10, 540),  # known to stand for 6 minutes when the records went, 3 minutes ago
        (8, 10, 540),
        (12, 10, 540),  # it moved after that
        (WINDOWS, WINDOWS, 60 * (WINDOWS - 1)),  # nothing else in all that is looked back at
        (1, 1, None),
    ],
)
def test_a_partition_stands_on_when_the_records_it_stood_before_are_deleted(
    life: int, moved: int, seconds: float | None
) -> None:
    codes, evidence = lost(life, moved)
    assert codes == ([] if seconds is None else ["PARTITION_STALLED"])
    assert evidence.get("frozen_seconds") == seconds
    assert "lag_records" not in evidence


def test_where_all_was_deleted_nothing_is_left_to_stand_before() -> None:
    assert lost(3, 10, end=5000.0)[0] == []
