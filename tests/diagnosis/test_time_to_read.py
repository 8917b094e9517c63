"""Partitions that stand because nobody has had the time, or the turn, to read them: none of them is
stalled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diagnosis.groups import topic_signals
from diagnosis.rebalance_rows import Life
from diagnosis.test_rules_stalls import PARTITIONS, A, B, C, chain, evaluated, stands
from laggard.diagnosis.history.frames import Memory, Track
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.stalls import partition_stalled, poison_pill_suspect
from laggard.diagnosis.signals import stall
from laggard.diagnosis.signals.group import TopicSignals

READ = "owner_had_time"
THIRD = PARTITIONS // 3


def repeats(*stalled: int, moves: tuple[int, ...] = tuple(range(PARTITIONS))) -> TopicSignals:
    """Partitions that have stood for 200 s with repeated commits, others that moved; three members
    have four each.
    """
    topic = stands(dict.fromkeys(stalled, 200))
    kinds = tuple("repeating" if row in stalled else "" for row in range(PARTITIONS))
    topic = replace(topic, stall_kind=kinds, interval=np.full(PARTITIONS, 5.0))
    topic.frame.names["slot"][:] = np.repeat([A, B, C], THIRD)[:, None]
    is_read = np.isin(np.arange(PARTITIONS), moves) & ~topic.is_stalled
    topic.frame.numbers["consumed"][:] = np.where(is_read, 600.0, 0.0)[:, None]
    return topic


def fails(life: Life, topic: TopicSignals, **columns: Any) -> list[str]:
    """Names of the guards that fail, of the first finding."""
    (found, *_) = partition_stalled.check(
        life.signals(topics=[topic], material_lag=1000.0, **columns)
    )
    return [name for name, result in found.guards.items() if result == "fail"]


@pytest.mark.parametrize(
    ("joined", "moves", "failing"), [(3539, (1,), [READ]), (3538, (1,), []), (3538, (5,), [READ])]
)
def test_who_joined_a_moment_ago_has_not_come_to_all_of_its_partitions(
    joined: float, moves: tuple[int, ...], failing: list[str]
) -> None:
    """A reads 1 to 3 in turn, the last time 2 s ago, and its repeated commit of 0 says that it has
    not come to it.
    """
    life = Life().generation(10, A, B, C).generation(3400, B, C).generation(joined, A, B, C)
    life.generation(3570, A, B).generation(3580, A, B, C)

    assert fails(life, repeats(0, moves=moves)) == failing


@pytest.mark.parametrize(("moves", "failing"), [((9,), []), ((5,), [READ])])
def test_what_others_read_between_rebalances_tells_of_an_owner_with_nothing_else(
    moves: tuple[int, ...], failing: list[str]
) -> None:
    """All of A is paused, in a group that B leaves again and again."""
    life = Life().generation(10, A, B, C)
    for second in (3300, 3400, 3500):
        life.generation(second, A, C).generation(second + 90, A, B, C)

    assert fails(life, repeats(*range(THIRD), moves=moves)) == failing


def test_while_a_group_hands_partitions_over_nobody_has_them() -> None:
    topic = stands({0: 200})
    topic = replace(
        topic, stall_kind=("unowned", *[""] * (PARTITIONS - 1)), interval=np.full(PARTITIONS, 5.0)
    )
    life = Life().generation(10, A, B, C)

    assert fails(life, topic, state="Reconciling") == ["no_rebalance_running"]
    assert fails(life, topic) == []


@pytest.mark.parametrize(("left", "count"), [(3300.0, 1), (3530.0, 0)])
def test_a_member_that_left_has_committed_before_and_nobody_commits_now(
    left: float, count: int
) -> None:
    topic = repeats(0)
    topic.frame.numbers["commits"][:, -1] = 3.0
    signals = (
        Life().generation(10, A, B, C).generation(left).signals(topics=[topic], material_lag=1000.0)
    )

    assert len(partition_stalled.check(signals)) == count


def test_a_reader_that_moves_within_deleted_records_does_not_stand() -> None:
    """The offsets of most partitions move, and are below the log start when they are looked up."""
    topic = stands({0: 200})
    topic = replace(
        topic, stall_kind=("silent", *[""] * (PARTITIONS - 1)), interval=np.full(PARTITIONS, 5.0)
    )
    topic.frame.names["status"][2:] = stall.BELOW_LOG_START
    for name in ("lag", "frozen"):
        topic.frame.numbers[name][2:, :-1] = np.nan
    topic.frame.numbers["interval"][:] = 5.0

    assert fails(Life().generation(10, A, B, C), topic) == []


@pytest.mark.parametrize(
    ("other", "repeated", "expected"),
    [(600.0, 0.0, ""), (60.0, 0.0, "silent"), (600.0, np.nan, "unknown")],
)
def test_a_first_silence_of_one_member_tells_how_long_that_of_another_may_be(
    other: float, repeated: float, expected: str
) -> None:
    """No commit interval is known; the first partition stands for 400 s, a silence of the second
    one has ended.

    Where commits are polled and not counted, that may have been a stall of any day.
    """
    age = np.arange(59, -1, -1)
    frozen = np.stack([np.maximum(0.0, 400.0 - 60.0 * age), np.where(age == 3, other, 5.0)])
    consumed = np.stack([np.zeros(60), np.where(age == 2, 9000.0, 0.0)])
    history = {"frozen": frozen, "consumed": consumed, "produced": 6000.0, "repeats": repeated}
    frame = topic_signals(
        [9000.0, 10.0], interval=np.nan, history=history, slots=["m0", "m1"]
    ).frame

    assert stall.stalls(frame, has_members=True, window_seconds=60, parameters=Parameters()) == (
        expected,
        "",
    )


def test_what_stood_with_a_record_that_is_named_is_not_named_when_that_one_moves() -> None:
    topic = stands({3: 650})
    topic.frame.numbers["committed"][2] = np.arange(topic.frame["committed"].shape[1])
    signals = chain().signals(topics=[topic])
    others = [
        replace(
            signals,
            memory=Memory(
                tracks=(Track("POISON_PILL_SUSPECT", "orders", numbers, "", 1, opened_ms=2),)
            ),
        )
        for numbers in ((2,), (2, 3))
    ]

    assert [each.partitions for each in evaluated(chain(), {3: 650})] == [(3,)]
    assert [[each.partitions for each in poison_pill_suspect.check(one)] for one in others] == [
        [],
        [(3,)],
    ]
