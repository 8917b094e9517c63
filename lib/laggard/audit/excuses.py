"""Reasons why a window may be missing: time that was not watched, and offsets that were deleted."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

ENDS = ("group_deleted", "offset_deleted", "topic_recreated")  # kinds of group_events after which rows may end
_CLOCKS = timedelta(minutes=1)  # by which the broker's clock, on which a deletion is recorded, may differ from ours


class Excuses:
    """Gaps of `batches`, and the events of `group_events` that end rows of a group."""

    def __init__(self, gaps: Iterable[tuple[datetime, datetime]], events: Iterable[Mapping[str, Any]]) -> None:
        self._gaps = merge_spans(gaps)
        self._begins = [begin for begin, _ in self._gaps]
        self._ends: dict[str, list[tuple[datetime, str | None, int | None]]] = defaultdict(list)
        for event in events:
            self._ends[event["group"]].append((event["event_at"], event["topic"], event["partition"]))

    def is_gap(self, begin: datetime, end: datetime) -> bool:
        """True if some time between two moments was not watched."""
        place = bisect_right(self._begins, end) - 1
        return place >= 0 and self._gaps[place][1] >= begin

    def covers(self, group: str, topic: str, partition: int, begin: datetime, end: datetime) -> bool:
        """True if a gap, or a deletion of the offset, explains that a partition has no rows between two moments."""
        early = begin - (end - begin) - _CLOCKS
        return self.is_gap(begin, end) or any(
            early <= at <= end and of_topic in (None, topic) and of_partition in (None, partition)
            for at, of_topic, of_partition in self._ends.get(group, ())
        )


def merge_spans(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Put spans in order, those that overlap joined into one."""
    found: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found
