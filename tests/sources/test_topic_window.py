"""Windows of topics: what was produced between the last polls of two adjacent windows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laggard.sources.snapshot import CLOSED, FACTS, POSITIONS
from laggard.sources.window_facts import TopicWindow
from stream.simulation import ID_B, end

Row = dict[str, Any]


class Polls:
    """Polls at times in seconds; keeps what each window closed with."""

    def __init__(self) -> None:
        self._window = TopicWindow(60_000)
        self._poll_id = 0
        self.closed: list[tuple[int, Row]] = []

    def add(self, second: int, *ends: Row, facts: Row | None = None) -> None:
        self._poll_id += 1
        positions = pa.Table.from_pylist(list(ends), schema=POSITIONS)
        reported = None
        if facts is not None and self._window.is_closed_by(second * 1000):
            reported = pa.Table.from_pylist(
                [{name: ends[0][name] for name in FACTS.names[:3]} | facts], schema=FACTS
            )
        rows, start_ms = self._window.add(self._poll_id, second * 1000, positions, reported)
        assert rows.schema == CLOSED
        self.closed += [(start_ms // 1000, row) for row in rows.to_pylist()]

    def column(self, name: str) -> list[Any]:
        return [row[name] for _, row in self.closed]


def test_a_window_closes_with_the_first_poll_after_it() -> None:
    polls = Polls()
    for second in (0, 30, 59, 60):
        polls.add(second, end(second, start=1))
    ((start, row),) = polls.closed
    assert (
        start,
        row["ticks"],
        row["poll_id"],
        row["log_end_offset"],
        row["log_start_offset"],
    ) == (0, 3, 3, 59, 1)


def test_the_first_window_has_nothing_to_subtract_from() -> None:
    polls = Polls()
    polls.add(0, end(5))
    polls.add(60, end(9))
    assert (polls.column("produced"), polls.column("arrival_rate")) == ([None], [None])


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 59), st.integers(0, 9)), min_size=3, max_size=25))
def test_production_adds_up_over_adjacent_windows(steps: list[tuple[int, int]]) -> None:
    polls, second, log_end = Polls(), 0, 100
    polls.add(second, end(log_end))
    for seconds, produced in steps:
        second, log_end = second + seconds, log_end + produced
        polls.add(second, end(log_end))
    rows = [row for _, row in polls.closed]
    assert all(row["produced"] is not None for row in rows[1:])
    if rows:
        assert rows[0]["log_end_offset"] >= 100
        assert rows[-1]["log_end_offset"] - rows[0]["log_end_offset"] == sum(
            row["produced"] for row in rows[1:]
        )


def test_nothing_is_produced_across_windows_without_a_poll() -> None:
    polls = Polls()
    for second in (0, 60, 240, 300):
        polls.add(second, end(second))
    assert polls.column("produced") == [None, 60, None]


def test_a_log_that_fell_or_was_recreated_produced_nothing_known() -> None:
    polls = Polls()
    polls.add(0, end(100), end(100, partition=1))
    polls.add(60, end(50), end(150, partition=1, topic_id=ID_B))
    polls.add(120, end(50), end(150, partition=1, topic_id=ID_B))
    assert [row["produced"] for start, row in polls.closed if start == 60] == [None, None]


def test_a_partition_without_an_answer_keeps_its_error_name() -> None:
    polls = Polls()
    polls.add(0, end(None, error="TIMEOUT"))
    polls.add(60)
    assert (polls.column("log_end_offset"), polls.column("error")) == ([None], ["TIMEOUT"])


@pytest.mark.parametrize(("stable", "expected"), [(40, 40), (50, 50), (55, 50), (None, None)])
def test_the_window_ends_with_what_was_stable_of_its_own_records(
    stable: int | None, expected: int | None
) -> None:
    polls = Polls()
    polls.add(0, end(10))
    polls.add(59, end(50))
    facts = {"last_stable_offset": stable, "cleanup_policy": "compact", "config_known": True}
    polls.add(60, end(60), facts=facts)  # records 50 to 59 came after the window's last poll
    assert polls.column("last_stable_offset") == [expected]
    assert (polls.column("cleanup_policy"), polls.column("config_known")) == (["compact"], [True])


def test_what_is_asked_long_after_a_window_does_not_tell_how_it_ended() -> None:
    polls = Polls()
    polls.add(0, end(10))
    polls.add(120, end(60), facts={"last_stable_offset": 60, "config_known": True})
    assert (polls.column("last_stable_offset"), polls.column("config_known")) == ([None], [False])


def test_the_first_poll_closes_nothing() -> None:
    window = TopicWindow(60_000)
    assert not window.is_closed_by(0)
