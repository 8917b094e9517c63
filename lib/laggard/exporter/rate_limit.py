"""A token bucket: so many requests at once, then one in each interval."""

from __future__ import annotations

import time
from collections.abc import Callable


class RateLimit:
    """Refuses what comes faster."""

    def __init__(self, interval_seconds: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval_seconds
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock()

    def allows(self) -> bool:
        """True if a request may be answered now; it then counts."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) / self._interval)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
