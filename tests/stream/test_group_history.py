"""Each group once per window: its row of group_status at the window's last tick, and how long each
state lasted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from laggard.rebalance.groups import Listing
from laggard.tables.schema import schemas
from stream.simulation import NOON, Simulation, commit, end, generation

Row = dict[str, Any]
MINUTE = timedelta(seconds=60)


def listing(state: str) -> Listing:
    return Listing({"g": {"group_state": state, "group_type": "classic"}}, {}, is_fresh=True)


def history(job: Simulation) -> list[Row]:
    return sorted(job.history["group_history"], key=lambda row: (row["window_start"], row["group"]))


def test_a_window_s_row_is_the_group_s_status_at_its_last_tick() -> None:
    job = Simulation()
    job.tick([end(100)], [generation(1, {"m": ("t",)}), commit(50)])
    statuses = []
    for number in range(2, 12):
        job.tick([end(100 * number)], [commit(50 * number)], seconds=20)
        statuses.append(job.groups["g"])
    named = [name for name in schemas.GROUP_HISTORY.names if name in schemas.GROUP_STATUS.names]
    named.remove("batch_id")
    rows = history(job)
    assert [row["window_start"] for row in rows] == [NOON + MINUTE * each for each in range(3)]
    for row in rows:
        last = [each for each in statuses if each["sampled_at"] < row["window_end"]][-1]
        assert {name: row[name] for name in named} == {name: last[name] for name in named}
        assert row["window_end"] - row["window_start"] == MINUTE
        assert row["date"] == NOON.date()
        assert row["batch_id"] > last["batch_id"]


def test_a_state_lasts_from_the_tick_that_saw_it_to_the_next() -> None:
    job = Simulation()
    states = {
        10: "Stable",
        70: "Stable",
        85: "PreparingRebalance",
        95: "Stable",
        110: "Empty",
        130: "Empty",
        190: "Dead",
    }
    second = 0
    for at, state in states.items():
        job.tick(
            [end(100)],
            [commit(50)] if at == 10 else [],
            seconds=at - second,
            listing=listing(state),
        )
        second = at
    spent = [dict(row["state_seconds"]) for row in history(job)]
    assert spent == [
        {"Stable": 50.0},  # first seen at 10 s
        {"Stable": 10.0 + 15 + 15, "PreparingRebalance": 10.0, "Empty": 10.0},
        {"Empty": 60.0},
    ]


def test_a_hole_between_two_windows_is_nobody_s_state() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)], listing=listing("Stable"))
    job.tick([end(100)], seconds=240, listing=listing("Stable"))
    job.tick([end(100)], seconds=60, listing=listing("Stable"))
    assert [dict(row["state_seconds"]) for row in history(job)] == [
        {"Stable": 50.0},
        {"Stable": 50.0},
    ]
    assert [row["window_start"] for row in history(job)] == [NOON, NOON + 4 * MINUTE]


def test_the_subscribed_topics_are_counted_by_the_poll_whether_or_not_they_are_read() -> None:
    job = Simulation()
    ends = [
        *(end(1, partition=part) for part in range(3)),
        end(1, topic="u"),
        end(1, topic="other"),
    ]
    job.tick(ends, [generation(1, {"m": ("t", "u", "unheard")}), commit(5, group="simple")])
    job.tick(ends, seconds=60)
    found = {row["group"]: row["topic_partitions"] for row in history(job)}
    assert {group: counts and dict(counts) for group, counts in found.items()} == {
        "g": {"t": 3, "u": 1},
        "simple": None,
    }


@pytest.mark.parametrize("is_live", [False, True])
def test_what_was_read_while_catching_up_is_no_history(is_live: bool) -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50)], is_live=is_live)
    job.tick([end(100)], seconds=60)
    assert len(history(job)) == is_live


def test_a_group_that_went_within_a_window_has_no_row_of_it() -> None:
    job = Simulation()
    job.tick([end(100)], [commit(50), commit(50, group="h")])
    job.tick([end(100)], [commit(None)])
    job.tick([end(100)], seconds=60)
    assert [row["group"] for row in history(job)] == ["h"]
