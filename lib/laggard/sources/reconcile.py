"""Groups that ended unseen: the tombstones of a group that ended while the job was down may be gone before it reads."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from laggard.sources.brokers import Brokers
from laggard.sources.ended_groups import look_for

MOST_GROUPS = 1000  # asked about at a time


class Reconcile:
    """Compares the groups that have rows with complete listings, now and then; `seconds` 0: never."""

    def __init__(self, brokers: Brokers, seconds: float, known: Iterable[str]) -> None:
        self._brokers = brokers
        self._seconds = seconds
        self._known = set(known)
        self._gone: set[str] = set()
        self._asked_at: float | None = None

    def ended(self, listed: Collection[str]) -> list[str]:
        """Groups of which their coordinator last said that they are gone, and that this complete listing lacks."""
        if not self._seconds:
            return []
        self._gone -= set(listed)
        missing = sorted(self._known - set(listed) - self._gone)[:MOST_GROUPS]
        self._known |= set(listed)
        now = time.monotonic()
        if self._asked_at is None or now - self._asked_at >= self._seconds:
            self._asked_at = now
            self._known -= self._gone  # the job had hours to take them out
            self._gone = look_for(self._brokers, missing).gone if missing else set()
        return sorted(self._gone)
