"""Measure how long the stages of a batch take."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone


class Stopwatch:
    """Seconds per stage of the batch, and when it began and ended."""

    def __init__(self) -> None:
        self._started_at = datetime.now(timezone.utc)
        self._began = self._since = time.monotonic()
        self.seconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        now = time.monotonic()
        self.seconds[stage] = now - self._since
        self._since = now

    def times(self, not_before: datetime) -> dict[str, datetime]:
        """Columns `started_at` and `published_at`: true seconds apart, and not before the time of the rows."""
        started_at = max(self._started_at, not_before)
        return {
            "started_at": started_at,
            "published_at": started_at + timedelta(seconds=time.monotonic() - self._began),
        }

    def move(self, stage: str, to: str, seconds: float) -> None:
        """Count some seconds of one stage for another."""
        self.seconds[to] = min(seconds, self.seconds[stage])
        self.seconds[stage] -= self.seconds[to]
