"""Trouble that goes on is one finding: a hot partition that wanders, a stall over a reset, both
drawn at random.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from diagnosis.fluid import Evaluation, Fluid, evaluate
from laggard.tables.arrow import to_arrow
from laggard.tables.schema import schemas
from patience import examples

pytestmark = pytest.mark.examples
GROUPS, MINUTES = examples(12), 64
WINDOW = 60


def openings(found: Evaluation, code: str) -> dict[tuple[int, ...], int]:
    """How often a finding of this code opened, by the partitions that it is about."""
    times = defaultdict[tuple[int, ...], int](int)
    for row in found.findings:
        if row["code"] == code and row["event"] == "opened" and row["role"] != "suppressed":
            times[tuple(row["partitions"])] += 1
    return dict(times)


def wander(seed: int) -> tuple[Fluid, int]:
    """Three partitions in turn get more than a member can do, for three or four minutes each;
    retention overtakes them.

    Return the group, and the minute in which it ends.
    """
    chance = random.Random(f"wanders {seed}")
    partitions, members, capacity = (
        chance.randint(4, 8),
        chance.randint(1, 3),
        chance.uniform(150, 250),
    )
    places, stays, rounds = (
        chance.sample(range(partitions), 3),
        chance.choice((3, 4)),
        chance.randint(2, 3),
    )
    until = 16 + 3 * stays * rounds
    arrival = np.full((partitions, MINUTES), chance.uniform(3, 10))
    for minute in range(16, until):
        arrival[places[(minute - 16) // stays % 3], minute] = capacity * chance.uniform(1.3, 1.9)
    group = Fluid(arrival, np.full((members, MINUTES), capacity), seed)
    held = chance.uniform(0.1, 0.3) * capacity * WINDOW  # records
    for row in group.lag_rows:
        row["log_start_offset"] = max(1_000_000, row["log_end_offset"] - round(held))
        lost = row["log_start_offset"] - row["committed_offset"]
        if lost > 0:
            row.update(
                dict.fromkeys(
                    ("lag", "lag_min", "lag_max", "lag_envelope", "time_lag_seconds", "consumed")
                )
            )
            row.update(status="below_log_start", lost_records=lost)
    return group, until


def test_a_hot_partition_that_wanders_is_one_finding_of_each_place_until_it_stays_away() -> None:
    again, late = {}, {}
    for seed in range(GROUPS):
        group, until = wander(seed)
        found = evaluate(group.tables(), first=12)
        times = openings(found, "HOT_PARTITION_ARRIVAL")
        assert len(times) == 3
        if set(times.values()) != {1}:
            again[seed] = times
        closed = max(row["at"] for row in found.findings if row["code"] == "HOT_PARTITION_ARRIVAL")
        minutes = (closed - group.fact_rows[until]["window_start"]).total_seconds() / WINDOW
        if minutes > 10:
            late[seed] = minutes
    assert (again, late) == ({}, {})


def reset(seed: int) -> tuple[dict[str, pa.Table], int]:
    """A partition that its owner does not read, and whose group is restarted with offsets that
    somebody set further on.

    It is not read from then on either. Return the tables, and the number of the partition.
    """
    chance = random.Random(f"reset {seed}")
    partitions, interval = chance.choice((3, 4, 6)), chance.choice((5.0, 20.0, 60.0))
    begin, at = 18, chance.randint(24, 30)
    stalled = chance.randrange(partitions)
    paused = np.zeros((partitions, MINUTES), bool)
    paused[stalled, begin:] = True
    arrival = np.full((partitions, MINUTES), chance.uniform(20, 100))
    group = Fluid(arrival, np.full((2, MINUTES), 1e6), seed, interval=interval, paused=paused)
    ahead, before = 0, 0
    for row in group.lag_rows:
        minute = round(
            (row["window_start"] - group.lag_rows[0]["window_start"]).total_seconds() / WINDOW
        )
        if minute == at:
            row.update(dict.fromkeys(("owner", "slot", "client_id", "client_host")))
        elif minute > at:
            row["owner"] += "-again"
        if row["partition"] == stalled and minute > at:
            before, ahead = (
                before or row["committed_offset"],
                ahead or round(2 * WINDOW * row["arrival_rate"]),
            )
            row["committed_offset"] += ahead
            lag = row["log_end_offset"] - row["committed_offset"]
            row.update(
                lag=lag, lag_min=lag, lag_max=lag, frozen_seconds=float(WINDOW * (minute - at) - 30)
            )
            row["consumed"] = ahead if minute == at + 1 else 0
    group.fact_rows[at].update(members=0, group_state="Empty", topics=[])
    event = {
        "date": group.fact_rows[at]["date"], "cluster": "c", "event_id": f"skip {seed}",
        "group": group.group,
        "kind": "offset_skip", "event_at": group.fact_rows[at + 1]["window_start"], "status": "ok",
        "batch_id": 1,
        "topic": "orders", "topic_id": "id", "partition": stalled, "from_offset": before,
        "to_offset": before + ahead,
        "records": ahead,
    }  # fmt: skip
    tables: dict[str, Any] = group.tables()
    return tables | {"group_events": to_arrow(schemas.TABLES["group_events"], [event])}, stalled


def test_a_stall_that_outlasts_a_reset_of_its_offset_is_one_finding() -> None:
    wrong = {}
    for seed in range(GROUPS):
        tables, stalled = reset(seed)
        found = evaluate(tables, first=15)
        if openings(found, "PARTITION_STALLED") != {(stalled,): 1}:
            wrong[seed] = openings(found, "PARTITION_STALLED")
    assert wrong == {}
