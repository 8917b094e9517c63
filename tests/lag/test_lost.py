"""Records that retention deleted in front of a reader: those that are certain
count, and no others.
"""

from __future__ import annotations

import random
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lag.readers import LOSES, Measured, draw_all, measure, ticks
from stream.simulation import NOON, Simulation, commit, end

Row = dict[str, Any]
STATE = ("partition_status", "group_status")
RATE, ARRIVAL = 100, 150  # records a second that are read, and that arrive


@cache
def drawn() -> list[Measured]:
    return measure(3100, cases=60, seconds=1200)


class Log:
    """Ticks of 10 s with one commit each; the log start is polled by the first tick of a minute."""

    def __init__(self, *, arrival: int = ARRIVAL, topic: str = "t") -> None:
        self.topic = topic
        self.job, self.arrival, self.second, self.start, self.offset = (
            Simulation(),
            arrival,
            0,
            0,
            0,
        )
        self.tick(0)

    def tick(self, read: int | None, start: int | None = None) -> None:
        """Read so many records, of which a commit tells; None: no commit. Before that the log start
        moves.
        """
        self.second += 10
        self.start = self.start if start is None else start
        opens = self.second % 60 == 0 or self.second == 10
        made = []
        if read is not None:
            self.offset += read
            made = [commit(self.offset, topic=self.topic, at=NOON + timedelta(seconds=self.second))]
        start = self.start if opens else None
        self.job.tick([end(self.arrival * self.second, start=start, topic=self.topic)], made)

    def reads(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick(10 * RATE)

    @property
    def sums(self) -> Row:
        (row,) = self.job.groups["g"]["topic_counters"]
        return dict(row)

    @property
    def windows(self) -> list[Row]:
        return self.job.history["lag_windows"]


def overtaken() -> Log:
    """At second 140 the reader is at 13,000 of 21,000; all before 16,000 is deleted, and it goes on
    from there.
    """
    log = Log()
    log.reads(13)
    log.tick(3000 + 10 * RATE, start=16_000)
    log.reads(5)
    return log


def test_a_jump_between_two_polls_of_the_log_start_is_a_loss() -> None:
    log = overtaken()  # 4000 records further in 10 s, of which it can have read 1500
    assert log.sums["lost"] == 2500
    assert [row["lost_records"] for row in log.windows][-1] == 2500


def test_the_window_of_such_a_jump_says_nothing_of_what_is_consumed_and_others_do() -> None:
    log = overtaken()
    log.reads(6)
    assert [row["consumed"] for row in log.windows][-2:] == [None, 6000]
    assert log.windows[-2]["consume_rate"] is None


def test_what_is_lost_is_not_counted_as_consumed() -> None:
    log = overtaken()
    log.reads(6)
    assert log.sums["consumed"] == log.offset - 2500


def test_the_same_jump_is_no_loss_if_nothing_was_deleted() -> None:
    log = Log()
    log.reads(13)
    log.tick(3000 + 10 * RATE)
    log.reads(11)
    assert log.sums["lost"] == 0
    assert log.sums["consumed"] == log.offset
    assert [row["lost_records"] for row in log.windows][-2:] == [0, 0]


def test_a_reader_that_passes_the_log_start_at_its_own_speed_may_have_lost_something() -> None:
    log = Log()
    log.reads(14)
    log.tick(10 * RATE, start=14_500)
    log.reads(4)
    assert log.sums["lost"] == 0
    assert log.windows[-1]["lost_records"] is None


def test_records_deleted_behind_a_reader_that_has_read_all_are_not_lost() -> None:
    log = Log(arrival=RATE)
    log.reads(5)
    for _ in range(18):
        log.tick(10 * RATE, start=log.offset)
    assert log.sums["lost"] == 0
    assert log.sums["consumed"] == log.offset
    assert {row["lost_records"] for row in log.windows} == {0}


def test_a_streams_application_that_becomes_faster_loses_nothing_that_it_deletes_itself() -> None:
    log = Log(arrival=400, topic="g-counts-repartition")
    for read in [10 * RATE] * 24 + [25 * RATE] * 30:
        log.tick(read, start=log.offset + read)
    assert log.sums["lost"] == 0
    assert log.sums["consumed"] == log.offset
    assert {row["lost_records"] for row in log.windows} == {0}
    assert None not in [row["consumed"] for row in log.windows][1:]


@pytest.mark.full
def test_a_reset_to_the_end_loses_what_was_deleted() -> None:
    log = Log()
    log.reads(17)  # to 17,000 of 25,500
    for _ in range(60):
        log.tick(100)
    held = log.offset
    log.tick(ARRIVAL * log.second - held, start=held + 50_000)
    log.reads(6)
    assert 47_000 < log.sums["lost"] <= 50_000


def test_an_offset_that_is_set_back_to_before_the_log_start_loses_nothing() -> None:
    log = Log()
    log.reads(4)
    log.tick(10 * RATE, start=2000)
    log.tick(-4000)
    log.reads(8)
    assert log.sums["lost"] == 0


def test_records_deleted_after_a_first_loss_are_lost_too() -> None:
    log = Log()
    for start in (None, None, None, None, 1000):
        log.tick(None, start)
    log.tick(1500)
    assert log.sums["lost"] == 1000
    for start in (None, None, None, None, 2500):
        log.tick(None, start)
    assert log.sums["lost"] == 2000


def test_the_first_jump_of_a_reader_of_unknown_pace_is_unknown_though_it_reaches_the_end() -> None:
    log = Log()
    log.tick(ARRIVAL * log.second)  # to the log end: how fast it can be is not seen
    log.tick(ARRIVAL * 10)
    for _ in range(12):
        log.tick(None)
    # to the log end; 8,000 of it may be deleted ones
    log.tick(ARRIVAL * (log.second + 10) - log.offset, start=11_000)
    log.reads(6)
    row = next(row for row in log.windows if row["lost_records"] is None)
    assert row["consumed"] is None
    assert row["consume_rate"] is None


@pytest.mark.full
def test_a_restart_in_the_middle_of_a_window_changes_nothing(tmp_path: Path) -> None:
    """A job that begins again has the tables and nothing else, and Spark gives their rows in any
    order.
    """
    chance = random.Random(1)
    never, once_more = Simulation(), Simulation()
    whole, cut = draw_all(1, cases=12), draw_all(1, cases=12)
    for _ in ticks(never, whole, seconds=720):
        pass
    for _ in ticks(once_more, cut, seconds=720):
        if chance.random() < 0.25:
            once_more.tables |= {
                name: again(once_more.tables[name], chance, tmp_path) for name in STATE
            }
    assert once_more.rows == never.rows
    assert once_more.groups == never.groups
    assert in_order(once_more.history["lag_windows"]) == in_order(never.history["lag_windows"])
    assert any(row["lost_records"] for row in never.history["lag_windows"])


def again(rows: pa.Table, chance: random.Random, folder: Path) -> pa.Table:
    """The table, written and read back in another order."""
    pq.write_table(rows, folder / "rows.parquet")
    found = pq.read_table(folder / "rows.parquet", schema=rows.schema)
    return found.take(chance.sample(range(found.num_rows), found.num_rows))


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["window_start"], row["group"]))


