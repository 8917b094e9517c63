"""Reasons for a missing window: time without watching, quarantine, and deleted offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from laggard.tables.schema.batch_tables import CLOCK, JOB_DOWN, TICK_LATE

# kinds of group_events after which rows may end
ENDS = ("group_deleted", "offset_deleted", "topic_recreated")
QUARANTINED, RECOVERED = "quarantined", "quarantine_ended"
FIRST, LAST = datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)
_ALL = "all"
Span = tuple[datetime, datetime]
Row = Mapping[str, Any]


class KnownGaps:
    """Gaps of `batches`, and the events of `group_events` that end or hold rows of a group.

    `since`: poll of the oldest row of `batches`; what was not watched before is not known.
    """

    def __init__(
        self, gaps: Collection[Row], events: Iterable[Row], since: datetime = FIRST
    ) -> None:
        self._ends: dict[str, list[Row]] = defaultdict(list)
        self._dark = _dark_spans(gaps)
        # ("gap", its scope) or ("group", name)
        spans: dict[tuple[str, str], list[Span]] = defaultdict(list)
        for gap in gaps:
            spans["gap", gap["gap_scope"]].append((gap["gap_from"], gap["gap_to"]))
        spans["gap", _ALL].append((FIRST, since))
        for event in sorted(events, key=lambda event: event["event_at"]):
            held = spans["group", event["group"]]
            if event["kind"] == QUARANTINED:
                held.append((event["event_at"], LAST))
            elif event["kind"] == RECOVERED and held:
                held[-1] = held[-1][0], event["event_at"]
            elif event["kind"] in ENDS:
                self._ends[event["group"]].append(event)
        self._spans = {key: merge_spans(recorded) for key, recorded in spans.items()}

    def gaps(self, row: Row, begin: datetime, end: datetime) -> list[Span]:
        """Return spans without watch of the row's offsets partition between two moments.

        The row is one of `lag_windows`.
        """
        scope = f"offsets partition {row.get('commit_source_partition')}"
        return [
            *self._between(("gap", _ALL), begin, end),
            *self._between(("gap", scope), begin, end),
        ]

    def cut_short(self, row: Row) -> bool:
        """Return True if a window may have ended before its last tick.

        Then the data after that end is in no window.

        `row`: of `lag_windows` or `topic_windows`.
        """
        begin, end = row["window_start"], row["window_end"]
        return bool(self.gaps(row, begin, end)) or any(
            begin - (end - begin) <= event["event_at"] <= end
            and event["topic"] in (None, row["topic"])
            for event in self._ends.get(row.get("group", ""), ())
        )

    def is_dark(self, begin: datetime, end: datetime) -> bool:
        """Return True if no tick lies between two moments."""
        return any(since < begin and end <= until for since, until in self._dark)

    def covers(self, row: Row, end: datetime) -> bool:
        """Return True if each missing window after `row` is explained up to `end`.

        `row` is the last row of its partition.
        """
        moment, window = row["window_end"], row["window_end"] - row["window_start"]
        spans = self.gaps(row, moment, end)
        # the tick that failed first would have written the window before it
        held = self._between(("group", row["group"]), moment, end + window)
        spans += [(begin - window, until) for begin, until in held]
        # a window in which the offset was deleted may have a row; a group that ended unseen takes
        # the one before along
        for event in self._ends.get(row["group"], ()):
            is_of_topic = event["topic"] in (None, row["topic"])
            is_of_row = is_of_topic and event["partition"] in (None, row["partition"])
            if is_of_row and moment - window <= event["event_at"] < end:
                since = event["event_at"] - window * (event["kind"] == "group_deleted")
                spans.append((since, end))
        for since, until in sorted(spans):
            if since >= moment + window:
                break
            if until > moment:
                # whole windows, the last one included
                moment -= (moment - min(until, end)) // window * window
        return bool(moment >= end)

    def _between(self, key: tuple[str, str], begin: datetime, end: datetime) -> list[Span]:
        spans = self._spans.get(key, [])
        first = bisect_right(spans, begin, key=lambda span: span[1])
        return spans[first : bisect_left(spans, end, key=lambda span: span[0])]


def _dark_spans(gaps: Collection[Row]) -> list[Span]:
    """Return spans in which no tick was; not merged, as the tick between two gaps saw something."""
    # time before a jump is moved with it
    jumps = {gap["gap_from"] for gap in gaps if gap["gap_reason"] == CLOCK}
    late = [gap for gap in gaps if gap["gap_reason"] in (JOB_DOWN, TICK_LATE)]
    return [(gap["gap_from"], gap["gap_to"]) for gap in late if gap["gap_to"] not in jumps]


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Put spans in order, those that overlap joined into one."""
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged
