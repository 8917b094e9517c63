"""True if a member or one of its partitions is slow, known by what it does once it is left with
fewer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diagnosis.groups import WINDOWS, signals_of, topic_signals
from laggard.diagnosis.signals.attribution import attribute
from laggard.diagnosis.signals.group import Signals
from laggard.diagnosis.signals.slow import pace_after_loss

LAG = 50_000.0
MOVED = 40  # the window of the rebalance


def left_with(
    after: float, *, until: int = MOVED, busy: float = LAG, taken: tuple[int, ...] = ()
) -> Signals:
    """m2 drained 150 records/s of partitions 6 to 8, and `after` since it has only 7 and 8, and
    those `taken`.
    """
    slots = np.array([[f"m{place // 3}"] * WINDOWS for place in range(12)], object)
    slots[6, until:] = "m1"
    for place in taken:
        slots[place, until:] = "m2"
    held = slots == "m2"
    consume = np.where(
        held, np.where(np.arange(WINDOWS) < until, 150.0, after) / held.sum(axis=0), 100.0
    )
    lag = [LAG if place in {7, 8} else 10.0 for place in range(12)]
    lowest = np.where(held, busy, 10.0)
    history: dict[str, Any] = {"slot": slots, "consume": consume, "lag_min": lowest, "lag": lowest}
    topic = topic_signals(
        lag,
        slots=list(slots[:, -1]),
        consume=consume[:, -1].tolist(),
        history=history,
        shape="concentrated",
    )
    return signals_of(topic, busy=["m2"], capacity={"m2": after})


def test_what_a_member_did_before_and_after_is_the_median_of_busy_windows() -> None:
    found = pace_after_loss(left_with(100), "m2")
    assert found is not None
    assert (found.before, found.after, found.kept) == (150, 100, {("orders", 7), ("orders", 8)})


@pytest.mark.parametrize(("after", "expected"), [(127.5, True), (127.6, False), (150, False)])
def test_a_slow_member_keeps_its_pace_and_one_with_costly_records_loses_it(
    after: float, expected: bool
) -> None:
    found = pace_after_loss(left_with(after), "m2")
    assert found is not None
    assert found.is_slower is expected
    labels = [(cause.label, cause.partitions) for cause in attribute(left_with(after))]
    assert labels == [("costly", (7, 8)) if expected else ("member", (7, 8))]


def test_what_came_with_the_change_is_not_among_what_was_kept() -> None:
    signals = left_with(100, taken=(5, 9))
    assert pace_after_loss(signals, "m2") is None  # it has as many as before, or more
    traded = pace_after_loss(left_with(100, taken=(9,)), "m2")
    assert traded is None


@pytest.mark.parametrize(
    "signals",
    [
        left_with(100, until=WINDOWS),  # it has them all
        left_with(100, until=WINDOWS - 3),  # two windows after the one of the rebalance
        left_with(100, until=2),  # nor is its time before long enough
        left_with(100, busy=900.0),  # it had nothing left to do
    ],
)
def test_too_little_tells_nothing(signals: Signals) -> None:
    assert pace_after_loss(signals, "m2") is None


def test_members_that_all_do_as_much_are_held_up_by_what_they_share() -> None:
    """Of eight members at one sink those with two partitions fall behind, and the others drain the
    past.
    """
    slots = [f"m{place // 2}" if place < 8 else f"m{place - 4}" for place in range(12)]
    consume = [60.0] * 8 + [125.0] * 4
    consume[0] = consume[2] = 55.0
    lag = [LAG if place in {0, 2} else 10.0 for place in range(12)]
    topic = topic_signals(lag, slots=slots, consume=consume, shape="concentrated")
    everyone = [f"m{number}" for number in range(8)]
    assert attribute(signals_of(topic, busy=everyone)) == ()
    assert [cause.label for cause in attribute(signals_of(topic, busy=["m0", "m1"]))] == ["costly"]