@pytest.mark.full
def test_of_drawn_readers_only_those_have_lost_something_that_did() -> None:
    assert {each.reader.kind for each in drawn() if each.booked or each.named} == LOSES
    assert [each.booked for each in drawn() if not each.reader.lost and each.booked] == []


@pytest.mark.full
def test_no_more_is_lost_than_was_but_before_the_first_commit_after_a_stop() -> None:
    too_much = [(each.reader.kind, each.booked - each.reader.left_out) for each in drawn()]
    assert {kind for kind, records in too_much if records > 0} <= {"stopped"}
    lost = sum(each.reader.lost for each in drawn())
    assert sum(max(0, records) for _, records in too_much) < 0.01 * lost


@pytest.mark.full
def test_most_of_what_drawn_readers_lost_is_found_and_nearly_all_of_them_are_named() -> None:
    losing = [each for each in drawn() if each.reader.lost]
    assert {each.reader.kind for each in losing} == LOSES
    assert sum(each.booked for each in losing) > 0.6 * sum(each.reader.lost for each in losing)
    assert sum(each.named > 0 for each in losing) > 0.9 * len(losing)


@pytest.mark.full
def test_no_loss_makes_drawn_readers_look_faster_than_they_are() -> None:
    fast = [each for each in drawn() if each.peak > 1.15 * each.reader.speed]
    assert len(fast) <= 0.05 * len(drawn())
