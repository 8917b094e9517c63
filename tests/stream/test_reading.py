"""What the rules get to see of the tables."""

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from laggard.diagnosis.parameters import Parameters, Policy
from laggard.stream.evaluation.reading import Options, Window, closed_windows, events_of, known_at

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
OPTIONS = Options("c", 60, Parameters(), lambda *_: Policy())
WINDOW = Window(round(START.timestamp() * 1000), batch_id=7)


def generations(*rows: tuple[int, int, int]) -> pa.Table:
    """Rows by seconds after the window's begin, offset and batch."""
    times = pa.array(
        [START + timedelta(seconds=seconds) for seconds, _, _ in rows], pa.timestamp("us", tz="UTC")
    )
    _, offsets, batches = zip(*rows, strict=True)
    return pa.table({"record_timestamp": times, "source_offset": offsets, "batch_id": batches})


def known(rows: pa.Table) -> list[int]:
    return [
        row["source_offset"]
        for row in known_at(events_of({"generations": rows}), WINDOW, OPTIONS)["generations"]
    ]


def test_events_come_oldest_first_whatever_the_order_of_the_files() -> None:
    rows = generations((30, 12, 7), (-5, 10, 6), (30, 11, 7))
    assert known(rows) == [10, 11, 12]


def test_what_was_published_later_or_is_a_day_old_is_left_out() -> None:
    day = 86_400
    rows = generations((0, 1, 8), (60 - day - 1, 2, 1), (60 - day, 3, 1), (0, 4, 7))
    assert known(rows) == [3, 4]


def ticks(*rows: tuple[float, str]) -> pa.Table:
    """Batches by seconds after the window's begin; their numbers count from 1."""
    times = pa.array(
        [START + timedelta(seconds=seconds) for seconds, _ in rows], pa.timestamp("us", tz="UTC")
    )
    numbers = list(range(1, len(rows) + 1))
    return pa.table({"batch_id": numbers, "polled_at": times, "kind": [kind for _, kind in rows]})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(-1, "tick"), (5, "tick"), (55, "tick"), (65, "tick")], [4]),
        ([(5, "tick"), (55, "tick"), (65, "tick")], []),  # the job began in it
        ([(-1, "tick"), (5, "tick"), (55, "tick")], []),  # it lasts
        # seen from its middle on
        ([(-1, "tick"), (5, "backfill"), (25, "tick"), (65, "tick")], []),
        ([(-1, "tick"), (5, "tick"), (5, "gap"), (65, "backfill")], [4]),
        ([(-1, "tick"), (5, "tick"), (25, "backfill"), (65, "tick")], []),
        ([(-1, "tick"), (125, "tick"), (185, "tick")], []),  # nobody looked
    ],
)
def test_a_window_without_groups_has_closed_when_ticks_saw_all_of_it(
    rows: list[tuple[float, str]], expected: list[int]
) -> None:
    history = pa.table(
        {
            "window_start": pa.array([], pa.timestamp("us", tz="UTC")),
            "batch_id": pa.array([], pa.int64()),
        }
    )
    begin = WINDOW.begin_ms
    found = closed_windows({"group_history": history, "batches": ticks(*rows)}, begin, begin, 60)
    assert found == [Window(begin, batch) for batch in expected]


def test_groups_say_which_batch_closed_their_window() -> None:
    history = pa.table(
        {"window_start": pa.array([START], pa.timestamp("us", tz="UTC")), "batch_id": [3]}
    )
    rows = ticks((-1, "tick"), (5, "tick"), (65, "backfill"), (70, "tick"))
    assert closed_windows(
        {"group_history": history, "batches": rows}, 0, 2 * WINDOW.begin_ms, 60
    ) == [Window(WINDOW.begin_ms, 3)]
