"""Whatever the clock does: time in rows never goes back, and rates and ages are of the time that
truly passed.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from laggard.sources.clock import Reading
from laggard.sources.snapshot import Snapshot
from laggard.stream.job.tick_clock import clock_column, is_unwritten, place, time_gaps
from stream.simulation import NOON, Row, Simulation, commit, end, generation

RATE = 10  # records that arrive in a true second
MINUTE = timedelta(minutes=1)


class Machine(Simulation):
    """A job that watches one stalled partition and one that is read, on a machine whose clock is
    set now and then.
    """

    true_seconds = 0.0
    started_at = 0.0  # true time of the first tick

    def __post_init__(self) -> None:
        super().__post_init__()
        # true time, batch row, rows of the tick by partition
        self.ticked: list[tuple[float, Row, Row]] = []

    def run(self, seconds: float, *, step: float = 0.0, is_live: bool = True) -> None:
        """A tick after so many true seconds, in which the clock was set by `step`
        seconds as well.
        """
        self.true_seconds += seconds
        first = not self.ticked
        self.started_at = self.true_seconds if first else self.started_at
        log_end = round(RATE * (self.true_seconds - self.started_at))
        records = [generation(1, {"m": ("t",)})] if first else []
        records += [commit(log_end, partition=1, at=self.now)]
        records += [commit(0, at=self.now)] if first else []
        ends = [end(log_end, partition=0, start=0), end(log_end, partition=1, start=0)]
        self.tick(ends, records, seconds=seconds + step, true_seconds=seconds, is_live=is_live)
        assert self.last is not None
        self.ticked.append(
            (self.true_seconds, self.last, {row["partition"]: row for row in self.rows})
        )

    def reboot(self) -> None:
        self.boot_id += "'"
        self.boot_ms = 0


def keys_of(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(
        (row["group"], row.get("topic"), row.get("partition"), row["window_start"]) for row in rows
    )


def doubled(machine: Machine) -> list[tuple[Any, ...]]:
    """Keys with more than one row in a window."""
    found = keys_of(machine.history["lag_windows"]) + Counter()
    return [
        key
        for rows in (found, keys_of(machine.history["group_history"]))
        for key, n in rows.items()
        if n > 1
    ]


def holes(machine: Machine, partition: int = 0) -> list[tuple[datetime, datetime]]:
    """Time between two windows of a partition that no gap row covers."""
    rows = [row for row in machine.history["lag_windows"] if row["partition"] == partition]
    covered = [(gap["gap_from"], gap["gap_to"]) for gap in machine.gaps]
    return [
        (before["window_end"], after["window_start"])
        for before, after in pairwise(rows)
        if before["window_end"] < after["window_start"]
        and not any(
            low < after["window_start"] and high >= before["window_end"] for low, high in covered
        )
    ]


STEPS = st.one_of(
    st.just(0.0),
    st.floats(-0.05, 0.05),  # slewed by NTP
    st.sampled_from([-3600.0, -900.0, -60.0, -20.0, -5.0, 30.0, 60.0, 3600.0]),
)
TICKS = st.lists(
    st.tuples(
        st.sampled_from([10.0, 10.0, 10.0, 10.0, 7.0, 180.0]),
        STEPS,
        st.sampled_from(["", "", "", "boot", "late"]),
    ),
    min_size=10,
    max_size=30,
)


@pytest.mark.full
@settings(max_examples=7, deadline=None)
@example([(10.0, 0.0, "")] * 10 + [(10.0, -300.0, "")] + [(10.0, 0.0, "")] * 45)
@example([(10.0, 0.0, "")] * 7 + [(10.0, 0.0, "late")] + [(10.0, 0.0, "")] * 12)
@given(TICKS)
def test_time_never_goes_back_and_no_window_is_doubled(
    history: list[tuple[float, float, str]],
) -> None:
    machine = Machine()
    for seconds, step, event in history:
        if event == "boot":
            machine.reboot()
        machine.run(seconds, step=step, is_live=event != "late")
    times = [last["polled_at"] for _, last, _ in machine.ticked]
    assert times == sorted(times)
    assert doubled(machine) == []
    for _, _, rows in machine.ticked:
        assert all(
            row["time_lag_seconds"] is None or row["time_lag_seconds"] >= 0 for row in rows.values()
        )
        assert all(row["arrival_rate"] is None or row["arrival_rate"] >= 0 for row in rows.values())


@pytest.mark.full
@settings(max_examples=7, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([10.0, 10.0, 10.0, 180.0]), STEPS), min_size=10, max_size=30)
)
def test_rates_and_ages_are_of_true_seconds_and_holes_have_a_gap_row(
    history: list[tuple[float, float]],
) -> None:
    machine = Machine()
    for seconds, step in history:
        machine.run(seconds, step=step)
    assert holes(machine) == []
    for at, _, rows in machine.ticked:
        age = rows[0]["time_lag_seconds"]
        if age is not None:  # unread since the first tick
            assert age == pytest.approx(at - machine.started_at, abs=12)
        for row in rows.values():
            assert row["arrival_rate"] is None or row["arrival_rate"] == pytest.approx(
                RATE, rel=0.02
            )
    for row in machine.history["lag_windows"]:
        assert row["arrival_rate"] is None or row["arrival_rate"] == pytest.approx(RATE, rel=0.02)


@pytest.mark.parametrize("back", [60, 900])
def test_a_clock_that_is_set_back_holds_time_and_live_values_go_on(back: int) -> None:
    machine = Machine()
    for _ in range(13):  # to 10 s into a window
        machine.run(10)
    held_at = machine.last["polled_at"] if machine.last else NOON
    machine.run(10, step=-back)
    for _ in range(back // 10 - 2):
        machine.run(10)
    for true_seconds, last, rows in machine.ticked[13:]:
        assert last["polled_at"] == held_at
        assert last["clock"]["wall"] < held_at
        assert rows[0]["lag"] == round(RATE * (true_seconds - machine.started_at))
        assert rows[0]["time_lag_seconds"] == pytest.approx(
            true_seconds - machine.started_at, abs=12
        )
        assert rows[1]["lag"] == 0
        assert rows[0]["window_start"] is None
    (gap,) = machine.gaps
    wall = machine.ticked[13][1]["clock"]["wall"]
    assert gap == {"gap_scope": "all", "gap_reason": "clock", "gap_from": wall, "gap_to": held_at}
    counted = len(machine.history["lag_windows"])
    for _ in range(15):
        machine.run(10)
    starts = sorted({row["window_start"] for row in machine.history["lag_windows"][counted:]})
    assert starts == [NOON + 3 * MINUTE]
    assert doubled(machine) == []


def test_a_clock_that_is_set_forward_is_one_gap_and_nothing_that_was_counted_is_lost() -> None:
    machine = Machine()
    for _ in range(13):
        machine.run(10)
    before = machine.last["polled_at"] if machine.last else NOON
    machine.run(10, step=3600)
    for _ in range(13):
        machine.run(10)
    (gap,) = machine.gaps
    after = before + timedelta(seconds=3610)
    assert gap == {"gap_scope": "all", "gap_reason": "clock", "gap_from": before, "gap_to": after}
    produced = [row["produced"] for row in machine.history["lag_windows"] if row["partition"] == 0][
        1:
    ]
    assert None not in produced


def row_of(at: datetime, reading: Reading, **values: Any) -> Row:
    return {"polled_at": at, "poll_id": 1, "kind": "tick", "clock": clock_column(reading), **values}


NOON_MS = round(NOON.timestamp() * 1000)
LAST = row_of(NOON, Reading(NOON_MS, "boot", 1_000_000, 1_000_000))


def gaps_of(
    wall_seconds: float,
    true_seconds: float,
    *,
    suspended: float = 0,
    frozen: float = 0,
    down: bool = False,
) -> Any:
    true_ms, awake_ms = round(1000 * true_seconds), round(1000 * (true_seconds - suspended))
    poll = Snapshot(
        2, NOON_MS + round(1000 * wall_seconds), "boot", 1_000_000 + true_ms, 1_000_000 + awake_ms
    )
    found = time_gaps(
        LAST, place(LAST, poll), MINUTE, was_down=down, frozen=timedelta(seconds=frozen)
    )
    return [
        (gap["gap_reason"], round((gap["gap_to"] - gap["gap_from"]).total_seconds()))
        for gap in found
    ]


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"wall_seconds": 10, "true_seconds": 10}, []),
        ({"wall_seconds": 60, "true_seconds": 60}, []),
        ({"wall_seconds": 61, "true_seconds": 61}, [("tick_late", 61)]),
        ({"wall_seconds": 61, "true_seconds": 61, "down": True}, [("job_down", 61)]),
        ({"wall_seconds": 180, "true_seconds": 180, "suspended": 170}, [("clock", 180)]),
        ({"wall_seconds": 180, "true_seconds": 180, "frozen": 175}, [("clock", 180)]),
        ({"wall_seconds": 180, "true_seconds": 180, "frozen": 30}, [("tick_late", 180)]),
        ({"wall_seconds": 3610, "true_seconds": 10}, [("clock", 3610)]),
        (
            {"wall_seconds": 3900, "true_seconds": 300, "down": True},
            [("job_down", 300), ("clock", 3600)],
        ),
        ({"wall_seconds": -50, "true_seconds": 10}, [("clock", 50)]),
        ({"wall_seconds": -0.5, "true_seconds": 0.1}, []),
    ],
)
def test_the_reason_of_a_gap_is_what_the_machine_knows(
    given_: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    assert gaps_of(**given_) == expected


def test_a_slewed_clock_makes_two_ticks_equal_and_none_earlier() -> None:
    moment = place(LAST, Snapshot(2, NOON_MS - 40, "boot", 1_000_100, 1_000_100))
    assert (moment.now, moment.is_held, moment.shift) == (NOON, False, timedelta(milliseconds=-100))


def test_a_row_of_an_older_job_is_a_floor_too() -> None:
    last = {"polled_at": NOON, "poll_id": 1, "kind": "tick"}
    moment = place(last, Snapshot(2, NOON_MS - 600_000, "boot", 1, 1))
    assert (moment.now, moment.is_held, moment.shift) == (NOON, True, None)


def test_a_window_that_the_poller_sees_end_twice_is_written_once() -> None:
    last = row_of(NOON, Reading(NOON_MS), windows_closed_to=NOON - MINUTE)
    assert [is_unwritten(NOON_MS + 60_000 * minute, last) for minute in (-2, -1, 0)] == [
        False,
        False,
        True,
    ]
