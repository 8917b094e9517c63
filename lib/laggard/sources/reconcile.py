"""Groups that ended unseen: the tombstones of a group that ended while the job was down may be gone before it reads."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from laggard.sources.brokers import Brokers
from laggard.sources.ended_groups import look_for

MOST_GROUPS = 1000  # asked about at a time


class Reconcile:
    """Compares groups that may have rows with complete listings, now and then; `seconds` 0: never.

    A round asks about each missing group once, some at each listing. Which of those that were listed since the round
    before have rows is not known here: all are asked about, and those that are gone are forgotten.
    """

    def __init__(self, brokers: Brokers, seconds: float, known: Iterable[str]) -> None:
        self._brokers = brokers
        self._seconds = seconds
        self._known = set(known)
        self._gone: set[str] = set()
        self._to_ask: list[str] = []
        self._asked_at: float | None = None

    def ended(self, listed: Collection[str]) -> list[str]:
        """Groups of which their coordinator last said that they are gone, and that this complete listing lacks."""
        if not self._seconds:
            return []
        there, now = set(listed), time.monotonic()
        self._gone -= there
        is_due = self._asked_at is None or now - self._asked_at >= self._seconds
        if is_due and not self._to_ask:
            self._asked_at = now
            self._known -= self._gone  # the job had hours to take them out
            self._gone = set()
            self._to_ask = sorted(self._known - there)
        self._known |= there
        asked, self._to_ask = self._to_ask[:MOST_GROUPS], self._to_ask[MOST_GROUPS:]
        if missing := [group for group in asked if group not in there]:
            self._gone |= look_for(self._brokers, missing).gone
        return sorted(self._gone)
