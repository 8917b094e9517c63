"""What the rules get to see of the tables."""

from datetime import datetime, timedelta, timezone

import pyarrow as pa

from laggard.diagnosis.parameters import Parameters
from laggard.diagnosis.policy import Policy
from laggard.stream.reading import Options, Window, known_at, told

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
OPTIONS = Options("c", 60, Parameters(), lambda *_: Policy())
WINDOW = Window(round(START.timestamp() * 1000), batch_id=7)


def generations(*rows: tuple[int, int, int]) -> pa.Table:
    """Rows by seconds after the window's begin, offset and batch."""
    times = pa.array([START + timedelta(seconds=seconds) for seconds, _, _ in rows], pa.timestamp("us", tz="UTC"))
    _, offsets, batches = zip(*rows, strict=True)
    return pa.table({"record_timestamp": times, "source_offset": offsets, "batch_id": batches})


def known(rows: pa.Table) -> list[int]:
    return [row["source_offset"] for row in known_at(told({"generations": rows}), WINDOW, OPTIONS)["generations"]]


def test_events_come_oldest_first_whatever_the_order_of_the_files() -> None:
    rows = generations((30, 12, 7), (-5, 10, 6), (30, 11, 7))
    assert known(rows) == [10, 11, 12]


def test_what_was_published_later_or_is_a_day_old_is_left_out() -> None:
    day = 86_400
    rows = generations((0, 1, 8), (60 - day - 1, 2, 1), (60 - day, 3, 1), (0, 4, 7))
    assert known(rows) == [3, 4]
