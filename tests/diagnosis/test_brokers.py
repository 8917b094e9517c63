"""Lag on the partitions of one broker that needs no broker: what a stall, an owner or an earlier
moment has left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diagnosis.groups import WINDOWS, spread_over
from diagnosis.test_attribution import causes, slow_group, slower
from laggard.diagnosis.signals.group import Signals

PLACES = (1, 4, 7, 10)
AGE = np.arange(WINDOWS - 1, -1, -1)


def brokers_of(signals: Signals) -> list[tuple[str, tuple[int, ...]]]:
    return [(subject, places) for label, subject, places in causes(signals) if label == "broker"]


def lag_of(newest: np.ndarray[Any, Any]) -> dict[str, Any]:
    """History of the lag at commits, the same of each of the partitions; the others have little."""
    return {"envelope": np.where(np.isin(np.arange(12), PLACES)[:, None], newest, 10.0)}


@pytest.mark.parametrize(
    ("lags", "is_named"),
    [
        (50_000.0 - 2_400.0 * AGE, True),  # 60 of 100 records/s are read
        # 112 of them: it falls by more than a tenth of what arrives
        (50_000.0 + 700.0 * AGE, False),
        (50_000.0 + 500.0 * AGE, True),
        (np.where(AGE % 3 == 0, 50_000.0 + 2_000.0 * AGE, np.nan), False),  # commits are rare
        (np.where(AGE == 0, 50_000.0, np.nan), True),  # of one commit nothing is known yet
    ],
)
def test_a_broker_holds_back_nothing_that_is_read_faster_than_it_arrives(
    lags: np.ndarray[Any, Any], *, is_named: bool
) -> None:
    found = brokers_of(slow_group(places=PLACES, busy=[], history=lag_of(lags)))

    assert found == ([("1", PLACES)] if is_named else [])


def test_what_nobody_has_read_since_a_stall_tells_nothing_of_a_broker() -> None:
    assert (
        brokers_of(slow_group(places=PLACES, busy=[], consume=slower(12, *PLACES, rate=0.0))) == []
    )


def test_a_partition_to_which_nothing_arrives_does_not_hide_its_broker() -> None:
    places = tuple(range(1, 24, 3))
    arrival, consume = [100.0] * 24, slower(24, *places)
    arrival[22] = consume[22] = 0.0
    lag = [50_000.0 if place in places[:-1] else 10.0 for place in range(24)]
    lag[22] = 0.0
    group = slow_group(8, 24, places, lag=lag, arrival=arrival, consume=consume, busy=[])

    assert brokers_of(group) == [("1", places)]  # nobody was named before


def test_partitions_that_had_no_owner_for_a_moment_were_not_all_of_one() -> None:
    slots = np.repeat(np.array(spread_over(12, 4), object)[:, None], WINDOWS, axis=1)
    slots[3:, -2] = ""
    history = {"slot": slots, "commits": np.ones(WINDOWS)}

    assert brokers_of(slow_group(places=PLACES, busy=[], history=history)) == [("1", PLACES)]


@pytest.mark.parametrize(("moved", "is_named"), [(3, False), (5, True)])
def test_what_one_owner_had_until_its_newest_commit_is_what_it_left(
    moved: int, *, is_named: bool
) -> None:
    """A slow member loses two of its three partitions so many windows ago; each is committed every
    three windows.
    """
    slots = np.repeat(np.array(spread_over(12, 4), object)[:, None], WINDOWS, axis=1)
    slots[6:8, -moved:] = "m0"
    history = {"slot": slots, "commits": np.where(AGE % 3 == 2, 1.0, 0.0)}
    brokers = [2.0 if 6 <= place <= 8 else 0.0 for place in range(12)]
    group = slow_group(brokers=brokers, history=history, busy=[], slots=list(slots[:, -1]))

    assert brokers_of(group) == ([("2", (6, 7, 8))] if is_named else [])
