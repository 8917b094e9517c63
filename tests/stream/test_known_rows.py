"""Rows that a window is evaluated by: what was known at its end, however much later it is
evaluated.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa

from laggard.diagnosis.parameters import Parameters, Policy
from laggard.stream.evaluation.reading import Options, Window, events_of, known_at
from laggard.tables.arrow import to_arrow
from laggard.tables.schema.schemas import GROUP_EVENTS

END = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)
WINDOW = Window(round((END.timestamp() - 60) * 1000), batch_id=7)
OPTIONS = Options("c", 60, Parameters(), lambda *_: Policy())


def events(*rows: tuple[str, timedelta, int]) -> pa.Table:
    """Rows of group_events: id, time after the window's end, batch."""
    records = [
        {
            "date": END.date(),
            "cluster": "c",
            "group": "g",
            "event_id": name,
            "event_at": END + after,
            "batch_id": batch,
        }
        for name, after, batch in rows
    ]
    return to_arrow(GROUP_EVENTS, records)


def known(*rows: tuple[str, timedelta, int]) -> list[str]:
    found = known_at(events_of({"group_events": events(*rows)}), WINDOW, OPTIONS)["group_events"]
    return [row["event_id"] for row in found]


def test_the_batch_that_closed_the_window_has_seen_more_than_the_window() -> None:
    second = timedelta(seconds=1)
    assert known(("at its end", 0 * second, 7), ("after it", second, 7), ("in it", -second, 7)) == [
        "in it",
        "at its end",
    ]


def test_what_was_published_later_is_not_known() -> None:
    assert known(("later", -timedelta(seconds=30), 8), ("earlier", -timedelta(seconds=30), 6)) == [
        "earlier"
    ]


def test_a_day_back_is_known_and_the_order_is_that_of_time_whatever_the_files() -> None:
    hour = timedelta(hours=1)
    rows = [
        ("b", -2 * hour, 3),
        ("too old", -25 * hour, 1),
        ("a", -2 * hour, 3),
        ("oldest", -24 * hour, 7),
    ]
    assert known(*rows) == known(*reversed(rows)) == ["oldest", "a", "b"]
