"""A committed offset that jumps over records nobody read is an event; a group that catches up is
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from stream.simulation import ID_B, NOON, Simulation, commit, end, generation

Row = dict[str, Any]
RATE = 100  # records a second that arrive


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


class Reader:
    """A topic that gets `RATE` records a second, and commits of one partition at
    ticks 10 s apart.
    """

    def __init__(self, members: int | None = 1, first: int = 0) -> None:
        self.job, self.second, self.first = Simulation(), 0, first
        record = (
            []
            if members is None
            else [generation(1, {f"m{each}": ("t",) for each in range(members)})]
        )
        self._tick(record, 0)

    def commits(self, *offsets: int | None) -> None:
        """One tick each; None: no commit."""
        for offset in offsets:
            self._tick([], offset)

    def reads(self, ticks: int, *, behind: int = 0) -> None:
        for _ in range(ticks):
            self.commits(self.end + 10 * RATE - behind)

    @property
    def end(self) -> int:
        return self.first + RATE * self.second

    def _tick(self, records: Sequence[Any], offset: int | None) -> None:
        self.second += 10
        commits = [] if offset is None else [commit(offset, at=at(self.second))]
        self.job.tick([end(self.end)], [*records, *commits])

    @property
    def skips(self) -> list[Row]:
        return [row for row in self.job.history["group_events"] if row["kind"] == "offset_skip"]


def test_a_reset_to_the_end_is_a_skip_with_its_size() -> None:
    reader = Reader()
    for number in range(1, 40):  # 10 records a second are read, 100 arrive
        reader.commits(number * 100)
    held = 39 * 100
    reader.commits(reader.end)  # the end of the poll before
    (event,) = reader.skips
    assert (event["from_offset"], event["to_offset"], event["records"]) == (
        held,
        40_000,
        40_000 - held,
    )
    assert (event["group"], event["topic"], event["partition"]) == ("g", "t", 0)
    assert event["event_at"] == at(reader.second)
    reader.reads(5)
    assert len(reader.skips) == 1


@pytest.mark.parametrize("stopped", [1, 6, 30])
def test_what_piled_up_in_a_stop_may_be_caught_up_at_once(stopped: int) -> None:
    reader = Reader()
    reader.reads(12)
    reader.commits(*[None] * stopped)
    reader.reads(3)
    assert reader.skips == []


@pytest.mark.parametrize("stopped", [6, 30])
def test_a_position_that_is_only_repeated_is_a_stop(stopped: int) -> None:
    reader = Reader()
    reader.reads(12)
    reader.commits(*[reader.end] * stopped)
    reader.reads(3)
    assert reader.skips == []


@pytest.mark.full
def test_a_catch_up_over_several_ticks_is_no_skip() -> None:
    reader = Reader()
    reader.reads(6)
    for number in range(1, 20):
        reader.commits(6000 + number)
    for _ in range(6):
        held = reader.job.row["committed_offset"]
        reader.commits(min(held + 9 * RATE * 10, reader.end))  # nine times what arrives
    assert reader.job.row["lag"] <= 10 * RATE
    assert reader.skips == []


def test_a_fast_jump_that_stays_behind_the_end_is_no_skip() -> None:
    reader = Reader()
    for number in range(1, 40):
        reader.commits(number * 100)
    reader.commits(35_000)
    assert reader.skips == []


def test_how_fast_a_reader_is_that_has_just_begun_is_unknown() -> None:
    job = Simulation()
    commits: dict[int, list[Any]] = {8: [commit(20_000, at=at(80))], 9: [commit(39_900, at=at(90))]}
    for number in range(10):
        members = [generation(1, {"m": ("t",)})] if number == 0 else []
        job.tick([end(39_000 + 100 * number)], [*members, *commits.get(number, [])])
    assert job.row["lag"] == 0
    assert "offset_skip" not in job.events()


def test_the_tail_of_a_batch_that_has_ended_is_no_skip() -> None:
    """The next commit comes a window after the last record: neither arrivals nor progress tell a
    rate any more.
    """
    job, length = Simulation(), 23  # ticks with arrivals, of 10 s
    job.tick([end(0)], [generation(1, {"m": ("t",)}), commit(0, at=at(10))])
    for number in range(2, 40):
        log_end = 10 * RATE * min(number, length)
        commits = [commit(log_end, at=at(10 * number))] if number % 9 == 2 else []
        job.tick([end(log_end)], commits)
    assert job.row["lag"] == 0
    assert "offset_skip" not in job.events()


def test_the_first_commit_is_no_skip() -> None:
    job = Simulation()
    job.tick([end(100)], [generation(1, {"m": ("t",)})])
    for number in range(1, 20):
        job.tick([end(1000 * number)])
    job.tick([end(20_000)], [commit(20_000)])
    assert "offset_skip" not in job.events()


def test_without_members_every_jump_is_a_skip_but_one_of_the_size_of_the_rhythm() -> None:
    reader = Reader(members=0, first=60_000)
    reader.commits(*[None] * 7)
    reader.commits(2 * RATE * 60 + 1)  # the floor, with the window in place of a commit interval
    assert reader.skips == []
    reader.commits(None, 60_000, None)
    assert [(row["from_offset"], row["to_offset"]) for row in reader.skips] == [(12_001, 60_000)]


def test_beyond_the_log_end_no_record_is_skipped() -> None:
    reader = Reader(members=0)
    reader.commits(0, *[None] * 20)
    reader.commits(2**63 - 1)
    (event,) = reader.skips
    assert (event["from_offset"], event["to_offset"], event["records"]) == (
        0,
        2**63 - 1,
        reader.end,
    )


def returns(*commits: tuple[float, int]) -> list[Row]:
    """A group whose member joins at second 90, at the end of a tick; commits of that tick by
    second.
    """
    reader = Reader(members=0, first=20_000)
    reader.commits(6000, *[None] * 6)
    reader.second += 10
    given = [
        *(commit(offset, at=at(second)) for second, offset in commits),
        generation(2, {"m0": ("t",)}),
    ]
    reader.job.tick([end(reader.end)], given)
    return [row for row in reader.skips if row["from_offset"] == 6000]


@pytest.mark.parametrize("later", [[], [(90, 20_100)]])
def test_what_is_committed_before_the_members_are_back_is_a_skip(
    later: list[tuple[float, int]],
) -> None:
    (event,) = returns((85, 20_000), *later)
    assert (event["from_offset"], event["to_offset"], event["records"]) == (6000, 20_000, 14_000)


def test_a_reader_that_returns_may_catch_up_at_once() -> None:
    assert returns((90, 20_000)) == []


def test_of_a_group_that_never_had_members_nothing_is_known() -> None:
    reader = Reader(members=None)
    reader.commits(*[None] * 7)
    reader.commits(6000)
    assert reader.skips == []


def test_a_topic_that_was_recreated_is_no_skip() -> None:
    reader = Reader(members=0, first=60_000)
    reader.commits(*[None] * 7)
    reader.job.tick([end(90_000, topic_id=ID_B)], [commit(90_000, topic_id=ID_B)])
    assert reader.skips == []


@pytest.mark.full
def test_skips_are_counted_per_topic_and_a_group_without_any_has_0() -> None:
    reader = Reader()
    for number in range(1, 40):
        reader.commits(number * 100)
        assert [each["skips"] for each in reader.job.groups["g"]["outcome_counters"]] == [0]
    reader.commits(reader.end)
    reader.commits(None)
    assert reader.job.groups["g"]["outcome_counters"][0]["skips"] == len(reader.skips) == 1
