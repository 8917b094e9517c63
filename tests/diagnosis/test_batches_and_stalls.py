"""Silences of groups that commit seldom, drawn at random: a stall that has ended is
no long batch.
"""

from __future__ import annotations

import random
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from diagnosis.groups import PARAMETERS, signals_of, topic_signals
from laggard.diagnosis.signals import forecast, significance
from laggard.diagnosis.signals.group import TopicSignals

GROUPS, WINDOW, WINDOWS = 20, 60, 60
RATE = 100.0  # records/s


def silences(
    interval: int, stands: tuple[int, int], *, owners: int = 1, late: int = 0
) -> TopicSignals:
    """A partition that is committed each `interval` seconds, but not in those from the first to the
    last of `stands`.

    Its owner changes in the middle of that stretch if there are two. `late` is the seconds since
    the newest commit was due. All that arrives is read between two commits.
    """
    commits = [
        at
        for at in range(late, WINDOW * WINDOWS - late, interval)
        if not stands[0] <= at < stands[1]
    ]
    ends = WINDOW * np.arange(1, WINDOWS + 1)
    moved = np.array([max((at for at in commits if at <= end), default=0) for end in ends])
    owner = np.where(ends < sum(stands) / 2, "first", "second" if owners > 1 else "first").astype(
        object
    )
    lag = RATE * (ends - moved)
    consumed = RATE * np.diff(moved, prepend=0)
    history = {
        "frozen": ends - moved,
        "consumed": consumed,
        "owner": owner[None, :],
        "committed": RATE * moved,
    }
    return topic_signals(
        [lag[-1]], arrival=RATE, interval=float(interval), history=history, windows=WINDOWS
    )


def floor(topic: TopicSignals) -> float:
    """Records below which the newest lag is what commits make of it."""
    arrival = np.full((1, WINDOWS), RATE)
    return float(significance.floors(topic.frame, arrival, WINDOW, PARAMETERS).momentary[0, -1])


@pytest.mark.parametrize("owners", [1, 2])
def test_lag_counts_after_a_stall_as_it_did_before(owners: int) -> None:
    """A stall of more than three intervals, or a shorter one that ended as a new owner came."""
    for seed in range(GROUPS):
        chance = random.Random(f"stall {seed}")
        interval, begin = chance.choice((90, 120, 180)), chance.randint(600, 900)
        lasts = interval * (chance.uniform(1.3, 1.9) if owners > 1 else chance.uniform(3.2, 6.0))
        healthy, healed = (
            silences(interval, each, owners=owners)
            for each in ((0, 0), (begin, begin + round(lasts)))
        )
        assert floor(healed) <= 1.05 * floor(healthy)


def test_a_long_batch_of_one_owner_still_counts_as_one() -> None:
    assert floor(silences(120, (700, 960))) >= 2 * RATE * 240


@pytest.mark.parametrize(("left", "back"), [(3, 0), (3, 1), (3, 2), (1, 0), (2, 1)])
def test_no_batch_lasts_while_nobody_is_there(left: int, back: int) -> None:
    """The only member left so many windows ago, in a silence that goes on, and was
    back, or is not.
    """
    interval, lasts = 120, 240
    there = silences(interval, (WINDOW * WINDOWS - lasts + 1, WINDOW * WINDOWS))
    owner = there.frame.named("owner").copy()
    owner[0, WINDOWS - left : WINDOWS - back] = ""
    gone = replace(there, frame=replace(there.frame, names={**there.frame.names, "owner": owner}))
    assert floor(there) >= 2 * RATE * lasts
    assert floor(gone) <= 2 * RATE * interval + 1
    # a reader that never joins has no owner at any time, and batches nevertheless
    owner = np.full_like(owner, "")
    assert floor(
        replace(there, frame=replace(there.frame, names={**there.frame.names, "owner": owner}))
    ) == floor(there)


def with_owners(
    topic: TopicSignals, *changes: tuple[int, str], **numbers: list[float]
) -> TopicSignals:
    """The same partition with other owners from some windows on, and with the last values of some
    numbers.
    """
    owner = topic.frame.named("owner").copy()
    for begin, name in changes:
        owner[0, begin:] = name
    given = {name: topic.frame[name].copy() for name in numbers}
    for name, values in numbers.items():
        given[name][0, -len(values) :] = values
    frame = replace(
        topic.frame,
        names={**topic.frame.names, "owner": owner},
        numbers={**topic.frame.numbers, **given},
    )
    return replace(topic, frame=frame)


def test_a_new_owner_repeats_the_batch_of_the_one_before() -> None:
    there = silences(120, (WINDOW * WINDOWS - 239, WINDOW * WINDOWS))
    assert floor(with_owners(there, (WINDOWS - 2, "second"))) == floor(there)


def test_no_batch_lasts_from_when_records_came_after_all_members_had_left() -> None:
    there = silences(120, (WINDOW * WINDOWS - 239, WINDOW * WINDOWS))
    assert floor(with_owners(there, (WINDOWS - 9, ""))) <= 2 * RATE * 120 + 1


def test_a_silence_that_has_ended_is_no_other_for_who_leaves_later() -> None:
    there = silences(120, (1800, 2039))
    assert floor(there) >= 2 * RATE * 240
    assert floor(with_owners(there, (WINDOWS - 5, ""))) == floor(there)


def test_a_window_without_a_row_is_no_window_without_an_owner() -> None:
    there = silences(120, (WINDOW * WINDOWS - 239, WINDOW * WINDOWS))
    names = {name: there.frame.named(name).copy() for name in ("owner", "status")}
    for each in names.values():
        each[0, WINDOWS - 3] = ""
    gap = replace(there, frame=replace(there.frame, names={**there.frame.names, **names}))
    assert floor(gap) == floor(there)


def test_a_commit_that_is_overdue_tells_when_records_are_lost() -> None:
    """Retention by size takes as many records as arrive, and what was not committed is read no
    more: it hangs.
    """
    wrong = {}
    for seed in range(GROUPS):
        chance = random.Random(f"overdue {seed}")
        interval = chance.choice((60, 120, 180))
        topic = silences(interval, (0, 0), late=round(interval * chance.uniform(0.9, 1.5)) + WINDOW)
        held = RATE * WINDOW * chance.uniform(12, 25)
        end = topic.frame["committed"][0] + topic.frame["lag"][0]
        start = np.maximum(0.0, RATE * WINDOW * np.arange(1, WINDOWS + 1) - held)
        assert end[-1] == pytest.approx(RATE * WINDOW * WINDOWS, rel=0.2)
        numbers = {
            **topic.frame.numbers,
            "start": start[None, :],
            "time_lag": topic.frame["lag"] / RATE,
        }
        facts = {"config_known": True, "retention_seconds": None, "cleanup_policy": "delete"}
        topic = replace(
            topic, frame=replace(topic.frame, numbers=numbers, facts=facts), floor=np.full(1, inf)
        )
        topic = replace(topic, is_material=np.zeros(1, bool))
        (found,) = forecast.losses(signals_of(topic)).values()
        truth = (topic.frame["committed"][0, -1] - start[-1]) / RATE
        if not 0.9 <= found.seconds / truth <= 1.1:
            wrong[seed] = found.seconds, truth
    assert wrong == {}
