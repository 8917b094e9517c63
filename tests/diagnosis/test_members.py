"""What members have shown they can do, when their commits are rare."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

import numpy as np
import pytest

from diagnosis.groups import PARAMETERS, WINDOWS, signals_of, topic_signals
from laggard.diagnosis.signals.group import MemberSignals
from laggard.diagnosis.signals.members import member_signals
from laggard.diagnosis.signals.slow import pace_of

LAG = 500_000.0


def sample(every: int, lowest: Any = LAG) -> tuple[float, float]:
    """Newest sample of capacity and the most seen of one member that does 300 records/s, in
    records/s; 0: none.

    It commits each so many windows, the newest among them.
    """
    age = np.arange(WINDOWS - 1, -1, -1)
    consume = np.where(age % every == 0, 100.0 * every, 0.0)
    history = {
        "consume": np.tile(consume, (3, 1)),
        "lag_min": np.broadcast_to(lowest, (3, WINDOWS)),
    }
    topic = topic_signals([LAG] * 3, history=history, interval=60.0 * every)
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    members, busy = member_signals(frame, [topic], {}, PARAMETERS)
    return busy["m0"][-1][1] if busy else 0.0, members["m0"].seen


@pytest.mark.parametrize("every", [1, 5, 10])
def test_a_rate_is_taken_over_several_commits(every: int) -> None:
    assert sample(every) == (300.0, 300.0)


@pytest.mark.parametrize("phase", range(5))
@pytest.mark.parametrize("interval", [290.0, 300.0, 300.002])
def test_how_commits_fall_into_windows_does_not_change_a_pace(interval: float, phase: int) -> None:
    """What was done in five windows comes with one commit, and with the first there is nothing to
    divide it by.
    """
    age = np.arange(WINDOWS - 1, -1, -1)
    consume = np.where((age + phase) % 5 == 0, 500.0, 0.0)
    history = {"consume": np.tile(consume, (3, 1))}
    topic = topic_signals([LAG] * 3, history=history, interval=interval)
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    members, busy = member_signals(frame, [topic], {}, PARAMETERS)
    assert (members["m0"].seen, busy["m0"][-1][1]) == (300.0, 300.0)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [((), nan), ((30,), nan), ((20, 30), 300.0), ((30, 59), 3000 / 29), ((0, 30, 35), 600.0)],
)
def test_few_commits_tell_what_was_done_between_them(
    commits: tuple[int, ...], expected: float
) -> None:
    consume = np.where(np.isin(np.arange(WINDOWS), commits), 1000.0, 0.0)
    topic = topic_signals([LAG] * 3, history={"consume": np.tile(consume, (3, 1))}, interval=600.0)
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    members, _ = member_signals(frame, [topic], {}, PARAMETERS)
    assert members["m0"].seen == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("windows", "expected"), [(5, 300.0), (4, 0.0)])
def test_a_member_must_have_been_busy_between_two_commits(windows: int, expected: float) -> None:
    lowest = np.where(np.arange(WINDOWS) >= WINDOWS - windows, LAG, 0.0)
    assert sample(5, lowest)[0] == expected


@pytest.mark.parametrize(
    ("frozen", "ago", "expected"),
    [
        ((15.0, 15.0, 15.0), 0, False),  # three intervals, all of its partitions
        ((15.0, 15.0, 15.0), 4, False),
        ((15.0, 15.0, 15.0), 5, True),
        ((14.0, 15.0, 15.0), 0, True),  # it does something else meanwhile
        ((nan, 15.0, 15.0), 0, True),
    ],
)
def test_a_member_that_stood_still_for_a_while_has_not_shown_what_it_can_do(
    frozen: tuple[float, ...], ago: int, *, expected: bool
) -> None:
    """As where transactions hold back what it would read, or its commits."""
    stood = np.ones((3, WINDOWS))
    stood[:, WINDOWS - 1 - ago] = frozen
    topic = topic_signals([LAG] * 3, history={"frozen": stood}, interval=5.0)
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    _, busy = member_signals(frame, [topic], {}, PARAMETERS)
    assert bool(busy) == expected


def at_commits(
    left: list[float], trend: str = "growing", since: int = WINDOWS, ago: int = 0
) -> float:
    """Sample of a member that commits each five minutes with so much left on each of its
    partitions; 0: none.

    It does 60 records/s of each, where 100 arrive, and has had them for `since` windows; it commits
    `ago` windows ago.
    """
    age = np.arange(WINDOWS - 1, -1, -1) - ago
    is_commit = (age >= 0) & (age % 5 == 0)
    left_at = dict(zip(range(0, 5 * len(left), 5), reversed(left), strict=True))
    history = {
        "consume": np.tile(np.where(is_commit, 300.0, 0.0), (3, 1)),
        "envelope": np.tile([left_at.get(each, nan) for each in age.tolist()], (3, 1)),
        "slot": np.tile(
            np.where(np.arange(WINDOWS) >= WINDOWS - since, "m0", "m1").astype(object), (3, 1)
        ),
    }
    topic = topic_signals(
        [20_000.0] * 3, history=history, interval=300.0, floor=60_001.0, trend=trend
    )
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    members, busy = member_signals(frame, [topic], {}, PARAMETERS)
    assert not members["m0"].is_busy  # by the floor alone it would not be for long
    return busy["m0"][-1][1] if busy else 0.0


GROWING = [500.0, 12_500.0, 24_500.0, 36_500.0, 48_500.0]


def test_a_member_that_leaves_more_at_each_commit_while_lag_grows_is_at_work_all_the_time() -> None:
    assert at_commits(GROWING) == pytest.approx(180.0)
    assert at_commits(GROWING, ago=4) == pytest.approx(180.0)


@pytest.mark.parametrize(
    "change",
    [
        {"trend": "flat"},
        {"left": GROWING[1:]},  # the first gap may be one with a rest
        # 700 is less than a fortieth of what arrives
        {"left": [500.0, 12_500.0, 24_500.0, 25_200.0, 37_000.0]},
        {"since": 20},  # it had others at the first of these commits
        {"ago": 11},  # its commits have ended
    ],
)
def test_it_is_not_reported_by_fewer_commits_or_others(change: dict[str, Any]) -> None:
    assert at_commits(**({"left": GROWING} | change)) == 0.0


def test_a_group_that_reads_nothing_has_no_members_to_speak_of() -> None:
    frame = signals_of(fact={"generation": 7, "group_epoch": None}).frame
    assert member_signals(frame, [], {}, PARAMETERS) == ({}, {})


@pytest.mark.parametrize(("ago", "waits"), [(1, True), (6, True), (7, False)])
def test_a_commit_interval_after_a_wait_what_a_member_does_is_not_what_it_can(
    ago: int, *, waits: bool
) -> None:
    """It commits every three minutes; the rates of five windows end at a commit of up to two
    windows before.
    """
    frozen = np.full(WINDOWS, 60.0)
    frozen[-ago - 10 : -ago] = 600.0
    topic = topic_signals([LAG] * 3, history={"frozen": np.tile(frozen, (3, 1))}, interval=180.0)
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    members, _ = member_signals(frame, [topic], {}, PARAMETERS)
    assert members["m0"].waits == waits
    assert np.isnan(pace_of(members["m0"])) == waits


def members_of(
    count: int, interval: float, history: dict[str, Any], **shown: Any
) -> dict[str, MemberSignals]:
    """Signals of the owners of so many partitions, by slot."""
    topic = topic_signals([LAG] * count, history=history, interval=interval, **shown)
    frame = signals_of(topic, fact={"generation": 7, "group_epoch": None}).frame
    return member_signals(frame, [topic], {}, PARAMETERS)[0]


def test_what_others_read_of_a_partition_that_moves_is_not_what_its_owner_can_do() -> None:
    """Each of two members reads 300 records/s; one has died, and the other has got its partitions
    in this window.
    """
    owner = np.full((4, WINDOWS), "m0", object)
    owner[2:, : WINDOWS - 1] = "m1"
    found = members_of(4, 5.0, {"consume": 150.0, "slot": owner})

    assert found["m0"].seen == 300.0  # 600 before


@pytest.mark.parametrize("every", [1, 2, 3, 4])
@pytest.mark.parametrize("moved", range(40, 46))
def test_what_another_owner_read_in_the_gap_in_which_it_left_is_not_what_its_successor_can_do(
    every: int, moved: int
) -> None:
    """Two members read 300 records/s each; then one of them has all four partitions, and reads 300
    of them in all.
    """
    at = np.arange(WINDOWS)
    owner = np.full((4, WINDOWS), "m0", object)
    owner[2:, :moved] = "m1"
    is_commit = at % every == every - 1
    done = np.cumsum(np.where(at < moved, 150.0, 75.0))
    consume = np.zeros(WINDOWS)
    consume[is_commit] = np.diff(done[is_commit], prepend=0.0)
    found = members_of(4, 60.0 * every, {"consume": np.tile(consume, (4, 1)), "slot": owner})

    assert found["m0"].seen == pytest.approx(300.0)  # up to 412 before


@pytest.mark.parametrize("known", [2, 3, 5, 8])
def test_a_new_group_has_shown_something_after_two_windows(known: int) -> None:
    is_known = np.arange(WINDOWS) >= WINDOWS - known
    owner = np.where(np.tile(is_known, (3, 1)), "m0", "").astype(object)
    history = {
        name: np.where(is_known, value, nan)
        for name, value in (("consume", 100.0), ("frozen", 0.0))
    }
    found = members_of(3, 5.0, history | {"slot": owner})

    assert found["m0"].seen == pytest.approx(300.0)  # nothing for five windows before


@pytest.mark.parametrize("windows", [WINDOWS, 30])
def test_a_partition_that_stands_all_the_time_takes_nothing_from_what_its_owner_shows(
    windows: int,
) -> None:
    """One of three partitions has been paused for an hour or half an hour; 100 records/s are read
    of each other one.
    """
    frozen = np.zeros((3, WINDOWS))
    frozen[2, -windows:] = 3600.0 + 60.0 * np.arange(windows)
    consume = np.full((3, WINDOWS), 100.0)
    consume[2, -windows:] = 0.0
    found = members_of(3, 5.0, {"consume": consume, "frozen": frozen})

    # not known before
    assert found["m0"].seen == pytest.approx(200.0 if windows == WINDOWS else 300.0)


@pytest.mark.parametrize("phase", range(10))
def test_what_a_partition_did_before_it_was_paused_adds_nothing_to_what_is_read_of_others_since(
    phase: int,
) -> None:
    """One member reads 300 records/s of three partitions, then of two; it commits every two
    minutes.
    """
    paused = WINDOWS - 21 + phase
    age = np.arange(WINDOWS - 1, -1, -1)
    is_commit = age % 2 == 0
    reads = np.tile(np.where(np.arange(WINDOWS) <= paused, 100.0, 150.0), (3, 1))
    reads[2] = np.where(np.arange(WINDOWS) <= paused, 100.0, 0.0)
    at_commits = np.diff(
        np.where(is_commit, np.cumsum(reads, axis=1), 0.0)[:, is_commit], axis=1, prepend=0.0
    )
    consume = np.zeros((3, WINDOWS))
    consume[:, is_commit] = at_commits
    frozen = np.tile(60.0 * (age % 2), (3, 1))
    last = np.flatnonzero(consume[2])[-1]
    frozen[2, last:] = 60.0 * np.arange(WINDOWS - last)
    found = members_of(3, 120.0, {"consume": consume, "frozen": frozen})

    assert found["m0"].seen == pytest.approx(300.0)  # 333 before


@pytest.mark.parametrize("seed", range(20))
def test_what_is_read_around_a_jump_over_deleted_records_is_not_what_a_member_can_do(
    seed: int,
) -> None:
    """It reads 300 records/s of three partitions; how many of a jump it has read is not known, nor
    in which time.
    """
    chance = np.random.default_rng(seed)
    interval, ends = chance.uniform(20, 58), 60.0 * np.arange(WINDOWS + 1)
    # position of the newest commit
    moved = np.floor((ends + chance.uniform(0, interval)) / interval) * interval
    moved = moved - moved[0]
    frozen = np.minimum(ends - moved - (ends - moved).min(), interval)[1:]
    consume = np.tile(100.0 * np.diff(moved) / 60.0, (3, 1))
    jumps = chance.random(WINDOWS) < 0.5
    jumps[: WINDOWS // 2] = False
    consume[:, jumps] = nan
    # next to read has been deleted, too
    frozen = np.where(jumps & (chance.random(WINDOWS) < 0.5), nan, frozen)
    found = members_of(
        3, interval, {"consume": consume, "frozen": np.tile(frozen, (3, 1)), "commits": 1.0}
    )

    assert found["m0"].seen == pytest.approx(300.0, rel=0.02)


@pytest.mark.parametrize(("quiet", "pace"), [(False, 240.0), (True, nan)])
def test_what_is_read_after_a_time_with_little_to_read_is_no_pace(
    pace: float, *, quiet: bool
) -> None:
    """A member is busy by now and did 240 records/s in the mean; 300 arrived before as well, or
    next to nothing.
    """
    arrival = np.full((3, WINDOWS), 100.0)
    arrival[:, : WINDOWS - 3] = 10.0 if quiet else 100.0
    found = members_of(3, 5.0, {"arrival": arrival}, consume=80.0)

    assert found["m0"].is_busy
    assert pace_of(replace(found["m0"], capacity=nan)) == pytest.approx(pace, nan_ok=True)
