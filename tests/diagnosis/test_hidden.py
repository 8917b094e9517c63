"""What an open transaction on the offsets partition hides: how long, and what must not be said
meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest

from diagnosis.fluid import NOON, Fluid, tables_of
from diagnosis.groups import WINDOWS, signals_of, topic_signals
from laggard.diagnosis.history.frames import GroupFrame, Hidden
from laggard.diagnosis.history.layout import History, hidden_commits
from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.rules.capacity import capacity_shortage
from laggard.diagnosis.signals import compute, stall
from laggard.diagnosis.signals.trend import TrendState
from laggard.tables.arrow import to_arrow
from laggard.tables.schema import schemas

TICK = 10  # seconds


def tick(number: int, read: int | None, high: int | None, partition: int = 3) -> dict[str, Any]:
    source_to = None if read is None else {9: 1, partition: read}
    return {
        "batch_id": number,
        "polled_at": NOON + timedelta(seconds=TICK * number),
        "source_to": source_to,
        "source_high_watermark": None if high is None else {partition: high, 9: 2},
    }


def found(ticks: list[dict[str, Any]], count: int = 1) -> Hidden:
    batches = to_arrow(schemas.BATCHES, ticks)
    windows = np.array([round(NOON.timestamp() * 1000) + 60_000 * n for n in range(count)])
    hidden = hidden_commits(batches, windows, 60)(3)
    assert hidden is not None
    return hidden


@pytest.mark.parametrize(
    ("read", "least", "most"),
    [
        ([10, 20, 30, 40, 50, 60], 0, 0),  # all that was written is read
        ([10, 20, 30, 40, 50, 55], 0, 10),  # since the last tick, maybe
        ([10, 20, 30, 35, 35, 35], 20, 30),
        ([5, 5, 5, 5, 5, 5], 50, 50),  # longer than anybody looked
        ([10, 20, 30, 40, 50, None], np.nan, np.nan),
    ],
)
def test_what_was_written_by_a_poll_and_is_not_read_is_hidden(
    read: list[Any], least: float, most: float
) -> None:
    hidden = found([tick(number, to, 10 * (number + 1)) for number, to in enumerate(read)])
    np.testing.assert_array_equal([hidden.least[-1], hidden.most[-1]], [least, most])


def test_the_bounds_hold_whenever_a_transaction_begins() -> None:
    chance = Random(5)
    for _ in range(200):
        # a record each 1/rate s, none seen from begin on
        begin, rate = chance.uniform(0, 59), chance.randint(1, 50)
        ends = [TICK * number for number in range(6)]
        ticks = [
            tick(number, int(rate * min(begin, at)) + 1, int(rate * at) + 1)
            for number, at in enumerate(ends)
        ]
        hidden = found(ticks)
        assert (
            hidden.least[-1] - 1 / rate <= max(0.0, ends[-1] - begin) <= hidden.most[-1] + 1 / rate
        )


def test_a_window_is_described_by_its_own_polls_and_a_gap_by_none() -> None:
    ticks = [tick(number, 10 * (number + 1), 10 * (number + 1)) for number in range(6)]
    ticks += [tick(12, 60, 130), tick(13, 60, 140)]
    hidden = found(ticks, 4)
    np.testing.assert_array_equal(hidden.least, [0, np.nan, 10, np.nan])
    np.testing.assert_array_equal(hidden.most, [0, np.nan, 80, np.nan])


def test_a_group_is_assigned_to_the_partition_its_commits_lie_in() -> None:
    group = Fluid(np.full((1, 1), 10.0), np.full((1, 1), 20.0))
    ticks = [tick(0, 10, 10), tick(1, 15, 20), tick(2, 15, 30)]

    def frame(partition: int) -> GroupFrame:
        tables = tables_of([group]) | {
            "batches": to_arrow(schemas.BATCHES, [{**each} for each in ticks])
        }
        group.fact_rows[0]["offsets_partition"] = partition
        tables["group_history"] = to_arrow(schemas.TABLES["group_history"], group.fact_rows)
        begin = round(NOON.timestamp() * 1000)
        return next(
            History(tables, begin, begin, window_seconds=60, look_back=2).frames(
                begin, 10**9, {}, cluster="c"
            )
        )

    hidden = frame(3).hidden
    assert hidden is not None
    assert (hidden.least[-1], hidden.most[-1]) == (10, 20)
    assert frame(4).hidden is None


@pytest.mark.parametrize(
    ("hidden", "expected"), [(0.0, "repeating"), (40.0, "repeating"), (41.0, "")]
)
def test_only_what_is_seen_of_the_commits_proves_a_stall(hidden: float, expected: str) -> None:
    history = {"frozen": 100.0, "produced": 600.0, "repeats": 9.0}
    frame = topic_signals([9000.0], history=history).frame
    kinds = stall.stalls(
        frame, has_members=True, window_seconds=60, parameters=Parameters(), hidden_seconds=hidden
    )
    assert kinds == (expected,)


@pytest.mark.parametrize(
    ("stable", "expected"),
    [
        ([500, 9000], ""),  # it let go since the last window: when is not known
        ([500, 9000, 9000], "silent"),  # it has let go for a minute, and nobody reads on
        ([9000, 9000, 9000], "silent"),
        ([None, 9000], "silent"),
        ([500, 500], "held"),
    ],
)
def test_a_reader_that_was_held_until_just_now_gets_the_time_to_read_on(
    stable: list[Any], expected: str
) -> None:
    rows = [{"last_stable_offset": each, "log_end_offset": 9000} for each in stable]
    history = {"frozen": 170.0, "produced": 5000.0, "committed": 500.0, "repeats": 0.0}
    frame = topic_signals([8500.0], history=history, facts={"windows": {0: rows}}).frame
    found = stall.stalls(frame, has_members=True, window_seconds=60, parameters=Parameters())
    assert found == (expected,)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0, "growing"), (10.0, "growing"), (11.0, "abstain")]
)
def test_lag_that_hidden_commits_make_has_no_trend(seconds: float, expected: str) -> None:
    lag = 1000.0 * np.arange(1, WINDOWS + 1)
    topic = topic_signals(
        [0.0] * 4,
        arrival=200.0,
        consume=180.0,
        history={"envelope": lag, "lag": lag, "lag_max": lag},
    )
    intervals = np.full(WINDOWS, seconds)  # twice the interval of 5 s is 10
    group = replace(signals_of(topic).frame, hidden=Hidden(intervals, intervals + 10))
    signals, _ = compute.topic_signals(
        topic.frame, group, TrendState("", 0), Parameters(), has_members=True
    )
    assert signals.trend.name == expected
    holds = [each.state for each in capacity_shortage.check(signals_of(signals, capacity=50.0))]
    assert holds == (["holds"] if expected == "growing" else [])
