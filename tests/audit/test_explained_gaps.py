"""A hole between two windows is excused if each window in it has a reason, and by nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest

from laggard.audit.known_gaps import KnownGaps

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)
MINUTE = timedelta(minutes=1)
LAST = {  # the last row before a hole, in windows of a minute
    "group": "g",
    "topic": "t",
    "partition": 0,
    "window_start": NOON - MINUTE,
    "window_end": NOON,
    "commit_source_partition": 3,
}


def at(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


def gap(begin: float, end: float, scope: str = "all") -> dict[str, Any]:
    return {"gap_scope": scope, "gap_from": at(begin), "gap_to": at(end), "gap_reason": "job_down"}


def event(
    kind: str, minutes: float, topic: str | None = None, partition: int | None = None
) -> dict[str, Any]:
    return {
        "group": "g",
        "kind": kind,
        "event_at": at(minutes),
        "topic": topic,
        "partition": partition,
    }


def covers(hole: float, gaps: Any = (), events: Any = (), **since: datetime) -> bool:
    return KnownGaps(gaps, events, **since).covers(LAST, at(hole))


CASES = {  # minutes of the hole, gaps, events, is it excused?
    "nothing": (300, [], [], False),
    "an outage that covers it": (300, [gap(-0.2, 300.1)], [], True),
    "an outage that begins and ends within its outer windows": (300, [gap(0.9, 299.1)], [], True),
    "an outage of a minute within it": (300, [gap(1, 2)], [], False),
    "an outage that ended at its begin": (300, [gap(-1, 0)], [], False),
    "an outage that began at its end": (1, [gap(1, 2)], [], False),
    "two outages that leave a window between them": (5, [gap(-0.2, 2), gap(3, 5.1)], [], False),
    "two outages that leave a part of a window between them": (
        5,
        [gap(-0.2, 2.1), gap(2.9, 5.1)],
        [],
        True,
    ),
    "an outage of its offsets partition": (2, [gap(-0.2, 2.1, "offsets partition 3")], [], True),
    "an outage of another offsets partition": (
        2,
        [gap(-0.2, 2.1, "offsets partition 4")],
        [],
        False,
    ),
    "a deletion hours before it": (300, [], [event("offset_deleted", -240, "t", 0)], False),
    "a deletion in its last window": (300, [], [event("offset_deleted", -0.5, "t", 0)], True),
    "a deletion at its begin": (300, [], [event("group_deleted", 0)], True),
    "a deletion within it": (300, [], [event("group_deleted", 30)], False),
    "a deletion that was read after an outage": (
        300,
        [gap(-0.2, 30)],
        [event("group_deleted", 30)],
        True,
    ),
    "a deletion of another topic": (300, [], [event("offset_deleted", -0.5, "u", 0)], False),
    "a rewind": (300, [], [event("offset_rewind", -0.5, "t", 0)], False),
    "quarantine": (300, [], [event("quarantined", 0.5), event("quarantine_ended", 299.5)], True),
    "quarantine from the tick that would have written the first": (
        3,
        [],
        [event("quarantined", 1)],
        True,
    ),
    "quarantine that lasts": (300, [], [event("quarantined", -5)], True),
    "quarantine that ended": (
        300,
        [],
        [event("quarantined", -5), event("quarantine_ended", 2)],
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_hole_is_excused_by_what_explains_each_of_its_windows(name: str) -> None:
    hole, gaps, events, expected = CASES[name]
    assert covers(hole, gaps, events) is expected


def test_what_was_not_watched_before_the_oldest_batch_is_not_known() -> None:
    assert covers(300, since=at(299.5))
    assert not covers(300, since=at(298.5))


def test_gaps_cover_a_hole_if_each_window_of_it_meets_one() -> None:
    random, covered = Random(1), 0
    for _ in range(1000):
        begins = [random.randrange(-20, 100) / 10 for _ in range(random.randrange(1, 6))]
        gaps = [gap(begin, begin + random.randrange(1, 40) / 10) for begin in begins]
        hole = random.randrange(1, 8)
        meets = [
            any(each["gap_from"] < at(minute + 1) and each["gap_to"] > at(minute) for each in gaps)
            for minute in range(hole)
        ]
        assert covers(hole, gaps) is all(meets), (hole, gaps)
        covered += all(meets)
    assert 100 < covered < 900
